import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Chore,
  type Clock,
  connectMongo,
  keepClock,
  prepareDatabase,
  Queues,
  type Sweeper,
  SystemClock,
  stopwatch,
} from '@kusanya/durable-actors';
import { AlertTeller } from './alerts.ts';
import type { Config } from './config.ts';
import { readHistory } from './desk/desk.ts';
import { type AccessLine, IdempotencyStore, type Listener, listen, RateLimiter } from './http/http.ts';
import { Inspector } from './inspector/inspector.ts';
import { journalBegins, ownEntriesOf, readBalance } from './ledger/ledger.ts';
import { limits } from './limits.ts';
import { createMerchantApp, createOperatorApp, operatorBehind } from './listeners.ts';
import type { Log } from './log.ts';
import { Gauges } from './metrics/metrics.ts';
import { closeMongo, connectPatiently, LineWatch, retireIndexes } from './mongo.ts';
import { readNeeds } from './operators/operators.ts';
import { mongoCollectionSpecs } from './stores.ts';
import { strandedRelease } from './webhooks/effects.ts';
import { resendEvent } from './webhooks/webhooks.ts';
import { type Wired, wire } from './wiring.ts';

/** A running service: what it listens on and how it stops. */
export interface Service {
  wired: Wired;
  /** `http://127.0.0.1:3000`; undefined for a worker. */
  baseUrl: string | undefined;
  adminUrl: string;
  sweeper: Sweeper | undefined;
  stop(): Promise<void>;
}

interface StartOptions {
  config: Config & { mongodbUri: string; redisUrl: string };
  log: Log;
  clock?: Clock;
}

/** What undoes the start, the latest first. */
type Stops = (() => Promise<unknown>)[];

