import type { ActorDoc, Doc, MachineDefinition } from '@kusanya/durable-actors';
import type { ClientSession, Collection, Db, Document, Filter } from 'mongodb';
import { type IdPrefix, idFloor } from '../ids.ts';
import { type ArchivedDoc, familyOf } from './file.ts';
import type { ArchiveKind } from './retention.ts';

/**
 * What of each kind is old enough. Nothing remembers how far the archive has come: it begins at the oldest that is still
 * there each time, so what was not ended then is met again, and what has gone costs nothing any more.
 *
 * Everything goes owner by owner. An owner is an actor that has ended, rests, and was not touched since the moment.
 */

/** What is known of a chart here. */
export type Chart = Pick<MachineDefinition, 'name' | 'plural' | 'ended' | 'idPrefix'>;

export interface OwnerSource {
  kind: ArchiveKind;
  /** What is due before a moment, some owners at a time, each owner whole. */
  pages(beforeMs: number): AsyncGenerator<ArchivedDoc[]>;
  /** Removes what is in a file by now. Returns how many documents were left, because they are not as they were. */
  remove(docs: readonly ArchivedDoc[]): Promise<number>;
}

/** A day that is due. */
export interface DueDay {
  date: string;
  until: Date;
  pages: AsyncGenerator<ArchivedDoc[]>;
}

/** What goes by days instead: each whole, in one file. */
export interface DaySource extends Pick<OwnerSource, 'kind' | 'remove'> {
  /** The days that are due before a moment, the earliest first. */
  days(beforeMs: number): AsyncGenerator<DueDay>;
  /** Hears that a day is in a file that was read back. @throws where it may not go; then nothing is removed */
  release(date: string, docs: AsyncIterable<readonly ArchivedDoc[]>): Promise<void>;
}

export type Source = OwnerSource | DaySource;

/** Documents of one page; of a steady size whatever the owners have. */
export const docsPerPage = 2_000;

/** Types as they are stored: a long stays one. */
export const exact = { promoteValues: false } as const;

export function archiveSources(db: Db, charts: readonly Chart[]): readonly OwnerSource[] {
  return [historySource(db, charts), eventSource(db, charts), evidenceSource(db, charts)];
}

/** The actors among these that have ended, rest, and were not touched since. */
async function endedOf(
  db: Db,
  { plural, ended }: Chart,
  ids: readonly string[],
  before: Date,
): Promise<Set<string>> {
  if (!ended?.length || ids.length === 0) return new Set();
  const resting: Filter<ActorDoc> = {
    _id: { $in: [...ids] },
    state: { $in: [...ended] },
    dueAt: null,
    quarantined: { $exists: false },
    updatedAt: { $lt: before },
  };
  const found = db.collection<ActorDoc>(plural).find(resting, { projection: { _id: 1 } });
  return new Set(await found.map(({ _id }) => _id).toArray());
}

/** The same of actors of any chart that has a family of its own. */
async function endedAmong(
  db: Db,
  charts: readonly Chart[],
  ids: readonly string[],
  before: Date,
): Promise<Set<string>> {
  const ended = new Set<string>();
  for (const chart of charts) {
    const own = ids.filter((id) => familyOf(id) === `${chart.idPrefix}_`);
    for (const id of await endedOf(db, chart, own, before)) ended.add(id);
  }
  return ended;
}

/** All ids of a family are below it. */
const endOf = (family: string): string => `${family}~`;

/** Where documents name their owner. */
interface Walk {
  stored: Collection<Doc>;
  /** An index begins with it, and its values with the owner's id. */
  key: '_id' | 'collectionId';
  ownerOf(doc: Document): string;
  /** When a document was made; what is not older waits for its owner to be met again. */
  madeAt: string;
  /** A family that is somebody else's. */
  without?: string;
}

