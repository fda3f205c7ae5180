import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { auditAll, floatMoved, post } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { testPayoutNumbers } from '../../src/rails/rails.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

const settings = {
  PAYOUT_MAX: '400000',
  PAYOUT_APPROVAL_FROM: '300000',
  PAYOUT_MERCHANT_DAY_MAX: '500000',
  PAYOUT_DAY_MAX: '900000',
  PAYOUT_FEE: '500',
};

/** CONTRACT 22, as a merchant's program sees it. */
describe('/v1/payouts', function () {
  this.timeout(120_000);
  const clock = new MovableClock();
  let test: TestService;
  let lastKey = 0;

  before(async () => {
    test = await startTestService(settings, { clock });
  });
  after(async () => {
    const { breaches } = await auditAll(test.service.wired.db, clock.now() + limits.minuteMs);
    await test.stop();
    expect(breaches, 'the books agree with all of it').to.deep.equal([]);
  });
  // What one test asked for on a day must not count against another's limits.
  beforeEach(() => void clock.advance(limits.dayMs));

  /** A merchant with this much available (net of the fee of collecting it), and where it may go. */
  const funded = async (amount = 1_000_000, changes: Record<string, unknown> = {}) => {
    const merchant = await test.merchant();
    const { json } = await merchant.create({ amount });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
    return { merchant, destination: await test.destination(merchant.id, changes) };
  };
  const post = (merchant: TestMerchant, path: string, body: object, key = `payout-${lastKey++}`) =>
    test.call('POST', path, { token: merchant.key, body, headers: { 'idempotency-key': key } });
  const pay = (merchant: TestMerchant, body: object, key?: string) =>
    post(merchant, '/v1/payouts', body, key);
  const cancel = (merchant: TestMerchant, id: string, key?: string) =>
    post(merchant, `/v1/payouts/${id}/cancel`, {}, key);
  const read = async (merchant: TestMerchant, id: string) => (await merchant.get(`/v1/payouts/${id}`)).json;
  const ended = (merchant: TestMerchant, id: string) =>
    until(async () => {
      const payout = await read(merchant, id);
      return payout.status !== 'created' && payout;
    });
  const balance = async (merchant: TestMerchant) => {
    const { available, reserved } = (await merchant.get('/v1/balance')).json;
    return { available, reserved };
  };
  const codeOf = ({ status, json }: Awaited<ReturnType<typeof pay>>) => [status, json.error?.code];

  it('answers 202 when the money is held, and pays it out of that', async () => {
    const { merchant, destination } = await funded();
    const { status, json } = await pay(merchant, { amount: 100_000, destination, reference: 'week-47' });
    expect(status).to.equal(202);
    expect(json).to.include({ object: 'payout', status: 'created', amount: 100_000, fee: 500, destination });
    expect(json).to.include({ reference: 'week-47', mode: 'test', currency: 'TZS' });
    const paid = await ended(merchant, json.id);
    expect(paid).to.include({ status: 'paid', amount: 100_000 });
    expect(await balance(merchant)).to.deep.equal({ available: 879_500, reserved: 0 });
    const { data } = (await merchant.get('/v1/balance_transactions?limit=2')).json;
    expect(data[0]).to.deep.include({ type: 'payout', source: { object: 'payout', id: json.id } });
  });

  it('makes one payout however often the request is repeated, and answers it the same', async () => {
    const { merchant, destination } = await funded();
    const body = { amount: 10_000, destination };
    const answers = await Promise.all(Array.from({ length: 5 }, () => pay(merchant, body, 'the same')));
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
    const again = await pay(merchant, body, 'the same');
    expect([again.text, again.headers.get('idempotent-replayed')]).to.deep.equal([answers[0]!.text, 'true']);
    expect(codeOf(await pay(merchant, { ...body, amount: 11_000 }, 'the same'))).to.deep.equal([
      409,
      'idempotency_key_reused',
    ]);
    await ended(merchant, answers[0]!.json.id);
    expect((await balance(merchant)).available).to.equal(980_000 - 10_500);
  });

  it('refuses too little money, a wrong amount and a wrong destination, and creates nothing', async () => {
    const { merchant, destination } = await funded(200_000);
    const other = await funded(200_000);
    const asked = async (amount: number, to = destination) =>
      codeOf(await pay(merchant, { amount, destination: to }));
    expect(await asked(196_000)).to.deep.equal([409, 'balance_insufficient']);
    expect(await asked(999)).to.deep.equal([400, 'amount_too_small']);
    expect(await asked(400_001)).to.deep.equal([400, 'amount_too_large']);
    expect(await asked(1_000, other.destination)).to.deep.equal([400, 'parameter_invalid']);
    expect(codeOf(await cancel(other.merchant, 'po_01K5J8Q2R3S4T5V6W7X8Y9Z0AB'))[0]).to.equal(404);
    expect(await balance(merchant)).to.deep.equal({ available: 196_000, reserved: 0 });
    expect((await merchant.get('/v1/payouts')).json.data).to.deep.equal([]);
  });

  it('keeps the limit of a merchant’s day, which what did not leave does not count against', async () => {
    const { merchant, destination } = await funded(2_000_000, { rail: 'manual' });
    const asked = (amount: number) => pay(merchant, { amount, destination });
    const { json: first } = await asked(280_000);
    const { json: second } = await asked(220_000);
    expect(second.status).to.equal('created');
    const refused = await asked(1_000);
    expect(codeOf(refused)).to.deep.equal([409, 'action_not_allowed']);
    expect(refused.json.error.message).to.include('TZS 0 are left of your limit');
    expect((await cancel(merchant, first.id)).status).to.equal(200);
    expect((await asked(280_001)).status).to.equal(409);
    expect((await asked(280_000)).status).to.equal(202);
    clock.advance(limits.dayMs);
    expect((await asked(1_000)).status, 'another day').to.equal(202);
  });

  it('keeps the limit of everybody’s day', async () => {
    const [one, two] = [
      await funded(2_000_000, { rail: 'manual' }),
      await funded(2_000_000, { rail: 'manual' }),
    ];
    const asked = ({ merchant, destination }: typeof one, amount: number) =>
      pay(merchant, { amount, destination });
    for (const amount of [250_000, 250_000]) expect((await asked(one, amount)).status).to.equal(202);
    expect((await asked(two, 290_000)).status).to.equal(202);
    const refused = await asked(two, 110_001);
    expect(codeOf(refused)).to.deep.equal([409, 'action_not_allowed']);
    expect(refused.json.error.message).to.include('TZS 110000 are left of this service’s limit');
    expect((await asked(two, 110_000)).status).to.equal(202);
  });

  it('keeps both however many ask at the same moment', async () => {
    const { merchant, destination } = await funded(2_000_000, { rail: 'manual' });
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => pay(merchant, { amount: 60_000, destination })),
    );
    const made = answers.filter(({ status }) => status === 202);
    expect(made).to.have.length(8);
    expect((await balance(merchant)).reserved).to.equal(8 * 60_500);
  });

  it('takes back what has not left, once, and nothing that may have', async () => {
    const { merchant, destination } = await funded(1_000_000, { rail: 'manual' });
    const { json } = await pay(merchant, { amount: 100_000, destination });
    expect((await balance(merchant)).reserved).to.equal(100_500);
    const cancelled = await cancel(merchant, json.id, 'cancel it');
    expect(cancelled.json).to.include({ id: json.id, status: 'cancelled', cancelled_by: 'merchant' });
    expect(await balance(merchant)).to.deep.equal({ available: 980_000, reserved: 0 });
    expect((await cancel(merchant, json.id, 'cancel it')).text).to.equal(cancelled.text);
    expect(codeOf(await cancel(merchant, json.id))).to.deep.equal([409, 'action_not_allowed']);

    const { json: written } = await pay(merchant, { amount: 100_000, destination });
    const reason = 'for the bank';
    await test.call('POST', '/admin/payout-files', { body: { mode: 'test', reason } });
    const late = await cancel(merchant, written.id);
    expect(codeOf(late)).to.deep.equal([409, 'action_not_allowed']);
    expect(late.json.error.message).to.include('on its way already');
    expect((await balance(merchant)).reserved).to.equal(100_500);
  });

  it('takes back what waits for an approval; who makes one by key approves nothing', async () => {
    const { merchant, destination } = await funded();
    const { json } = await pay(merchant, { amount: 300_000, destination });
    expect((await test.actor(json.id)).state).to.equal('created.awaitingApproval');
    expect((await cancel(merchant, json.id)).json.status).to.equal('cancelled');
    const { json: other } = await pay(merchant, { amount: 300_000, destination });
    const body = { type: 'operator.approved', reason: 'known to us' };
    expect((await test.call('POST', `/admin/actors/${other.id}/events`, { body })).status).to.equal(200);
    expect((await ended(merchant, other.id)).status).to.equal('paid');
  });

  it('lists them by status, destination and time, and where money may go', async () => {
    const { merchant, destination } = await funded();
    const other = await test.destination(merchant.id, { number: '255754000111' });
    const made: string[] = [];
    for (const to of [destination, other, destination]) {
      const { json } = await pay(merchant, { amount: 1_000, destination: to });
      made.push((await ended(merchant, json.id)).id);
      clock.advance(limits.minuteMs);
    }
    const list = async (query: string) =>
      (await merchant.get(`/v1/payouts?${query}`)).json.data.map(({ id }: { id: string }) => id);
    expect(await list('')).to.deep.equal([...made].reverse());
    expect(await list(`starting_after=${made[2]}&limit=1`)).to.deep.equal([made[1]]);
    expect(await list(`destination=${other}`)).to.deep.equal([made[1]]);
    expect(await list('status=created')).to.deep.equal([]);
    const { created_at } = await read(merchant, made[1]!);
    expect(await list(`created_at[gte]=${created_at}`)).to.deep.equal([made[2], made[1]]);
    expect(await list(`created_at[lt]=${created_at}&status=paid`)).to.deep.equal([made[0]]);
    const places = (await merchant.get('/v1/destinations')).json.data;
    expect(places.map(({ id, number }: { id: string; number: string }) => [id, number])).to.deep.equal([
      [other, '2557****0111'],
      [destination, '2557****5678'],
    ]);
    const body = { type: 'operator.removed', reason: 'closed' };
    await test.call('POST', `/admin/actors/${other}/events`, { body });
    expect((await merchant.get('/v1/destinations')).json.data).to.have.length(1);
    expect((await merchant.get(`/v1/destinations/${other}`)).json.status).to.equal('removed');
  });
});

