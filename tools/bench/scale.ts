import type { Db } from 'mongodb';
import type { LoadPlan, LoadResult } from './load.ts';
import type { ReceiverHello } from './receiver.ts';
import { median, pause, record, tell, until } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * What much data changes: creates and timers while a hundred thousand timers wait; creates at ten thousand and at a
 * million stored collections; a start on an emptied Redis. Stored actors are copies of one that the service made.
 */
const pending = Number(process.env.BENCH_PENDING ?? 100_000);
/** Of the pending timers, those that come due while it is measured. */
const dueSoon = 3_000;
const dueWithinMs = 20_000;
/** For storing the copies, and for the service to arm those that come near. */
const plantingMs = 30_000;
const createsPerSecond = 50;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

type Print = (line: string) => void;

interface Service {
  port: number;
  adminUrl: string;
  key: string;
  merchantId: string;
}

// biome-ignore lint/suspicious/noExplicitAny: a stored document, copied as it is
type Stored = any;

function createPlan({ port, key }: Service, tag: string, more: Partial<LoadPlan> = {}): LoadPlan {
  return {
    port,
    path: '/v1/collections',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'bench-{n}' },
    keys: [key],
    body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}"}',
    connections: 64,
    warmupMs: 1_000,
    durationMs: 5_000,
    tag,
    ...more,
  };
}

/** Ids of copies keep their prefix and length, and sort behind what was made by the service. */
const copyId = (prefix: string, n: number) => `${prefix}_ZZ${String(n).padStart(24, '0')}`;

async function copies(db: Db, name: string, count: number, copy: (n: number) => Stored): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const some = Array.from({ length: Math.min(1_000, count - from) }, (_, n) => copy(from + n));
    await db.collection(name).insertMany(some, { ordered: false, writeConcern: { w: 1 } });
  }
}

