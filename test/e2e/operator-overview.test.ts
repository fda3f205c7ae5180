import { type Queues, quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Int32, Long } from 'mongodb';
import { crowdedStates } from '../../src/collections/collections.ts';
import { newId } from '../../src/ids.ts';
import { redisFaults } from '../../src/operators/needs.ts';
import { placeOf } from '../../src/standing.ts';
import { clockAtNoon } from '../support/noon.ts';
import type { Answer, TestMerchant, TestService } from '../support/service.ts';
import { startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 20.5: what needs a person comes first, each tile with the list behind it. */
describe('operators’ overview', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock: clockAtNoon() });
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
    const { id } = await test.underReview(merchant);
    const review = await tile('under_review');
    expect(review).to.include({ count: 1, amount_tzs: 5_000, is_more: false });
    expect(review!.link).to.include('state=created.underReview');
    expect(await tile('under_review', 'live')).to.equal(undefined);
    expect((await test.actor(id)).state).to.match(/^created\.underReview/);
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
    // Its watch may be about to end: that step must not come after this.
    await collections().updateOne(
      { _id: json.id },
      { $set: quarantinedAt(new Date(), 'planted'), $inc: { seq: 1 } },
    );
    expect(await tile('quarantined')).to.include({
      count: 1,
      machine: 'collection',
      link: '/admin/machines/collection/actors?mode=test&quarantined=true',
    });
    // No process can do anything about it: it has no timer that is due.
    await collections().updateOne(
      { _id: json.id },
      {
        $set: { part: 0, dueAt: new Date(test.service.wired.clock.now() - 120_000) },
      },
    );
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

