import { type Db, type MongoClient, MongoNetworkError } from 'mongodb';
import type { AnyStateMachine } from 'xstate';
import { freshDatabase, stores } from '../../../../test/support/stores.ts';
import { Handover } from '../../src/handover.ts';
import {
  type ActorDoc,
  Actors,
  actorsSpec,
  Committer,
  connectMongo,
  type Labels,
  Lease,
  type Log,
  leasesSpec,
  type MachineDefinition,
  type MongoCollectionSpec,
  MovableClock,
  prepareDatabase,
  Queues,
  type StepLine,
  sharedPartsSpec,
  stepsSpec,
  type Write,
} from '../../src/index.ts';
import { Lanes } from '../../src/lanes.ts';
import { Sweeper } from '../../src/sweep.ts';
import { ActorWorkers } from '../../src/work.ts';

/** The engine alone, on real stores, with small charts made for a test. */

/** A chart joined to what the test gives it; its collection is the chart's id with an `s`. */
export function define(machine: AnyStateMachine, more: Partial<MachineDefinition> = {}): MachineDefinition {
  return {
    name: machine.id,
    plural: `${machine.id}s`,
    machine,
    writes: {},
    calls: {},
    migrations: {},
    ...more,
  };
}

/** What every chart needs that is to run in the engine. */
export const chartOptions = { version: '1', options: { maxIterations: 100 } } as const;

/** Where whoever uses the package has not declared any. */
export const noLabels = {} as Labels;

interface Alert {
  _id: string;
  kind: string;
  about: string;
}

/** An alert in the commit that sets an actor aside, as a service would have it. */
function alertOf({ _id, seq }: ActorDoc): Write[] {
  const doc = { _id: `${_id}.${seq}`, kind: 'actor_quarantined', about: _id };
  return [{ op: 'insert', into: 'alerts', doc, onDuplicate: 'refuse' }];
}

export interface EngineOptions {
  /** A client to use instead of one of its own; whoever opened it closes it. */
  client?: MongoClient;
  /** What the committer takes for the client (`unsteady`). */
  committerClient?: MongoClient;
  clock?: MovableClock;
  /** The database of another engine: two processes that share one. */
  database?: string;
  largestBatch?: number;
  patienceMs?: number;
  cacheSize?: number;
  owner?: string;
  /** Beyond those that every collection of actors needs. */
  indexes?: MongoCollectionSpec['indexes'];
  /** What all actors are listed by; none in the tests of the package. */
  labels?: Labels;
}

export interface Engine {
  client: MongoClient;
  db: Db;
  clock: MovableClock;
  /** What was logged, parsed. */
  logged: Record<string, unknown>[];
  log: Log;
  committer: Committer;
  actors: Actors;
  /** The name of its process, and what that has in hand. */
  owner: string;
  lanes: Lanes;
  labels: Labels;
  /** An actor as stored, untouched. */
  stored(machine: string, id: string): Promise<ActorDoc>;
  history(id: string): Promise<StepLine[]>;
  alerts(id: string): Promise<Alert[]>;
  close(): Promise<void>;
}

export async function openEngine(
  definitions: MachineDefinition[],
  options: EngineOptions = {},
): Promise<Engine> {
  const client = options.client ?? (await connectMongo((await stores()).mongodbUri));
  const db = client.db(options.database ?? freshDatabase('engine'));
  const { indexes } = options;
  const ofActors = definitions.map(({ plural }) => actorsSpec({ name: plural, ...(indexes && { indexes }) }));
  await prepareDatabase(db, [...ofActors, stepsSpec, sharedPartsSpec, leasesSpec, { name: 'alerts' }]);
  const clock = options.clock ?? new MovableClock();
  const logged: Record<string, unknown>[] = [];
  const note = (fields: object, msg: string) => void logged.push({ ...fields, msg });
  const log: Log = { debug: () => {}, info: note, warn: note, error: note };
  const { largestBatch, patienceMs, cacheSize } = options;
  const ofCommitter = { client: options.committerClient ?? client, db, log };
  const committer = new Committer({ ...ofCommitter, largestBatch, patienceMs });
  const owner = options.owner ?? `owner-${Math.random()}`;
  const lanes = new Lanes();
  const labels = options.labels ?? noLabels;
  const ofStore = { db, clock, log, committer, definitions, cacheSize };
  const actors = new Actors({ ...ofStore, owner, lanes, onQuarantine: alertOf });
  return {
    ...{ client, db, clock, logged, log, committer, actors, owner, lanes, labels },
    stored: async (machine, id) => {
      const { plural } = actors.definition(machine);
      const doc = await db.collection<ActorDoc>(plural).findOne({ _id: id });
      if (!doc) throw new Error(`no ${machine} ${id}`);
      return doc;
    },
    history: (id) => db.collection<StepLine>(stepsSpec.name).find({ actor: id }).sort({ _id: 1 }).toArray(),
    alerts: (id) => db.collection<Alert>('alerts').find({ about: id }).toArray(),
    close: async () => {
      await committer.drain();
      if (!options.client) await client.close();
    },
  };
}

