import type { Db } from 'mongodb';
import { BatchReader } from './batch.ts';
import type { Clock } from './clock.ts';
import type { Committer } from './commit.ts';
import { type ActorDoc, ActorMissing, type MachineDefinition, Poison, type StepLine } from './document.ts';
import type { Log } from './log.ts';
import type { Write } from './mongo.ts';
import { partOf, quarantinedAt } from './parts.ts';
import { stepId, stepRange, stepsSpec } from './plan.ts';
import { refuseAsleep, SharedParts } from './shared.ts';
import { earliest, migrated, restore } from './step.ts';

/**
 * Actors at rest: looked up together, remembered for as long as that saves a read, brought to the code's
 * version, and set aside when nobody can understand them.
 */
export interface StoreOptions {
  db: Db;
  clock: Clock;
  log: Log;
  committer: Committer;
  definitions: readonly MachineDefinition[];
  /** What is to be written in the commit that sets an actor aside: an alert to whoever must know. */
  onQuarantine?: (doc: ActorDoc, why: string, at: number) => Write[];
  /** Actors whose latest document is kept in memory; staleness only costs a reload. */
  cacheSize?: number;
}

/** Why and by whom a quarantined actor is let go, and what is to be written with it. */
export interface Release {
  at: number;
  reason: string;
  /** The operator's name. */
  by: string;
  stepId: string;
  writes: Write[];
}

