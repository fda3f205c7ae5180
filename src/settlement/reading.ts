import type { Db, Filter, FindCursor } from 'mongodb';
import { derivedId, idTimeOf } from '../ids.ts';
import { balancesSpec, entriesSpec, type OwnEntry } from '../ledger/ledger.ts';
import type { Mode } from '../mode.ts';
import { type SnapshotOptions, snapshotRead } from '../mongo.ts';
import { eatDate } from '../time.ts';
import { isOwn, type Own, ownOf, type Whose } from '../whose.ts';
import { type SettlementDoc, settlementId, settlementsSpec } from './documents.ts';

/**
 * Settlements as merchants and operators read them. What still waits is read from the buckets in the same
 * snapshot as the actor, so money is never seen in neither or in both.
 */

/** A settlement with the money that still waits for it, in whole shillings. */
export interface SettlementRow<D extends SettlementDoc = SettlementDoc> {
  /** `stl_…`, as merchants know it. */
  id: string;
  doc: D;
  pendingTzs: number;
}

/** One that was read for its merchant. */
export type OwnSettlement = SettlementRow<Own<SettlementDoc>>;

/** What operators narrow the list by. */
export interface SettlementFilter {
  merchantId?: string;
  mode?: Mode;
  state?: 'due' | 'held' | 'settled';
  date?: string;
  /** Those of this date and earlier. */
  dueBy?: string;
}

const allModes = ['live', 'test'] as const;
const allStates = ['due', 'held', 'settled'] as const;

export class SettlementReader {
  readonly #db: Db;
  readonly #shown: <D extends SettlementDoc>(doc: D) => D;

  /** `shown`: brings a stored document to this code's version, as far as that is possible. */
  constructor(db: Db, shown: <D extends SettlementDoc>(doc: D) => D) {
    this.#db = db;
    this.#shown = shown;
  }

  /** A merchant's settlements, latest date first. The cursor's time part is its date; nothing is looked up. */
  async list(
    whose: Whose,
    page: { limit: number; startingAfter?: string },
  ): Promise<{ rows: OwnSettlement[]; hasMore: boolean }> {
    const filter: Filter<SettlementDoc> = {};
    const untilMs = page.startingAfter === undefined ? undefined : idTimeOf(page.startingAfter);
    if (untilMs !== undefined && Number.isFinite(untilMs)) filter['data.date'] = { $lt: eatDate(untilMs) };
    return this.#page((options) => ownOf(this.#stored, whose).find(filter, options), page.limit);
  }

  /** One settlement of this merchant and mode; undefined for everybody else's. */
  async show(whose: Whose, id: string): Promise<OwnSettlement | undefined> {
    const dueAtMs = idTimeOf(id);
    if (!Number.isFinite(dueAtMs)) return undefined;
    const _id = settlementId({ ...whose, date: eatDate(dueAtMs) });
    // Every merchant has a settlement of that date: the rest of the id says whose is meant.
    if (publicId(_id, dueAtMs) !== id) return undefined;
    const row = await this.find(_id);
    return row && isOwn(whose, row.doc) ? { ...row, doc: row.doc } : undefined;
  }

  /** The settlement that merchants know by this id, of whichever merchant: each of them has one of its date. */
  async findPublic(id: string): Promise<SettlementDoc | undefined> {
    const dueAtMs = idTimeOf(id);
    if (!Number.isFinite(dueAtMs)) return undefined;
    const ofDate = this.#stored.find({ 'data.date': eatDate(dueAtMs) });
    for await (const doc of ofDate) if (publicId(doc._id, dueAtMs) === id) return doc;
    return undefined;
  }

  /** One settlement by its actor's id. */
  async find(_id: string): Promise<SettlementRow | undefined> {
    const { rows } = await this.#page((options) => this.#stored.find({ _id: { $eq: _id } }, options), 1);
    return rows[0];
  }

  /** Settlements of all merchants, latest date first. `startingAfter`: the last actor id of the page before. */
  async search(
    { merchantId, mode, state, date, dueBy }: SettlementFilter,
    page: { limit: number; startingAfter?: string },
  ): Promise<{ rows: SettlementRow[]; hasMore: boolean }> {
    // Naming every mode and state lets an index by them give the order too.
    const modes = { mode: { $in: mode ? [mode] : [...allModes] } };
    const conditions: Filter<SettlementDoc>[] = [{}];
    if (merchantId) conditions.push({ merchantId: { $eq: merchantId }, ...modes });
    else if (mode || state) conditions.push({ ...modes, state: { $in: state ? [state] : [...allStates] } });
    if (merchantId && state) conditions.push({ state });
    if (date) conditions.push({ 'data.date': { $eq: date } });
    if (dueBy) conditions.push({ 'data.date': { $lte: dueBy } });
    const { startingAfter } = page;
    if (startingAfter !== undefined) {
      const last = startingAfter.slice(-'2026-11-22'.length);
      conditions.push({
        'data.date': { $lte: last },
        $or: [{ 'data.date': { $lt: last } }, { 'data.date': last, _id: { $lt: startingAfter } }],
      });
    }
    return this.#page((options) => this.#stored.find({ $and: conditions }, options), page.limit);
  }

