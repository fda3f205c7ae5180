import { expect } from 'chai';
import { BalanceInsufficient, readBalance } from '../../src/ledger/ledger.ts';
import { makeFile, markFileSent } from '../../src/payouts/bankFileAdmin.ts';
import { NoDestination, NoPayoutRail, Withheld } from '../../src/payouts/refusals.ts';
import { StatementFault } from '../../src/reconciliation/reconciliation.ts';
import { NotRefundable } from '../../src/refunds/refunds.ts';
import { Refused } from '../../src/refused.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import type { Wired } from '../../src/wiring.ts';
import { leftOf } from '../../tools/simulator/network.ts';
import type { Plant } from '../../tools/simulator/statement.ts';
import type { Desk, Person } from './desk.ts';

/** Deeds about money that leaves, that is taken back behind our back, and about what the network's statement says. */

const { minuteMs, dayMs } = { minuteMs: 60_000, dayMs: 86_400_000 };

interface Collection {
  _id: string;
  merchantId: string;
  state: string;
  data: { amountTzs: number; feeTzs: number };
  snapshot: { context: { refundedTzs: number; receipt: string | null; completedAt: number | null } };
}

/** `number`: of a wallet; null: an account at a bank, paid by hand. `part`: of what there is, beyond it above 1. */
export function payOut(desk: Desk, m: number, part: number, number: string | null): Promise<void> {
  const { _id: merchantId } = desk.merchant(m);
  const whose = { merchantId, mode: 'live' as const };
  return desk.perform(async (wired) => {
    const destinationId = await enter(desk, wired, merchantId, number);
    const { available } = await readBalance(desk.till.db, merchantId, 'live');
    const { bounds, feeTzs } = wired.config.payouts;
    const wantedTzs = Math.max(bounds.minTzs, Math.floor(available * part) - feeTzs);
    const amountTzs = Math.min(bounds.maxTzs, wantedTzs);
    const { requestId: stepId } = desk.requestBy('ann');
    const attendance = { stepId, cause: { kind: 'operator', id: 'ann' }, writes: () => [] } as const;
    const isThere = available >= amountTzs + feeTzs;
    try {
      await wired.payouts.create({ ...whose, amountTzs, destinationId, madeBy: 'ann' }, attendance);
      expect(isThere, 'a payout of what is not there').to.equal(true);
    } catch (error) {
      const isOther = [Refused, NoPayoutRail, NoDestination, Withheld].some((each) => error instanceof each);
      if (!isOther && !(error instanceof BalanceInsufficient)) throw error;
      if (!isOther) expect(isThere, 'refused, and the money is there').to.equal(false);
    }
  });
}

async function enter(desk: Desk, wired: Wired, merchantId: string, number: string | null): Promise<string> {
  const account =
    number === null
      ? { kind: 'bank_account' as const, number: '0150123456789', bank: 'CRDB' }
      : { kind: 'wallet' as const, number };
  const entered = { merchantId, mode: 'live' as const, name: 'Duka', ...account };
  const actor = wired.destinations.newDestination(entered, 'ann', wired.clock.now());
  const { requestId } = desk.requestBy('ann');
  await wired.actors.create(actor, { stepId: requestId, cause: { kind: 'operator', id: 'ann' } });
  await desk.command(wired, 'ben', actor.id, { type: 'operator.confirmed' });
  return actor.id;
}

export function cancelPayout(desk: Desk, nth: number): Promise<void> {
  return desk.perform(async ({ payouts }) => {
    const doc = await desk.pick('payouts', nth);
    if (!doc) return;
    const { requestId } = desk.requestBy('ann');
    const by = { stepId: requestId, cause: { kind: 'merchant', id: requestId }, writes: () => [] } as const;
    await payouts.cancel({ merchantId: doc.merchantId, mode: 'live' }, doc._id, by).catch((error) => {
      if (!(error instanceof Refused)) throw error;
    });
  });
}

/** What awaits the bank is written into a file. */
export function writeFile(desk: Desk, by: Person): Promise<void> {
  return desk.perform(async (wired) => {
    const body = { mode: 'live' as const, reason: 'model' };
    await makeFile(wired).handler({ ...desk.requestBy(by), params: {}, body });
  });
}

/** The bank has the latest file. */
export function sendFile(desk: Desk, by: Person): Promise<void> {
  return desk.perform(async (wired) => {
    const { rows } = await wired.bankFiles.list('live', { limit: 1 });
    const [file] = rows;
    if (!file) return;
    await markFileSent(wired).handler({
      ...desk.requestBy(by),
      params: { id: file.doc._id },
      body: { reason: 'model' },
    });
  });
}

