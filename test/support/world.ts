import { Redis } from 'ioredis';
import { type Db, MongoClient } from 'mongodb';
import type { Outside } from './checker.ts';
import { type OwnStores, openStores } from './own-stores.ts';
import { freePort, type Ports, type ServiceProcess, seeded, startProcess } from './processes.ts';
import { type Receiver, startReceiver } from './service.ts';
import { freshDatabase, stores } from './stores.ts';
import { until } from './until.ts';

/** What a suite begins its random choices with: SEED, or the time. Part of its title, so that it can be repeated. */
export const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

/** A merchant, a receiver and processes of the service that may be killed: the stage of a fault test. */
export interface World {
  db: Db;
  redis: Redis;
  env: Record<string, string>;
  receiver: Receiver;
  outside: Required<Outside>;
  /** In the order of their start; each serves requests. */
  processes: ServiceProcess[];
  /** The first of them. */
  readonly process: ServiceProcess;
  /** Servers of this world alone, where it was opened with such. */
  stores: OwnStores | undefined;
  merchantId: string;
  testKey: string;
  /** The merchant's endpoints at the receiver: all of their deliveries must arrive. */
  endpointIds: string[];
  random: () => number;
  /** A merchant's request to one of the processes; undefined when it was not answered. */
  ask(method: string, path: string, options?: Asked): Promise<Answered | undefined>;
  /** An operator's, to this process or the first. */
  operate(method: string, path: string, body?: object, at?: ServiceProcess): Promise<Answered | undefined>;
  /** One more process beside those that run. */
  start(more?: Record<string, string>, command?: readonly string[]): Promise<ServiceProcess>;
  /** Starts a process again after it was ended, on the same ports. */
  restart(which?: number, more?: Record<string, string>): Promise<void>;
  /** One create with its own key, retried with the same key until it is answered 202. Answers the id. */
  create(phone?: string): Promise<string>;
  /** Waits until no collection is open and every event has arrived; four minutes, if not said. */
  settle(withinMs?: number): Promise<boolean>;
  close(): Promise<void>;
}

interface Asked {
  key?: string;
  body?: object;
  /** To this process; else to any. */
  at?: ServiceProcess;
  /** Of the merchant; else its test key. */
  apiKey?: string;
}

export interface Answered {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  json: any;
}

interface WorldOptions {
  /** Servers of its own; `mongodDir`: where its MongoDB keeps its data. */
  own?: boolean;
  mongodDir?: string;
  /** Of the first process; else free ones. */
  ports?: Ports;
}

const operatorToken = 'operator-token-of-the-faults';

/** `first`: settings of all processes beyond the suite's. */
export async function openWorld(
  first: Record<string, string> = {},
  options: WorldOptions = {},
): Promise<World> {
  const own = options.own || options.mongodDir ? await openStores(options.mongodDir) : undefined;
  const { mongodbUri, redisUrl } = own ?? (await stores());
  const env = { ...settingsOf(freshDatabase('faults'), mongodbUri, redisUrl), ...first };
  const client = await new MongoClient(env.MONGODB_URI).connect();
  const receiver = await startReceiver();
  const places: Ports[] = [];
  let firstPorts = options.ports;
  const world: World = {
    ...{ db: client.db(env.MONGODB_DATABASE), redis: new Redis(redisUrl), env, receiver, stores: own },
    ...{ random: seeded(seed), processes: [], merchantId: '', testKey: '', endpointIds: [] },
    outside: {
      ...{ accepted: new Map(), odd: [], ended: new Map() },
      get received() {
        return new Set(receiver.received.map(({ event }) => event?.id as string));
      },
    },
    get process() {
      return this.processes[0]!;
    },
    ask: (method, path, asked) => ask(world, method, path, asked),
    operate: (method, path, body, at = world.process) =>
      request(`${at.adminUrl}${path}`, method, { authorization: `Bearer ${operatorToken}` }, body),
    start: async (more = {}, command) => {
      places.push(firstPorts ?? { port: await freePort(), adminPort: await freePort() });
      firstPorts = undefined;
      world.processes.push(await startProcess({ ...env, ...more }, places.at(-1)!, command));
      await world.processes.at(-1)!.ready;
      return world.processes.at(-1)!;
    },
    restart: async (which = 0, more = {}) => {
      world.processes[which] = await startProcess({ ...env, ...more }, places[which]!);
      await world.processes[which].ready;
    },
    create: (phone = '255700000000') => create(world, phone),
    settle: (withinMs = 240_000) => settle(world, withinMs),
    close: async () => {
      await Promise.all(world.processes.map((each) => each.kill()));
      await receiver.close();
      world.redis.disconnect();
      await client.close();
      await own?.close();
    },
  };
  // A Redis that a test stops is no news.
  world.redis.on('error', () => {});
  await world.start();
  await register(world);
  return world;
}

