import type { Db } from 'mongodb';
import { Long } from 'mongodb';
import { assign, setup } from 'xstate';
import type { Write } from '../../src/index.ts';
import { chartOptions, define, noLabels } from './engine.ts';

/** Counts its pokes; each is posted to a book, in the commit of the step. */
export const counter = define(
  setup({
    types: { context: {} as { pokes: number } },
    actions: { post: () => {}, call: () => {}, bear: () => {} },
    delays: { patience: 60_000 },
  }).createMachine({
    ...chartOptions,
    id: 'counter',
    context: { pokes: 0 },
    initial: 'only',
    states: {
      only: {
        id: 'only',
        after: { patience: { actions: 'post' } },
        on: {
          poked: { actions: [assign({ pokes: ({ context }) => context.pokes + 1 }), 'post'] },
          called: { actions: 'call' },
          borne: { actions: 'bear' },
        },
      },
    },
  }),
  {
    writes: {
      post: ({ event, doc }) => [
        entry(String(event.key ?? `${doc._id}.${doc.seq}`)),
        add('pokes', { pokes: 1 }),
      ],
      bear: ({ doc, at }) => ({
        actors: [
          {
            machine: 'counter',
            id: `${doc._id}_child`,
            input: { at },
            ...noLabels,
            data: {},
          },
        ],
      }),
    },
    calls: {
      call: { concurrency: 1, patienceMs: 60_000, run: async () => ({ event: { type: 'answered' } }) },
    },
  },
);

/** A line of the book; its key can be taken once. */
export function entry(key: string, more: Record<string, unknown> = {}): Write {
  return { op: 'insert', into: 'entries', doc: { _id: key, ...more }, onDuplicate: 'refuse' };
}

/** Adds to a sum. */
export function add(id: string, amounts: Record<string, number>): Write {
  const longs = Object.fromEntries(Object.entries(amounts).map(([path, n]) => [path, Long.fromNumber(n)]));
  return { op: 'increment', into: 'sums', id, amounts: longs, onInsert: { made: true } };
}

interface Sum {
  _id: string;
  n?: number;
  pokes?: number;
  available?: number;
  seq?: number;
}

export const entriesOf = (db: Db) => db.collection<{ _id: string }>('entries');
export const sumsOf = (db: Db) => db.collection<Sum>('sums');