/** `part`: of what is left of the payment; above 1 it is more than that, null leaves it to be all. */
export function refund(desk: Desk, nth: number, part: number | null): Promise<void> {
  return desk.perform(async (wired) => {
    const { db, clock } = desk.till;
    const picked = await desk.pick('collections', nth);
    if (!picked) return;
    const [merchant] = desk.merchants.filter(({ _id }) => _id === picked.merchantId);
    const found = await db.collection<Collection>('collections').findOne({ _id: picked._id });
    const { data, state, snapshot } = found!;
    const { context } = snapshot;
    const leftTzs = Number(data.amountTzs) - context.refundedTzs;
    const amount = part === null ? undefined : Math.max(1, Math.ceil(leftTzs * part));
    const wantedTzs = amount ?? leftTzs;
    const { available } = await readBalance(db, picked.merchantId, 'live');
    const isOld = clock.now() > (context.completedAt ?? 0) + wired.config.refundWindowMs;
    const isLeft = leftTzs > 0 && wantedTzs <= leftTzs;
    const mayGo = state === 'succeeded.standing' && context.receipt !== null && !isOld && isLeft;
    const isFeeBack = merchant!.refundFee === 'return' && wantedTzs === Number(data.amountTzs);
    const heldTzs = wantedTzs - (isFeeBack ? Number(data.feeTzs) : 0);
    const { requestId } = desk.requestBy('ann');
    const principal = {
      ...{ merchantId: picked.merchantId, mode: 'live' as const, keyId: 'key_x', scopes: [] },
      merchant: merchant!,
    };
    const asked = { collection: picked._id, ...(amount === undefined ? {} : { amount }) };
    try {
      await wired.refunds.create(principal, asked, requestId, (status, body) => ({
        op: 'insert',
        into: 'idempotency',
        doc: { _id: requestId, status, body, expiresAt: new Date(clock.now() + dayMs) },
        onDuplicate: 'replay',
      }));
      expect(mayGo && heldTzs <= available, 'a refund of what is not there').to.equal(true);
    } catch (error) {
      if (error instanceof NotRefundable) expect(mayGo, `refused: ${error.message}`).to.equal(false);
      else if (error instanceof BalanceInsufficient) expect(heldTzs).to.be.above(available);
      else throw error;
    }
  });
}

/** The network takes a payment back, or a part of it, and tells nobody. */
export function takeBack(desk: Desk, nth: number, part: number): Promise<void> {
  return desk.perform(async () => {
    const { book } = desk.network;
    const paid = [...book.payments].filter(({ debitedAtMs }) => debitedAtMs !== undefined);
    const payment = paid[nth % Math.max(1, paid.length)];
    if (!payment || leftOf(payment) <= 0) return;
    const amountTzs = payment.isOut ? leftOf(payment) : Math.max(1, Math.floor(leftOf(payment) * part));
    const { reversals, reference } = payment;
    // No reference of ours, and too short to be taken for one.
    await book.reverse(payment, `customer.${reversals.size}.${reference.slice(-6)}`, amountTzs);
  });
}

/** Brings the network's statement of the oldest day that is over and was not brought. */
export function bringStatement(
  desk: Desk,
  plants: (references: readonly string[]) => Plant[],
): Promise<void> {
  return desk.perform(async (wired) => {
    const { db, clock } = desk.till;
    const rail = 'MPESA_TZ';
    const last = await db
      .collection<{ date: string; closingTzs: number }>('statements')
      .findOne({ rail }, { sort: { date: -1 } });
    let fromMs = last ? dateDueAtMs(last.date) + dayMs : dateDueAtMs(desk.firstDay);
    for (; fromMs + dayMs + minuteMs < clock.now(); fromMs += dayMs) {
      const date = eatDate(fromMs);
      const isOfDay = ({ debitedAtMs = 0, isOut }: { debitedAtMs?: number; isOut?: true }) =>
        !isOut && debitedAtMs >= fromMs && debitedAtMs < fromMs + dayMs;
      const paid = [...desk.network.book.payments].filter(isOfDay).map(({ reference }) => reference);
      const text = desk.network.statement(date, Number(last?.closingTzs ?? 0), plants(paid));
      const sent = { rail, date };
      try {
        const received = await wired.reconciliations.receive(chunksOf(text), sent);
        const { requestId } = desk.requestBy('ann');
        const { actor, writes } = wired.reconciliations.begin(received, sent, 'ann', clock.now());
        const by = { stepId: requestId, cause: { kind: 'operator', id: 'ann' }, writes } as const;
        await wired.actors.create(actor, by);
        return;
      } catch (error) {
        // Nothing moved on that day, and the network has no statement of it.
        if (!(error instanceof StatementFault && /no completed transaction/.test(error.message))) throw error;
      }
    }
  });
}

async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