function settingsOf(database: string, mongodbUri: string, redisUrl: string) {
  return {
    ...{ MONGODB_URI: mongodbUri, MONGODB_DATABASE: database, REDIS_URL: redisUrl, REDIS_PREFIX: database },
    ...{ OPERATOR_TOKEN: operatorToken, KEY_HASH_SECRET: 'key-hash-secret-of-the-faults' },
    SECRETS_KEY: Buffer.alloc(32, 3).toString('base64'),
    ...{ LOG_LEVEL: 'warn', NODE_ENV: 'test', SIMULATOR_SPEED: '20' },
    ...{ SWEEP_INTERVAL: '500ms', WORKER_LOST_AFTER: '3s' },
    ...{ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_RETRY_DELAYS: '200ms,500ms,1s,1s,2s,2s' },
    ...{ WEBHOOK_RETRY_JITTER: '0', RATE_LIMIT_PER_SECOND: '0' },
  };
}

/** A merchant with a test key and an endpoint. */
async function register(world: World): Promise<void> {
  const made = async (path: string, body: object) => {
    const answer = await world.operate('POST', path, { ...body, reason: 'for a test' });
    if (answer?.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.json as { id: string; secret: string };
  };
  const { id } = await made('/admin/merchants', { name: 'Faulty & Sons' });
  world.merchantId = id;
  world.testKey = (await made(`/admin/merchants/${id}/keys`, { mode: 'test' })).secret;
  const endpoint = { mode: 'test', url: world.receiver.url };
  world.endpointIds.push((await made(`/admin/merchants/${id}/endpoints`, endpoint)).id);
}

async function ask(
  world: World,
  method: string,
  path: string,
  { key, body, at, apiKey = world.testKey }: Asked = {},
): Promise<Answered | undefined> {
  const running = world.processes.filter(({ child }) => child.exitCode === null && child.signalCode === null);
  const any = running[Math.floor(world.random() * running.length)] ?? world.process;
  const headers = { authorization: `Bearer ${apiKey}`, ...(key ? { 'idempotency-key': key } : {}) };
  return request(`${(at ?? any).baseUrl}${path}`, method, headers, body);
}

/** Undefined when the connection was refused, cut or silent: the process may be dead or killed under the request. */
async function request(
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Answered | undefined> {
  try {
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(20_000),
    });
    return { status: response.status, headers: response.headers, json: await response.json() };
  } catch {
    return undefined;
  }
}

let lastCreate = 0;

async function create(world: World, phone: string): Promise<string> {
  lastCreate += 1;
  const key = `fault-${process.pid}-${lastCreate}`;
  const created = await until(async () => {
    const body = { amount: 1000, phone, reference: key };
    const answer = await world.ask('POST', '/v1/collections', { key, body });
    if (answer?.status === 202) {
      const ids = world.outside.accepted.get(key) ?? new Set();
      world.outside.accepted.set(key, ids.add(answer.json.id));
      return answer.json.id as string;
    }
    if (answer) noteOdd(world, answer, [503, 409], `POST /v1/collections (${key})`);
    // As a merchant would: the same key again, a little later.
    await new Promise((resolve) => setTimeout(resolve, 50));
    return undefined;
  }, 120_000);
  if (!created) throw new Error(`${key} was never answered 202:\n${world.process.output().slice(-2000)}`);
  return created;
}

/** Faults may delay an answer and refuse it for now, and nothing else. */
export function noteOdd(world: World, { status, json }: Answered, allowed: number[], what: string): void {
  const isInUse = status === 409 && json?.error?.code !== 'idempotency_key_in_use';
  if (!allowed.includes(status) || isInUse)
    world.outside.odd.push(`${what}: ${status} ${JSON.stringify(json)}`);
}

async function settle(world: World, withinMs: number): Promise<boolean> {
  const ended = await until(async () => {
    // Under review a payment may rest for long, but not while a call is open that may end it. One that was claimed
    // and died with its process stays open for minutes, and nobody waits for it.
    const open = await world.db.collection('collections').countDocuments({
      status: 'created',
      $or: [{ state: { $not: /underReview/ } }, { calls: { $elemMatch: { startedAt: { $exists: false } } } }],
    });
    const undelivered = await world.db
      .collection('deliveries')
      .countDocuments({ 'data.endpointId': { $in: world.endpointIds }, state: { $ne: 'delivered' } });
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