/** Documents of owners that were born before a moment, by owner and in their order, some at a time. */
async function* walk(
  { stored, key, ownerOf, madeAt, without }: Walk,
  before: Date,
): AsyncGenerator<Map<string, Doc[]>> {
  for (let after = ''; ; ) {
    const next = await stored.findOne(
      { [key]: { $gt: after } },
      { sort: { [key]: 1 }, projection: { [key]: 1 } },
    );
    if (!next) return;
    const family = familyOf(ownerOf(next));
    const isTimed = family.endsWith('_');
    // Ids that tell their time end the walk there; of others each document tells it.
    const end = isTimed ? idFloor(family.slice(0, -1) as IdPrefix, before.getTime()) : endOf(family);
    const made = isTimed ? {} : { [madeAt]: { $lt: before } };
    for (let from = after; family !== without; ) {
      const page = await stored
        .find({ [key]: { $gt: from, $gte: family, $lt: end }, ...made }, exact)
        .sort({ [key]: 1 })
        .limit(docsPerPage)
        .toArray();
      if (page.length === 0) break;
      const owners = new Map<string, Doc[]>();
      for (const doc of page) owners.set(ownerOf(doc), [...(owners.get(ownerOf(doc)) ?? []), doc]);
      const last = ownerOf(page.at(-1)!);
      // The page ends in the middle of its last owner, who is read whole.
      if (page.length === docsPerPage) owners.set(last, await wholeOf(stored, key, last));
      yield owners;
      from = key === '_id' ? `${last}/~` : last;
    }
    after = endOf(family);
  }
}

function wholeOf(stored: Collection<Doc>, key: Walk['key'], owner: string): Promise<Doc[]> {
  const range = key === '_id' ? { $gt: `${owner}/`, $lt: `${owner}0` } : { $eq: owner };
  return stored
    .find({ [key]: range }, exact)
    .sort({ [key]: 1 })
    .toArray();
}

const removed = async (
  db: Db,
  docs: readonly ArchivedDoc[],
  from: string,
  session?: ClientSession,
): Promise<void> => {
  const ids = docs.flatMap((each) => (each.in === from ? [each.doc._id] : []));
  if (ids.length > 0)
    await db.collection<Doc>(from).deleteMany({ _id: { $in: ids } }, session ? { session } : {});
};

/** Lines of a history never change, and neither do answers of a network. */
function removeUnchanging(db: Db, stored: readonly string[]) {
  return async (docs: readonly ArchivedDoc[]): Promise<number> => {
    for (const from of stored) await removed(db, docs, from);
    return 0;
  };
}

function historySource(db: Db, charts: readonly Chart[]): OwnerSource {
  const stored = db.collection<Doc>('steps');
  const lines: Walk = {
    stored,
    key: '_id',
    ownerOf: ({ _id }) => String(_id).split('/', 1)[0]!,
    madeAt: 'at',
    without: 'dlv_', // they go with their events
  };
  return {
    kind: 'history',
    pages: async function* (beforeMs) {
      const before = new Date(beforeMs);
      for await (const owners of walk(lines, before)) {
        const due = new Set<string>();
        for (const chart of charts) {
          const own = [...owners].filter(([, docs]) => docs.some(({ machine }) => machine === chart.name));
          for (const id of await endedOf(
            db,
            chart,
            own.map(([id]) => id),
            before,
          ))
            due.add(id);
        }
        yield [...owners].flatMap(([of, docs]) =>
          due.has(of) ? docs.map((doc) => ({ of, in: 'steps', doc })) : [],
        );
      }
    },
    remove: removeUnchanging(db, ['steps']),
  };
}

function evidenceSource(db: Db, charts: readonly Chart[]): OwnerSource {
  return {
    kind: 'evidence',
    pages: async function* (beforeMs) {
      const before = new Date(beforeMs);
      for (const from of ['railAnswers', 'railCallbacks']) {
        const ownerOf = ({ collectionId }: Document) => String(collectionId);
        const stored = db.collection<Doc>(from);
        for await (const owners of walk({ stored, key: 'collectionId', ownerOf, madeAt: 'at' }, before)) {
          const due = await endedAmong(db, charts, [...owners.keys()], before);
          // A callback that nobody has heard of yet is still to ring.
          const isDue = (doc: Doc) => from === 'railAnswers' || doc.rungAt instanceof Date;
          yield [...owners].flatMap(([of, docs]) =>
            due.has(of) && docs.every(isDue) ? docs.map((doc) => ({ of, in: from, doc })) : [],
          );
        }
      }
    },
    remove: removeUnchanging(db, ['railAnswers', 'railCallbacks']),
  };
}

/** Ids of what belongs to these actors: `<actor>/…`. */
const partsOf = (ids: readonly string[]) => ({ _id: { $in: ids.map((id) => new RegExp(`^${id}/`)) } });