  /**
   * The ids of the collections whose money a settlement consists of, newest first. `before`: only ids below it.
   * Those whose success proved false before the date are not among them: their money left the bucket again.
   */
  async collectionIds(
    { mode, merchantId, data }: SettlementDoc,
    page: { limit: number; before?: string },
  ): Promise<{ ids: string[]; hasMore: boolean }> {
    const ids: string[] = [];
    let before = page.before;
    for (;;) {
      const found = await this.#credits({ mode, merchantId, date: data.date }, before, page.limit + 1);
      ids.push(...found.ids);
      before = found.last;
      if (ids.length > page.limit || before === undefined) break;
    }
    return { ids: ids.slice(0, page.limit), hasMore: ids.length > page.limit };
  }

  /** One stretch of the bucket's entries: the collections in it, and where the next stretch begins. */
  async #credits(
    { date, ...whose }: Whose & { date: string },
    before: string | undefined,
    size: number,
  ): Promise<{ ids: string[]; last: string | undefined }> {
    const stored = this.#db.collection<OwnEntry>(entriesSpec.name);
    const { mode } = whose;
    // Posting keys begin with the collection's id, so their order is that of the ids.
    const range = { $gte: `${mode}:col_`, $lt: before === undefined ? `${mode}:col\`` : `${mode}:${before}` };
    const entries = await ownOf(stored, whose)
      .find({ 'lines.bucket': date, _id: range }, { projection: { type: 1, 'source.id': 1 } })
      .sort({ _id: -1 })
      .limit(2 * size) // a collection has two entries at the most: its credit and its reversal
      .toArray();
    const isMore = entries.length === 2 * size;
    const last = entries.at(-1)?.source.id;
    // The last one's other entry may lie beyond this stretch: it begins the next one.
    const whole = isMore ? entries.filter(({ source }) => source.id !== last) : entries;
    const undone = new Set(
      whole.filter(({ type }) => type === 'success.reversed').map(({ source }) => source.id),
    );
    const ids = whole.filter(({ source }) => !undone.has(source.id)).map(({ source }) => source.id);
    return { ids, last: isMore ? whole.at(-1)?.source.id : undefined };
  }

  #page<D extends SettlementDoc>(
    find: (options: SnapshotOptions) => FindCursor<D>,
    limit: number,
  ): Promise<{ rows: SettlementRow<D>[]; hasMore: boolean }> {
    return snapshotRead(this.#db, async (options) => {
      const found = await find(options)
        .sort({ 'data.date': -1, _id: -1 })
        .limit(limit + 1)
        .toArray();
      // One that nobody understands has no figures to show: the machine's own list has it, set aside.
      const docs = found
        .slice(0, limit)
        .map((doc) => this.#shown(doc))
        .filter(({ snapshot }) => Number.isFinite(snapshot?.context?.dueAtMs));
      const waiting = await this.#waiting(docs, options);
      const rows = docs.map((doc) => ({
        id: publicId(doc._id, doc.snapshot.context.dueAtMs),
        doc,
        pendingTzs: waiting.get(doc._id) ?? 0,
      }));
      return { rows, hasMore: found.length > limit };
    });
  }

  get #stored() {
    return this.#db.collection<SettlementDoc>(settlementsSpec.name);
  }

  /** What the buckets of these settlements hold, by actor id. */
  async #waiting(docs: SettlementDoc[], options: SnapshotOptions): Promise<Map<string, number>> {
    const sums = new Map<string, number>();
    const merchants = [...new Set(docs.map(({ merchantId }) => merchantId))];
    if (merchants.length === 0) return sums;
    const stripes = this.#db
      .collection<Whose & { _id: string; pending?: Record<string, number> }>(balancesSpec.name)
      .find({ merchantId: { $in: merchants } }, options);
    for await (const { mode, merchantId, pending } of stripes) {
      for (const [date, tzs] of Object.entries(pending ?? {})) {
        const id = settlementId({ mode, merchantId, date });
        sums.set(id, (sums.get(id) ?? 0) + tzs);
      }
    }
    return sums;
  }
}

/** `stl_…`: the same derivation as a settlement entry's source in the journal (ledger/transactions.ts). */
function publicId(actorId: string, dueAtMs: number): string {
  return derivedId('stl', dueAtMs, actorId);
}
