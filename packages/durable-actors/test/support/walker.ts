import { assign, setup } from 'xstate';
import type { ActorDoc, MachineDefinition, Write, WriteEffect } from '../../src/index.ts';
import { chartOptions, define, noLabels } from './engine.ts';

/** Left and right in turn; remembers what it was told, asks and is answered, and bears others. */
const chart = setup({
  types: { context: {} as { told: number[] } },
  actions: {
    note: () => {},
    bear: () => {},
    ask: () => {},
    remember: assign({
      told: ({ context, event }) => [...context.told, (event as { n?: number }).n ?? 0].slice(-50),
    }),
  },
}).createMachine({
  ...chartOptions,
  id: 'walker',
  context: { told: [] },
  initial: 'left',
  on: {
    noted: { actions: 'note' },
    borne: { actions: 'bear' },
    asked: { actions: 'ask' },
    answered: { actions: 'remember' },
    shrugged: {},
  },
  states: {
    left: { on: { poked: { target: 'right', actions: 'remember' } } },
    right: { on: { poked: { target: 'left', actions: 'remember' }, rested: 'resting' } },
    resting: {},
  },
});

/** A line that can be written once. */
export const note = (key: string): Write => ({
  op: 'insert',
  into: 'notes',
  doc: { _id: key },
  onDuplicate: 'replay',
});

export function walker(writes: Record<string, WriteEffect> = {}, more: Partial<MachineDefinition> = {}) {
  return define(chart, {
    writes: { note: (step) => [note(String(step.event.key))], bear: () => [], ...writes },
    calls: {
      ask: { concurrency: 1, patienceMs: 60_000, run: async () => ({ event: { type: 'answered' } }) },
    },
    ...more,
  });
}

/** An actor for an effect to bear. */
export const child = (step: { doc: ActorDoc; at: number }, machine: string, id: string) => ({
  ...{ ...noLabels, machine, id, data: {} },
  input: { at: step.at },
});
