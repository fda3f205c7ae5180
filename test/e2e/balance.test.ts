import { expect } from 'chai';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 14.1. How it settles: settlement.test.ts. */
describe('GET /v1/balance', () => {
  let test: TestService;

  before(async () => {
    test = await startTestService({}, { clock: clockAtNoon() });
  });

  after(() => test.stop());

  const balanceOf = async (merchant: TestMerchant) => {
    const { pending, available, reserved } = (await merchant.get('/v1/balance')).json;
    return { pending, available, reserved };
  };

  it('is nothing before the first payment', async () => {
    const merchant = await test.merchant();
    const { status, json } = await merchant.get('/v1/balance');
    expect(status).to.equal(200);
    expect(json).to.deep.equal({
      object: 'balance',
      mode: 'test',
      currency: 'TZS',
      pending: 0,
      available: 0,
      reserved: 0,
    });
  });

  it('holds the amounts of what succeeded less their fees as pending, and of nothing else', async () => {
    const merchant = await test.merchant();
    const payments = [
      { amount: 5_000 },
      { amount: 125 },
      { amount: 5_000_000 },
      { amount: 7_000, phone: '255700000001' },
      { amount: 8_000, phone: '255700000004' },
      { amount: 9_000, phone: '255700000005' },
    ];
    // One that the network never decides.
    await merchant.create({ amount: 6_000, phone: '255700000021' });
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    const made = await Promise.all(payments.map((payment) => merchant.create(payment)));
    await Promise.all(made.map(({ json }) => merchant.final(json.id)));
    const pending = 5_000 - 100 + (125 - 3) + 5_000_000 - 100_000;
    expect(await balanceOf(merchant)).to.deep.equal({ pending, available: 0, reserved: 0 });
  });

  it('has the payment as soon as the collection says that it succeeded', async () => {
    const merchant = await test.merchant();
    const { json } = await merchant.create();
    await merchant.final(json.id);
    expect((await balanceOf(merchant)).pending).to.equal(4_900);
  });

  it('counts beyond 2^31 shillings without losing one', async () => {
    const merchant = await test.merchant({ amount_max: 4_000_000_000 });
    const amounts = [3_999_999_999, 4_000_000_000];
    const made = await Promise.all(amounts.map((amount) => merchant.create({ amount })));
    await Promise.all(made.map(({ json }) => merchant.final(json.id)));
    expect((await balanceOf(merchant)).pending).to.equal(
      3_999_999_999 - 80_000_000 + 4_000_000_000 - 80_000_000,
    );
  });

  it('is the merchant’s own and the mode’s own', async () => {
    const [merchant, other] = await Promise.all([test.merchant(), test.merchant()]);
    const { json } = await merchant.create();
    await merchant.final(json.id);
    expect((await balanceOf(other)).pending).to.equal(0);
    const { secret } = await test.issueKey(merchant.id, 'live');
    const live = await test.call('GET', '/v1/balance', { token: secret });
    expect(live.json).to.include({ mode: 'live', pending: 0, available: 0, reserved: 0 });
  });

  it('reserves a late payment, disjoint from pending, until an operator accepts it', async () => {
    const { merchant, id } = await test.latePayment();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 4_900 });
    const accepted = await test.call('POST', `/admin/actors/${id}/events`, {
      body: { type: 'operator.acceptedLate', reason: 'the customer came back' },
    });
    expect(accepted.status, accepted.text).to.equal(200);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 4_900, available: 0, reserved: 0 });
  });

  it('no longer holds a late payment that was returned', async () => {
    const { merchant, id } = await test.latePayment();
    const returned = await test.call('POST', `/admin/actors/${id}/events`, {
      body: { type: 'operator.returnedLate', reason: 'the shop is closed' },
    });
    expect(returned.status, returned.text).to.equal(200);
    await until(async () => (await balanceOf(merchant)).reserved === 0);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    const { json: after } = await merchant.get(`/v1/collections/${id}`);
    expect(after.status).to.equal('expired');
    expect(after).to.not.have.property('late');
  });

  it('takes no parameters', async () => {
    const { status, json } = await (await test.merchant()).get('/v1/balance?mode=live');
    expect([status, json.error.code]).to.deep.equal([400, 'parameter_unknown']);
  });
});
