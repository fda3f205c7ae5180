import type { Doc } from '@kusanya/durable-actors';
import { expect } from 'chai';
import {
  type JournalEntry,
  payoutFoundPaid,
  payoutHeld,
  payoutPaid,
  payoutReleased,
  post,
  refundFoundPaid,
  refundHeld,
  refundReleased,
} from '../../src/ledger/ledger.ts';
import { int64 } from '../../src/mongo.ts';
import { plant } from './books.ts';
import { type Histories, startMs } from './histories.ts';
import { payoutAt, putPayout, putRefund, refundAt } from './outgoing.ts';

/** Faults in books that are otherwise right, and what the auditor says of each. */
export interface Fault {
  fault: string;
  plant(histories: Histories): Promise<void>;
  finds: string[];
  /** What an audit of what is new finds, where that differs. */
  recently?: string[];
  /** Of one of its sentences. */
  says?: RegExp;
}

export async function set(histories: Histories, into: string, _id: string, fields: object): Promise<void> {
  const result = await histories.db
    .collection<Doc>(into)
    .updateOne({ _id }, { $set: fields }, { bypassDocumentValidation: true });
  expect(result.matchedCount).to.equal(1);
}

/** An entry planted past the validator and without its counters; these are then moved by hand to fit. */
export async function plantPosted(histories: Histories, planted: JournalEntry): Promise<void> {
  await plant(histories.db, planted);
  const sound = { ...planted, _id: planted._id.replace(/_again$/, '') };
  await histories.written(post(sound).filter(({ into }) => into === 'balances'));
}

const ofSchedule = { 'data.scheduledFor': '2026-11-21', 'snapshot.context.madeBy': 'sch_a' };

async function claim({ db }: Histories, payoutId: string): Promise<void> {
  await db.collection<Doc>('scheduled_payouts').insertOne({ _id: 'sch_a:2026-11-21', payoutId });
}

