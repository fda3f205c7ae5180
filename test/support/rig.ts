import {
  type ActorDoc,
  Actors,
  actorsSpec,
  BatchReader,
  type CallAnswer,
  type CallView,
  Committer,
  CommitUnknown,
  connectMongo,
  type Doc,
  type MachineDefinition,
  type MovableClock,
  prepareDatabase,
  type Queues,
  type StepLine,
  stepsSpec,
  type Write,
  type WriteEffect,
} from '@kusanya/durable-actors';
import type { Db, MongoClient } from 'mongodb';
import type { Handover } from '../../packages/durable-actors/src/handover.ts';
import { Lanes } from '../../packages/durable-actors/src/lanes.ts';
import { ActorWorkers } from '../../packages/durable-actors/src/work.ts';
import { alertsSpec } from '../../src/alerts.ts';
import { createLog } from '../../src/log.ts';
import { actorIndexes } from '../../src/standing.ts';
import { Chart } from './charts.ts';
import type { Model } from './moves.ts';
import { freshDatabase, stores } from './stores.ts';

/**
 * The charts in the real engine, on real MongoDB, with effects that only record. Any number of processes can be
 * made over one database; what a call answers is the test's to say.
 */

/** Where recorded writes go, in the commit of their step. */
const journal = 'journal';

interface Recorded extends Doc {
  actor: string;
  seq: number;
  type: string;
  params: Record<string, unknown>;
}

/** What a call does when it is made; set per process. */
export type Answering = (view: CallView) => Promise<CallAnswer>;

export interface Process {
  actors: Actors;
  workers: ActorWorkers;
}

export interface RigOptions {
  /** Commits are applied, and then nobody hears that they were. */
  losesAcknowledgements?: boolean;
}

/** A commit that succeeds, but whose sender only learns that the outcome is unknown. */
class ForgetfulCommitter extends Committer {
  override async commit(writes: Write[]) {
    const outcome = await super.commit(writes);
    const isBirth = writes[0]?.op === 'insert';
    if (outcome.ok && !isBirth) throw new CommitUnknown('the line was cut');
    return outcome;
  }
}

export class Rig {
  readonly db: Db;
  readonly chart: Chart;
  readonly model: Model;
  readonly log = createLog('silent');
  readonly #client: MongoClient;
  readonly #committer: Committer;
  readonly #losesAcknowledgements: boolean;
  readonly #reader: BatchReader<ActorDoc>;
  #made = 0;

  private constructor(model: Model, client: MongoClient, db: Db, options: RigOptions) {
    this.model = model;
    this.chart = new Chart(model.machine);
    this.db = db;
    this.#client = client;
    this.#losesAcknowledgements = options.losesAcknowledgements ?? false;
    const Kind = this.#losesAcknowledgements ? ForgetfulCommitter : Committer;
    this.#committer = new Kind({ client, db, log: this.log });
    const actors = db.collection<ActorDoc>(pluralOf(model));
    this.#reader = new BatchReader(async (ids) => {
      const found = await actors.find({ _id: { $in: ids } }).toArray();
      return new Map(found.map((doc) => [doc._id, doc]));
    });
  }

  static async open(model: Model, options: RigOptions = {}): Promise<Rig> {
    const { mongodbUri } = await stores();
    const client = await connectMongo(mongodbUri);
    const db = client.db(freshDatabase(`charts_${model.name}`));
    const actors = actorsSpec({ name: pluralOf(model), indexes: actorIndexes });
    await prepareDatabase(db, [actors, stepsSpec, alertsSpec, { name: journal }]);
    return new Rig(model, client, db, options);
  }

  async close(): Promise<void> {
    await this.#committer.drain();
    await this.#client.close();
  }

  /** The id of a new actor. */
  newId(): string {
    this.#made += 1;
    return `${this.model.name}_${this.#made}`;
  }

  /** A process of its own: nothing in its memory but what it reads. */
  process(clock: MovableClock, answering: Answering): Process {
    const { db, log } = this;
    const definitions = [this.#definition(answering)];
    const actors = new Actors({ db, clock, log, committer: this.#committer, definitions });
    // Nobody is woken here but by the test.
    const handover = { call: () => {}, wake: () => {}, remind: () => {} } as unknown as Handover;
    const queues = { ready: false } as unknown as Queues;
    return {
      actors,
      workers: new ActorWorkers({ actors, queues, handover, lanes: new Lanes(), clock, log }),
    };
  }

  /** The document as it is now; those who look in the same moment look together. */
  stored(id: string): Promise<ActorDoc | undefined> {
    return this.#reader.read(id);
  }

  history(id: string): Promise<StepLine[]> {
    return this.db
      .collection<StepLine>(stepsSpec.name)
      .find({ _id: within(id) })
      .sort({ _id: 1 })
      .toArray();
  }

  /** The writes that were committed for an actor, in their order. */
  async written(id: string): Promise<string[]> {
    const found = await this.db
      .collection<Recorded>(journal)
      .find({ _id: within(id) })
      .sort({ _id: 1 })
      .toArray();
    return found.map(({ type }) => type);
  }

  #definition(answering: Answering): MachineDefinition {
    const { name, machine, writes, calls } = this.model;
    const record =
      (type: string): WriteEffect =>
      ({ doc }, params) => {
        const at = `${String(doc.seq).padStart(8, '0')}.${writes.indexOf(type)}`;
        const entry: Recorded = { _id: `${doc._id}/${at}`, actor: doc._id, seq: doc.seq, type, params };
        return [{ op: 'insert', into: journal, doc: entry, onDuplicate: 'refuse' }];
      };
    const lostOf = (type: string) => (this.#losesAcknowledgements ? undefined : lostWhenMadeOnce[type]);
    return {
      name,
      plural: pluralOf(this.model),
      machine,
      writes: Object.fromEntries(writes.map((type) => [type, record(type)])),
      calls: Object.fromEntries(
        calls.map((type) => [
          type,
          {
            run: async (view) => ((await view.claim()) ? answering(view) : { left: true }),
            concurrency: 1,
            patienceMs,
            factual: name === 'collection' || name === 'payout' || name === 'refund',
            ...(/^ask/.test(type) ? { notBefore: (context) => context.askedAt as number } : {}),
            ...(lostOf(type)
              ? { atMostOnce: { lost: (_call, at) => ({ type: lostOf(type)!, at, askedAt: at }) } }
              : {}),
          } satisfies MachineDefinition['calls'][string],
        ]),
      ),
      migrations: {},
    };
  }
}

/** Calls that are made at most once, and what their actor hears when nobody answers. */
export const lostWhenMadeOnce: Readonly<Record<string, string>> = {
  pushPrompt: 'push.unknown',
  sendMoney: 'send.unknown',
  sendRefund: 'reverse.unknown',
};

/** After this long an unanswered call is overdue. */
export const patienceMs = 150_000;

/** Ids of what is kept for an actor: `<actor>/…`. */
function within(actor: string): { $gt: string; $lt: string } {
  return { $gt: `${actor}/`, $lt: `${actor}0` };
}

function pluralOf({ name }: Model): string {
  return name === 'delivery' ? 'deliveries' : `${name}s`;
}
