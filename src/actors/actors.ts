import type { Db } from 'mongodb';
import { BatchReader } from '../batch.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { CollectionSpec, Write } from '../mongo.ts';
import { type Committer, CommitUnknown } from './commit.ts';
import {
  type ActorDoc,
  type ActorEvent,
  ActorMissing,
  type Call,
  type Cause,
  type MachineDefinition,
  type NewActor,
  Poison,
  type StepLine,
  StepRefused,
} from './document.ts';
import {
  conflictOf,
  type Planned,
  planBirth,
  planStep,
  stepId as stepIdOf,
  stepsSpec,
  updateOf,
} from './plan.ts';
import { earliest, migrated, next, reservedPrefix } from './step.ts';

export { Committer, CommitUnknown, isOutage } from './commit.ts';
export * from './document.ts';
export { Handover } from './handover.ts';
export { Lease, leasesSpec } from './lease.ts';
export { stepsSpec } from './plan.ts';
export { acceptedEvents, reservedPrefix, restore, stateText } from './step.ts';
export { Sweeper } from './sweep.ts';
export { ActorWorkers } from './work.ts';

/**
 * THE CORRIDOR: the only way any state changes. A step loads an actor's document, asks the pure chart,
 * and commits the new snapshot, the writes the chart asked for, the calls still to make and the timers, all
 * at once or not at all. Only after the commit are calls and timers handed to the queue.
 */

/** Indexes that every machine's collection of actors has. */
export const actorIndexes: NonNullable<CollectionSpec['indexes']> = [
  { key: { dueAt: 1 }, partial: { dueAt: { $type: 'date' } } },
  { key: { merchantId: 1, mode: 1, _id: -1 } },
  { key: { state: 1, _id: -1 } },
  { key: { 'quarantined.at': 1 }, partial: { 'quarantined.at': { $type: 'date' } } },
];

export interface ActorRef {
  machine: string;
  id: string;
}

export interface SendOptions {
  /** Unique to this request, call or timer: a step that carries it is applied at most once. */
  stepId: string;
  cause: Cause;
  /** Writes that belong into the same commit: an audit line, an idempotency record, an attempt. */
  writes?: Write[];
  /**
   * Room data to change in the same commit (`data.<field>`), computed from what it is then; never part of the
   * chart or its history.
   */
  data?: (now: Record<string, unknown>) => Record<string, unknown>;
  /** The call that this event answers; the commit removes it. */
  answers?: { callId: string; factual: boolean };
  /** The timer that fired; the commit removes it. */
  fires?: { id: string; armedSeq: number };
}

export type SendResult =
  | { outcome: 'stepped'; doc: ActorDoc; from: string; to: string; asked: string[] }
  /** The chart does not accept the event in this state. */
  | { outcome: 'ignored'; doc: ActorDoc }
  /** The call or timer it belongs to is gone. */
  | { outcome: 'dropped'; doc: ActorDoc };

/** A step that was committed, as listeners (hand-over, inspector, metrics) see it. */
export interface Committed {
  machine: string;
  doc: ActorDoc;
  event: ActorEvent;
  cause: Cause;
  from: string | null;
  newCalls: Call[];
}

interface ActorsOptions {
  db: Db;
  clock: Clock;
  log: Log;
  committer: Committer;
  definitions: readonly MachineDefinition[];
  /** Actors whose latest document is kept in memory; staleness only costs a reload. */
  cacheSize?: number;
}

const maxRaces = 25;

export class Actors {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #committer: Committer;
  readonly #definitions = new Map<string, MachineDefinition>();
  readonly #readers = new Map<string, BatchReader<ActorDoc>>();
  readonly #queues = new Map<string, Promise<unknown>>();
  readonly #cache = new Map<string, ActorDoc>();
  readonly #cacheSize: number;
  readonly #listeners: ((step: Committed) => void)[] = [];

