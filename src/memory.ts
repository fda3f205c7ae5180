/**
 * What the chart of an actor remembers. A document that nobody understands may hold nothing of it, and is shown all the
 * same: whoever has to repair it must see it, and the others of its list must not vanish with it.
 */
export function memoryOf<Context>({ snapshot }: { snapshot?: { context?: Context } }): Partial<Context> {
  const context = snapshot?.context;
  return typeof context === 'object' && context !== null ? context : {};
}