/** CONTRACT 12.9 */
describe('events of payouts', function () {
  this.timeout(120_000);
  let test: TestService;
  let receiver: Receiver;

  before(async () => {
    test = await startTestService();
    receiver = await startReceiver();
  });
  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const ends = [
    ['255712345678', ['payout.paid'], 'paid'],
    [testPayoutNumbers.refused, ['payout.failed'], 'failed'],
    [testPayoutNumbers.returned, ['payout.paid', 'payout.returned'], 'returned'],
  ] as const;
  for (const [number, types, status] of ends) {
    it(`tell of one that is ${status} to the endpoint that names them, and to no other`, async () => {
      const merchant = await test.merchant();
      const usual = await test.endpoint(merchant.id, receiver.url);
      const named = await test.endpoint(merchant.id, receiver.url, {
        event_types: ['payout.paid', 'payout.failed', 'payout.returned'],
      });
      const { json: sold } = await merchant.create({ amount: 100_000 });
      await merchant.tell(sold.id, { outcome: 'succeeded' });
      await merchant.final(sold.id);
      await merchant.settle();
      const destination = await test.destination(merchant.id, { number });
      const { json } = await test.call('POST', '/v1/payouts', {
        token: merchant.key,
        body: { amount: 10_000, destination },
        headers: { 'idempotency-key': 'one' },
      });
      for (const type of types) {
        const { event } = await receiver.next(
          ({ event: each }) => each.type === type && each.data.id === json.id,
        );
        expect(event.data.status).to.equal(type.split('.')[1]);
        const shown = (await merchant.get(`/v1/events/${event.id}`)).json;
        expect(shown.data).to.deep.equal(event.data);
        const listed = (await merchant.get(`/v1/events?type=${type}`)).json.data;
        expect(listed.map(({ id }: { id: string }) => id)).to.deep.equal([event.id]);
      }
      expect((await merchant.get(`/v1/payouts/${json.id}`)).json.status).to.equal(status);
      const sent = async (endpoint: string) =>
        (await merchant.get(`/v1/webhook_endpoints/${endpoint}/deliveries`)).json.data;
      expect(await sent(named.id)).to.have.length(types.length);
      const others = (await sent(usual.id)).map(({ event_type }: { event_type: string }) => event_type);
      expect(others.filter((type: string) => type.startsWith('payout.'))).to.deep.equal([]);
    });
  }
});