function eventSource(db: Db, charts: readonly Chart[]): OwnerSource {
  const stored = db.collection<Doc>('events');
  const deliveries = charts.find(({ name }) => name === 'delivery')!;
  const ownerOf = ({ collectionId }: Document) => String(collectionId);
  return {
    kind: 'events',
    pages: async function* (beforeMs) {
      const before = new Date(beforeMs);
      for await (const owners of walk(
        { stored, key: 'collectionId', ownerOf, madeAt: 'createdAt' },
        before,
      )) {
        const ended = await endedAmong(db, charts, [...owners.keys()], before);
        // The test of an endpoint tells of no payment.
        const due = [...owners].filter(
          ([of, docs]) =>
            (ended.has(of) || of.startsWith('sample.')) && docs.every((doc) => doc.createdAt < before),
        );
        yield await withDeliveries(db, deliveries, new Map(due), before);
      }
    },
    remove: (docs) => removeEvents(db, docs),
  };
}

/** The events of each payment with all that was done to deliver them; none of it while a delivery has not ended. */
async function withDeliveries(
  db: Db,
  chart: Chart,
  due: ReadonlyMap<string, readonly Doc[]>,
  before: Date,
): Promise<ArchivedDoc[]> {
  const ownerOfEvent = new Map([...due].flatMap(([of, docs]) => docs.map(({ _id }) => [_id, of] as const)));
  const found = await db
    .collection<Doc>(chart.plural)
    .find({ 'data.eventId': { $in: [...ownerOfEvent.keys()] } }, exact)
    .toArray();
  const ended = await endedOf(
    db,
    chart,
    found.map(({ _id }) => _id),
    before,
  );
  const ownerOf = new Map(found.map(({ _id, data }) => [_id, ownerOfEvent.get(data.eventId)!]));
  const open = new Set(found.flatMap(({ _id }) => (ended.has(_id) ? [] : [ownerOf.get(_id)!])));
  const whole = found.filter(({ _id }) => !open.has(ownerOf.get(_id)!));
  const ids = whole.map(({ _id }) => _id);
  const parts = (from: string) =>
    db.collection<Doc>(from).find(partsOf(ids), exact).sort({ _id: 1 }).toArray();
  const [attempts, steps] =
    ids.length > 0 ? await Promise.all([parts('attempts'), parts('steps')]) : [[], []];
  const ofParts = (from: string, docs: readonly Doc[]) =>
    docs.map((doc) => ({ of: ownerOf.get(doc._id.split('/', 1)[0]!)!, in: from, doc }));
  const all: ArchivedDoc[] = [
    ...[...due].flatMap(([of, docs]) => (open.has(of) ? [] : docs.map((doc) => ({ of, in: 'events', doc })))),
    ...whole.map((doc) => ({ of: ownerOf.get(doc._id)!, in: chart.plural, doc })),
    ...ofParts('attempts', attempts),
    ...ofParts('steps', steps),
  ];
  return all.sort((a, b) => (a.of < b.of ? -1 : a.of > b.of ? 1 : 0));
}

/**
 * An event goes with its deliveries or not at all. One that is sent once more meanwhile has another number, or is new:
 * then the event stays with all that belongs to it, and comes into a later file.
 */
async function removeEvents(db: Db, docs: readonly ArchivedDoc[]): Promise<number> {
  const archived = new Map(
    docs.flatMap(({ in: from, doc }) => (from === 'deliveries' ? [[doc._id, Number(doc.seq)] as const] : [])),
  );
  const eventIds = docs.flatMap((each) => (each.in === 'events' ? [each.doc._id] : []));
  const ownerOfEvent = new Map(docs.map(({ of, doc }) => [doc._id, of]));
  return db.client.withSession((session) =>
    session.withTransaction(async () => {
      const stored = db
        .collection<Doc>('deliveries')
        .find({ 'data.eventId': { $in: eventIds } }, { session });
      const changed = new Set<string>();
      for await (const { _id, seq, data } of stored)
        if (archived.get(_id) !== seq) changed.add(ownerOfEvent.get(data.eventId)!);
      const going = docs.filter(({ of }) => !changed.has(of));
      for (const from of ['attempts', 'steps', 'deliveries', 'events'])
        await removed(db, going, from, session);
      return docs.length - going.length;
    }),
  );
}
