import { Redis } from 'ioredis';
import { type Db, MongoClient } from 'mongodb';
import type { Outside } from './checker.ts';
import { freePort, type ServiceProcess, seeded, startProcess } from './processes.ts';
import { type Receiver, startReceiver, until } from './service.ts';
import { freshDatabase, stores } from './stores.ts';

/** A merchant, a receiver and processes of the service that may be killed: the stage of a fault test. */
export interface World {
  db: Db;
  redis: Redis;
  env: Record<string, string>;
  receiver: Receiver;
  outside: Required<Outside>;
  process: ServiceProcess;
  random: () => number;
  /** Starts the process again after it was ended. */
  restart(): Promise<void>;
  /** One create with its own key, retried with the same key until it is answered 202. */
  create(phone?: string): Promise<void>;
  /** Waits until no collection is open and every event has arrived. */
  settle(withinMs: number): Promise<boolean>;
  close(): Promise<void>;
}

const operatorToken = 'operator-token-of-the-faults';

/** `seed` decides everything that is random; print it, so that a run can be repeated. */
export async function openWorld(seed: number, more: Record<string, string> = {}): Promise<World> {
  const { mongodbUri, redisUrl } = await stores();
  const database = freshDatabase('faults');
  const env = {
    MONGODB_URI: mongodbUri,
    REDIS_URL: redisUrl,
    MONGODB_DATABASE: database,
    REDIS_PREFIX: database,
    OPERATOR_TOKEN: operatorToken,
    KEY_HASH_SECRET: 'key-hash-secret-of-the-faults',
    SECRETS_KEY: Buffer.alloc(32, 3).toString('base64'),
    LOG_LEVEL: 'warn',
    SIMULATOR_SPEED: '20',
    SWEEP_INTERVAL: '500ms',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_RETRY_DELAYS: '200ms,500ms,1s,1s,2s,2s',
    WEBHOOK_RETRY_JITTER: '0',
    RATE_LIMIT_PER_SECOND: '0',
    ...more,
  };
  const ports = { port: await freePort(), adminPort: await freePort() };
  const client = await new MongoClient(mongodbUri).connect();
  const receiver = await startReceiver();
  const world: World = {
    db: client.db(database),
    redis: new Redis(redisUrl),
    env,
    receiver,
    random: seeded(seed),
    outside: { accepted: new Map(), received: new Set() },
    process: startProcess(env, ports),
    restart: async () => {
      world.process = startProcess(env, ports);
      await world.process.ready;
    },
    create: (phone = '255700000000') => createOnce(world, key, phone),
    settle: (withinMs) => settle(world, withinMs),
    close: async () => {
      await world.process.kill();
      await receiver.close();
      world.redis.disconnect();
      await client.close();
    },
  };
  await world.process.ready;
  const key = await register(world);
  return world;
}

async function register(world: World): Promise<string> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${world.process.adminUrl}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.status !== 201) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as { id: string; secret: string };
  };
  const merchant = await post('/admin/merchants', { name: 'Faulty & Sons' });
  const { secret } = await post(`/admin/merchants/${merchant.id}/keys`, { mode: 'test' });
  await post(`/admin/merchants/${merchant.id}/endpoints`, { mode: 'test', url: world.receiver.url });
  return secret;
}

let lastCreate = 0;

async function createOnce(world: World, key: string, phone: string): Promise<void> {
  lastCreate += 1;
  const idempotencyKey = `fault-${process.pid}-${lastCreate}`;
  const answered = await until(async () => {
    try {
      const response = await fetch(`${world.process.baseUrl}/v1/collections`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': idempotencyKey,
        },
        body: JSON.stringify({ amount: 1000, phone, reference: idempotencyKey }),
        signal: AbortSignal.timeout(15_000),
      });
      const { id } = (await response.json()) as { id?: string };
      if (response.status !== 202 || !id) return undefined;
      const ids = world.outside.accepted.get(idempotencyKey) ?? new Set();
      world.outside.accepted.set(idempotencyKey, ids.add(id));
      return true;
    } catch {
      // The process was killed under this request: the same key again, as a merchant would.
      await new Promise((resolve) => setTimeout(resolve, 50));
      return undefined;
    }
  }, 90_000);
  if (!answered)
    throw new Error(`${idempotencyKey} was never answered 202:\n${world.process.output().slice(-2000)}`);
}

async function settle(world: World, withinMs: number): Promise<boolean> {
  const ended = await until(async () => {
    const open = await world.db.collection('collections').countDocuments({
      status: 'created',
      state: { $not: /underReview/ },
    });
    const undelivered = await world.db
      .collection('deliveries')
      .countDocuments({ state: { $ne: 'delivered' } });
    for (const { event } of world.receiver.received) world.outside.received.add(event?.id);
    return open === 0 && undelivered === 0;
  }, withinMs);
  if (!ended) process.stderr.write(`${await leftOpen(world)}\n${world.process.output().slice(-3000)}\n`);
  return ended === true;
}

/** What has not ended, for whoever reads a failed test. */
async function leftOpen({ db }: World): Promise<string> {
  const open = { projection: { state: 1, dueAt: 1, timers: 1, calls: 1 }, limit: 20 };
  const left = await Promise.all([
    db.collection('collections').find({ status: 'created' }, open).toArray(),
    db
      .collection('deliveries')
      .find({ state: { $ne: 'delivered' } }, open)
      .toArray(),
    db
      .collection('endpoints')
      .find({}, { projection: { state: 1 } })
      .toArray(),
  ]);
  return `left open at ${new Date().toISOString()}: ${JSON.stringify(left, undefined, 1)}`;
}