/**
 * A client whose transactions end as the test says: `onCommit` runs in place of the commit, and gets the real
 * one. The server of the tests knows no fail points, so the fault is put between it and the committer.
 */
export function unsteady(
  client: MongoClient,
  onCommit: (commit: () => Promise<void>) => Promise<void>,
): MongoClient {
  return new Proxy(client, {
    get(target, name) {
      if (name !== 'startSession') return Reflect.get(target, name, target) as unknown;
      return () => {
        const session = target.startSession();
        const commit = session.commitTransaction.bind(session);
        session.commitTransaction = () => onCommit(commit);
        return session;
      };
    },
  });
}

/** The driver's error for a commit whose answer was lost. */
export function lostAnswer(): MongoNetworkError {
  const error = new MongoNetworkError('connection closed');
  error.addErrorLabel('UnknownTransactionCommitResult');
  return error;
}

let born = 0;

/** A new actor, made now. */
export async function give(
  engine: Engine,
  machine: string,
  more: { id?: string; input?: Record<string, unknown>; data?: Record<string, unknown> } = {},
): Promise<ActorDoc> {
  born += 1;
  const at = engine.clock.now();
  return engine.actors.create(
    {
      machine,
      id: more.id ?? `${machine}_${born}`,
      input: { at, ...more.input },
      ...engine.labels,
      data: more.data ?? {},
    },
    { stepId: `birth.${born}`, cause: { kind: 'operator', id: `req_${born}` } },
  );
}

let sent = 0;

/** Sends an event as a merchant would; each time is a step of its own. */
export function tell(
  engine: Engine,
  doc: { _id: string },
  type: string,
  more: Record<string, unknown> = {},
  options: Partial<Parameters<Actors['send']>[2]> = {},
) {
  sent += 1;
  const machine = doc._id.split('_')[0]!;
  return engine.actors.send(
    { machine, id: doc._id },
    { type, at: engine.clock.now(), ...more },
    { stepId: `told.${sent}`, cause: { kind: 'operator', id: `req_${sent}` }, ...options },
  );
}

/** Fires a timer of the document as the timer worker does, due or not. */
export function fire(engine: Engine, doc: ActorDoc, timer = doc.timers[0]!) {
  return tell(
    engine,
    doc,
    timer.event,
    { at: Math.max(engine.clock.now(), timer.dueAt.getTime()) },
    {
      stepId: `${doc._id}.${timer.armedSeq}.${timer.id}`,
      cause: { kind: 'timer', id: timer.id },
      fires: { id: timer.id, armedSeq: timer.armedSeq },
    },
  );
}

/** What a promise was rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was not rejected');
}

export interface Machinery {
  queues: Queues;
  handover: Handover;
  workers: ActorWorkers;
  sweeper: Sweeper;
  lease: Lease;
  close(): Promise<void>;
}

/** Queues, workers and sweeper of one process. Nothing runs until `workers.start()` and `sweeper.start()`. */
export async function openMachinery(
  engine: Engine,
  options: {
    redisUrl?: string;
    prefix?: string;
    horizonMs?: number;
    intervalMs?: number;
    leaseMs?: number;
    holdMs?: number;
    owner?: string;
    chores?: ConstructorParameters<typeof Sweeper>[0]['chores'];
  } = {},
): Promise<Machinery> {
  const { actors, clock, log, db, lanes } = engine;
  const prefix = options.prefix ?? db.databaseName;
  const queues = new Queues(options.redisUrl ?? (await stores()).redisUrl, prefix, log);
  await queues.connected(2_000);
  const horizonMs = options.horizonMs ?? 60_000;
  const holdMs = options.holdMs ?? 20;
  const owner = options.owner ?? engine.owner;
  const handover = new Handover({ actors, queues, lanes, clock, log, owner, horizonMs, holdMs });
  const workers = new ActorWorkers({ actors, queues, handover, lanes, clock, log });
  const lease = new Lease(db, clock, owner, options.leaseMs ?? 60_000);
  const sweeper = new Sweeper({
    ...{ db, actors, queues, handover, lanes, workers, lease, clock, log, horizonMs },
    intervalMs: options.intervalMs ?? 50,
    chores: options.chores ?? [],
  });
  return {
    ...{ queues, handover, workers, sweeper, lease },
    close: async () => {
      await sweeper.stop();
      await workers.stop(1_000);
      await queues.close();
    },
  };
}
