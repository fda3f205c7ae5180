/** Looking on while charts run. Nothing in this room changes anything. */
export { StepFeed } from './feed.ts';
export type { StepFilter, StepNotice } from './notice.ts';
export { Inspector } from './socket.ts';
