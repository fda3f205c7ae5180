import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const { dayMs } = limits;
const gross = 5_000;
const fee = 100;
const net = gross - fee;

/** CONTRACT 23: money back to customers. */
describe('refunds', function () {
  this.timeout(60_000);
  let test: TestService;
  const clock = clockAtNoon();

  before(async () => {
    test = await startTestService({}, { clock });
  });
  after(async () => {
    await test.stop();
  });

  let keys = 0;
  const ask = (merchant: TestMerchant, body: object, key = `refund-${++keys}`) =>
    test.call('POST', '/v1/refunds', {
      token: merchant.key,
      body,
      headers: { 'Idempotency-Key': key },
    });
  const balanceOf = async (merchant: TestMerchant) => {
    const { pending, available, reserved } = (await merchant.get('/v1/balance')).json;
    return { pending, available, reserved };
  };
  /** A payment of 5,000 that has settled, by a phone. */
  const paid = async (phone = '255700000000', merchant?: TestMerchant, count = 1) => {
    const payee = merchant ?? (await test.merchant());
    const ids: string[] = [];
    for (let made = 0; made < count; made += 1) {
      const { json } = await payee.create({ amount: gross, phone });
      await payee.tell(json.id, { outcome: 'succeeded' });
      await payee.final(json.id);
      ids.push(json.id);
    }
    expect((await payee.settle()).status).to.equal(202);
    return { merchant: payee, id: ids[0]!, ids };
  };
  const ended = async (merchant: TestMerchant, id: string) => {
    const isEnded = async () => (await merchant.get(`/v1/refunds/${id}`)).json.status !== 'created';
    expect(await until(isEnded, 60_000), `${id} ends`).to.equal(true);
    // The collection hears of it right after.
    const isTold = async () => {
      const { json } = await merchant.get(`/v1/refunds/${id}`);
      return (await test.actor(json.collection)).context.refundsOpen === 0;
    };
    expect(await until(isTold, 60_000), `the payment of ${id} hears of it`).to.equal(true);
    return (await merchant.get(`/v1/refunds/${id}`)).json;
  };
  const operator = (id: string, type: string, more: object = {}) =>
    test.call('POST', `/admin/actors/${id}/events`, { body: { type, reason: 'looked at', ...more } });
  const clean = async () =>
    expect((await auditAll(test.service.wired.db, clock.now())).breaches).to.deep.equal([]);

  it('a part: held in the 202’s commit, made, and told by the collection and the balance transactions', async () => {
    const { merchant, id } = await paid();
    const { status, json } = await ask(merchant, { collection: id, amount: 2_000, reference: 'return-77' });
    expect(status).to.equal(202);
    expect(json).to.include({ object: 'refund', status: 'created', amount: 2_000, fee_returned: 0 });
    expect(json).to.include({ collection: id, reference: 'return-77', currency: 'TZS', mode: 'test' });
    const refund = await ended(merchant, json.id);
    expect(refund).to.include({ status: 'succeeded', amount: 2_000 });
    expect(refund.provider_reference).to.match(/^SIM/);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net - 2_000, reserved: 0 });
    expect((await merchant.get(`/v1/collections/${id}`)).json).to.include({
      status: 'succeeded',
      refunded: 2_000,
    });
    const { data } = (await merchant.get('/v1/balance_transactions')).json;
    expect(
      data.slice(0, 2).map(({ type, net: n }: { type: string; net: number }) => [type, n]),
    ).to.deep.equal([
      ['refund', -2_000],
      ['refund_held', 0],
    ]);
    expect(data[0].source).to.deep.equal({ object: 'refund', id: json.id });
    await clean();
  });

  it('all that is left where no amount is said, and nothing after that', async () => {
    const { merchant, id } = await paid(undefined, undefined, 2);
    await ended(merchant, (await ask(merchant, { collection: id, amount: 1_000 })).json.id);
    const { json } = await ask(merchant, { collection: id });
    expect(json.amount).to.equal(4_000);
    await ended(merchant, json.id);
    const again = await ask(merchant, { collection: id });
    expect([again.status, again.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
    expect((await merchant.get(`/v1/collections/${id}`)).json.refunded).to.equal(gross);
    // The network says reversed because we had it reversed: no contradiction.
    expect((await operator(id, 'operator.asked')).status).to.equal(200);
    await clean();
  });

  it('the fee is kept, or goes back with the whole of it where that was agreed', async () => {
    const { merchant, id } = await paid(undefined, undefined, 2);
    await ended(merchant, (await ask(merchant, { collection: id })).json.id);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 2 * net - gross, reserved: 0 });
    const kind = await test.merchant({ refund_fee: 'return' });
    const { id: other } = await paid(undefined, kind);
    const { json } = await ask(kind, { collection: other });
    expect(json).to.include({ amount: gross, fee_returned: fee });
    await ended(kind, json.id);
    expect(await balanceOf(kind)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    const { id: part } = await paid(undefined, kind);
    expect((await ask(kind, { collection: part, amount: gross - 200 })).json.fee_returned).to.equal(0);
    await clean();
  });

  it('pending money cannot be used: nothing is created, and the same key works later', async () => {
    const merchant = await test.merchant();
    const { json: made } = await merchant.create({ amount: gross });
    await merchant.tell(made.id, { outcome: 'succeeded' });
    await merchant.final(made.id);
    const body = { collection: made.id, amount: 1_000 };
    const refused = await ask(merchant, body, 'the-same');
    expect([refused.status, refused.json.error.code]).to.deep.equal([409, 'balance_insufficient']);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    expect((await merchant.get('/v1/refunds')).json.data).to.deep.equal([]);
    expect((await merchant.get(`/v1/collections/${made.id}`)).json).to.not.have.property('refunded');
    await merchant.settle();
    expect((await ask(merchant, body, 'the-same')).status).to.equal(202);
    await clean();
  });

  it('money that was available at once lies on another stripe, and is refunded all the same', async () => {
    const merchant = await test.merchant({ settlement_delay_days: 0 });
    const { json } = await merchant.create({ amount: gross });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    const refund = await ask(merchant, { collection: json.id, amount: 3_000 });
    expect(refund.status).to.equal(202);
    await ended(merchant, refund.json.id);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net - 3_000, reserved: 0 });
    await clean();
  });

  it('of many at once no more goes back than came in, and no more than there is money for', async () => {
    const { merchant, id } = await paid(undefined, undefined, 3);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => ask(merchant, { collection: id, amount: 1_500 })),
    );
    const taken = answers.filter(({ status }) => status === 202);
    expect(taken.length).to.equal(3);
    const codes = answers.filter(({ status }) => status !== 202).map(({ json }) => json.error.code);
    expect([...new Set(codes)].sort()).to.satisfy((all: string[]) =>
      all.every((code) => ['action_not_allowed', 'amount_too_large'].includes(code)),
    );
    for (const { json } of taken) await ended(merchant, json.id);
    expect((await merchant.get(`/v1/collections/${id}`)).json.refunded).to.equal(4_500);
    const poor = await test.merchant();
    const { ids } = await paid(undefined, poor, 2);
    await ended(poor, (await ask(poor, { collection: ids[0]!, amount: gross - 200 })).json.id);
    const both = await Promise.all([0, 0, 0].map(() => ask(poor, { collection: ids[1]!, amount: 2_000 })));
    expect(both.map(({ status }) => status).sort()).to.deep.equal([202, 202, 400]);
    for (const { status, json } of both) if (status === 202) await ended(poor, json.id);
    expect((await balanceOf(poor)).available).to.equal(2 * net - 4_800 - 4_000);
    await clean();
  });

  it('a retried request is answered as the first one, and gives back once', async () => {
    const { merchant, id } = await paid();
    const body = { collection: id, amount: 500 };
    const [first, second] = await Promise.all([ask(merchant, body, 'once'), ask(merchant, body, 'once')]);
    expect(second.text).to.equal(first.text);
    await ended(merchant, first.json.id);
    expect((await ask(merchant, body, 'once')).text).to.equal(first.text);
    expect((await ask(merchant, { ...body, amount: 600 }, 'once')).json.error.code).to.equal(
      'idempotency_key_reused',
    );
    expect((await merchant.get('/v1/refunds')).json.data).to.have.length(1);
  });

  it('refused by the network: fails, and the money is available again', async () => {
    for (const [phone, code] of [
      ['255700000030', 'rejected'],
      ['255700000032', 'float_insufficient'],
    ] as const) {
      const { merchant, id } = await paid(phone);
      const { json } = await ask(merchant, { collection: id, amount: 1_000 });
      const refund = await ended(merchant, json.id);
      expect(refund).to.include({ status: 'failed', failure_code: code });
      expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
      expect((await merchant.get(`/v1/collections/${id}`)).json).to.not.have.property('refunded');
      expect((await ask(merchant, { collection: id, amount: gross - 200 })).status, 'again').to.equal(202);
    }
    await clean();
  });

  it('unclear: is asked about, reviewed, and decided by a person; never sent again', async () => {
    const { merchant, id } = await paid('255700000031');
    const { json } = await ask(merchant, { collection: id, amount: 1_000 });
    const state = async () => (await test.actor(json.id)).state;
    await until(async () => (await state()) === 'created.confirming.polling');
    clock.advance(2 * limits.hourMs);
    await test.sweep();
    await until(async () => (await state()).startsWith('created.underReview'));
    expect((await merchant.get(`/v1/refunds/${json.id}`)).json.status).to.equal('created');
    const { needs_you: needs } = (await test.call('GET', '/admin/overview?mode=test')).json;
    expect(needs.map(({ kind }: { kind: string }) => kind)).to.include('refund_unclear');
    const told = { outcome: 'succeeded', receipt: 'STMT1', reason: 'the statement has it' };
    const dry = await operator(json.id, 'operator.resolved', { ...told, dry_run: true });
    expect(dry.json.entries.map(({ type }: { type: string }) => type)).to.deep.equal(['refund.paid']);
    expect((await operator(json.id, 'operator.resolved', told)).status).to.equal(200);
    expect(await ended(merchant, json.id)).to.include({ status: 'succeeded', provider_reference: 'STMT1' });
    const sent = (await test.history(json.id)).flatMap(({ actions }) => actions);
    expect(sent.filter((each: string) => each === 'sendRefund')).to.have.length(1);
    await clean();
  });

  it('found to be made after it had failed: booked by a person, even below zero', async () => {
    const { merchant, id } = await paid('255700000030');
    const { json } = await ask(merchant, { collection: id, amount: 4_000 });
    await ended(merchant, json.id);
    const other = await ask(merchant, { collection: id, amount: 4_000 });
    await ended(merchant, other.json.id);
    expect((await operator(json.id, 'operator.foundPaid', { receipt: 'STMT2' })).status).to.equal(200);
    expect((await merchant.get(`/v1/refunds/${json.id}`)).json.status).to.equal('succeeded');
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net - 4_000, reserved: 0 });
    await until(async () => (await merchant.get(`/v1/collections/${id}`)).json.refunded === 4_000);
    await clean();
  });

  it('found to be made after all had gone back: a person is told why not, and nothing goes back beyond the sum', async () => {
    const words = /all that came in has gone back already.*decide about that line’s difference/;
    const found = (id: string, more: object = {}) =>
      operator(id, 'operator.foundPaid', { receipt: 'STMT3', ...more });
    const { merchant, id, ids } = await paid('255700000030', undefined, 3);
    const { json } = await ask(merchant, { collection: id });
    await ended(merchant, json.id);
    expect((await operator(id, 'operator.reversed')).status).to.equal(200);
    const before = await balanceOf(merchant);
    for (const more of [{ dry_run: true }, {}]) {
      const refused = await found(json.id, more);
      expect([refused.status, refused.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
      expect(refused.json.error.message).to.match(words);
    }
    expect((await merchant.get(`/v1/refunds/${json.id}`)).json.status).to.equal('failed');
    expect(await balanceOf(merchant)).to.deep.equal(before);
    // Another one has taken its place: together they are more than came.
    const twins: string[] = [];
    for (const amount of [3_000, 3_000]) {
      const { json: twin } = await ask(merchant, { collection: ids[1], amount });
      await ended(merchant, twin.id);
      twins.push(twin.id);
    }
    expect((await found(twins[0]!)).status).to.equal(200);
    expect((await found(twins[1]!)).status, 'beyond the sum').to.equal(409);
    await clean();
  });

  it('only what succeeded, for ninety days, by its own merchant and mode', async () => {
    const { merchant, id } = await paid();
    const stranger = await test.merchant();
    expect((await ask(stranger, { collection: id })).status).to.equal(404);
    const live = await test.issueKey(merchant.id, 'live', ['refunds']);
    expect((await ask({ ...merchant, key: live.secret }, { collection: id })).status).to.equal(404);
    const { json: failed } = await merchant.create({ phone: '255700000004' });
    await merchant.final(failed.id);
    expect((await ask(merchant, { collection: failed.id })).json.error.code).to.equal('action_not_allowed');
    const tooMuch = await ask(merchant, { collection: id, amount: gross + 1 });
    expect([tooMuch.status, tooMuch.json.error.code]).to.deep.equal([400, 'amount_too_large']);
    const { json: mine } = await ask(merchant, { collection: id, amount: 100 });
    expect((await stranger.get(`/v1/refunds/${mine.id}`)).status).to.equal(404);
    expect((await stranger.get(`/v1/refunds?collection=${id}`)).json.data).to.deep.equal([]);
    await ended(merchant, mine.id);
    clock.advance(91 * dayMs);
    const late = await ask(merchant, { collection: id, amount: 100 });
    expect([late.status, late.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
  });

  it('lists, by collection and status', async () => {
    const { merchant, ids } = await paid(undefined, undefined, 2);
    const made = [];
    for (const collection of ids) {
      const { json } = await ask(merchant, { collection, amount: 100 });
      made.push(await ended(merchant, json.id));
    }
    const list = async (query = '') => (await merchant.get(`/v1/refunds${query}`)).json.data;
    expect(await list()).to.deep.equal([...made].reverse());
    expect(await list(`?collection=${ids[0]}`)).to.deep.equal([made[0]]);
    expect(await list('?status=created')).to.deep.equal([]);
    expect(await list(`?starting_after=${made[1].id}&status=succeeded`)).to.deep.equal([made[0]]);
    const { data } = (await test.call('GET', `/admin/refunds?mode=test&collection=${ids[1]}`)).json;
    expect(data.map((row: { id: string }) => row.id)).to.deep.equal([made[1].id]);
  });

  it('an operator gives money back on the payment’s page: rehearsed, audited, and refused without money', async () => {
    const { merchant, id } = await paid();
    const dry = await operator(id, 'operator.refunded', { amount: 700, dry_run: true });
    expect(dry.json.entries.map(({ type }: { type: string }) => type)).to.deep.equal(['refund.held']);
    expect((await operator(id, 'operator.refunded')).status, 'no amount').to.equal(400);
    expect((await operator(id, 'operator.refunded', { amount: gross + 1 })).status).to.equal(409);
    const poor = await operator(id, 'operator.refunded', { amount: gross });
    expect([poor.status, poor.json.error.code], 'the fee is missing').to.deep.equal([
      409,
      'balance_insufficient',
    ]);
    expect((await operator(id, 'operator.refunded', { amount: 700 })).status).to.equal(200);
    const [refund] = (await merchant.get(`/v1/refunds?collection=${id}`)).json.data;
    expect(await ended(merchant, refund.id)).to.include({ amount: 700, status: 'succeeded' });
    await clean();
  });

  it('what was refunded in part is taken back in the rest, when the success proves false', async () => {
    const { merchant, id } = await paid();
    const { json } = await ask(merchant, { collection: id, amount: 2_000 });
    await ended(merchant, json.id);
    expect((await operator(id, 'operator.reversed')).status).to.equal(200);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 0, reserved: 0 });
    expect((await ask(merchant, { collection: id })).status).to.equal(409);
    await clean();
  });

  it('events reach endpoints that name them, and no others', async () => {
    const { merchant, id } = await paid();
    const [all, named] = [
      await test.endpoint(merchant.id, 'http://127.0.0.1:9999/all'),
      await test.endpoint(merchant.id, 'http://127.0.0.1:9999/named', { event_types: ['refund.succeeded'] }),
    ];
    const { json } = await ask(merchant, { collection: id, amount: 300 });
    await ended(merchant, json.id);
    const told = async (endpoint: { id: string }) =>
      (await test.call('GET', `/admin/deliveries?endpoint=${endpoint.id}`)).json.data;
    expect(await told(all)).to.deep.equal([]);
    expect((await told(named)).map((each: { event_type: string }) => each.event_type)).to.deep.equal([
      'refund.succeeded',
    ]);
    const { data } = (await merchant.get('/v1/events?type=refund.succeeded')).json;
    expect(data[0].data).to.deep.equal((await merchant.get(`/v1/refunds/${json.id}`)).json);
  });
});
