import { type ActorDoc, actorsSpec, type Doc, type MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Long } from 'mongodb';
import type { DestinationContext } from '../../machines/destination.ts';
import type { PayoutContext } from '../../machines/payout.ts';
import type { ScheduleContext } from '../../machines/schedule.ts';
import type { Mode } from '../mode.ts';
import { actorIndexes } from '../standing.ts';
import type { Whose } from '../whose.ts';

/** What this room stores: destinations, payouts, the files they were written into, and what was asked for per day. */

export const destinationKinds = ['wallet', 'till', 'bank_account'] as const;
export type DestinationKind = (typeof destinationKinds)[number];

/** The rail of a person with a file for the bank. Every other rail is called by its network's name. */
export const byHand = 'manual';

/** Where money goes, as whoever sends it has to know it. */
export interface Account {
  kind: DestinationKind;
  /** The account holder. */
  name: string;
  /** `255XXXXXXXXX` of a wallet, a till's digits, or an account's number as the bank writes it. */
  number: string;
  /** Of a bank account. */
  bank?: string;
}

export interface DestinationData extends Record<string, unknown> {
  account: Account;
  /** Over which rail it is paid: `manual`, or a network. */
  rail: string;
  createdAt: Date;
}

export interface DestinationDoc extends ActorDoc {
  data: DestinationData;
  snapshot: { value: unknown; context: DestinationContext & Record<string, unknown> };
}

export const destinationsSpec = actorsSpec({ name: 'destinations', indexes: actorIndexes });

/** What was asked for, fixed when the payout is made. Amounts are whole shillings. */
export interface PayoutData extends Record<string, unknown> {
  amountTzs: number | Long;
  feeTzs: number | Long;
  /** What it holds while it is under way: the amount and the fee. */
  heldTzs: number | Long;
  currency: 'TZS';
  rail: string;
  destinationId: string;
  /** As it was then. */
  account: Account;
  reference?: string;
  /** The date in Dar es Salaam whose limits it counts against. */
  day: string;
  createdAt: Date;
  /** Of a schedule: the date for which it was made. */
  scheduledFor?: string;
}

export const payoutStatuses = ['created', 'paid', 'failed', 'cancelled', 'returned'] as const;
export type PayoutStatus = (typeof payoutStatuses)[number];

export interface PayoutDoc extends ActorDoc {
  status: PayoutStatus;
  data: PayoutData;
  snapshot: { value: unknown; context: PayoutContext & Record<string, unknown> };
}

export const payoutsSpec = actorsSpec({
  name: 'payouts',
  indexes: [
    ...actorIndexes,
    { key: { merchantId: 1, mode: 1, status: 1, _id: -1 } },
    {
      key: { 'snapshot.context.file': 1, _id: 1 },
      partial: { 'snapshot.context.file': { $type: 'string' } },
    },
    { key: { 'snapshot.context.receipt': 1 }, partial: { 'snapshot.context.receipt': { $type: 'string' } } },
  ],
});

/** When a merchant's available money is paid out by itself. What was agreed on stands in the chart's context. */
export interface ScheduleDoc extends ActorDoc {
  snapshot: { value: unknown; context: ScheduleContext & Record<string, unknown> };
}

export const schedulesSpec = actorsSpec({ name: 'schedules', indexes: actorIndexes });

/** Which payout a schedule made for a date (`{schedule}:{date}`): of two there is one. */
export interface ScheduledDoc extends Doc {
  payoutId: string;
}

export const scheduledPayoutsSpec: MongoCollectionSpec = {
  name: 'scheduled_payouts',
  indexes: [{ key: { payoutId: 1 } }],
};

/** Payouts that were written into one file for the bank. Which they are, the payouts themselves say. */
export interface BankFileDoc extends Doc {
  mode: Mode;
  by: string;
  at: Date;
  /** It is still being written: payouts may join it. */
  isOpen?: true;
  /** How many times one joined; a change of this document, so none can after it was closed. */
  joined: number;
  /** When it was told that the bank has it. */
  sentAt?: Date;
  sentBy?: string;
}

export const payoutFilesSpec: MongoCollectionSpec = {
  name: 'payout_files',
  indexes: [{ key: { mode: 1, _id: -1 } }, { key: { mode: 1, at: 1 }, partial: { isOpen: true } }],
};

/** What was asked for on a date, by one merchant (`{mode}:{date}:{merchant}`) and by all (`{mode}:{date}`). */
export interface PayoutDayDoc extends Doc {
  askedTzs: number | Long;
}

export const payoutDaysSpec: MongoCollectionSpec = { name: 'payout_days' };

/** Whether a merchant's money may not leave until somebody has looked into a difference with the network. */
export type IsWithheld = (whose: Whose) => Promise<boolean>;

/** Where a payout waits for somebody, by what it waits for. */
export const approvalStates = ['created.awaitingApproval'];
export const exportStates = ['created.awaitingExport'];
export const unclearStates = ['created.underReview.polling', 'created.underReview.resting'];