/** Starts the roles of this process, one named step after the other; `stop` undoes them in reverse. */
export async function startService({
  config,
  log,
  clock = new SystemClock(),
}: StartOptions): Promise<Service> {
  const stops: Stops = [];
  const stop = async () => {
    for (const each of stops.reverse())
      await each().catch((error) => log.warn({ error: String(error) }, 'while stopping'));
    stops.length = 0;
  };
  const step = stepsOf(log);
  try {
    const { db, patientDb, lines } = await step('connect to MongoDB', () => connectStores(config, stops));
    await step('measure the clock', () => measureClock(db, clock, log, stops));
    await step('prepare the collections', () => prepareDatabase(patientDb, mongoCollectionSpecs));
    const queues = await step('connect to Redis', () => connectQueues(config, log, stops));
    const parts = { db, patientDb, clock, log, config, queues };
    const wired = await step('join the rooms', async () => joinRooms(parts, stops));
    await step('prepare the rails', () => wired.prepareRails());
    stops.push(await step('take the leases', () => wired.lease.keep(log, wired.leaseStripe)));
    const isWorker = config.role !== 'api';
    const sweeper = isWorker ? await step('start the worker', () => startWorker(wired, stops)) : undefined;
    const state = { isStopping: false, lines };
    const { baseUrl, adminUrl } = await step('listen', () => startListeners(wired, sweeper, state, stops));
    if (baseUrl !== undefined) wired.tails.start();
    stops.push(async () => wired.tails.close());
    stops.push(async () => {
      state.isStopping = true;
      await sleep(config.shutdownDelayMs);
    });
    return { wired, baseUrl, adminUrl, sweeper, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Tells how long each step of the start took, and which one it failed at. */
function stepsOf(log: Log) {
  return async <Made>(step: string, take: () => Promise<Made>): Promise<Made> => {
    const elapsed = stopwatch();
    try {
      const made = await take();
      log.debug({ step, durationMs: Math.round(elapsed()) }, 'started');
      return made;
    } catch (error) {
      log.warn({ step, error: String(error) }, 'not started');
      throw error;
    }
  };
}

async function connectStores(config: StartOptions['config'], stops: Stops) {
  const client = await connectMongo(config.mongodbUri, { silenceMs: limits.mongoSilenceMs });
  stops.push(() => closeMongo(client));
  const lines = new LineWatch(client);
  const patient = await connectPatiently(config.mongodbUri);
  stops.push(() => closeMongo(patient));
  const db = client.db(databaseOf(config));
  return { db, patientDb: patient.db(db.databaseName), lines };
}

async function connectQueues(config: StartOptions['config'], log: Log, stops: Stops): Promise<Queues> {
  const queues = new Queues(config.redisUrl, config.redisPrefix, log, config.workerLostAfterMs);
  stops.push(() => queues.close());
  if (await queues.connected(2 * limits.secondMs)) await queues.refuseCluster();
  return queues;
}

function joinRooms(parts: Parameters<typeof wire>[0], stops: Stops): Wired {
  const wired = wire(parts);
  wired.feed.start();
  stops.push(async () => wired.feed.close());
  stops.push(() => wired.poster.close());
  stops.push(() => wired.refusals.flush());
  stops.push(() => wired.committer.drain());
  stops.push(async () => wired.closeRails());
  return wired;
}

function databaseOf(config: Config & { mongodbUri: string }): string {
  return (
    new URL(config.mongodbUri.replace(/^mongodb(\+srv)?:/, 'http:').replace(/,[^/?]*/, '')).pathname.slice(
      1,
    ) || config.mongodbDatabase
  );
}

/** Due is judged by MongoDB's clock, measured now and once a minute. */
async function measureClock(db: Wired['db'], clock: Clock, log: Log, stops: Stops): Promise<void> {
  if (!(clock instanceof SystemClock)) return;
  const drop = await keepClock(db, clock, log);
  stops.push(async () => drop());
}

/** Processes of an earlier version name the old indexes in their queries, which fail without them. */
async function retire({ patientDb, lease, log }: Wired): Promise<void> {
  if (await lease.hasElders()) return;
  const indexes = await retireIndexes(patientDb, mongoCollectionSpecs);
  if (indexes.length > 0) log.info({ indexes }, 'indexes that nobody needs any more are dropped');
}

async function startWorker(wired: Wired, stops: Stops): Promise<Sweeper> {
  const { runtime, queues, clock, log, config, db, settlements, bells, webhookDeps } = wired;
  const { auditWatch, callbacks, tallier, archiver } = wired;
  const sweep = { kind: 'timer', id: 'sweep' } as const;
  const teller = new AlertTeller({ db, clock, log, url: config.alertWebhookUrl });
  const chores: Chore[] = [
    {
      name: 'settlement',
      everyMs: limits.minuteMs,
      run: async () => void (await settlements.settleDue(sweep)),
    },
    { name: 'audit', everyMs: limits.minuteMs, run: async () => void (await auditWatch.recent()) },
    { name: 'full audit', everyMs: limits.minuteMs, run: () => auditWatch.nightly() },
    { name: 'archive', everyMs: limits.minuteMs, run: () => archiver.nightly() },
    { name: 'tallies', everyMs: limits.minuteMs, run: () => tallier.run() },
    { name: 'midnight', everyMs: limits.minuteMs, run: () => settlements.schedule(queues) },
    {
      name: 'held deliveries',
      everyMs: 3 * config.sweepIntervalMs,
      run: strandedRelease(webhookDeps),
    },
    { name: 'retired indexes', everyMs: limits.minuteMs, run: () => retire(wired) },
    { name: 'broken uploads', everyMs: limits.hourMs, run: () => wired.reconciliations.tidy() },
    { name: 'callbacks', everyMs: limits.minuteMs, run: () => callbacks.ringUnheard() },
    { name: 'alerts', everyMs: config.sweepIntervalMs, run: () => teller.tell() },
  ];
  runtime.startWorkers();
  bells.start();
  tendRail(wired, stops);
  await settlements.start(queues);
  const sweeper = runtime.startSweep(config.sweepIntervalMs, chores);
  stops.push(async () => {
    await archiver.stop();
    await runtime.stop(10 * limits.secondMs);
    await bells.flush();
  });
  return sweeper;
}

/** A session is at hand before the first payment needs it, and a network that falls silent is noticed. */
function tendRail({ rails, log }: Wired, stops: Stops): void {
  const { live } = rails;
  if (!live?.tend) return;
  let isTending = false;
  const tend = () => {
    if (isTending) return;
    isTending = true;
    live
      .tend?.()
      .catch((error) => log.debug({ error: String(error) }, 'rail not tended'))
      .finally(() => {
        isTending = false;
      });
  };
  tend();
  const timer = setInterval(tend, 5 * limits.secondMs);
  stops.push(async () => clearInterval(timer));
}

async function startListeners(
  wired: Wired,
  sweeper: Sweeper | undefined,
  state: { isStopping: boolean; lines: LineWatch },
  stops: Stops,
): Promise<{ baseUrl: string | undefined; adminUrl: string }> {
  const { config, clock, log, merchants, collections, refunds, payouts, events, db, queues } = wired;
  const health = {
    isStopping: () => state.isStopping,
    mongo: () => db.command({ ping: 1 }),
    oldestCommitMs: () => wired.committer.oldestMs(),
    oldestCommandMs: () => state.lines.oldestMs(),
    redis: () => queues.ready,
    sweeper,
    clock,
  };
  const { metrics } = wired.watch;
  const observe = (line: AccessLine) => metrics.request(line);
  const open = async (
    app: Parameters<typeof listen>[0],
    port: number,
    host: string,
    { inspector, ...times }: { inspector?: Inspector; requestTimeoutMs?: number } = {},
  ): Promise<string> => {
    const listener: Listener = await listen(app, { port, host, clock, ...times });
    stops.push(() => listener.close());
    if (inspector) {
      inspector.attach(listener.server);
      stops.push(() => inspector.close());
    }
    const { address, port: bound } = listener.server.address() as AddressInfo;
    return `http://${address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address}:${bound}`;
  };
  let baseUrl: string | undefined;
  if (config.role !== 'worker') {
    const merchantApp = createMerchantApp({
      ...{ clock, log, config, collections, refunds, payouts, health, observe, db, merchants },
      operators: wired.operators,
      readHistory: async (actor, limit) => (await readHistory(wired, actor, limit)).lines,
      authenticate: (secret) => merchants.authenticate(secret),
      idempotency: new IdempotencyStore({ db, clock, secretsKey: config.secretsKey }),
      rateLimiter: new RateLimiter({ redis: queues.redis, prefix: config.redisPrefix }),
      readBalance: ({ merchantId, mode }) => readBalance(db, merchantId, mode),
      readEvent: (whose, id) => events.show(whose, id),
      readEvents: (whose, query) => events.list(whose, query),
      eventsBegin: () => wired.archive.beginsAt('events'),
      tails: wired.tails,
      endpoints: wired.ownEndpoints,
      revokeOwnKey: (principal) => merchants.revokeOwn(principal, (writes) => wired.actors.commit(writes)),
      resendEvent: (asked, record) => resendEvent(wired, asked, record),
      callbacks: wired.callbacks,
      settleNow: (whose, id) => wired.settlements.settleNow(whose, { kind: 'merchant', id }),
      commit: (writes) => wired.actors.commit(writes),
      refusals: wired.refusals,
      money: {
        entries: (whose, filter, page) => ownEntriesOf(db, whose, filter, page),
        ...{ journalBegins: () => journalBegins(db), settlements: wired.settlementReader },
        collections: (whose, ids) => collections.many(whose, ids),
      },
    });
    baseUrl = await open(merchantApp, config.port, config.host);
  }
  const operatorApp = createOperatorApp({
    ...{ ...wired, health, observe, metrics },
    gauges: new Gauges({ ...wired, metrics, needs: (mode) => readNeeds(wired, mode) }),
  });
  const more = { inspector: inspectorOf(wired), requestTimeoutMs: limits.uploadTimeoutMs };
  const adminUrl = await open(operatorApp, config.adminPort, config.adminHost, more);
  return { baseUrl, adminUrl };
}

/** The stream of steps on the operators' listener. */
function inspectorOf(wired: Wired): Inspector {
  const { feed, clock, log } = wired;
  return new Inspector({ feed, source: wired, clock, log, identify: operatorBehind(wired) });
}