describe('/v1/payouts and the float', function () {
  this.timeout(60_000);
  const clock = new MovableClock();
  let test: TestService;

  before(async () => {
    test = await startTestService({}, { clock });
  });
  after(() => test.stop());

  it('refuses what the books do not hold at the network, and nothing is created', async () => {
    const merchant = await test.merchant();
    const { json } = await merchant.create({ amount: 100_000 });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
    const destination = await test.destination(merchant.id);
    // Of 100,000 that the network holds for us 60,000 go to the bank, as a statement would tell.
    const { actors, rails } = test.service.wired;
    const at = clock.now();
    const moved = floatMoved({
      ...{
        mode: 'test',
        currency: 'TZS',
        channel: rails.test.name,
        to: 'bank',
        amountTzs: 60_000,
        fact: 'float_FT1_out',
      },
      ...{ source: { machine: 'reconciliation', id: 'rec.of.a.test', seq: 1 }, providerReference: 'FT1' },
      ...{ effectiveAtMs: at, postedAtMs: at },
    });
    await actors.commit(post(moved));
    const pay = (amount: number) =>
      test.call('POST', '/v1/payouts', {
        token: merchant.key,
        body: { amount, destination },
        headers: { 'idempotency-key': `${amount} of it` },
      });
    const refused = await pay(40_001);
    expect([refused.status, refused.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
    expect(refused.json.error.message).to.include('does not hold enough');
    expect((await merchant.get('/v1/balance')).json).to.include({ available: 98_000, reserved: 0 });
    expect((await pay(40_000)).status).to.equal(202);
  });
});
