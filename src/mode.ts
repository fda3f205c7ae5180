/** Whether money moves: `test` and `live` are two books, two lists, two of everything. */
export type Mode = 'live' | 'test';

/** Both, for what has to be done in each. */
export const modes: readonly Mode[] = ['live', 'test'];

/**
 * What befalls the webhooks of some test numbers, so that receivers meet it before it is true: each comes twice at the
 * same moment, or the later one comes first.
 */
export type Mishap = 'doubled' | 'overtaken';
