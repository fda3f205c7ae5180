import type { Db } from 'mongodb';
import {
  type ActorDoc,
  type Actors,
  type MachineDefinition,
  type StepLine,
  stepId,
  stepsSpec,
} from '../actors/actors.ts';
import type { StepFilter } from './notice.ts';

/** An actor as stored, with its chart. */
export interface Stored {
  definition: MachineDefinition;
  doc: ActorDoc;
}

/** A page of actors that only a mode was asked of may have to leave out as many again. */
const othersMax = 500;
const readWithinMs = 5_000;

/** What the inspector reads of MongoDB: actors and their history, never more than asked for. */
export class ActorSource {
  readonly #db: Db;
  readonly #definitions: readonly MachineDefinition[];

  constructor({ db, actors }: { db: Db; actors: Pick<Actors, 'definitions'> }) {
    this.#db = db;
    this.#definitions = actors.definitions;
  }

  get machines(): string[] {
    return this.#definitions.map(({ name }) => name);
  }

  definition(machine: string): MachineDefinition | undefined {
    return this.#definitions.find(({ name }) => name === machine);
  }

  /** The actors that match, at most `last` of those that were made last; the newest first. */
  async matching(filter: StepFilter, last: number): Promise<Stored[]> {
    const { machine, actor } = filter;
    const definitions = this.#definitions.filter(({ name }) => machine === undefined || machine === name);
    const found = await Promise.all(
      definitions.map(async (definition) => {
        const docs = await (actor ? this.#byId(definition, [actor]) : this.#latest(definition, filter, last));
        return docs.filter((doc) => isOf(filter, doc)).map((doc) => ({ definition, doc }));
      }),
    );
    const newestFirst = (one: Stored, other: Stored) =>
      other.doc.updatedAt.getTime() - one.doc.updatedAt.getTime();
    return found.flat().sort(newestFirst).slice(0, last);
  }

  /** These actors as they are now. */
  async these(machine: string, ids: string[]): Promise<Stored[]> {
    const definition = this.definition(machine);
    if (!definition) return [];
    return (await this.#byId(definition, ids)).map((doc) => ({ definition, doc }));
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

  #byId({ plural }: MachineDefinition, ids: string[]): Promise<ActorDoc[]> {
    const among = { _id: { $in: ids } };
    return this.#db.collection<ActorDoc>(plural).find(among, { maxTimeMS: readWithinMs }).toArray();
  }

  #latest({ plural }: MachineDefinition, { merchant, mode }: StepFilter, last: number): Promise<ActorDoc[]> {
    // By merchant and mode there is an index. Else the newest few are read whatever they are: bounded, not whole.
    const isIndexed = merchant !== undefined && mode !== undefined;
    const among = isIndexed ? { merchantId: { $eq: merchant }, mode: { $eq: mode } } : {};
    return this.#db
      .collection<ActorDoc>(plural)
      .find(among, { maxTimeMS: readWithinMs })
      .sort({ _id: -1 })
      .limit(isIndexed || (!merchant && !mode) ? last : last + othersMax)
      .toArray();
  }
}

function isOf({ merchant, mode }: StepFilter, doc: ActorDoc): boolean {
  return (!merchant || merchant === doc.merchantId) && (!mode || mode === doc.mode);
}
