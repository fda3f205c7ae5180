import { expect } from 'chai';
import type { Answer, TestMerchant, TestService } from '../support/service.ts';
import { startTestService, until } from '../support/service.ts';

/** operators.md "Console" 1: what needs a person comes first, each tile with the list behind it. */
describe('operators’ overview', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { pushWindowMs: 3_000 });
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const overview = async (mode = 'test') => (await test.call('GET', `/admin/overview?mode=${mode}`)).json;
  type Tile = { kind: string; count: number; link: string; machine: string | null };
  const tile = async (kind: string, mode = 'test'): Promise<Tile | undefined> =>
    (await overview(mode)).needs_you.find((each: Tile) => each.kind === kind);
  const collections = () => test.service.wired.db.collection<{ _id: string }>('collections');

  it('is green when nobody has to do anything', async () => {
    const green = await until(async () => {
      const seen = await overview();
      return seen.is_green && seen;
    });
    expect(green).to.deep.include({ object: 'overview', mode: 'test', needs_you: [] });
    expect(green.machinery.processes).to.equal(1);
    expect(green.machinery.redis_faults).to.deep.equal([]);
    expect(green.machinery.queues.map(({ queue }: { queue: string }) => queue)).to.include('wake');
    expect(await overview('live')).to.deep.include({ is_green: true });
  });

  it('asks which mode: test and live are never one figure', async () => {
    const answer: Answer = await test.call('GET', '/admin/overview');
    expect([answer.status, answer.json.error.param]).to.deep.equal([400, 'mode']);
  });

  it('tells how the rail did lately, with counts beside the rate', async () => {
    const { json } = await merchant.create();
    await merchant.final(json.id);
    const failed = await merchant.create({ phone: '255700000004' });
    await merchant.final(failed.json.id);
    const { rail, money } = await overview();
    expect(rail.recent.succeeded).to.deep.equal({ count: 1, is_more: false });
    expect(rail.recent.failed.count).to.equal(1);
    expect(rail.recent.success_rate).to.equal(0.5);
    expect(rail.recent.failure_codes).to.have.length(1);
    expect(rail.recent.time_to_success_ms.sample).to.equal(1);
    expect(money).to.include({ pending: 4_900, available: 0, reserved: 0, is_partial: false });
    expect((await overview('live')).money).to.include({ pending: 0 });
  });

  it('a payment under review, with its amount', async () => {
    const { json } = await merchant.create({ phone: '255700000021' });
    const review = await until(() => tile('under_review'));
    expect(review).to.include({ count: 1, amount_tzs: 5_000, is_more: false });
    expect(review!.link).to.include('state=created.underReview');
    expect(await tile('under_review', 'live')).to.equal(undefined);
    expect((await test.actor(json.id)).state).to.match(/^created\.underReview/);
  });

  it('a late payment, and its alert', async () => {
    await test.latePayment();
    expect(await tile('late_payment')).to.include({ count: 1, amount_tzs: 5_000 });
    const { alerts } = await overview();
    expect(alerts[0]).to.include({ kind: 'late_payment' });
  });

  it('documents that are set aside, and wake-ups that nobody attended to', async () => {
    const { json } = await merchant.create({ phone: '255700000004' });
    await merchant.final(json.id);
    const quarantined = { at: new Date(), why: 'planted' };
    await collections().updateOne({ _id: json.id }, { $set: { quarantined, dueAt: null } });
    expect(await tile('quarantined')).to.include({
      count: 1,
      machine: 'collection',
      link: '/admin/machines/collection/actors?mode=test&quarantined=true',
    });
    // No process can do anything about it: it has no timer that is due.
    await collections().updateOne({ _id: json.id }, { $set: { dueAt: new Date(Date.now() - 120_000) } });
    expect(await tile('wakeups_late')).to.include({ count: 1, machine: 'collection' });
    await collections().updateOne({ _id: json.id }, { $set: { dueAt: null } });
    expect(await tile('wakeups_late')).to.equal(undefined);
  });

  it('a breach of the books', async () => {
    const at = new Date();
    const breach = { kind: 'planted', mode: 'live' };
    await test.service.wired.db
      .collection<{ _id: string }>('ledger_breaches')
      .insertOne({ _id: 'planted', breach, firstSeenAt: at, lastSeenAt: at } as never);
    expect(await tile('ledger_breach', 'live')).to.include({ count: 1, oldest_at: at.toISOString() });
    expect(await tile('ledger_breach')).to.equal(undefined);
  });
});
