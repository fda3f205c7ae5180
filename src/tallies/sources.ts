import type { Db, Document } from 'mongodb';
import type { FailureCode } from '../../machines/collection.ts';
import { type EventDoc, eventsSpec } from '../events/events.ts';
import { idFloor, idTime } from '../ids.ts';
import { entriesSpec, figuresOf, type PostedEntry } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import type { AttemptDoc, EndpointDoc } from '../webhooks/webhooks.ts';
import { attemptsSpec, endpointsSpec } from '../webhooks/webhooks.ts';
import { type Numbers, type TallyKind, tookBounds } from './documents.ts';

/**
 * What tallies are made of: documents that are written once, never changed and never removed, found by their time. So
 * the documents of an hour can be counted again at any moment, and as many as were counted are the same ones.
 */
export interface Source {
  kind: TallyKind;
  /** The MongoDB collection. */
  from: string;
  /** Those of a stretch of time: from inclusive, to exclusive. */
  within(fromMs: number, toMs: number): Document;
  /** The index that answers `within`, alone where only their number is asked for. */
  hint: Document;
  /** What is read of each. */
  projection: Document;
  /** The time of the oldest; undefined: there is none. */
  oldestMs(): Promise<number | undefined>;
  /** What each of these adds, in their order. */
  tallied(docs: readonly Document[]): Promise<Tallied[]>;
}

/** What one document adds to the tallies of its merchant, of `also`, and of the installation. */
export interface Tallied {
  mode: Mode;
  merchantId: string;
  /** An endpoint. */
  also?: string;
  numbers: Numbers;
}

export function tallySources(db: Db): readonly Source[] {
  return [paymentSource(db), webhookSource(db), settledSource(db)];
}

/** Events: one when a collection ends, a second when a late payment is accepted. */
function paymentSource(db: Db): Source {
  return {
    kind: 'payments',
    from: eventsSpec.name,
    within: (fromMs, toMs) => ({ _id: { $gte: idFloor('evt', fromMs), $lt: idFloor('evt', toMs) } }),
    hint: { _id: 1 },
    projection: { type: 1, mode: 1, merchantId: 1, body: 1 },
    oldestMs: async () => {
      const oldest = await db
        .collection<EventDoc>(eventsSpec.name)
        .findOne({}, { sort: { _id: 1 }, projection: { _id: 1 } });
      return oldest ? idTime(oldest._id) : undefined;
    },
    tallied: async (docs) => docs.map((doc) => paymentOf(doc as EventDoc)),
  };
}

/** As much of an event's body as is counted. */
interface Ended {
  status: 'succeeded' | 'failed' | 'expired';
  amount: number;
  fee: number;
  failure_code?: FailureCode;
  late?: true;
  created_at: string;
  completed_at?: string;
}

function paymentOf({ type, mode, merchantId, body }: EventDoc): Tallied {
  const whose = { mode, merchantId };
  // A test event tells of no payment.
  if (!/^collection\.(succeeded|failed|expired)$/.test(type)) return { ...whose, numbers: {} };
  const {
    status,
    amount,
    fee,
    failure_code: code,
    late,
    ...times
  } = (JSON.parse(body) as { data: Ended }).data;
  if (status === 'failed') return { ...whose, numbers: { failed: 1, [`failed:${code}`]: 1 } };
  if (status === 'expired') return { ...whose, numbers: { expired: 1 } };
  const money = { tzs: amount, fees: fee };
  // It ended before, and was counted then: this is money, but no further payment.
  if (late) return { ...whose, numbers: { late: 1, ...money } };
  const tookMs = Date.parse(times.completed_at ?? '') - Date.parse(times.created_at);
  return { ...whose, numbers: { succeeded: 1, ...money, [tookName(tookMs)]: 1 } };
}

function tookName(tookMs: number): string {
  return `took:${tookBounds.find((seconds) => tookMs <= seconds * limits.secondMs) ?? 'more'}`;
}

/** Attempts: each is counted in the hour in which it began. */
function webhookSource(db: Db): Source {
  const known = new Map<string, { merchantId: string; mode: Mode }>();
  /** Whose an endpoint is never changes, and one that is deleted stays stored. */
  const learn = async (ids: readonly string[]) => {
    const missing = [...new Set(ids)].filter((id) => !known.has(id));
    if (missing.length === 0) return;
    const found = db
      .collection<EndpointDoc>(endpointsSpec.name)
      .find({ _id: { $in: missing } }, { projection: { merchantId: 1, mode: 1 } });
    for await (const { _id, merchantId, mode } of found) known.set(_id, { merchantId, mode });
  };
  return {
    kind: 'webhooks',
    from: attemptsSpec.name,
    within: (fromMs, toMs) => ({ at: { $gte: new Date(fromMs), $lt: new Date(toMs) } }),
    hint: { at: 1 },
    projection: { endpointId: 1, ok: 1, reason: 1 },
    oldestMs: async () => {
      const oldest = await db
        .collection<AttemptDoc>(attemptsSpec.name)
        .findOne({ at: { $type: 'date' } }, { sort: { at: 1 }, projection: { at: 1 } });
      return oldest?.at.getTime();
    },
    tallied: async (docs) => {
      const attempts = docs as readonly AttemptDoc[];
      await learn(attempts.map(({ endpointId }) => endpointId));
      return attempts.map(({ endpointId, ok, reason }) => {
        const whose = known.get(endpointId) ?? { merchantId: '', mode: 'test' as const };
        const numbers: Numbers = ok ? { ok: 1 } : { failed: 1, [`failed:${reason ?? 'unknown'}`]: 1 };
        return { ...whose, also: endpointId, numbers };
      });
    },
  };
}

/** Settlement entries of the journal: what became available, and when. */
function settledSource(db: Db): Source {
  const all = { mode: { $in: ['live', 'test'] }, type: 'bucket.settled' } as const;
  return {
    kind: 'settled',
    from: entriesSpec.name,
    within: (fromMs, toMs) => ({ ...all, postedAt: { $gte: new Date(fromMs), $lt: new Date(toMs) } }),
    hint: { mode: 1, type: 1, postedAt: 1, _id: 1 },
    projection: { type: 1, mode: 1, merchantId: 1, lines: 1, effectiveAt: 1 },
    oldestMs: async () => {
      const oldest = await db
        .collection<PostedEntry>(entriesSpec.name)
        .findOne(all, { sort: { postedAt: 1 }, projection: { postedAt: 1 } });
      return oldest?.postedAt.getTime();
    },
    tallied: async (docs) =>
      (docs as readonly PostedEntry[]).map((entry) => ({
        mode: entry.mode,
        merchantId: entry.merchantId ?? '',
        numbers: { tzs: figuresOf(entry).availableTzs },
      })),
  };
}
