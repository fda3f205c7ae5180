import { expect } from 'chai';
import { clockAtNoon } from '../../../test/support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../../../test/support/service.ts';
import { Kusanya, KusanyaError, StillPending } from '../src/index.ts';
import { errorOf } from './support/rejected.ts';

/** The promises of the contract that a merchant leans on, through the client, over real HTTP. */
describe('collections by the client', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let kusanya: Kusanya;
  const params = { amount: 5000, phone: '255700000000', reference: 'order-1' };

  before(async () => {
    test = await startTestService({}, { clock: clockAtNoon() });
    merchant = await test.merchant();
    kusanya = new Kusanya(merchant.key, { baseUrl: test.baseUrl });
  });

  after(() => test.stop());

  it('are created, read and waited for until they have succeeded', async () => {
    const created = await kusanya.collections.create(params, { idempotencyKey: 'create' });
    expect(created).to.include({ object: 'collection', status: 'created', ...params });
    const ended = await kusanya.collections.wait(created.id);
    expect(ended.status).to.equal('succeeded');
    expect(await kusanya.collections.retrieve(created.id)).to.deep.equal(ended);
  });

  it('are created once: the same key gives the first answer again', async () => {
    const first = await kusanya.collections.create(params, { idempotencyKey: 'replay' });
    await kusanya.collections.wait(first.id);
    const again = await kusanya.collections.create(params, { idempotencyKey: 'replay' });
    expect(again).to.deep.equal(first);
    const ended = await kusanya.collections.createAndWait(params, { idempotencyKey: 'replay' });
    expect([ended.id, ended.status]).to.deep.equal([first.id, 'succeeded']);
  });

  it('are refused under a key that has another body, at once and without a second try', async () => {
    await kusanya.collections.create(params, { idempotencyKey: 'reused' });
    const changed = { ...params, amount: 6000 };
    const error = await errorOf(
      KusanyaError,
      kusanya.collections.create(changed, { idempotencyKey: 'reused' }),
    );
    expect(error).to.include({
      ...{ status: 409, type: 'idempotency_error', code: 'idempotency_key_reused', outcome: 'none' },
    });
    expect(error.requestId).to.match(/^[\w-]{8,64}$/);
  });

  it('that fail are answers, not errors', async () => {
    const declined = { ...params, phone: '255700000002' };
    const ended = await kusanya.collections.createAndWait(declined, { idempotencyKey: 'declined' });
    expect([ended.status, ended.failure_code]).to.deep.equal(['failed', 'declined']);
  });

  it('that are wrong are refused with every wrong field', async () => {
    const wrong = kusanya.collections.create(
      { ...params, amount: 1, phone: '12' },
      { idempotencyKey: 'wrong' },
    );
    const error = await errorOf(KusanyaError, wrong);
    expect(error).to.include({ status: 400, type: 'invalid_request_error', outcome: 'none' });
    expect(error.errors?.map(({ param, code }) => `${param} ${code}`)).to.have.members([
      'amount amount_too_small',
      'phone phone_invalid',
    ]);
  });

  it('that nobody knows the end of are still pending, which is not failed', async () => {
    const lost = { ...params, phone: '255700000021' };
    const options = { idempotencyKey: 'pending', timeoutMs: 1_500 };
    const pending = await errorOf(StillPending, kusanya.collections.createAndWait(lost, options));
    expect(pending.collection).to.include({ status: 'created', phone: lost.phone });
    const again = await errorOf(
      StillPending,
      kusanya.collections.wait(pending.collection.id, { timeoutMs: 500 }),
    );
    expect(again.collection.id).to.equal(pending.collection.id);
  });

  it('are waited for no longer than the caller’s signal allows', async () => {
    const { id } = await kusanya.collections.create(
      { ...params, phone: '255700000021' },
      { idempotencyKey: 'left' },
    );
    const gone = new Error('the customer has left');
    const controller = new AbortController();
    const waiting = kusanya.collections.wait(id, { signal: controller.signal });
    setTimeout(() => controller.abort(gone), 200);
    expect(await errorOf(Error, waiting)).to.equal(gone);
  });

  it('of another merchant are not found', async () => {
    const stranger = new Kusanya((await test.merchant()).key, { baseUrl: test.baseUrl });
    const { id } = await kusanya.collections.create(params, { idempotencyKey: 'mine' });
    const error = await errorOf(KusanyaError, stranger.collections.wait(id));
    expect(error).to.include({ status: 404, code: 'resource_not_found', type: 'invalid_request_error' });
  });

  it('are listed a page at a time when awaited, and all of them when walked through', async () => {
    const other = await test.merchant();
    const theirs = new Kusanya(other.key, { baseUrl: `${test.baseUrl}/v1/` });
    const ids: string[] = [];
    for (let index = 0; index < 7; index += 1) {
      const reference = index % 2 ? 'odd' : 'even';
      ids.unshift(
        (await theirs.collections.create({ ...params, reference }, { idempotencyKey: `n${index}` })).id,
      );
    }
    const page = await theirs.collections.list({ limit: 3 });
    expect([page.data.map(({ id }) => id), page.has_more]).to.deep.equal([ids.slice(0, 3), true]);
    for (const limit of [undefined, 2, 7]) {
      const walked = [];
      for await (const { id } of theirs.collections.list({ limit })) walked.push(id);
      expect(walked, `limit ${limit}`).to.deep.equal(ids);
    }
    const even = [];
    for await (const { id } of theirs.collections.list({ reference: 'even', limit: 1 })) even.push(id);
    expect(even).to.deep.equal(ids.filter((_, index) => index % 2 === 0));
    const newest = new Date(page.data[0]!.created_at);
    expect((await theirs.collections.list({ created_at: { gt: newest } })).data).to.deep.equal([]);
    expect((await theirs.collections.list({ created_at: { lte: newest } })).data).to.have.length(7);
  });

  it('become money: balance, its changes, settlements and what they consist of', async () => {
    const seller = await test.merchant();
    const theirs = new Kusanya(seller.key, { baseUrl: test.baseUrl });
    expect(await theirs.whoami()).to.include({ object: 'principal', merchant_id: seller.id, mode: 'test' });
    const paid = await theirs.collections.createAndWait(params, { idempotencyKey: 'money' });
    const net = paid.amount - paid.fee;
    const [change] = (await theirs.balanceTransactions.list({ type: 'collection' })).data;
    expect([change!.source.id, change!.net]).to.deep.equal([paid.id, net]);
    expect(await theirs.balance()).to.include({ pending: net, available: 0, reserved: 0 });
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that it is listed' } });
    const [settlement] = (await theirs.settlements.list()).data;
    expect(await theirs.settlements.retrieve(settlement!.id)).to.include({ status: 'due', pending: net });
    expect((await theirs.settlements.collections(settlement!.id)).data).to.deep.equal([paid]);
  });
});
