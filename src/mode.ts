/** Whether money moves: `test` and `live` are two books, two lists, two of everything. */
export type Mode = 'live' | 'test';

/** Both, for what has to be done in each. */
export const modes: readonly Mode[] = ['live', 'test'];
