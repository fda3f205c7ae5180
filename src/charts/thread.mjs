/** The door of the drawing thread: on Node 20 a thread does not take TypeScript by the process's own flags. */
if (!process.features.typescript) {
  const { register } = await import('tsx/esm/api');
  register();
}
await import('./thread.ts');
