import type { CallAnswer, CallView } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Obstacle, Plan } from '../../machines/schedule.ts';
import type { Config } from '../config.ts';
import { BalanceInsufficient, readBalance } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Merchant } from '../principal.ts';
import { Refused } from '../refused.ts';
import { isoTime } from '../time.ts';
import type { Whose } from '../whose.ts';
import { leftOfDay, OverBound } from './bounds.ts';
import {
  type PayoutDoc,
  payoutsSpec,
  type ScheduleDoc,
  type ScheduledDoc,
  scheduledPayoutsSpec,
} from './documents.ts';
import type { NewPayout, Payouts } from './payouts.ts';
import { NoDestination, NoPayoutRail, Withheld } from './refusals.ts';

/** One day of a schedule: at most one payout, of what there is, or what stands in the way. */

/** What the payout of a day needs from other rooms. */
export interface ScheduleDeps {
  db: Db;
  config: Pick<Config, 'payouts'>;
  payouts(): Pick<Payouts, 'create'>;
  merchantOf(id: string): Promise<Merchant | undefined>;
}

type Outcome =
  | { type: 'payout.made'; payout: string; amountTzs: number }
  | { type: 'payout.skipped' }
  | { type: 'payout.hindered'; obstacle: Obstacle };

/** Makes the payout of the day. Called again after a crash it finds the one that it made. */
export async function payOut(deps: ScheduleDeps, { doc, call, at }: CallView): Promise<CallAnswer> {
  const schedule = doc as ScheduleDoc;
  const outcome = (await madeFor(deps.db, schedule)) ?? (await attempt(deps, schedule, call.id, at));
  return { event: outcome };
}

async function attempt(
  deps: ScheduleDeps,
  schedule: ScheduleDoc,
  callId: string,
  at: number,
): Promise<Outcome> {
  const { _id, merchantId, mode, snapshot } = schedule;
  const { plan } = snapshot.context;
  const merchant = await deps.merchantOf(merchantId);
  if (!merchant || merchant.suspended) return { type: 'payout.hindered', obstacle: 'suspended' };
  const amountTzs = await amountOf(deps, { merchantId, mode }, plan, at);
  if (amountTzs < Math.max(deps.config.payouts.bounds.minTzs, plan.minimumTzs))
    return { type: 'payout.skipped' };
  const asked: NewPayout = {
    ...{ merchantId, mode, amountTzs, destinationId: plan.destinationId, madeBy: _id },
    scheduled: { date: dateOf(schedule), scheduleId: _id },
  };
  const attendance = { stepId: callId, cause: { kind: 'call', id: callId }, writes: () => [] } as const;
  try {
    const { id } = await deps.payouts().create(asked, attendance);
    return { type: 'payout.made', payout: id, amountTzs };
  } catch (error) {
    // Another process, asked the same, was faster.
    const other = await madeFor(deps.db, schedule);
    if (other) return other;
    const obstacle = obstacleOf(error);
    if (!obstacle) throw error;
    return { type: 'payout.hindered', obstacle };
  }
}

/** What there is, less what stays and the fee, within the cap and the bounds of the day. */
async function amountOf(
  { db, config }: ScheduleDeps,
  whose: Whose,
  { retainTzs, capTzs }: Plan,
  at: number,
): Promise<number> {
  const { bounds, feeTzs } = config.payouts;
  const [{ available }, leftTzs] = await Promise.all([
    readBalance(db, whose.merchantId, whose.mode),
    leftOfDay(db, whose, at, bounds),
  ]);
  return Math.min(available - retainTzs - feeTzs, capTzs ?? bounds.maxTzs, bounds.maxTzs, leftTzs);
}

/** What stands in the way, by what the room throws; undefined: that is no obstacle, but a fault. */
function obstacleOf(error: unknown): Obstacle | undefined {
  if (error instanceof NoDestination) return 'destination';
  if (error instanceof Withheld) return 'difference';
  if (error instanceof NoPayoutRail) return 'network';
  if (error instanceof OverBound) return 'limit';
  if (error instanceof BalanceInsufficient || error instanceof Refused) return 'balance';
  return undefined;
}

/** The payout that it made for its day; undefined: none yet. */
async function madeFor(db: Db, schedule: ScheduleDoc): Promise<Outcome | undefined> {
  const claimed = await db
    .collection<ScheduledDoc>(scheduledPayoutsSpec.name)
    .findOne({ _id: `${schedule._id}:${dateOf(schedule)}` });
  if (!claimed) return undefined;
  const made = await db.collection<PayoutDoc>(payoutsSpec.name).findOne({ _id: claimed.payoutId });
  return { type: 'payout.made', payout: claimed.payoutId, amountTzs: Number(made?.data.amountTzs ?? 0) };
}

/** The day that it pays, in Dar es Salaam. */
function dateOf({ snapshot }: ScheduleDoc): string {
  return isoTime((snapshot.context.day ?? 0) * limits.dayMs).slice(0, 10);
}
