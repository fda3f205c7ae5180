import { type Clock, Lease, stepId } from '@kusanya/durable-actors';
import { type Db, type Document, Long } from 'mongodb';
import { Archiver } from '../../src/archive/archive.ts';
import { endedStates } from '../../src/collections/collections.ts';
import { eventId } from '../../src/events/events.ts';
import { derivedId } from '../../src/ids.ts';
import { journalSource } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';

/** Payments of long ago with all that they left, as the service stores it, and who archives them. */

/** As much of the charts as an archiver knows. */
export const pastCharts = [
  { name: 'collection', plural: 'collections', idPrefix: 'col', ended: endedStates },
  { name: 'delivery', plural: 'deliveries', idPrefix: 'dlv', ended: ['delivered', 'failed', 'canceled'] },
  {
    name: 'payout',
    plural: 'payouts',
    idPrefix: 'po',
    ended: ['paid.resting', 'failed.resting', 'cancelled', 'returned'],
  },
  { name: 'settlement', plural: 'settlements', ended: ['settled'] },
  { name: 'breaker', plural: 'breakers', ended: [] },
] as const;

export const keptMs = 400 * 86_400_000;

export function archiverOf(
  db: Db,
  clock: Clock,
  dir: string,
  more: Partial<ConstructorParameters<typeof Archiver>[0]> = {},
): Archiver {
  const lease = new Lease(db, clock, `archiver-${process.pid}-${Math.random()}`, 60_000);
  return new Archiver({
    ...{ db, clock, lease, dir, log: createLog('silent'), charts: pastCharts },
    keptMs: { history: keptMs, events: keptMs, evidence: keptMs, journal: keptMs },
    books: journalSource(db, clock),
    ...{ docsPerFile: 100_000, restShare: 0 },
    ...more,
  });
}

/** What is planted, by MongoDB collection. */
export type Past = Record<string, Document[]>;

interface Terms {
  /** Where the payment stands. */
  state?: string;
  /** Where its delivery stands. */
  delivery?: string;
}

/** One payment: seven steps, an event, a delivery of two attempts and four steps, two answers, a callback. */
export function pastPayment(n: number, atMs: number, { state, delivery }: Terms = {}): Past {
  const id = derivedId('col', atMs, `past ${n}`);
  const at = (seq: number) => new Date(atMs + seq * 1_000);
  const whose = { merchantId: 'mer_00000000000000000000000000', mode: 'live' };
  const steps = (machine: string, actor: string, count: number) =>
    Array.from({ length: count }, (_none, index) => ({
      ...{ _id: stepId(actor, index + 1), actor, machine, seq: index + 1, at: at(index) },
      event: { type: index === 0 ? 'created' : 'timer.fired', amountTzs: Long.fromNumber(5_000 + n) },
      ...{ from: index === 0 ? null : 'before', to: 'after', actions: ['postCapture'] },
      ...{ cause: { kind: 'timer', id: 'sweep' }, stepId: `${actor}.${index}` },
    }));
  const resting = { machineVersion: 1, timers: [], calls: [], dueAt: null, lastStep: 'x', updatedAt: at(7) };
  const event = eventId(id, 7, atMs + 7_000);
  const sent = derivedId('dlv', atMs + 7_000, event);
  const collection = {
    ...{ _id: id, ...whose, ...resting, seq: 7, state: state ?? 'succeeded.standing', status: 'succeeded' },
    place: 'succeeded',
    snapshot: { value: { succeeded: 'standing' }, context: { completedAt: atMs + 7_000 } },
    data: { amountTzs: Long.fromNumber(5_000 + n), feeTzs: Long.fromNumber(100), currency: 'TZS' },
  };
  return {
    collections: [collection],
    steps: [...steps('collection', id, 7), ...steps('delivery', sent, 4)],
    events: [
      {
        ...{ _id: event, type: 'collection.succeeded', collectionId: id, ...whose, createdAt: at(7) },
        body: JSON.stringify({ id: event, data: { id, amount: 5_000 + n } }),
      },
    ],
    deliveries: [
      {
        ...{ _id: sent, ...whose, ...resting, seq: 4, state: delivery ?? 'delivered' },
        snapshot: { value: delivery ?? 'delivered', context: { tries: 2 } },
        data: { eventId: event, endpointId: 'we_00000000000000000000000000', type: 'collection.succeeded' },
      },
    ],
    attempts: [1, 2].map((number) => ({
      ...{ _id: `${sent}/000${number}`, deliveryId: sent, endpointId: 'we_0', number, at: at(7 + number) },
      ...{ durationMs: 12, ok: number === 2 },
    })),
    railAnswers: [1, 2].map((seq) => ({
      ...{ _id: `${id}.${seq}.0.${atMs}`, collectionId: id, operation: 'query', kind: 'succeeded' },
      ...{ why: null, code: 'INS-0', httpStatus: 200, text: '{"output":1}', askedAt: at(seq), at: at(seq) },
    })),
    railCallbacks: [
      { _id: `cb.${id}`, collectionId: id, rail: 'MPESA_TZ', hint: {}, body: 'x', at: at(3), rungAt: at(3) },
    ],
  };
}

/** Payments one after the other, the oldest first. */
export function pastOf(count: number, fromMs: number, everyMs: number, terms?: (n: number) => Terms): Past {
  const all: Past = {};
  for (let n = 0; n < count; n += 1)
    for (const [name, docs] of Object.entries(pastPayment(n, fromMs + n * everyMs, terms?.(n)))) {
      all[name] ??= [];
      all[name].push(...docs);
    }
  return all;
}

export async function plant(db: Db, past: Past): Promise<void> {
  for (const [name, docs] of Object.entries(past))
    await db.collection(name).insertMany(structuredCopies(docs));
}

/** The driver puts nothing into documents that have an id, but a test compares with what it planted. */
const structuredCopies = (docs: readonly Document[]) => docs.map((doc) => ({ ...doc }));