/** Faults of payouts, refunds, settlements, differences and statements. */
export const outgoingFaults: Fault[] = [
  {
    fault: 'a payout that was paid without a hold',
    async plant(histories) {
      const payout = payoutAt(startMs);
      await putPayout(histories, payout, 'paid');
      await histories.written(post(payoutPaid(payout)));
    },
    finds: ['holding.differs', 'reserved.differs'],
    says: /is paid\.resting, and .*:paid follows on no payout\.held; available changed by 0 and not by -10250; .*merchant_reserved changed by -10250 and not at all/,
  },
  {
    fault: 'a hold of a payout that does not exist',
    plant: (histories) => histories.written(post(payoutHeld(payoutAt(startMs)))),
    finds: ['holding.orphan', 'reserved.differs'],
    says: /There is no payout po_\w+, but entries of it: live:po_\w+:held\./,
  },
  {
    fault: 'a hold of a refund that does not exist',
    plant: (histories) => histories.written(post(refundHeld(refundAt(startMs)))),
    finds: ['holding.orphan', 'reserved.differs'],
    says: /There is no refund rf_/,
  },
  {
    fault: 'a payout whose money was released twice',
    async plant(histories) {
      const twin = payoutReleased(histories.outgoing.payout.failed);
      await plantPosted(histories, { ...twin, _id: `${twin._id}_again` });
    },
    finds: ['entry.malformed', 'holding.differs', 'holding.doubled', 'reserved.differs'],
    says: /has posted payout\.released more than once/,
  },
  {
    fault: 'a refund whose money was released twice',
    async plant(histories) {
      const twin = refundReleased(histories.outgoing.refund.failed);
      await plantPosted(histories, { ...twin, _id: `${twin._id}_again` });
    },
    finds: ['entry.malformed', 'holding.differs', 'holding.doubled', 'reserved.differs'],
    says: /has posted refund\.released more than once/,
  },
  {
    fault: 'a payout that ended, whose money is held still',
    async plant(histories) {
      const { source } = histories.outgoing.payout.created;
      await set(histories, 'payouts', source.id, { status: 'failed', state: 'failed.resting' });
    },
    finds: ['holding.differs', 'reserved.differs'],
    says: /reserved changed by 10250 and not at all/,
  },
  {
    fault: 'a payout that says it failed, and was paid',
    plant: (histories) =>
      set(histories, 'payouts', histories.outgoing.payout.paid.source.id, {
        ...{ status: 'failed', state: 'failed.resting' },
      }),
    finds: ['holding.differs'],
    says: /is failed\.resting, and .*bank changed by -10000 and not at all/,
  },
  {
    fault: 'a payout found paid that was never released',
    async plant(histories) {
      const payout = payoutAt(startMs);
      await putPayout(histories, payout, 'paid', true);
      await histories.written(post(payoutFoundPaid(payout)));
    },
    finds: ['holding.differs'],
    says: /found_paid follows on no payout\.released\./,
  },
  {
    fault: 'a payout of another amount than its entries',
    plant: (histories) =>
      set(histories, 'payouts', histories.outgoing.payout.paid.source.id, { 'data.amountTzs': int64(9_999) }),
    finds: ['holding.differs'],
  },
  {
    fault: 'a payout that cannot be read',
    plant: (histories) =>
      set(histories, 'payouts', histories.outgoing.payout.paid.source.id, { 'data.amountTzs': 'many' }),
    finds: ['holding.malformed'],
    says: /cannot be read/,
  },
  {
    fault: 'a payout’s entry in another merchant’s book',
    plant: (histories) =>
      set(histories, 'payouts', histories.outgoing.payout.paid.source.id, { merchantId: 'mer_b' }),
    finds: ['holding.differs'],
    says: /is in another book/,
  },
  {
    fault: 'a payout’s fee that was put where its fact has no business',
    plant: (histories) =>
      set(histories, 'journal_entries', `live:${histories.outgoing.payout.paid.source.id}:paid`, {
        'lines.2.account': 'live:TZS:suspense',
      }),
    finds: ['entry.malformed', 'holding.differs'],
    says: /fee revenue changed by 0 and not by 250; suspense changed by 250 and not at all/,
  },
  {
    fault: 'a payout of a schedule whose date nobody claimed',
    plant: (histories) => set(histories, 'payouts', histories.outgoing.payout.paid.source.id, ofSchedule),
    finds: ['schedule.unclaimed'],
    says: /was made by a schedule for 2026-11-21, which is not claimed by it/,
  },
  {
    fault: 'a date that a schedule claimed by a payout of somebody else',
    plant: (histories) => claim(histories, histories.outgoing.payout.paid.source.id),
    finds: ['schedule.unpaid'],
    says: /sch_a:2026-11-21 is claimed by po_\w+, and there is no such payout of it/,
  },
  {
    fault: 'a date that a schedule claimed by a payout that does not exist',
    plant: (histories) => claim(histories, payoutAt(startMs).source.id),
    finds: ['schedule.unpaid'],
    says: /there is no such payout/,
  },
  {
    fault: 'a date of a schedule that another payout claimed',
    async plant(histories) {
      const { paid, failed } = histories.outgoing.payout;
      await set(histories, 'payouts', paid.source.id, ofSchedule);
      await claim(histories, failed.source.id);
    },
    finds: ['schedule.unclaimed', 'schedule.unpaid'],
  },
  {
    fault: 'refunds beyond their collection',
    async plant(histories) {
      const { funds } = histories.outgoing;
      const refund = refundAt(startMs, { amountTzs: funds.amountTzs - 14_999 });
      await putRefund(histories, refund, 'succeeded', funds.collectionId);
      await set(histories, 'collections', funds.collectionId, {
        'snapshot.context.refundedTzs': funds.amountTzs + 1,
      });
      const { db } = histories;
      for (const each of [refundHeld(refund), refundReleased(refund)]) await plant(db, each);
      await histories.written(post(refundFoundPaid(refund)));
    },
    finds: ['refund.exceeds'],
    says: /came 1000000, and 1000001 went back or are on their way/,
  },
  {
    fault: 'a refund found paid after its payment was reversed whole',
    async plant(histories) {
      const { db, reversed } = histories;
      const { collectionId, merchantId, amountTzs } = reversed;
      const refund = refundAt(startMs, { merchantId, amountTzs });
      await putRefund(histories, refund, 'succeeded', collectionId);
      await set(histories, 'collections', collectionId, { 'snapshot.context.refundedTzs': amountTzs });
      for (const each of [refundHeld(refund), refundReleased(refund)]) await plant(db, each);
      await histories.written(post(refundFoundPaid(refund)));
    },
    finds: ['refund.exceeds'],
    says: /came 10000, and 20000 went back/,
  },
  {
    fault: 'a collection that counts a refund that is none',
    plant: (histories) =>
      set(histories, 'collections', histories.outgoing.funds.collectionId, {
        'snapshot.context.refundedTzs': 15_001,
      }),
    finds: ['refund.miscounted'],
    says: /counts refunds of 15001; those that there are give back 15000/,
  },
  {
    fault: 'a difference that was explained, while its money lies in suspense still',
    plant: (histories) =>
      set(histories, 'differences', histories.outgoing.difference.followed, {
        ...{ state: 'explained', 'snapshot.context.isFollowed': false },
      }),
    finds: ['holding.differs'],
    says: /suspense changed by -700 and not at all/,
  },
  {
    fault: 'a charge that no reconciliation posted',
    async plant(histories) {
      const { deletedCount } = await histories.db
        .collection<Doc>('reconciliations')
        .deleteOne({ _id: histories.outgoing.reconciliation });
      expect(deletedCount).to.equal(1);
    },
    finds: ['holding.orphan'],
    says: /There is no reconciliation rec\.MPESA_TZ/,
  },
  {
    fault: 'an entry that an actor of another chart posted',
    plant: (histories) =>
      set(histories, 'journal_entries', `live:${histories.outgoing.difference.released}:released`, {
        'source.machine': 'payout',
      }),
    finds: ['entry.malformed', 'holding.differs'],
    says: /breaks a rule of the books/,
  },
  {
    fault: 'a settlement that says it settled more than it posted',
    plant: (histories) =>
      set(histories, 'settlements', 'stl_a', { 'snapshot.context.settledTzs': int64(10_001) }),
    finds: ['holding.differs'],
    says: /pending changed by -10000 and not by -10001/,
  },
];
