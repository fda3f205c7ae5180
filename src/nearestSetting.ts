import { settingEntries } from './settings.ts';

/** The setting that a misspelt name most likely means; undefined when none is near. */
export function nearestSetting(name: string): string | undefined {
  const meant = name.replace(/_FILE$/, ''); // only secrets may come from files
  const [nearest] = settingEntries
    .map(([known]) => ({ known, distance: edits(meant, known) }))
    .sort((a, b) => a.distance - b.distance);
  return nearest!.distance <= Math.ceil(name.length / 3) ? nearest!.known : undefined;
}

/** How many letters must be added, taken away or changed to make `b` of `a` (Levenshtein). */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + (letter === b[j] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
