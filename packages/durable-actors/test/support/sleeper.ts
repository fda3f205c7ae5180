import { assign, setup } from 'xstate';
import type { CallEffect, MachineDefinition } from '../../src/index.ts';
import { chartOptions, define, type Engine, give } from './engine.ts';

/** Sleeps for its input's `napMs`, as often as `naps` says, and asks when it is told to. */
const chart = setup({
  types: {
    context: {} as { napMs: number; left: number; slept: number; heard: string[] },
    input: {} as { at: number; napMs?: number; naps?: number },
  },
  actions: {
    ask: () => {},
    push: () => {},
    sleepOff: assign({ left: ({ context }) => context.left - 1, slept: ({ context }) => context.slept + 1 }),
    hear: assign({ heard: ({ context, event }) => [...context.heard, event.type] }),
  },
  guards: { isTired: ({ context }) => context.left > 1 },
  delays: { nap: ({ context }) => context.napMs },
}).createMachine({
  ...chartOptions,
  id: 'sleeper',
  context: ({ input }) => ({
    napMs: input?.napMs ?? 0,
    left: input?.naps ?? 0,
    slept: 0,
    heard: [],
  }),
  initial: 'deciding',
  on: {
    asking: { actions: 'ask' },
    pushing: { actions: 'push' },
    answered: { actions: 'hear' },
    lost: { actions: 'hear' },
    poked: { actions: 'hear' },
  },
  states: {
    deciding: {
      always: [{ guard: ({ context }) => context.left > 0, target: 'asleep' }, { target: 'awake' }],
    },
    asleep: {
      id: 'asleep',
      after: {
        nap: [
          { guard: 'isTired', target: 'asleep', reenter: true, actions: 'sleepOff' },
          { target: 'awake', actions: 'sleepOff' },
        ],
      },
    },
    awake: { id: 'awake' },
  },
});

/** How long its calls wait for an answer. */
export const patienceMs = 60_000;

/** `run`: what makes a call; it answers at once if not said. */
export function sleeper(run?: CallEffect['run'], more: Partial<MachineDefinition> = {}): MachineDefinition {
  const call: CallEffect = {
    concurrency: 10,
    patienceMs,
    run: async (view) => {
      if (!(await view.claim())) return { left: true };
      return run ? run(view) : { event: { type: 'answered' } };
    },
  };
  return define(chart, {
    calls: { ask: call, push: { ...call, atMostOnce: { lost: (_call, at) => ({ type: 'lost', at }) } } },
    ...more,
  });
}

/** New sleepers, asleep for `napMs`, `naps` times in a row. */
export function lull(engine: Engine, count: number, napMs: number, naps = 1) {
  return Promise.all(
    Array.from({ length: count }, () => give(engine, 'sleeper', { input: { napMs, naps } })),
  );
}

/** How often each actor has slept to the end, as `{ 1: 500 }`: so many times, so many actors. */
export async function slept(engine: Engine): Promise<Record<number, number>> {
  const docs = await engine.db.collection('sleepers').find().toArray();
  const counts: Record<number, number> = {};
  for (const { snapshot } of docs) {
    const times = snapshot.context.slept as number;
    counts[times] = (counts[times] ?? 0) + 1;
  }
  return counts;
}
