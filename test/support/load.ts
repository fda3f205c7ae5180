import { setTimeout as wait } from 'node:timers/promises';
import { noteOdd, type World } from './world.ts';

/**
 * Merchants at work, by the world's seed: creates, repetitions of earlier ones, and looks at what became of them.
 * Whatever they see that no fault excuses is noted in the world's `odd`.
 */
export interface Load {
  /** Finishes what is in hand. */
  stop(): Promise<void>;
}

const phones = [
  ...['255700000000', '255700000000', '255700000000', '255700000001', '255700000004', '255700000005'],
  ...['255700000020', '255700000022', '255700000023', '255700000024', '255700000021'],
];

/** Eight merchants, each with a pause of up to `pauseMs` between requests. */
export function startLoad(world: World, pauseMs = 40): Load {
  let isOver = false;
  const work = async () => {
    while (!isOver) {
      await deed(world);
      await wait(world.random() * pauseMs);
    }
  };
  const all = Promise.all(Array.from({ length: 8 }, work));
  return {
    stop: async () => {
      isOver = true;
      await all;
    },
  };
}

async function deed(world: World): Promise<void> {
  const choice = world.random();
  const known = [...world.outside.accepted];
  const [key, ids] = known[Math.floor(world.random() * known.length)] ?? [];
  if (!key || choice < 0.6) {
    await world.create(phones[Math.floor(world.random() * phones.length)]);
  } else if (choice < 0.7) {
    await repeat(world, key, ids!);
  } else if (choice < 0.95) {
    const [id] = ids!;
    await look(world, id!);
  } else {
    const answer = await world.ask('GET', '/v1/balance');
    if (answer) noteOdd(world, answer, [200, 503], 'GET /v1/balance');
  }
}

/** The same key with another body is refused, and makes nothing. */
async function repeat(world: World, key: string, ids: ReadonlySet<string>): Promise<void> {
  const body = { amount: 1001, phone: '255700000000', reference: 'another' };
  const answer = await world.ask('POST', '/v1/collections', { key, body });
  const what = `another body under the key of ${[...ids]}`;
  if (answer && answer.json?.error?.code !== 'idempotency_key_reused') noteOdd(world, answer, [503], what);
}

/** What was answered 202 is found, and what ended stays as it ended. */
async function look(world: World, id: string): Promise<void> {
  const answer = await world.ask('GET', `/v1/collections/${id}`);
  if (!answer) return;
  noteOdd(world, answer, [200, 503], `GET ${id}`);
  if (answer.status !== 200 || answer.json.status === 'created') return;
  const before = world.outside.ended.get(id) ?? answer.json.status;
  if (before !== answer.json.status)
    world.outside.odd.push(`${id} was ${before} and is ${answer.json.status}`);
  world.outside.ended.set(id, before);
}
