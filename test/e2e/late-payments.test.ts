import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const { dayMs, eatOffsetMs, minuteMs } = limits;
const gross = 5_000;
const fee = 100;
const net = gross - fee;

/** CONTRACT 11: what happens to money that contradicts a final word. */
describe('late payments', function () {
  this.timeout(60_000);
  let test: TestService;
  const clock = clockAtNoon();

  before(async () => {
    test = await startTestService({}, { clock });
  });
  after(async () => {
    await test.stop();
  });

  const entriesOf = async (id: string): Promise<[string, Record<string, number>][]> => {
    const { data } = (await test.call('GET', `/admin/ledger/entries?mode=test&source=${id}`)).json;
    return data.reverse().map(({ type, lines }: { type: string; lines: Line[] }) => [type, signed(lines)]);
  };
  const balanceOf = async (merchant: TestMerchant) => {
    const { pending, available, reserved } = (await merchant.get('/v1/balance')).json;
    return { pending, available, reserved };
  };
  const operator = (id: string, type: string, more: object = {}) =>
    test.call('POST', `/admin/actors/${id}/events`, { body: { type, reason: 'looked at', ...more } });
  const statuses = async (id: string) => {
    const events = test.service.wired.db.collection('events').find({ collectionId: id }).sort({ _id: 1 });
    return (await events.toArray()).map(({ type }) => type.slice('collection.'.length));
  };
  const alertsOf = async (id: string) => {
    const alerts = await test.service.wired.db.collection('alerts').find({ about: id }).toArray();
    return alerts.map(({ kind }) => kind);
  };
  const held = async () => {
    const late = await test.latePayment();
    expect((await test.actor(late.id)).state).to.equal('expired.latePaid.held');
    return late;
  };
  const paid = async (settings = {}) => {
    const merchant = await test.merchant(settings);
    const { json } = await merchant.create({ amount: gross });
    expect((await merchant.final(json.id)).status).to.equal('succeeded');
    return { merchant, id: json.id as string };
  };
  const holding: [string, Record<string, number>] = [
    'late.held',
    { provider_clearing: gross, merchant_reserved: -net, suspense: -fee },
  ];

  it('wait in reserved with the fee not yet earned, and an operator is alerted', async () => {
    const { merchant, id } = await held();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: net });
    expect(await entriesOf(id)).to.deep.equal([holding]);
    expect(await alertsOf(id)).to.deep.equal(['late_payment']);
    expect(await statuses(id)).to.deep.equal(['expired']);
    const { data } = (await merchant.get('/v1/balance_transactions')).json;
    expect(data[0]).to.include({ type: 'late_payment', gross, fee, net });
    expect(data[0].changes).to.deep.equal({ pending: 0, available: 0, reserved: net });
    expect(data[0]).to.not.have.property('settlement_date');
  });

  it('one receipt pays one collection: whoever is resolved with it second is refused', async () => {
    const merchant = await test.merchant();
    const [first, second, third] = [
      await test.underReview(merchant),
      await test.underReview(merchant),
      await test.underReview(await test.merchant()),
    ];
    const resolve = (id: string, receipt: string) =>
      operator(id, 'operator.resolved', { outcome: 'succeeded', receipt });
    const answers = await Promise.all([resolve(first.id, 'QK7X2ABCD1'), resolve(second.id, 'qk7x2abcd1')]);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409]);
    const refused = answers.find(({ status }) => status === 409)!;
    expect(refused.json.error.message).to.equal('Another collection was paid with this receipt.');
    expect((await resolve(third.id, 'QK7X2ABCD1')).status, 'another merchant’s').to.equal(409);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 4_900, available: 0, reserved: 0 });
    const [won, lost] = answers[0]!.status === 200 ? [first, second] : [second, first];
    expect((await test.actor(lost.id)).state, 'still open').to.match(/^created\.underReview/);
    // A capture of a version that kept receipts in collections only.
    await test.service.wired.db.collection('receipts').deleteMany({});
    const typed = answers[0]!.status === 200 ? 'QK7X2ABCD1' : 'qk7x2abcd1';
    expect((await resolve(lost.id, typed)).status).to.equal(409);
    // It was the other one's after all: what proved false gives the receipt back.
    await test.service.wired.db
      .collection<{ _id: string }>('receipts')
      .insertOne({ _id: 'test:TZS:provider_clearing:MPESA_TZ:QK7X2ABCD1', collectionId: won.id } as never);
    expect((await operator(won.id, 'operator.reversed')).status).to.equal(200);
    expect((await resolve(lost.id, typed)).status).to.equal(200);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 4_900, available: 0, reserved: 0 });
    expect((await auditAll(test.service.wired.db, clock.now())).breaches).to.deep.equal([]);
  });

  it('accepted, settle by the date of acceptance, and the fee is earned', async () => {
    const { merchant, id } = await held();
    clock.advance(5 * dayMs);
    const acceptedAt = clock.now();
    expect((await operator(id, 'operator.acceptedLate')).status).to.equal(200);
    expect(await entriesOf(id)).to.deep.equal([
      holding,
      ['late.accepted', { merchant_reserved: net, suspense: fee, merchant_pending: -net, fee_revenue: -fee }],
    ]);
    const collection = (await merchant.get(`/v1/collections/${id}`)).json;
    expect(collection).to.include({ status: 'succeeded', late: true });
    expect(Date.parse(collection.completed_at)).to.be.at.least(acceptedAt);
    const [transaction] = (await merchant.get('/v1/balance_transactions')).json.data;
    const tomorrow = new Date(acceptedAt + dayMs + eatOffsetMs).toISOString().slice(0, 10);
    expect(transaction).to.include({ type: 'late_payment_accepted', net: 0, settlement_date: tomorrow });
    clock.advance(dayMs);
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'now' } });
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
    expect((await operator(id, 'operator.returnedLate')).status).to.equal(409);
  });

  it('returned, go back through the network and leave nothing behind', async () => {
    const { merchant, id } = await held();
    expect((await operator(id, 'operator.returnedLate')).status).to.equal(200);
    await until(async () => (await test.actor(id)).state === 'expired.latePaid.returned');
    expect(await entriesOf(id)).to.deep.equal([
      holding,
      ['late.returned', { merchant_reserved: net, suspense: fee, provider_clearing: -gross }],
    ]);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    expect((await merchant.get(`/v1/collections/${id}`)).json.status).to.equal('expired');
    expect(await statuses(id)).to.deep.equal(['expired']);
    expect((await operator(id, 'operator.acceptedLate')).status).to.equal(409);
    const { data } = (await merchant.get('/v1/balance_transactions')).json;
    expect(data[0]).to.include({ type: 'late_payment_returned', gross: -gross, fee: -fee, net: -net });
  });

  it('are accepted at once for a merchant who chose so: one capture, no hold', async () => {
    const { merchant, id } = await test.latePayment(undefined, { late_payments: 'accept' });
    expect((await test.actor(id)).state).to.match(/^succeeded/);
    expect(await entriesOf(id)).to.deep.equal([
      ['collection.succeeded', { provider_clearing: gross, merchant_pending: -net, fee_revenue: -fee }],
    ]);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    expect(await statuses(id)).to.deep.equal(['expired', 'succeeded']);
    expect((await merchant.get(`/v1/collections/${id}`)).json).to.include({ late: true });
  });

  it('are accepted once, however many operators accept at once', async () => {
    const { merchant, id } = await held();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => operator(id, 'operator.acceptedLate')).concat(
        Array.from({ length: 5 }, () => operator(id, 'operator.returnedLate')),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    await until(async () => !(await test.actor(id)).state.endsWith('returning'));
    expect(await entriesOf(id)).to.have.length(2);
    const { reserved } = await balanceOf(merchant);
    expect(reserved).to.equal(0);
  });

  describe('a contradiction', () => {
    it('never overwrites a success: an alert, and nothing else', async () => {
      const { merchant, id } = await paid();
      const before = [await entriesOf(id), await balanceOf(merchant), await statuses(id)];
      const shown = (await merchant.get(`/v1/collections/${id}`)).text;
      const { actors } = test.service.wired;
      const answers = [
        { type: 'ask.failed', code: 'declined' },
        { type: 'ask.expired' },
        { type: 'ask.reversed' },
        { type: 'push.failed', code: 'rejected' },
      ];
      for (const [n, answer] of answers.entries()) {
        const at = clock.now();
        const ref = { machine: 'collection', id };
        const told = { stepId: `${id}.late.${n}`, cause: { kind: 'rail', id: 'late' } } as const;
        expect((await actors.send(ref, { ...answer, at, askedAt: at }, told)).outcome).to.equal('stepped');
      }
      expect([await entriesOf(id), await balanceOf(merchant), await statuses(id)]).to.deep.equal(before);
      expect((await merchant.get(`/v1/collections/${id}`)).text).to.equal(shown);
      expect(await alertsOf(id)).to.deep.equal(Array(4).fill('contradiction'));
    });

    it('by a forged failure callback is only a reason to ask (255700000024)', async () => {
      const merchant = await test.merchant();
      const { json } = await merchant.create({ phone: '255700000024', amount: gross });
      expect((await merchant.final(json.id)).status).to.equal('succeeded');
      expect(await entriesOf(json.id)).to.have.length(1);
      expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    });
  });

  describe('a success that proved false', () => {
    const reversal = (from: string) => [
      'success.reversed',
      { [from]: net, fee_revenue: fee, provider_clearing: -gross },
    ];

    it('is taken from pending while it is there', async () => {
      const { merchant, id } = await paid();
      expect((await operator(id, 'operator.reversed')).status).to.equal(200);
      expect((await entriesOf(id))[1]).to.deep.equal(reversal('merchant_pending'));
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
      // Final is final for the merchant; the books say what became of the money.
      expect((await merchant.get(`/v1/collections/${id}`)).json.status).to.equal('succeeded');
      expect((await operator(id, 'operator.reversed')).status).to.equal(409);
      clock.advance(dayMs);
      await test.call('POST', '/admin/settlements/run', { body: { reason: 'now' } });
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    });

    it('is taken from available once it has settled', async () => {
      const { merchant, id } = await paid();
      clock.advance(dayMs);
      await test.call('POST', '/admin/settlements/run', { body: { reason: 'now' } });
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
      expect((await operator(id, 'operator.reversed')).status).to.equal(200);
      expect((await entriesOf(id))[1]).to.deep.equal(reversal('merchant_available'));
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    });

    it('is taken from available on T+0', async () => {
      const { merchant, id } = await paid({ settlement_delay_days: 0 });
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
      expect((await operator(id, 'operator.reversed')).status).to.equal(200);
      expect((await entriesOf(id))[1]).to.deep.equal(reversal('merchant_available'));
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    });
  });

  it('3,000,000,000 shillings go through the whole service unharmed', async () => {
    const amount = 3_000_000_000;
    const merchant = await test.merchant({ amount_max: amount });
    const { json } = await merchant.create({ amount });
    expect(await merchant.final(json.id)).to.include({ status: 'succeeded', amount, fee: 60_000_000 });
    expect(await balanceOf(merchant)).to.include({ pending: 2_940_000_000 });
    clock.advance(dayMs);
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'now' } });
    expect(await balanceOf(merchant)).to.include({ pending: 0, available: 2_940_000_000 });
    const [settlement] = (await merchant.get('/v1/settlements')).json.data;
    expect(settlement).to.include({ amount: 2_940_000_000, pending: 0 });
    const stored = await test.service.wired.db
      .collection('journal_entries')
      .findOne({ merchantId: merchant.id }, { promoteLongs: false });
    for (const { debit, credit } of stored!.lines) {
      expect([debit._bsontype, credit._bsontype]).to.deep.equal(['Long', 'Long']);
    }
  });

  it('and all of it leaves books in which the auditor finds nothing', async () => {
    clock.advance(minuteMs);
    expect((await auditAll(test.service.wired.db, clock.now())).breaches).to.deep.equal([]);
    const trial = (await test.call('GET', '/admin/ledger/trial-balance?mode=test')).json;
    expect(trial.difference).to.equal(0);
  });
});

interface Line {
  account: string;
  debit: number;
  credit: number;
}

/** Debit less credit, by kind of account. */
function signed(lines: Line[]): Record<string, number> {
  const pairs = lines.map(({ account, debit, credit }) => [account.split(':')[2]!, debit - credit] as const);
  return Object.fromEntries(pairs);
}
