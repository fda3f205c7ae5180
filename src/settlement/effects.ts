import type { CallEffect, WriteEffect } from '@kusanya/durable-actors';
import type { settlementCalls, settlementWrites } from '../../machines/settlement.ts';
import { bucketSettled, post } from '../ledger/ledger.ts';
import { dateDueAtMs } from '../time.ts';
import type { SettlementDoc } from './documents.ts';

interface SettlementDeps {
  /** Settles each bucket of one merchant, mode and date. */
  settle(doc: SettlementDoc): Promise<void>;
}

/** Made inside the commit: the entry, the emptied bucket and the available money, for one stripe. */
export function settlementWriteEffects(): Record<(typeof settlementWrites)[number], WriteEffect> {
  return {
    settleBucket: (step) => {
      const doc = step.doc as SettlementDoc;
      const { date, currency } = doc.data;
      const stripe = step.event.stripe as number;
      const part = doc.snapshot.context.parts[String(stripe)]!;
      return post(
        bucketSettled(
          {
            mode: doc.mode,
            currency,
            merchantId: doc.merchantId,
            stripe,
            date,
            amountTzs: step.event.amountTzs as number,
          },
          part,
          { machine: 'settlement', id: doc._id, seq: doc.seq },
          // In test mode it may be before its date.
          { effectiveAtMs: Math.min(dateDueAtMs(date), step.at), postedAtMs: step.at },
        ),
      );
    },
  };
}

/** Made after the commit. */
export function settlementCallEffects(
  deps: SettlementDeps,
): Record<(typeof settlementCalls)[number], CallEffect> {
  return {
    collectBuckets: {
      concurrency: 5,
      patienceMs: 30_000,
      run: async ({ doc }) => {
        await deps.settle(doc as SettlementDoc);
        return { event: { type: 'buckets.read' } };
      },
    },
  };
}
