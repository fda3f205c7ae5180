import { type Doc, MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { Db } from 'mongodb';
import { ulid } from 'ulid';
import { AuditWatch, type Payment, type Understood } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { type Books, keepAsIs, payment as paymentAt, success } from './books.ts';

const { dayMs, hourMs } = limits;

/** Books with a payment or two on each of some days, and a watch whose nights are made one by one. */
export interface Past extends Books {
  clock: MovableClock;
  watch: AuditWatch;
  /** What was paid, by day: the first is the earliest. */
  paid: Payment[][];
  /** The next 03:00, and what is open after it: the kinds of breaches. */
  night(): Promise<string[]>;
  /** Pays on the day that the clock is in. */
  pay(terms?: Partial<Payment>): Promise<Payment>;
}

export function paymentOf(atMs: number, terms: Partial<Payment> = {}): Payment {
  return paymentAt({ collectionId: `col_${ulid(atMs)}`, effectiveAtMs: atMs, postedAtMs: atMs, ...terms });
}

/** Ten in the morning of that many days ago: counted from a noon, since a run may go over midnight. */
export const todayMs = dateDueAtMs(eatDate(Date.now())) + 12 * hourMs;

export async function pastOf(
  books: Books,
  days: number,
  options: { pastMs?: number; understood?: Understood } = {},
): Promise<Past> {
  const clock = new MovableClock(todayMs);
  const paid: Payment[][] = [];
  for (let ago = days; ago > 0; ago -= 1) {
    const of = [0, 1].map((n) => paymentOf(todayMs - ago * dayMs - n * hourMs, { merchantId: `mer_${n}` }));
    // What is available at once is overdue on no day.
    for (const each of of) await books.written(success(each, null));
    paid.push(of);
  }
  const commit = (writes: Parameters<Books['written']>[0]) => books.written(writes);
  const watch = new AuditWatch({ db: books.db, clock, log: createLog('silent'), commit, ...options });
  const night = async () => {
    const nextMs = dateDueAtMs(eatDate(clock.now() + dayMs)) + 3 * hourMs + limits.minuteMs;
    clock.advance(nextMs - clock.now());
    await watch.nightly();
    await watch.idle();
    expect((await watch.state()).full?.at.getTime(), 'the night has ended').to.equal(clock.now());
    return await openKinds(watch);
  };
  const pay = async (terms: Partial<Payment> = {}) => {
    const of = paymentOf(clock.now() - hourMs, { merchantId: 'mer_0', ...terms });
    await books.written(success(of, null));
    return of;
  };
  return { ...books, clock, watch, paid, night, pay };
}

/**
 * A past that its first night has proven, made once. What it returns puts books and clock back to the morning after that
 * night, whatever was done since: to write a past and to prove it costs more than most of what a test does with it.
 */
export async function provenPast(...of: Parameters<typeof pastOf>): Promise<() => Promise<Past>> {
  const past = await pastOf(...of);
  expect(await past.night()).to.deep.equal([]);
  const provenMs = past.clock.now();
  const putBack = await keepAsIs(past);
  return async () => {
    await putBack();
    past.clock.advance(provenMs - past.clock.now());
    return past;
  };
}

export async function openKinds(watch: AuditWatch): Promise<string[]> {
  const { open } = await watch.state();
  return [...new Set(open.map(({ breach }) => String(breach.kind)))].sort();
}

export const stored = (db: Db, name: string) => db.collection<Doc>(name);
export const keyOf = ({ mode, collectionId }: Payment) => `${mode}:${collectionId}:succeeded`;
export async function changed(db: Db, name: string, _id: string, fields: object): Promise<void> {
  const { modifiedCount } = await stored(db, name).updateOne(
    { _id },
    { $set: fields },
    { bypassDocumentValidation: true },
  );
  expect(modifiedCount).to.equal(1);
}
