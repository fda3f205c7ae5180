import {
  type Actors,
  type Cause,
  type Clock,
  eachOf,
  NewerDocument,
  Poison,
  type Queues,
  StepRaced,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { SettlementEvent } from '../../machines/settlement.ts';
import { newId } from '../ids.ts';
import { type Bucket, dropEmptyBucket, openBuckets } from '../ledger/ledger.ts';
import type { Log } from '../log.ts';
import { dateDueAtMs } from '../time.ts';
import type { Whose } from '../whose.ts';
import { type SettlementDoc, settlementId, settlementsSpec } from './documents.ts';

export { settlementDate, settlesByDelay } from './calendar.ts';
export { type SettlementDoc, settlementId, settlementsSpec } from './documents.ts';
export { settlementCallEffects, settlementWriteEffects } from './effects.ts';
export { settlementMigrations } from './migrations.ts';
export {
  type OwnSettlement,
  type SettlementFilter,
  SettlementReader,
  type SettlementRow,
} from './reading.ts';

/**
 * Midnight in Dar es Salaam. The timer of each settlement, the scheduled job, the minute's sweep, the boot and
 * the operator's button all run the one function `settleDue`: a scheduler alone is not safe.
 */
export const midnightQueue = 'settlement';
/** A payment that commits in the very moment changes the bucket: read again, this often. */
const maxRaces = 50;
/** Buckets under way at once: their steps share batches, and a midnight of a thousand takes seconds. */
const bucketsAtOnce = 64;

interface SettlementsOptions {
  db: Db;
  actors: Actors;
  clock: Clock;
  log: Log;
}

/** What a run did: settlements that were made, buckets that were settled, whole shillings. */
export interface RunReport {
  made: number;
  settled: number;
  amountTzs: number;
  /** Buckets that were left because their settlement is set aside, or written by newer code. */
  setAside: number;
}

/** What tells a settlement that a bucket of its date is to be settled. */
type SettlingEvent = Extract<SettlementEvent, { stripe: number }>['type'];

export class Settlements {
  readonly #options: SettlementsOptions;

  constructor(options: SettlementsOptions) {
    this.#options = options;
  }

  /**
   * Makes a settlement for each new bucket and settles every bucket that is due, with `asOfMs` only those that
   * were due by then. A moment still to come counts as now: money is never available before its date. Safe to
   * run from many processes, at any time and as often as one likes. Each bucket stands alone: what befalls one
   * is nobody else's.
   * @throws the first fault that was more than a settlement set aside, once every other bucket has been tried
   */
  async settleDue(cause: Cause, asOfMs = Number.POSITIVE_INFINITY): Promise<RunReport> {
    const dueByMs = Math.min(asOfMs, this.#options.clock.now());
    const isDue = ({ date }: Bucket) => dateDueAtMs(date) <= dueByMs;
    return this.#run({}, isDue, 'settlement.due', cause);
  }

  /**
   * Test mode: settles all that this merchant has pending, whatever its date. Money that comes later for such a date is a
   * further part of it, at midnight or by the next call. What an operator holds stays.
   * @throws RangeError in live mode
   */
  async settleNow({ merchantId, mode }: Whose, cause: Cause): Promise<RunReport> {
    if (mode !== 'test') throw new RangeError('live money is never available before its date');
    return this.#run({ merchantId, mode }, () => true, 'merchant.settled', cause);
  }

  async #run(
    of: Partial<Whose>,
    isMeant: (bucket: Bucket) => boolean,
    event: SettlingEvent,
    cause: Cause,
  ): Promise<RunReport> {
    const report: RunReport = { made: 0, settled: 0, amountTzs: 0, setAside: 0 };
    const making = new Map<string, Promise<boolean>>();
    await eachOf(openBuckets(this.#options.db, of), bucketsAtOnce, async (bucket) => {
      const id = settlementId(bucket);
      if (!making.has(id)) {
        const made = this.#make(bucket, cause);
        making.set(id, made);
        if (await made) report.made += 1;
      }
      // Another stripe's bucket waits for the same settlement to be there.
      await making.get(id);
      if (!isMeant(bucket)) return;
      try {
        const amountTzs = await this.#settle(bucket, event, cause);
        if (amountTzs === 0) return;
        report.settled += 1;
        report.amountTzs += amountTzs;
      } catch (error) {
        if (!(error instanceof Poison) && !(error instanceof NewerDocument)) throw error;
        report.setAside += 1;
        this.#options.log.debug({ settlement: id, error: String(error) }, 'not settled: set aside');
      }
    });
    return report;
  }

  /** Settles the buckets of one settlement (its own timer's call). */
  async settle(doc: SettlementDoc): Promise<void> {
    const { merchantId, mode, data } = doc;
    for await (const bucket of openBuckets(this.#options.db, { merchantId, mode, date: data.date })) {
      await this.#settle(bucket, 'settlement.due', { kind: 'timer', id: doc._id });
    }
  }

  /** The job scheduler at 00:00 Africa/Dar_es_Salaam, and a worker for it. It only wakes `settleDue`. */
  async start(queues: Queues): Promise<void> {
    const { log } = this.#options;
    queues.work(midnightQueue, 1, async () => {
      await this.settleDue({ kind: 'timer', id: 'midnight' });
    });
    await this.schedule(queues).catch((error) =>
      log.debug({ error: String(error) }, 'midnight left to the sweep'),
    );
  }

  /** Sets the schedule (again: an emptied Redis forgets it for good). */
  async schedule(queues: Queues): Promise<void> {
    if (!queues.ready) return;
    await queues
      .queue(midnightQueue)
      .upsertJobScheduler(
        'midnight',
        { pattern: '0 0 * * *', tz: 'Africa/Dar_es_Salaam' },
        { name: midnightQueue },
      );
  }

  /** True when the settlement is new. */
  async #make(bucket: Bucket, cause: Cause): Promise<boolean> {
    const { db, actors, clock } = this.#options;
    const id = settlementId(bucket);
    const exists = await db
      .collection<SettlementDoc>(settlementsSpec.name)
      .findOne({ _id: id }, { projection: { _id: 1 } });
    if (exists) return false;
    const { merchantId, mode, date, currency } = bucket;
    const input = { at: clock.now(), dueAtMs: dateDueAtMs(date), isTest: mode === 'test' };
    try {
      await actors.create(
        { machine: 'settlement', id, input, merchantId, mode, data: { date, currency } },
        { stepId: `${id}.made`, cause },
      );
      return true;
    } catch (error) {
      if (error instanceof StepRaced) return false; // another process made it
      throw error;
    }
  }

  /** Moves one bucket; returns what was moved, 0 when it was held, empty or settled by somebody else. */
  async #settle(bucket: Bucket, type: SettlingEvent, cause: Cause): Promise<number> {
    const { actors, clock } = this.#options;
    let current: Bucket | undefined = bucket;
    for (let race = 0; race < maxRaces && current; race += 1) {
      const { stripe, amountTzs } = current;
      try {
        if (amountTzs === 0) {
          await actors.commit(dropEmptyBucket(current));
          return 0;
        }
        // By the clock, whatever date the run was asked for: this is when the entry was written.
        const at = clock.now();
        const result = await actors.send(
          { machine: 'settlement', id: settlementId(bucket) },
          { type, at, stripe, amountTzs },
          { stepId: newId('req', at), cause },
        );
        return result.outcome === 'stepped' ? amountTzs : 0;
      } catch (error) {
        if (!(error instanceof StepRaced)) throw error;
        current = await this.#reread(bucket);
      }
    }
    return 0;
  }

  async #reread({ merchantId, mode, date, stripe }: Bucket): Promise<Bucket | undefined> {
    for await (const bucket of openBuckets(this.#options.db, { merchantId, mode, date })) {
      if (bucket.stripe === stripe) return bucket;
    }
    return undefined;
  }
}
