import { type CallAnswer, type CallView, isDuplicateKey } from '@kusanya/durable-actors';
import { type AnyBulkWriteOperation, type Db, MongoBulkWriteError } from 'mongodb';
import { int64 } from '../mongo.ts';
import { isOfBank } from './bank.ts';
import {
  lineId,
  placeId,
  type ReconciliationDoc,
  type StatementLineDoc,
  type StatementPageDoc,
  statementLinesSpec,
  statementPagesSpec,
} from './documents.ts';
import type { StatementLine } from './reading.ts';
import { pageId } from './uploading.ts';

/** What the stages of a reconciliation need. */
export interface ImportDeps {
  db: Db;
}

/** Keeps one page of lines. Made again after a kill it finds its own lines and counts them the same. */
export async function importPage({ db }: ImportDeps, { doc }: CallView): Promise<CallAnswer> {
  const { _id, data, snapshot } = doc as ReconciliationDoc;
  if (data.pages === 0)
    return { event: { type: 'page.imported', cursor: null, imported: 0, repeated: 0, hasMore: false } };
  const page = Number(snapshot.context.cursor ?? -1) + 1;
  const stored = await db
    .collection<StatementPageDoc>(statementPagesSpec.name)
    .findOne({ _id: pageId(data.upload, page) });
  if (!stored) throw new Error(`${_id} has lost page ${page} of its file`);
  const docs = stored.lines.map((line) => lineDoc(data.rail, _id, line));
  const repeated = await keep(db, docs);
  const hasMore = page + 1 < data.pages;
  const imported = docs.length - repeated;
  return { event: { type: 'page.imported', cursor: String(page), imported, repeated, hasMore } };
}

function lineDoc(rail: string, reconciliation: string, line: StatementLine): StatementLineDoc {
  const { bookedAtMs, ...rest } = line;
  const _id = isOfBank({ rail }) ? placeId(reconciliation, line) : lineId(rail, line);
  return { ...rest, _id, rail, reconciliation, bookedAt: new Date(bookedAtMs) };
}

/** Inserts lines; how many of them an earlier file had already. One receipt twice is kept a second time, marked. */
async function keep(db: Db, docs: readonly StatementLineDoc[]): Promise<number> {
  const lines = db.collection<StatementLineDoc>(statementLinesSpec.name);
  const taken = await inserted(lines, docs);
  if (taken.length === 0) return 0;
  const known = await lines.find({ _id: { $in: taken.map(({ _id }) => _id) } }).toArray();
  const there = new Map(known.map((each) => [each._id, each]));
  const again = taken.filter((each) => !isSame(each, there.get(each._id)!));
  const isOwn = (each: StatementLineDoc) => there.get(each._id)!.reconciliation === each.reconciliation;
  const repeated = taken.filter((each) => isSame(each, there.get(each._id)!) && !isOwn(each)).length;
  // A second line under one receipt is evidence: nothing is credited by it.
  await inserted(
    lines,
    again.map((each) => ({ ...each, _id: `${each._id}:${each.reconciliation}:${each.n}`, isAgain: true })),
  );
  return repeated;
}

type Lines = ReturnType<typeof linesOf>;
function linesOf(db: Db) {
  return db.collection<StatementLineDoc>(statementLinesSpec.name);
}

/** Those that were there already. */
async function inserted(lines: Lines, docs: readonly StatementLineDoc[]): Promise<StatementLineDoc[]> {
  if (docs.length === 0) return [];
  const writes: AnyBulkWriteOperation<StatementLineDoc>[] = docs.map((document) => ({
    insertOne: { document: asStored(document) },
  }));
  try {
    await lines.bulkWrite(writes, { ordered: false });
    return [];
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError && isDuplicateKey(error))) throw error;
    return [error.writeErrors].flat().map(({ index }) => docs[index]!);
  }
}

function asStored(doc: StatementLineDoc): StatementLineDoc {
  const { amountTzs, balanceTzs } = doc;
  return Object.assign({}, doc, { amountTzs: int64(amountTzs), balanceTzs: int64(balanceTzs) });
}

/** The very same line: of this import, made a second time, or of a file that overlaps. */
function isSame(one: StatementLineDoc, other: StatementLineDoc): boolean {
  if (one.reconciliation === other.reconciliation) return one.n === other.n;
  return (
    one.bookedAt.getTime() === other.bookedAt.getTime() &&
    one.amountTzs === other.amountTzs &&
    one.balanceTzs === other.balanceTzs
  );
}
