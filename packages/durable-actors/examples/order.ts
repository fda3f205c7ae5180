import { setTimeout as sleep } from 'node:timers/promises';
import { openRuntime } from '@kusanya/durable-actors';
import { setup } from 'xstate';

// An order is charged, packed for two seconds, and shipped: once, however often its process is killed.
const order = setup({
  actions: { charge: () => {}, ship: () => {} },
  delays: { packing: 2_000 },
}).createMachine({
  id: 'order',
  version: '1',
  options: { maxIterations: 100 },
  initial: 'charging',
  states: {
    charging: { entry: 'charge', on: { 'charge.done': 'packing' } },
    packing: { id: 'packing', after: { packing: 'shipped' } },
    shipped: { entry: 'ship' },
  },
});

const runtime = await openRuntime({
  mongodbUri: process.env.MONGODB_URI ?? 'mongodb://127.0.0.1:27017/?replicaSet=rs0',
  redisUrl: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  name: process.env.NAME ?? 'durable-actors-example',
  definitions: [
    {
      name: 'order',
      plural: 'orders',
      machine: order,
      // A write is part of the commit. A call leaves after it, at least once, with an id that stays the same.
      writes: {
        ship: ({ doc: { _id } }) => [{ op: 'insert', into: 'sent', doc: { _id }, onDuplicate: 'race' }],
      },
      calls: { charge: { run: charge, concurrency: 10, patienceMs: 5_000 } },
      migrations: {},
    },
  ],
  sweepMs: 500,
  lostAfterMs: 2_000,
});

async function charge({ call }: { call: { id: string } }) {
  process.stdout.write(`charging ${call.id}\n`);
  await sleep(1_000); // the bank, which knows the id of a charge that it has seen
  return { event: { type: 'charge.done' } };
}

const ref = { machine: 'order', id: process.argv[2] ?? 'order_1' };
if (!(await runtime.actors.read(ref))) {
  const input = { at: runtime.clock.now() };
  const by = { stepId: ref.id, cause: { kind: 'operator', id: 'me' } } as const;
  await runtime.actors.create({ ...ref, input, data: {} }, by);
}
for (let at = ''; at !== 'shipped'; await sleep(50)) {
  const state = (await runtime.actors.read(ref))?.state ?? '';
  if (state !== at) process.stdout.write(`${ref.id} is ${state}\n`);
  at = state;
}
await runtime.close();