/** A delivery that waits for its retry, to be copied: its endpoint was closed, and is open from then on. */
async function waitingDelivery(stage: Stage, db: Db, service: Service, url: string): Promise<Stored> {
  const operator = async (method: string, path: string, body: object) => {
    const response = await fetch(`${service.adminUrl}${path}`, {
      method,
      headers: { authorization: 'Bearer operator-token-of-the-bench', 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, reason: 'bench' }),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as { id: string };
  };
  const path = `/admin/merchants/${service.merchantId}/endpoints`;
  const { id } = await operator('POST', path, { mode: 'test', url: 'http://127.0.0.1:1025/closed' });
  const body = '{"amount":5000,"phone":"255700000004","reference":"order-{n}"}';
  await stage.load(createPlan(service, 'template-', { connections: 1, count: 1, warmupMs: 0, body }));
  const template = await until(() => db.collection('deliveries').findOne({ state: 'waiting' }));
  await operator('PATCH', `/admin/endpoints/${id}`, { url });
  return template;
}

function delayed(template: Stored, n: number, dueAt: Date): Stored {
  const timers = template.timers.map((timer: Stored) => ({ ...timer, dueAt }));
  return { ...template, _id: copyId('dlv', n), timers, dueAt };
}

/** Creates at a steady rate without and with the pending timers, and how late those fire that come due. */
export async function timers(stage: Stage, print: Print): Promise<void> {
  print(`\n${pending} pending timers, ${dueSoon} of them due within ${dueWithinMs / 1_000} s, one process:`);
  const receiver = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const db = stage.client.db('bench_timers');
  const { child, hello } = await stage.start<Service>('ours.ts', 'bench_timers', { BENCH_ROLE: 'all' });
  const url = `http://127.0.0.1:${receiver.hello.ports.http}/hook`;
  const template = await waitingDelivery(stage, db, hello, url);
  const steady = { connections: createsPerSecond, everyMs: 1_000, durationMs: dueWithinMs };
  const without = await stage.load(createPlan(hello, 'without-', steady));
  const firstAt = Date.now() + plantingMs;
  const dueOf = (n: number) =>
    n < dueSoon ? firstAt + Math.floor((n * dueWithinMs) / dueSoon) : firstAt + 3_600_000 + n;
  await copies(db, 'deliveries', pending, (n) => delayed(template, n, new Date(dueOf(n))));
  // They came behind the service's back: an emptied Redis makes it look at all of them.
  await stage.emptyRedis();
  await pause(Math.max(0, firstAt - Date.now()));
  const beside = await stage.load(createPlan(hello, 'beside-', steady));
  const fired = { actor: { $gte: copyId('dlv', 0), $lt: copyId('dlv', dueSoon) }, 'cause.kind': 'timer' };
  const steps = db.collection<Stored>('steps');
  await until(async () => (await steps.countDocuments(fired)) >= dueSoon, 120_000);
  const late: number[] = [];
  for await (const { actor, at } of steps.find(fired)) {
    late.push(at.getTime() - dueOf(Number(actor.slice('dlv_ZZ'.length))));
  }
  late.sort((a, b) => a - b);
  const share = (of: number) => late[Math.min(late.length - 1, Math.floor(late.length * of))];
  print(
    `  ${createsPerSecond} creates/s without them: p99 ${without.p99Ms} ms; with them: p99 ${beside.p99Ms} ms`,
  );
  print(
    `  lateness of ${late.length} timers: p50 ${share(0.5)} ms, p99 ${share(0.99)} ms, max ${share(1)} ms`,
  );
  await stage.end(child);
  await stage.end(receiver.child);
}

/** When the last timer was armed: the jobs are looked into only once they stopped becoming more. */
async function untilArmed(stage: Stage, startedAt: number): Promise<number> {
  let [jobs, lastMs] = [0, 0];
  await until(async () => {
    const now = await stage.delayedJobs('bench_recovery', 'wake');
    if (now !== jobs) lastMs = Math.round(performance.now() - startedAt);
    else if (now > 0 && performance.now() - startedAt - lastMs > 1_000)
      return (await stage.delayedErrands('bench_recovery', 'wake')) >= pending;
    jobs = now;
    return false;
  }, 100_000);
  return lastMs;
}

/** A start on a hundred thousand open actors with an empty Redis, until all their timers are armed again. */
export async function recovery(stage: Stage, print: Print): Promise<void> {
  print(`\nA start on ${pending} open actors and an empty Redis:`);
  const db = stage.client.db('bench_recovery');
  const first = await stage.start<Service>('ours.ts', 'bench_recovery', { BENCH_ROLE: 'all' });
  const template = await waitingDelivery(stage, db, first.hello, 'http://127.0.0.1:1025/still-closed');
  await stage.end(first.child);
  // Near enough to be armed, far enough not to fire while it is measured.
  const dueAt = new Date(Date.now() + 110_000);
  await copies(db, 'deliveries', pending, (n) => delayed(template, n, dueAt));
  await stage.emptyRedis();
  const startedAt = performance.now();
  const { child } = await stage.start<Service>('ours.ts', 'bench_recovery', {
    BENCH_ROLE: 'all',
    BENCH_NO_MERCHANT: '1',
  });
  const readyMs = Math.round(performance.now() - startedAt);
  const armedMs = await untilArmed(stage, startedAt);
  const { rss } = await stage.ask<{ rss: number }>(child, 'counts');
  print(
    `  serves after ${readyMs} ms, all timers armed after ${armedMs} ms, ${Math.round(rss / 1024 ** 2)} MiB of memory`,
  );
  await stage.kill(child);
}

/** Creates at ten thousand and at a million stored collections, in turn. */
export async function stored(stage: Stage, print: Print): Promise<void> {
  const sizes = (process.env.BENCH_STORED ?? '10000,1000000').split(',').map(Number);
  print(`\nCreates beside what is stored, in turn, median of ${rounds}:`);
  const services: { size: number; child: Awaited<ReturnType<Stage['start']>>['child']; hello: Service }[] =
    [];
  for (const size of sizes) {
    tell(`stored: ${size} to be copied`);
    const name = `bench_stored_${size}`;
    const { child, hello } = await stage.start<Service>('ours.ts', name, { BENCH_ROLE: 'api' });
    await stage.load(createPlan(hello, 'template-', { connections: 1, count: 1, warmupMs: 0 }));
    const db = stage.client.db(name);
    const [collection, answer] = await Promise.all(
      ['collections', 'idempotency'].map((each) => db.collection<Stored>(each).findOne()),
    );
    await copies(db, 'collections', size, (n) => ({
      ...collection,
      _id: copyId('col', n),
      timers: [],
      calls: [],
      dueAt: null,
      data: { ...collection.data, reference: `stored-${n}` },
    }));
    await copies(db, 'idempotency', size, (n) => ({ ...answer, _id: `${answer._id}-${n}` }));
    services.push({ size, child, hello });
  }
  const results = new Map<number, LoadResult[]>(sizes.map((size) => [size, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const { size, hello } of services) {
      tell(`stored: ${size}, round ${round + 1} of ${rounds}`);
      results.get(size)!.push(await stage.load(createPlan(hello, `r${round}-`)));
    }
  }
  const medians = services.map(({ size }) => {
    const perSecond = median(results.get(size)!.map((each) => each.perSecond));
    const p99Ms = median(results.get(size)!.map((each) => each.p99Ms));
    print(`  ${String(size).padStart(9)} stored: ${perSecond}/s, p99 ${p99Ms} ms`);
    return perSecond;
  });
  print(`  ratio ${(medians[0]! / medians.at(-1)!).toFixed(2)}×`);
  record('stored.ratio', medians[0]! / medians.at(-1)!);
  for (const { child } of services) await stage.end(child);
}
