import {
  type ActorDoc,
  type Actors,
  type MachineDefinition,
  type StepLine,
  stepId,
  stepsSpec,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { inStates, leavesOf, outermost } from '../standing.ts';
import type { StepFilter } from './notice.ts';

/** An actor, and how far it is. */
export interface Head {
  definition: MachineDefinition;
  id: string;
  seq: number;
  updatedAt: Date;
  merchantId: string;
}

/** An actor as stored, with its chart. */
export interface Stored {
  definition: MachineDefinition;
  doc: ActorDoc;
}

const modes = ['live', 'test'] as const;
const readWithinMs = 5_000;
const headFields = { seq: 1, updatedAt: 1, merchantId: 1 } as const;
/** Where there is no index: how many of others are read beside those that were asked for. */
const othersMax = 500;
/** Deliveries have no index of merchants, and one of endpoints: a merchant's are those of its newest endpoints. */
const ownersMax = 20;
const ownedBy: Readonly<Record<string, { owner: string; field: string } | undefined>> = {
  delivery: { owner: 'endpoint', field: 'data.endpointId' },
};

/** What the inspector reads of MongoDB: actors and their history, by indexes, never more than asked for. */
export class ActorSource {
  readonly #db: Db;
  readonly #actors: Pick<Actors, 'awake'>;
  readonly #definitions: readonly MachineDefinition[];
  readonly #leaves: ReadonlyMap<string, string[]>;
  readonly #byMerchant = new Map<string, Promise<boolean>>();

  constructor({ db, actors }: { db: Db; actors: Pick<Actors, 'definitions' | 'awake'> }) {
    this.#db = db;
    this.#actors = actors;
    this.#definitions = actors.definitions;
    this.#leaves = new Map(actors.definitions.map(({ name, machine }) => [name, leavesOf(machine.root)]));
  }

  get machines(): string[] {
    return this.#definitions.map(({ name }) => name);
  }

  definition(machine: string): MachineDefinition | undefined {
    return this.#definitions.find(({ name }) => name === machine);
  }

  /** The actors that match, at most `last` of those that were made last; the latest to move first. */
  async matching(filter: StepFilter, last: number): Promise<Head[]> {
    const { machine, actor } = filter;
    const definitions = this.#definitions.filter(({ name }) => machine === undefined || machine === name);
    const found = await Promise.all(
      definitions.map((definition) =>
        actor ? this.heads(definition, [actor], filter) : this.#latest(definition, filter, last),
      ),
    );
    const latestFirst = (one: Head, other: Head) => other.updatedAt.getTime() - one.updatedAt.getTime();
    return found.flat().sort(latestFirst).slice(0, last);
  }

  /** How far these actors are, of those that match. */
  async heads(definition: MachineDefinition, ids: string[], filter: StepFilter = {}): Promise<Head[]> {
    return this.#find(definition, { _id: { $in: ids }, ...narrowing(filter) }, ids.length);
  }

  /** The actors whole, in the same order. */
  async read(heads: readonly Head[]): Promise<Stored[]> {
    const byDefinition = new Map<MachineDefinition, string[]>();
    for (const { definition, id } of heads) {
      byDefinition.set(definition, [...(byDefinition.get(definition) ?? []), id]);
    }
    const docs = await Promise.all(
      [...byDefinition].map(async ([{ name, plural }, ids]) => {
        const found = this.#db.collection<ActorDoc>(plural);
        const stored = await found.find({ _id: { $in: ids } }, { maxTimeMS: readWithinMs }).toArray();
        return this.#actors.awake(name, stored);
      }),
    );
    const byId = new Map(docs.flat().map((doc) => [doc._id, doc]));
    return heads.flatMap(({ definition, id }) => {
      const doc = byId.get(id);
      return doc ? [{ definition, doc }] : [];
    });
  }

  /** Lines of an actor's history with `after < seq < before`, at most the latest `limit` of them, oldest first. */
  async lines(actor: string, after: number, before: number, limit: number): Promise<StepLine[]> {
    const found = await this.#db
      .collection<StepLine>(stepsSpec.name)
      .find({ _id: { $gt: stepId(actor, after), $lt: stepId(actor, before) } }, { maxTimeMS: readWithinMs })
      .sort({ _id: -1 })
      .limit(limit)
      .toArray();
    return found.reverse();
  }

  /**
   * All of a mode are merged from the index of the states. Where neither a merchant nor an owner of its own is
   * indexed, a merchant's among the newest few hundred must do.
   */
  async #latest(definition: MachineDefinition, filter: StepFilter, last: number): Promise<Head[]> {
    const { merchant } = filter;
    const state = { $in: this.#leaves.get(definition.name)! };
    if (merchant && definition.crowded) {
      const status = { $in: [...new Set(state.$in.map(outermost))] };
      return this.#find(definition, { mode: { $in: modes }, ...narrowing(filter), status }, last);
    }
    if (merchant && (await this.#isIndexedByMerchant(definition))) {
      return this.#find(definition, narrowing(filter), last);
    }
    const owned = ownedBy[definition.name];
    const owner = owned && this.definition(owned.owner);
    if (merchant && owned && owner) {
      const owners = await this.#find(owner, narrowing(filter), ownersMax);
      return this.#find(definition, { [owned.field]: { $in: owners.map(({ id }) => id) }, state }, last);
    }
    const { match } = inStates(definition, filter.mode ? [filter.mode] : modes, state.$in);
    const ofMode = { ...narrowing({ ...filter, merchant: undefined }), ...match };
    const found = await this.#find(definition, ofMode, merchant ? last + othersMax : last);
    return found.filter(({ merchantId }) => !merchant || merchant === merchantId).slice(0, last);
  }

  #isIndexedByMerchant({ plural }: MachineDefinition): Promise<boolean> {
    let known = this.#byMerchant.get(plural);
    if (!known) {
      known = this.#db
        .collection(plural)
        .indexes()
        .then((indexes) => indexes.some(({ key }) => Object.keys(key).join() === 'merchantId,mode,_id'));
      known.catch(() => this.#byMerchant.delete(plural));
      this.#byMerchant.set(plural, known);
    }
    return known;
  }

  async #find(definition: MachineDefinition, among: object, limit: number): Promise<Head[]> {
    const docs = await this.#db
      .collection<ActorDoc>(definition.plural)
      .find(among, { maxTimeMS: readWithinMs })
      .project<Pick<ActorDoc, '_id' | 'seq' | 'updatedAt' | 'merchantId'>>(headFields)
      .sort({ _id: -1 })
      .limit(limit)
      .toArray();
    return docs.map(({ _id: id, seq, updatedAt, merchantId }) => ({
      definition,
      id,
      seq,
      updatedAt,
      merchantId,
    }));
  }
}

function narrowing({ merchant, mode }: StepFilter): object {
  return {
    ...(merchant ? { merchantId: { $eq: merchant } } : {}),
    ...(mode ? { mode: { $eq: mode } } : {}),
  };
}