  constructor(options: ActorsOptions) {
    this.#db = options.db;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#committer = options.committer;
    this.#cacheSize = options.cacheSize ?? 20_000;
    for (const definition of options.definitions) {
      this.#definitions.set(definition.name, definition);
      const actors = this.#db.collection<ActorDoc>(definition.plural);
      this.#readers.set(
        definition.name,
        new BatchReader(async (ids) => {
          const found = await actors.find({ _id: { $in: ids } }).toArray();
          return new Map(found.map((doc) => [doc._id, doc]));
        }),
      );
    }
  }

  get definitions(): readonly MachineDefinition[] {
    return [...this.#definitions.values()];
  }

  definition(machine: string): MachineDefinition {
    return this.#define(machine);
  }

  readonly #define = (machine: string): MachineDefinition => {
    const definition = this.#definitions.get(machine);
    if (!definition) throw new Error(`no machine named ${machine}`);
    return definition;
  };

  /** Hears of every committed step of this process, after the commit. Must not throw and must not wait. */
  onStep(listener: (step: Committed) => void): void {
    this.#listeners.push(listener);
  }

  /** The actor as stored, brought to the code's version; undefined when there is none. */
  async read(ref: ActorRef): Promise<ActorDoc | undefined> {
    const doc = await this.#readers.get(ref.machine)!.read(ref.id);
    return doc && !doc.quarantined ? migrated(this.definition(ref.machine), doc) : doc;
  }

  /** Commits writes that belong to no actor (plain audited records). */
  async commit(writes: Write[]): Promise<void> {
    const outcome = await this.#committer.commit(writes);
    if (!outcome.ok) throw conflictOf(outcome.write);
  }

  /**
   * Makes a new actor; its first snapshot, effects and the extra writes are one commit.
   * @throws StepReplayed when an idempotency record among the writes exists, StepRaced when the actor does.
   */
  async create(
    actor: NewActor,
    attendant: Pick<SendOptions, 'stepId' | 'cause' | 'writes'>,
  ): Promise<ActorDoc> {
    const { definition, planned } = await planBirth(this.#define, actor, attendant);
    const outcome = await this.#committer.commit(planned.writes);
    if (!outcome.ok) throw conflictOf(outcome.write);
    this.#committed(definition, planned, { type: 'created', at: actor.input.at }, attendant.cause, null);
    return planned.doc;
  }

  /**
   * Sends an event. Steps of one actor in this process queue one after another; against other processes the
   * sequence number decides, and a lost race is decided again on what the winner left.
   * @throws ActorMissing, Poison (quarantined), StepRefused, StepRaced, or MongoDB's error.
   */
  send(ref: ActorRef, event: ActorEvent, options: SendOptions): Promise<SendResult> {
    if (event.type.startsWith(reservedPrefix) && !options.fires) {
      return Promise.reject(new Error(`${event.type} is reserved for timers`));
    }
    const before = this.#queues.get(ref.id) ?? Promise.resolve();
    const mine = before.then(() => this.#step(ref, event, options));
    const settled = mine
      .catch(() => undefined)
      .then(() => {
        if (this.#queues.get(ref.id) === settled) this.#queues.delete(ref.id);
      });
    this.#queues.set(ref.id, settled);
    return mine;
  }

  /** What an event would do, without doing it: nothing is written and no call is made. */
  async dryRun(
    ref: ActorRef,
    event: ActorEvent,
  ): Promise<{ from: string; to: string; actions: string[]; accepted: boolean }> {
    const doc = await this.#load(ref, true);
    const chart = next(this.definition(ref.machine), doc.doc, doc.doc.timers, event, doc.doc.seq + 1);
    const actions = chart.asked.map(({ type }) => type);
    return { from: doc.doc.state, to: chart.state, actions, accepted: chart.changed };
  }

  /** The actor as this process knows it, if that satisfies; else as stored. Saves a read where one is not needed. */
  async find(ref: ActorRef, satisfies: (doc: ActorDoc) => boolean): Promise<ActorDoc | undefined> {
    const known = this.#cache.get(ref.id);
    return known && satisfies(known) ? known : this.read(ref);
  }

  /** Marks a call that may be made only once as begun. False: somebody else did, or it is gone. */
  async claim(ref: ActorRef, callId: string): Promise<boolean> {
    const definition = this.definition(ref.machine);
    for (let race = 0; race < maxRaces; race += 1) {
      const { doc, cached } = await this.#load(ref, race > 0);
      const call = doc.calls.find(({ id }) => id === callId);
      if (!call || call.startedAt) {
        if (!cached) return false;
        continue;
      }
      const now = this.#clock.now();
      const dueAt = new Date(now + definition.calls[call.type]!.patienceMs);
      const calls = doc.calls.map((each) =>
        each === call ? { ...each, startedAt: new Date(now), dueAt } : each,
      );
      const changed: ActorDoc = { ...doc, seq: doc.seq + 1, calls, dueAt: earliest(doc.timers, calls) };
      // Unlike a step a claim is not repeated when its outcome is unknown: better no prompt than two.
      const outcome = await this.#committer.commit([updateOf(definition.plural, doc, changed)]);
      if (outcome.ok) {
        this.#remember(changed);
        return true;
      }
      this.#cache.delete(ref.id);
    }
    return false;
  }

  async #step(ref: ActorRef, event: ActorEvent, options: SendOptions): Promise<SendResult> {
    const definition = this.definition(ref.machine);
    let fresh = false;
    let uncertain = false;
    for (let race = 0; race < maxRaces; race += 1) {
      const loaded = await this.#load(ref, fresh);
      const { doc } = loaded;
      if (uncertain && (await this.#wasApplied(doc, options.stepId))) {
        return { outcome: 'stepped', doc, from: doc.state, to: doc.state, asked: [] };
      }
      const prepared = await this.#prepare(definition, doc, event, options);
      if (typeof prepared === 'string') {
        // A document from memory may be behind: what it makes of an event to drop is checked on a fresh one.
        if (loaded.cached) {
          fresh = true;
          continue;
        }
        return { outcome: prepared, doc };
      }
      try {
        const outcome = await this.#committer.commit(prepared.writes);
        if (outcome.ok) {
          this.#committed(definition, prepared, event, options.cause, doc.state);
          return {
            outcome: 'stepped',
            doc: prepared.doc,
            from: doc.state,
            to: prepared.doc.state,
            asked: prepared.asked,
          };
        }
        if (outcome.write !== prepared.writes[0])
          await this.#rejected(definition, doc, outcome.write, options.cause);
      } catch (error) {
        if (!(error instanceof CommitUnknown)) throw error;
        uncertain = true;
      }
      this.#cache.delete(ref.id);
      fresh = true;
    }
    throw new Error(`${ref.id}: lost ${maxRaces} races in a row`);
  }

  /** The step as it would be committed, or why there is none. A poisoned actor is set aside. */
  async #prepare(
    definition: MachineDefinition,
    doc: ActorDoc,
    event: ActorEvent,
    options: SendOptions,
  ): Promise<Planned | 'ignored' | 'dropped'> {
    const { answers, fires } = options;
    const isOpen = answers && doc.calls.some(({ id }) => id === answers.callId);
    if (answers && !isOpen && !answers.factual) return 'dropped';
    let timers = doc.timers;
    if (fires) {
      timers = timers.filter(({ id, armedSeq }) => id !== fires.id || armedSeq !== fires.armedSeq);
      if (timers.length === doc.timers.length) return 'dropped';
    }
    try {
      const chart = next(definition, doc, timers, event, doc.seq + 1);
      if (!chart.changed && !isOpen && !fires && !options.data) return 'ignored';
      return await planStep(this.#define, definition, doc, doc.state, chart, event, options);
    } catch (error) {
      if (error instanceof Poison) await this.quarantine(definition, doc, error.message);
      throw error;
    }
  }

  /** Sets an actor aside that cannot be understood: visible to operators, never guessed at, in nobody's way. */
  async quarantine(definition: MachineDefinition, doc: ActorDoc, why: string): Promise<void> {
    const at = new Date(this.#clock.now());
    this.#cache.delete(doc._id);
    this.#log.error({ actor: doc._id, why }, 'actor quarantined');
    await this.#committer.commit([
      {
        op: 'update',
        into: definition.plural,
        filter: { _id: doc._id, seq: doc.seq },
        update: { $set: { quarantined: { at, why }, dueAt: null } },
        onMiss: 'race',
      },
    ]);
  }

  async #load(ref: ActorRef, fresh: boolean): Promise<{ doc: ActorDoc; cached: boolean }> {
    const known = fresh ? undefined : this.#cache.get(ref.id);
    if (known) return { doc: known, cached: true };
    const stored = await this.#readers.get(ref.machine)!.read(ref.id);
    if (!stored) throw new ActorMissing(`no ${ref.machine} ${ref.id}`);
    if (stored.quarantined) throw new Poison(`${ref.id} is quarantined: ${stored.quarantined.why}`);
    return { doc: migrated(this.definition(ref.machine), stored), cached: false };
  }

  /** Whether a commit whose acknowledgement was lost had been applied after all. */
  async #wasApplied(doc: ActorDoc, stepId: string): Promise<boolean> {
    if (doc.lastStep === stepId) return true;
    const ofActor = { $gte: stepIdOf(doc._id, 0), $lte: stepIdOf(doc._id, doc.seq) };
    const line = await this.#db.collection<StepLine>(stepsSpec.name).findOne({ _id: ofActor, stepId });
    return line !== null;
  }

  async #rejected(definition: MachineDefinition, doc: ActorDoc, write: Write, cause: Cause): Promise<never> {
    const conflict = conflictOf(write);
    // A caller gets a refusal as an answer; from a timer or a call it means the books and the chart disagree.
    if (conflict instanceof StepRefused && (cause.kind === 'timer' || cause.kind === 'call')) {
      await this.quarantine(definition, doc, `a step was refused by ${write.into}`);
    }
    throw conflict;
  }

  #committed(
    definition: MachineDefinition,
    planned: Planned,
    event: ActorEvent,
    cause: Cause,
    from: string | null,
  ): void {
    this.#remember(planned.doc);
    const { doc, newCalls } = planned;
    for (const listener of this.#listeners) {
      listener({ machine: definition.name, doc, event, cause, from, newCalls });
    }
    for (const child of planned.children) {
      this.#committed(child.definition, child.planned, { type: 'created', at: event.at }, cause, null);
    }
  }

  #remember(doc: ActorDoc): void {
    this.#cache.delete(doc._id);
    // An actor with nothing ahead of it will hardly be asked again soon.
    if (doc.dueAt) this.#cache.set(doc._id, doc);
    if (this.#cache.size > this.#cacheSize) {
      const oldest = this.#cache.keys().next().value;
      if (oldest !== undefined) this.#cache.delete(oldest);
    }
  }
}
