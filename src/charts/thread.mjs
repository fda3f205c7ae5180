/** The door of the drawing thread: on Node 20 a thread does not take TypeScript by the process's own flags. */
import { register } from 'tsx/esm/api';

register();
await import('./thread.ts');
