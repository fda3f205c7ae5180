import { createHash } from 'node:crypto';
import type { Db } from 'mongodb';
import { BatchReader } from './batch.ts';
import type { Committer } from './commit.ts';
import { type ActorDoc, type MachineDefinition, Poison } from './document.ts';
import type { Doc, MongoCollectionSpec } from './mongo.ts';

/** A part of contexts that very many actors have alike; `_id` follows from `value`. Never changed, never removed. */
interface SharedPart extends Doc {
  value: object;
}

export const sharedPartsSpec: MongoCollectionSpec = { name: 'shared_parts' };

/**
 * What very many actors remember alike and none ever changes (settings at its birth, `MachineDefinition.shared`). It is stored
 * once, by its content, before the first actor that needs it; actors rest with its id in its place. Awake they have
 * the value itself, one frozen object for all, so charts and whoever reads a context never see an id.
 */
export class SharedParts {
  readonly #db: Db;
  readonly #committer: Committer;
  /** By id, for ever: there are as many as there were settings. */
  readonly #values = new Map<string, object>();
  readonly #ids = new WeakMap<object, string>();
  readonly #kept = new Map<string, Promise<void>>();
  readonly #reader: BatchReader<object>;

  constructor(db: Db, committer: Committer) {
    this.#db = db;
    this.#committer = committer;
    this.#reader = new BatchReader((ids) => this.#find(ids));
  }

  /** As the actor is to be stored. What it shares is stored when this resolves. @throws MongoDB's error */
  async rest(definition: MachineDefinition, doc: ActorDoc): Promise<ActorDoc> {
    let { context } = doc.snapshot;
    for (const name of definition.shared ?? []) {
      const value = context[name];
      if (typeof value !== 'object' || value === null) continue;
      const id = this.#idOf(value);
      if (!this.#values.has(id)) await this.#keep(id, value);
      context = { ...context, [name]: id };
    }
    return context === doc.snapshot.context ? doc : { ...doc, snapshot: { ...doc.snapshot, context } };
  }

  /**
   * Stored actors with what they share in its place, in the same order; all that this process has not met yet is asked
   * for at once. An id that is stored nowhere stays (`refuseAsleep`), and so does what is no whole document.
   */
  async wake<D extends ActorDoc>(definition: MachineDefinition, stored: readonly D[]): Promise<D[]> {
    const { shared = [] } = definition;
    if (shared.length === 0) return [...stored];
    const unmet = new Set(stored.flatMap((doc) => asleep(definition, doc).map(([, id]) => id)));
    for (const id of unmet) if (this.#values.has(id)) unmet.delete(id);
    if (unmet.size > 0) await Promise.all([...unmet].map((id) => this.#reader.read(id)));
    return stored.map((doc) => this.#awake(definition, doc));
  }

  #awake<D extends ActorDoc>(definition: MachineDefinition, doc: D): D {
    const found = asleep(definition, doc).flatMap(([name, id]) => {
      const value = this.#values.get(id);
      return value ? [[name, value] as const] : [];
    });
    if (found.length === 0) return doc;
    const context = { ...doc.snapshot.context, ...Object.fromEntries(found) };
    return { ...doc, snapshot: { ...doc.snapshot, context } };
  }

  #idOf(value: object): string {
    let id = this.#ids.get(value);
    if (id === undefined) {
      id = createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22);
      this.#ids.set(frozen(value), id);
    }
    return id;
  }

  /** Once for each value and process; with majority and journal, as everything that a commit relies on. */
  #keep(id: string, value: object): Promise<void> {
    let kept = this.#kept.get(id);
    if (!kept) {
      kept = this.#store(id, value).finally(() => this.#kept.delete(id));
      this.#kept.set(id, kept);
    }
    return kept;
  }

  async #store(id: string, value: object): Promise<void> {
    if (await this.#reader.read(id)) return;
    const doc: SharedPart = { _id: id, value };
    // Refused: another process was first, with the same content.
    await this.#committer.commit([{ op: 'insert', into: sharedPartsSpec.name, doc, onDuplicate: 'race' }]);
    this.#values.set(id, value);
  }

  async #find(ids: string[]): Promise<Map<string, object>> {
    const parts = this.#db.collection<SharedPart>(sharedPartsSpec.name).find({ _id: { $in: ids } });
    for await (const { _id, value } of parts) {
      if (this.#values.has(_id)) continue;
      this.#ids.set(frozen(value), _id);
      this.#values.set(_id, value);
    }
    return new Map(ids.flatMap((id) => (this.#values.has(id) ? [[id, this.#values.get(id)!]] : [])));
  }
}

/** What an actor shares and has only the id of. */
function asleep({ shared = [] }: MachineDefinition, { snapshot }: ActorDoc): [name: string, id: string][] {
  return shared.flatMap((name): [string, string][] => {
    const id = snapshot?.context?.[name];
    return typeof id === 'string' ? [[name, id]] : [];
  });
}

/** No chart may be asked with an id in place of what it stands for. @throws Poison */
export function refuseAsleep(definition: MachineDefinition, doc: ActorDoc): void {
  for (const [name, id] of asleep(definition, doc))
    throw new Poison(`${doc._id} shares ${name} ${id}, which is stored nowhere`);
}

/** All the way down: it is many actors' own. */
function frozen<Value extends object>(value: Value): Value {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) frozen(inner as object);
  return Object.freeze(value);
}
