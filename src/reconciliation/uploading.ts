import { createHash } from 'node:crypto';
import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { StatementFault } from './csv.ts';
import {
  type ReconciliationDoc,
  reconciliationsSpec,
  type StatementDoc,
  type StatementPageDoc,
  statementPagesSpec,
  statementsSpec,
} from './documents.ts';
import type { StatementFormat } from './format.ts';
import { type StatementLine, StatementReader, type StatementSummary } from './reading.ts';

/** Lines that are kept, looked for and committed together. */
export const pageLines = 500;

/** A file as it was received: read to its end, and put by in pages. */
export interface Received extends StatementSummary {
  sha256: string;
  upload: string;
  pages: number;
}

interface Sent {
  format: StatementFormat;
  rail: string;
  date: string;
  currency: string;
  shortCode?: string | undefined;
}

/**
 * Reads a statement as it comes in and puts its lines by, a page at a time, so that memory stays the same whatever the
 * size. A file that is unfit leaves nothing. @throws StatementFault
 */
export async function receiveStatement(
  { db, clock }: { db: Db; clock: Clock },
  chunks: AsyncIterable<Uint8Array>,
  sent: Sent,
): Promise<Received> {
  const upload = newId('upl', clock.now());
  const hash = createHash('sha256');
  const reader = new StatementReader(sent);
  let page: StatementLine[] = [];
  let pages = 0;
  const putBy = async (isEnd: boolean) => {
    while (page.length >= pageLines || (isEnd && page.length > 0)) {
      const doc = { _id: pageId(upload, pages), at: new Date(clock.now()), lines: page.splice(0, pageLines) };
      await db.collection<StatementPageDoc>(statementPagesSpec.name).insertOne(doc);
      pages += 1;
    }
  };
  try {
    for await (const chunk of chunks) {
      hash.update(chunk);
      for (const line of reader.take(chunk)) page.push(line);
      await putBy(false);
    }
    for (const line of reader.take()) page.push(line);
    await putBy(true);
    const summary = reader.summary();
    checkNeighbours(await neighboursOf(db, sent), summary);
    return { ...summary, sha256: hash.digest('hex'), upload, pages };
  } catch (error) {
    page = [];
    await dropUpload(db, upload);
    throw error;
  }
}

/**
 * A day on which nothing moved has no lines, and so no file: it is stated. Its balance is that of the day before, or of the day
 * after; without either nothing tells it. @throws StatementFault
 */
export async function statedEmpty(
  { db, clock }: { db: Db; clock: Clock },
  { rail, date }: Pick<Sent, 'rail' | 'date'>,
): Promise<Received> {
  const { before, after } = await neighboursOf(db, { rail, date });
  const openingTzs = before?.closingTzs ?? after?.openingTzs;
  if (openingTzs === undefined)
    throw new StatementFault(1, 'no other day has told a balance yet. Bring a day with lines first.');
  const summary = { lines: 0, skipped: 0, openingTzs, closingTzs: openingTzs };
  checkNeighbours({ before, after }, summary);
  const sha256 = createHash('sha256').update(`${rail} ${date}: nothing moved`).digest('hex');
  return { ...summary, sha256, upload: newId('upl', clock.now()), pages: 0 };
}

/** A day begins with what the day before ended with, whichever of them came first. @throws StatementFault */
function checkNeighbours(
  { before, after }: Awaited<ReturnType<typeof neighboursOf>>,
  { openingTzs, closingTzs }: StatementSummary,
): void {
  if (before && before.closingTzs !== openingTzs) {
    const message = `the day begins with ${openingTzs}, and ${before.date} ended with ${before.closingTzs}. Bring the days between them first, each from 00:00:00 to 23:59:59.`;
    throw new StatementFault(1, message);
  }
  if (after && after.openingTzs !== closingTzs) {
    const message = `the day ends with ${closingTzs}, and ${after.date} began with ${after.openingTzs}. Export the day whole, to 23:59:59.`;
    throw new StatementFault(1, message);
  }
}

async function neighboursOf(db: Db, { rail, date }: Pick<Sent, 'rail' | 'date'>) {
  const stored = db.collection<StatementDoc>(statementsSpec.name);
  const [before, after] = await Promise.all([
    stored.findOne({ rail, date: { $lt: date } }, { sort: { date: -1 } }),
    stored.findOne({ rail, date: { $gt: date } }, { sort: { date: 1 } }),
  ]);
  return { before, after };
}

export function pageId(upload: string, page: number): string {
  return `${upload}/${String(page).padStart(8, '0')}`;
}

/** Forgets what was put by of a file. */
export async function dropUpload(db: Db, upload: string): Promise<void> {
  await db
    .collection<StatementPageDoc>(statementPagesSpec.name)
    .deleteMany({ _id: { $gte: `${upload}/`, $lt: `${upload}0` } });
}

/** What was put by a day ago and belongs to no import that still reads it: its upload broke off, or it is imported. */
export async function dropLeftUploads(db: Db, nowMs: number): Promise<void> {
  const pages = db.collection<StatementPageDoc>(statementPagesSpec.name);
  const old = await pages.findOne({ at: { $lt: new Date(nowMs - limits.dayMs) } }, { sort: { at: 1 } });
  if (!old) return;
  const upload = old._id.split('/', 1)[0]!;
  const reading = await db
    .collection<ReconciliationDoc>(reconciliationsSpec.name)
    .findOne({ 'data.upload': upload, state: 'importing' }, { projection: { _id: 1 } });
  if (!reading) await dropUpload(db, upload);
}