export class ActorStore {
  readonly #options: StoreOptions;
  readonly #definitions = new Map<string, MachineDefinition>();
  readonly #readers = new Map<string, BatchReader<ActorDoc>>();
  readonly #cache = new Map<string, ActorDoc>();
  readonly #cacheSize: number;
  readonly shared: SharedParts;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#cacheSize = options.cacheSize ?? 20_000;
    this.shared = new SharedParts(options.db, options.committer);
    for (const definition of options.definitions) {
      this.#definitions.set(definition.name, definition);
      const actors = options.db.collection<ActorDoc>(definition.plural);
      this.#readers.set(
        definition.name,
        new BatchReader(async (ids) => {
          const found = await actors.find({ _id: { $in: ids } }).toArray();
          const awake = await this.shared.wake(definition, found);
          return new Map(awake.map((doc) => [doc._id, doc]));
        }),
      );
    }
  }

  readonly define = (machine: string): MachineDefinition => {
    const definition = this.#definitions.get(machine);
    if (!definition) throw new Error(`no machine named ${machine}`);
    return definition;
  };

  /**
   * As stored, brought to the code's version; undefined when there is none. One that is set aside, be it only
   * now, is given raw, with `quarantined`. @throws NewerDocument
   */
  async read(machine: string, id: string): Promise<ActorDoc | undefined> {
    const definition = this.define(machine);
    const reader = this.#readers.get(machine)!;
    const stored = await reader.read(id);
    if (!stored || stored.quarantined) return stored;
    try {
      return await this.understood(definition, stored);
    } catch (error) {
      const now = error instanceof Poison ? await reader.read(id) : undefined;
      if (now?.quarantined) return now;
      throw error;
    }
  }

  /** The actor to take a step from. @throws ActorMissing, Poison, NewerDocument */
  async load(machine: string, id: string, fresh: boolean): Promise<{ doc: ActorDoc; cached: boolean }> {
    const known = fresh ? undefined : this.#cache.get(id);
    if (known) return { doc: known, cached: true };
    const doc = await this.read(machine, id);
    if (!doc) throw new ActorMissing(`no ${machine} ${id}`);
    if (doc.quarantined) throw new Poison(`${id} is quarantined: ${doc.quarantined.why}`);
    return { doc, cached: false };
  }

  known(id: string): ActorDoc | undefined {
    return this.#cache.get(id);
  }

  remember(doc: ActorDoc): void {
    this.#cache.delete(doc._id);
    // An actor with nothing ahead of it will hardly be asked again soon.
    if (doc.dueAt) this.#cache.set(doc._id, doc);
    if (this.#cache.size > this.#cacheSize) {
      const oldest = this.#cache.keys().next().value;
      if (oldest !== undefined) this.#cache.delete(oldest);
    }
  }

  forget(id: string): void {
    this.#cache.delete(id);
  }

  /** A stored document as this code's version knows it. One that cannot be understood is set aside. */
  async understood(definition: MachineDefinition, stored: ActorDoc): Promise<ActorDoc> {
    try {
      return await this.#lifted(definition, stored);
    } catch (error) {
      if (error instanceof Poison) await this.quarantine(definition, stored, error.message);
      throw error;
    }
  }

  /** @throws NewerDocument, Poison */
  async #lifted(definition: MachineDefinition, stored: ActorDoc): Promise<ActorDoc> {
    const [awake = stored] = await this.shared.wake(definition, [stored]);
    const doc = migrated(definition, awake);
    refuseAsleep(definition, doc);
    return doc;
  }

  /**
   * Sets an actor aside that cannot be understood: visible to operators, never guessed at, in nobody's way.
   * The sequence number moves too, so that a process which still has the document in memory cannot go on.
   */
  async quarantine(definition: MachineDefinition, doc: ActorDoc, why: string): Promise<void> {
    const { clock, log, committer } = this.#options;
    const at = clock.now();
    const { _id, seq } = doc;
    this.#cache.delete(_id);
    const outcome = await committer.commit([
      {
        op: 'update',
        into: definition.plural,
        filter: { _id, seq },
        update: { $set: quarantinedAt(new Date(at), why), $inc: { seq: 1 } },
        onMiss: 'race',
      },
      ...(this.#options.onQuarantine?.(doc, why, at) ?? []),
    ]);
    this.#cache.delete(_id);
    if (outcome.ok) log.error({ actor: _id, why }, 'actor quarantined');
  }

  /**
   * Lets a quarantined actor go on from where it stood, with a line in its history; the sweep takes it from
   * there. Undefined when it is not quarantined, or not as it was read.
   * @throws Poison or NewerDocument while this code does not understand it either
   */
  async release(
    definition: MachineDefinition,
    doc: ActorDoc,
    { at, reason, by, stepId: id, writes }: Release,
  ): Promise<ActorDoc | undefined> {
    const { quarantined, ...rest } = doc;
    if (!quarantined) return undefined;
    const lifted = await this.#lifted(definition, rest as ActorDoc);
    restore(definition, lifted);
    const [dueAt, part] = [earliest(doc.timers, doc.calls), partOf(doc._id)];
    const seq = doc.seq + 1;
    const line: StepLine = {
      ...{ _id: stepId(doc._id, seq), actor: doc._id, machine: definition.name, seq, at: new Date(at) },
      event: { type: 'operator.released', reason },
      ...{ from: doc.state, to: doc.state, actions: [], cause: { kind: 'operator', id: by }, stepId: id },
    };
    const outcome = await this.#options.committer.commit([
      {
        op: 'update',
        into: definition.plural,
        filter: { _id: doc._id, seq: doc.seq, 'quarantined.at': { $exists: true } },
        update: { $set: { part, dueAt, seq, updatedAt: new Date(at) }, $unset: { quarantined: '' } },
        onMiss: 'race',
      },
      { op: 'insert', into: stepsSpec.name, doc: line, onDuplicate: 'race' },
      ...writes,
    ]);
    this.#cache.delete(doc._id);
    return outcome.ok ? { ...(rest as ActorDoc), seq, part, dueAt } : undefined;
  }

  /** Whether the history of an actor has this step. */
  async wasApplied(doc: ActorDoc, stepId: string): Promise<boolean> {
    if (doc.lastStep === stepId) return true;
    const lines = this.#options.db.collection<StepLine>(stepsSpec.name);
    const line = await lines.findOne({ _id: stepRange(doc._id), stepId }, { projection: { _id: 1 } });
    return line !== null;
  }
}