describe('each tile of the overview', () => {
  let test: TestService;
  const hourMs = 3_600_000;

  before(async () => {
    // Nobody works here: what is planted stays.
    test = await startTestService({ ROLE: 'api' });
  });

  after(() => test.stop());

  /** An actor as it might stand there; what its list shows is all that it needs. */
  const actor = (state: string, more: { context?: object; data?: object; dueAt?: Date } = {}) => {
    const at = Date.now() - 2 * hourMs;
    const { context, data, dueAt = null } = more;
    return {
      ...{
        state,
        status: state.split('.', 1)[0],
        place: placeOf(crowdedStates, state),
        merchantId: newId('mer', at),
        mode: 'test',
      },
      ...{ machineVersion: 1, seq: 1, timers: [], calls: [], updatedAt: new Date(at), dueAt },
      snapshot: { value: {}, context: { createdAt: at, failingSince: at, disabledAt: at, ...context } },
      data: { amountTzs: 5_000, feeTzs: 100, currency: 'TZS', createdAt: new Date(at), ...data },
    };
  };
  const payment = (state: string) => {
    const data = { msisdn: '255700000077', reference: 'planted' };
    return { _id: newId('col', Date.now() - 2 * hourMs), ...actor(state, { data }) };
  };
  const endpoint = (state: string) => ({ _id: newId('we', Date.now()), ...actor(state) });
  const delivery = (state: string) => {
    const data = { endpointId: newId('we', 1), eventId: newId('evt', 1), type: 'collection.succeeded' };
    return {
      _id: newId('dlv', Date.now() - 2 * hourMs),
      ...actor(state, { data, context: { tries: 7, reason: null } }),
    };
  };
  const settlement = (state: string, daysAgo: number) => {
    const date = new Date(Date.now() + 3 * hourMs - daysAgo * 24 * hourMs).toISOString().slice(0, 10);
    const context = { dueAtMs: Date.parse(date), settledTzs: 0, parts: {}, settledAt: null };
    const of = actor(state, { data: { date, currency: 'TZS' }, context });
    return { _id: `stl.test.${of.merchantId}.${date}`, ...of };
  };
  const proposal = (more: object) => ({
    ...{ _id: newId('col', Date.now()), mode: 'test', merchantId: newId('mer', Date.now()) },
    ...{ amountTzs: Long.fromNumber(5_000_000), event: { type: 'operator.reversed' } },
    ...{ by: 'Neema', at: new Date(Date.now() - 1_000), reason: 'as the portal says', requestId: 'r' },
    ...more,
  });
  /** Money that waits for this settlement. */
  const pending = ({ merchantId, data }: ReturnType<typeof settlement>) => ({
    ...{ _id: `test:TZS:${merchantId}:1`, mode: 'test', currency: 'TZS', merchantId, stripe: new Int32(1) },
    pending: { [(data as { date?: string }).date!]: Long.fromNumber(4_900) },
  });

  it('is there for its kind of trouble alone, and opens the list of just that', async () => {
    const overdue = settlement('due', 1);
    const planted: Record<string, [number, string, object[]]> = {
      under_review: [
        2,
        'collections',
        [payment('created.underReview.polling'), payment('created.underReview.resting')],
      ],
      past_deadline: [1, 'collections', [payment('created.awaitingApproval.waiting')]],
      late_payment: [
        2,
        'collections',
        [payment('failed.latePaid.held'), payment('expired.latePaid.returning')],
      ],
      nothing: [0, 'collections', [payment('succeeded.standing'), payment('expired.latePaid.returned')]],
      settlement_held: [1, 'settlements', [settlement('held', 0)]],
      settlement_overdue: [1, 'settlements', [overdue]],
      // Not due yet: nothing to say about it.
      nothing_either: [0, 'settlements', [settlement('due', -1)]],
      money: [0, 'balances', [pending(overdue)]],
      endpoint_failing: [
        2,
        'endpoints',
        [endpoint('failing.warned'), endpoint('lastTry'), endpoint('failing.fresh')],
      ],
      endpoint_disabled: [
        1,
        'endpoints',
        [endpoint('disabled.automatic.probing'), endpoint('disabled.operator')],
      ],
      delivery_exhausted: [1, 'deliveries', [delivery('failed'), delivery('delivered')]],
      quarantined: [
        1,
        'replays',
        [{ _id: newId('rpl', 1), ...actor('running.paging'), ...quarantinedAt(new Date(), 'x') }],
      ],
      wakeups_late: [
        1,
        'replays',
        [{ _id: newId('rpl', 2), ...actor('running.pausing', { dueAt: new Date(Date.now() - hourMs) }) }],
      ],
      second_person: [
        1,
        'proposals',
        [proposal({}), proposal({ agreedBy: 'Juma', agreedAt: new Date() }), proposal({ at: new Date(0) })],
      ],
      schedule_paused: [
        1,
        'schedules',
        [
          { _id: 'sch_1', ...actor('paused') },
          { _id: 'sch_2', ...actor('awaitingDay') },
        ],
      ],
      rail_down: [1, 'breakers', [{ _id: 'brk.X.push', ...actor('open.waiting') }]],
      no_worker: [1, 'leases', []],
    };
    const { db } = test.service.wired;
    for (const [, into, docs] of Object.values(planted))
      if (docs.length > 0) await db.collection(into).insertMany(docs as never[]);
    const { needs_you: tiles } = (await test.call('GET', '/admin/overview?mode=test')).json;
    const wanted = Object.entries(planted).filter(([, [count]]) => count > 0);
    const counts = tiles.map(({ kind, count }: { kind: string; count: number }) => [kind, count]);
    expect(counts).to.have.deep.members(wanted.map(([kind, [count]]) => [kind, count]));
    for (const { kind, count, link, oldest_at: oldest } of tiles) {
      const { status, json } = await test.call('GET', link);
      expect(status, link).to.equal(200);
      // The rails and the overview itself are no lists.
      if (kind === 'no_worker' || kind === 'rail_down') continue;
      expect(json.data, link).to.have.length(count);
      if (kind !== 'settlement_overdue') expect(Date.parse(oldest), kind).to.be.below(Date.now());
    }
    expect((await test.call('GET', '/admin/overview?mode=live')).json.needs_you).to.have.length(1);
  });

  it('of Redis tells of one that throws keys out or forgets them', async () => {
    const redis = (ready: boolean, text: string) =>
      ({ ready, redis: { info: async () => text } }) as unknown as Queues;
    const sound = 'maxmemory_policy:noeviction\r\naof_enabled:1\r\n';
    expect(await redisFaults(redis(true, sound))).to.deep.equal([]);
    expect(await redisFaults(redis(false, sound))).to.deep.equal(['redis_down']);
    const unsound = 'maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n';
    expect(await redisFaults(redis(true, unsound))).to.deep.equal(['redis_evicts', 'redis_forgets']);
  });
});
