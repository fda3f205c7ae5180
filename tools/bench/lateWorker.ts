import process from 'node:process';
import { openRuntime } from '@kusanya/durable-actors';
import { setup } from 'xstate';

/** A worker that sweeps naps. One that is over is either over, or begins with a question, which is answered at once. */
const nap = setup({
  types: { context: {} as { asks: boolean }, input: {} as { at: number } },
  actions: { ask: () => {} },
  guards: { asks: ({ context }) => context.asks },
  delays: { hour: 3_600_000 },
}).createMachine({
  id: 'nap',
  version: '1',
  options: { maxIterations: 100 },
  context: { asks: false },
  initial: 'asleep',
  states: {
    asleep: { id: 'asleep', after: { hour: [{ guard: 'asks', target: 'asking' }, { target: 'awake' }] } },
    asking: { entry: 'ask', on: { answered: 'awake' } },
    awake: {},
  },
});

const runtime = await openRuntime({
  mongodbUri: process.env.MONGODB_URI!,
  redisUrl: process.env.REDIS_URL!,
  name: process.env.BENCH_DB!,
  definitions: [
    {
      ...{ name: 'nap', plural: 'naps', machine: nap, writes: {}, migrations: {} },
      calls: {
        ask: { concurrency: 50, patienceMs: 30_000, run: async () => ({ event: { type: 'answered' } }) },
      },
    },
  ],
  sweepMs: 200,
});
/** One to be copied. */
const template = { machine: 'nap', id: 'nap_template', input: { at: runtime.clock.now() }, data: {} };
process.on('message', () => {
  // Labels are declared by the service, whose code this bench is compiled with; the actors of a bench have none.
  const actor = template as Parameters<typeof runtime.actors.create>[0];
  const by = { stepId: 'template', cause: { kind: 'operator', id: 'bench' } } as const;
  void runtime.actors.create(actor, by).then(() => process.send?.('made'));
});
process.on('disconnect', () => process.exit(1)); // the bench was killed
process.on('SIGTERM', () => void runtime.close().then(() => process.exit(0)));
process.send?.({ owner: 'ready' });
