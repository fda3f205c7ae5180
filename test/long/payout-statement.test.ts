import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { type Live, openLive } from '../support/live.ts';
import { liveOperator } from '../support/liveOperator.ts';
import { untilNoonMs } from '../support/noon.ts';

const { hourMs, minuteMs } = limits;

/** Payouts over M-Pesa in live mode, and what the network's statement says of them afterwards. */
describe('payouts and the statement', function () {
  this.timeout(300_000);
  let live: Live;
  let second: string;
  let date: string;
  const ids: Record<string, string> = {};

  const { call, stateOf, tell, passesUntil } = liveOperator(() => live);
  const db = () => live.service.service.wired.db;
  const network = () => live.simulator.network;
  const payment = (id: string) => network().find(`P${id.slice('po_1'.length)}`)!;
  const timesPaid = (id: string) =>
    network().paidOut.filter(({ reference }) => reference === `P${id.slice('po_1'.length)}`).length;
  const entries = async (id: string): Promise<string[]> =>
    (await call('GET', `/admin/ledger/entries?mode=live&source=${id}`)).json.data
      .map(({ type }: { type: string }) => type)
      .reverse();
  const pay = async (number: string, amount = 2_000): Promise<string> => {
    const entered = await call('POST', `/admin/merchants/${live.merchantId}/destinations`, {
      body: { mode: 'live', kind: 'wallet', name: 'Asha', number, reason: 'hers' },
    });
    expect(entered.status, entered.text).to.equal(201);
    expect(entered.json.rail).to.equal('MPESA_TZ');
    expect((await tell(entered.json.id, 'operator.confirmed', {}, second)).status).to.equal(200);
    await passesUntil(async () => (await stateOf(entered.json.id)) === 'active', minuteMs);
    const answer = await call('POST', `/admin/merchants/${live.merchantId}/payouts`, {
      body: { mode: 'live', amount, destination: entered.json.id, reason: 'pay her' },
    });
    expect(answer.status, answer.text).to.equal(202);
    return answer.json.id;
  };
  const bring = async (text: string) => {
    const answer = await call('POST', `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=today`, {
      body: text,
      headers: { 'content-type': 'text/csv' },
    });
    expect(answer.status, answer.text).to.be.oneOf([200, 201, 202]);
    await passesUntil(async () => /^open|^closed/.test(await stateOf(answer.json.id)), minuteMs);
    return answer.json.id as string;
  };

  before(async () => {
    live = await openLive({
      env: { MPESA_PAYOUTS: 'true', PAYOUT_DESTINATION_REST: '1m', SETTLEMENT_DELAY_DAYS: '0' },
    });
    live.clock.advance(untilNoonMs(live.clock.now()));
    date = eatDate(live.clock.now());
    const made = await call('POST', '/admin/operators', {
      body: { name: 'zuri', role: 'operator', reason: 'a second person' },
    });
    second = made.json.token;
    for (let n = 0; n < 6; n += 1) {
      const { json } = await live.create('255740000001');
      expect((await live.final(json.id, 60_000)).status).to.equal('succeeded');
      ids[`payment ${n}`] = json.id;
    }
  });
  after(async () => {
    const { breaches } = await auditAll(db(), live.clock.now() + minuteMs);
    expect(live.simulator.invariants()).to.deep.include({ clean: true });
    await live.close();
    expect(breaches).to.deep.equal([]);
  });

  it('pay wallets once, out of what the network holds for us', async () => {
    ids.paid = await pay('255740000060');
    await passesUntil(async () => /^paid/.test(await stateOf(ids.paid!)));
    expect(timesPaid(ids.paid)).to.equal(1);
    const { receipt } = payment(ids.paid);
    const [row] = (await call('GET', `/admin/payouts?merchant=${live.merchantId}&mode=live`)).json.data;
    expect(row).to.include({ id: ids.paid, rail: 'MPESA_TZ', provider_reference: receipt });
  });

  it('of which nothing is found wait for a person, however long they are asked about', async () => {
    for (const [name, number] of [
      ['found', '255740000071'],
      ['failed', '255740000071'],
      ['never', '255740000066'],
    ] as const)
      ids[name] = await pay(number);
    for (const name of ['found', 'failed', 'never']) {
      await passesUntil(async () => /^created\.underReview/.test(await stateOf(ids[name]!)), 5 * minuteMs);
      const kept = await db().collection('railAnswers').find({ collectionId: ids[name]! }).toArray();
      expect(
        kept.map(({ kind }) => kind),
        'the reason is kept',
      ).to.include('notFound');
    }
    expect(eatDate(live.clock.now()), 'of one day').to.equal(date);
  });

  it('confirmed by a line are paid, and found paid after a release what that leaves may be below zero', async () => {
    // A person takes one for failed: its money is given back, and the network had paid it.
    const verdict = { outcome: 'failed', failureCode: 'rejected' };
    expect((await tell(ids.failed!, 'operator.resolved', verdict)).status).to.be.oneOf([200, 202]);
    await tell(ids.failed!, 'operator.resolved', verdict, second);
    expect(await stateOf(ids.failed!)).to.match(/^failed/);
    await network().reverse(payment(ids.paid!), 'given back by the wallet');
    const twice = payment(ids.found!).reference;
    const text = live.simulator.statement({ date, plants: [{ kind: 'paid_twice', reference: twice }] });
    live.clock.advance(26 * hourMs); // what is younger than a day is not judged yet
    const rec = await bring(text);
    expect(await stateOf(ids.found!)).to.match(/^paid/);
    expect(await entries(ids.found!)).to.deep.equal(['payout.held', 'payout.paid']);
    expect(await stateOf(ids.failed!)).to.match(/^paid/);
    expect(await entries(ids.failed!)).to.deep.equal(['payout.held', 'payout.released', 'payout.found_paid']);
    expect(await stateOf(ids.paid!)).to.equal('returned');
    expect(await entries(ids.paid!)).to.deep.equal(['payout.held', 'payout.paid', 'payout.returned']);
    expect(await stateOf(ids.never!), 'no line says anything').to.match(/^created\.underReview/);
    const [entry] = await db()
      .collection('journal_entries')
      .find({ _id: `live:${ids.found}:paid` } as object)
      .toArray();
    expect(eatDate(entry!.effectiveAt.getTime()), 'booked when the network did').to.equal(date);
    expect(entry!.providerReference).to.equal(payment(ids.found!).receipt);
    const left = (await call('GET', `/admin/differences?reconciliation=${rec}&limit=100`)).json.data;
    const [again, ...others] = left.filter(({ class: kind }: { class: string }) => kind !== 'opening');
    expect(others).to.deep.equal([]);
    expect(again).to.include({ class: 'unknown_withdrawal', amount: 2_000, merchant_id: live.merchantId });
    await tell(again.id, 'operator.asked');
    expect(await stateOf(again.id), 'its payout is met by the first line').to.match(/^awaitingOperator/);
    const lines = await db().collection('statement_lines').find({ kind: 'payout' }).toArray();
    expect(lines).to.have.length(4);
    expect(lines.flatMap(({ entry: matched }) => matched ?? []).sort()).to.deep.equal(
      [`live:${ids.found}:paid`, `live:${ids.failed}:found_paid`, `live:${ids.paid}:paid`].sort(),
    );
  });

  it('are held while a payment stands that the network took back', async () => {
    await network().reverse(network().find(ids['payment 0']!.slice(4))!, 'by the customer');
    const before = await db().collection('statements').findOne({ date });
    date = eatDate(live.clock.now());
    const text = live.simulator.statement({ date, openingTzs: Number(before!.closingTzs) });
    live.clock.advance(48 * hourMs);
    await bring(text);
    const refused = await call('POST', `/admin/merchants/${live.merchantId}/payouts`, {
      body: { mode: 'live', amount: 1_000, destination: await someDestination(), reason: 'no' },
    });
    expect([refused.status, refused.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
    expect(refused.json.error.message).to.match(/took a payment back/);
  });

  const someDestination = async (): Promise<string> => {
    const found = await db().collection('destinations').findOne({ state: 'active' });
    return String(found!._id);
  };
});
