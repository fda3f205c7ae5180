import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const { dayMs, hourMs } = limits;
const reason = 'as agreed';

/** CONTRACT 22.14 */
describe('schedules of payouts', function () {
  this.timeout(120_000);
  const clock = clockAtNoon();
  let test: TestService;

  before(async () => {
    test = await startTestService({ PAYOUT_MERCHANT_DAY_MAX: '900000', PAYOUT_FEE: '500' }, { clock });
  });
  after(async () => {
    const { breaches } = await auditAll(test.service.wired.db, clock.now() + limits.minuteMs);
    await test.stop();
    expect(breaches, 'the books agree with all of it').to.deep.equal([]);
  });

  const earn = async (merchant: TestMerchant, amount: number) => {
    const { json } = await merchant.create({ amount });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
  };
  const set = (merchant: TestMerchant, plan: object) =>
    test.call('POST', `/admin/merchants/${merchant.id}/schedules`, {
      body: { mode: 'test', interval: 'daily', reason, ...plan },
    });
  const told = (id: string, type: string) =>
    test.call('POST', `/admin/actors/${id}/events`, { body: { type, reason } });
  const scheduleOf = async (merchant: TestMerchant) =>
    (await test.call('GET', `/admin/merchants/${merchant.id}/schedules`)).json.data[0];
  const payoutsOf = async (merchant: TestMerchant) =>
    ((await merchant.get('/v1/payouts?limit=100')).json.data as Record<string, unknown>[]).reverse();
  /** Goes on to a moment, and to the end of what is due by then. */
  const goTo = async (merchant: TestMerchant, atMs: number) => {
    if (atMs > clock.now()) clock.advance(atMs - clock.now());
    await until(async () => {
      await test.sweep();
      const { state, due_at } = await scheduleOf(merchant);
      return (
        state === 'paused' || state === 'stopped' || (state === 'awaitingDay' && Date.parse(due_at) > atMs)
      );
    });
  };
  /** Six in the morning of the next day in Dar es Salaam. */
  const nextLook = () => dateDueAtMs(eatDate(clock.now() + dayMs)) + 6 * hourMs;

  it('pay once on a day what is available, less what stays, above the smallest amount', async () => {
    const merchant = await test.merchant();
    const destination = await test.destination(merchant.id);
    const { status, json } = await set(merchant, { destination, minimum: 50_000, retain: 10_000 });
    expect(status).to.equal(200);
    expect(json).to.include({ object: 'schedule', state: 'awaitingDay', interval: 'daily', retain: 10_000 });
    expect(Date.parse(json.due_at)).to.equal(nextLook());
    await earn(merchant, 100_000);
    await goTo(merchant, nextLook());
    const [first, ...more] = await payoutsOf(merchant);
    expect(more).to.deep.equal([]);
    // 98,000 were left of the payment; 10,000 stay and 500 are the fee.
    expect(first).to.include({ amount: 87_500, fee: 500, destination, scheduled_for: eatDate(clock.now()) });
    await until(async () => (await payoutsOf(merchant))[0]!.status === 'paid');
    expect((await merchant.get('/v1/balance')).json).to.include({ available: 10_000, reserved: 0 });
    // More comes on the same day: it waits for the next one, and there it is too little.
    await earn(merchant, 40_000);
    await goTo(merchant, clock.now() + 12 * hourMs);
    await goTo(merchant, nextLook());
    expect(await payoutsOf(merchant)).to.have.length(1);
    await earn(merchant, 40_000);
    await goTo(merchant, nextLook());
    const all = await payoutsOf(merchant);
    expect(all.map(({ amount }) => amount)).to.deep.equal([87_500, 77_900]);
    expect(await scheduleOf(merchant)).to.include({ latest_payout: all[1]!.id, latest_amount: 77_900 });
  });

  it('make one payout for a day, however many processes make it at the same moment', async () => {
    const merchant = await test.merchant();
    const destinationId = await test.destination(merchant.id);
    const { json } = await set(merchant, { destination: destinationId, cap: 30_000 });
    await earn(merchant, 200_000);
    const { payouts } = test.service.wired;
    const scheduled = { date: eatDate(nextLook()), scheduleId: json.id };
    const asked = {
      merchantId: merchant.id,
      mode: 'test',
      amountTzs: 20_000,
      destinationId,
      scheduled,
    } as const;
    const made = await Promise.allSettled(
      Array.from({ length: 4 }, (_, n) =>
        payouts.create(
          { ...asked, madeBy: json.id },
          { stepId: `look.${n}`, cause: { kind: 'call', id: `look.${n}` }, writes: () => [] },
        ),
      ),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    // The schedule finds the payout that was made for its day, and makes none.
    await goTo(merchant, nextLook());
    const [payout, ...more] = await payoutsOf(merchant);
    expect(more).to.deep.equal([]);
    expect(await scheduleOf(merchant)).to.include({ latest_payout: payout!.id, latest_amount: 20_000 });
  });

  it('pause while the destination is not there, tell people once, and go on by themselves', async () => {
    const merchant = await test.merchant();
    const destination = await test.destination(merchant.id);
    const { json } = await set(merchant, { destination });
    await told(destination, 'operator.removed');
    await earn(merchant, 100_000);
    await goTo(merchant, nextLook());
    expect(await scheduleOf(merchant)).to.include({ state: 'paused', paused_by: 'destination' });
    const looks = async () =>
      (await test.history(json.id)).filter(({ event }) => event.type === 'payout.hindered').length;
    clock.advance(hourMs);
    await until(async () => {
      await test.sweep();
      return (await looks()) === 2;
    });
    const { db } = test.service.wired;
    expect(
      await db.collection('alerts').countDocuments({ about: json.id, kind: 'schedule_paused' }),
    ).to.equal(1);
    const other = await test.destination(merchant.id);
    expect((await set(merchant, { destination: other })).json).to.include({ state: 'paused' });
    expect((await told(json.id, 'operator.started')).status).to.equal(200);
    await until(async () => (await scheduleOf(merchant)).state === 'awaitingDay');
    expect(await payoutsOf(merchant)).to.have.length(1);
    expect(await scheduleOf(merchant)).to.include({ paused_by: null });
  });

  it('pause for a suspended merchant and for a limit of the day', async () => {
    const merchant = await test.merchant();
    const destination = await test.destination(merchant.id);
    await set(merchant, { destination });
    await earn(merchant, 2_000_000);
    await goTo(merchant, nextLook());
    const [payout] = await payoutsOf(merchant);
    expect(payout!.amount, 'as much as the day allows').to.equal(900_000);
    const body = { suspended: true, reason };
    await test.call('PATCH', `/admin/merchants/${merchant.id}`, { body });
    await goTo(merchant, nextLook());
    expect(await scheduleOf(merchant)).to.include({ state: 'paused', paused_by: 'suspended' });
    expect(await payoutsOf(merchant)).to.have.length(1);
  });

  it('look on weekdays, or on one day of the week', async () => {
    const merchant = await test.merchant();
    const destination = await test.destination(merchant.id);
    const dueOn = async (plan: object) => {
      const { json } = await set(merchant, { destination, ...plan });
      return new Date(Date.parse(json.due_at) + 3 * hourMs).getUTCDay();
    };
    // Well after the time of the day at which schedules look.
    clock.advance(hourMs);
    for (let days = 0; days < 7; days += 1) {
      const today = new Date(clock.now() + 3 * hourMs).getUTCDay();
      const tomorrow = (today + 1) % 7;
      expect(await dueOn({ interval: 'weekdays' })).to.equal(tomorrow % 6 === 0 ? 1 : tomorrow);
      expect(await dueOn({ interval: 'weekly', weekday: 3 })).to.equal(3);
      clock.advance(dayMs);
    }
  });

  it('are stopped and started by an operator, with a reason', async () => {
    const merchant = await test.merchant();
    const destination = await test.destination(merchant.id);
    const { json } = await set(merchant, { destination });
    await earn(merchant, 100_000);
    expect((await told(json.id, 'operator.stopped')).status).to.equal(200);
    await goTo(merchant, nextLook());
    expect(await payoutsOf(merchant)).to.deep.equal([]);
    expect(await scheduleOf(merchant)).to.include({ state: 'stopped', due_at: null });
    await told(json.id, 'operator.started');
    await goTo(merchant, nextLook());
    expect(await payoutsOf(merchant)).to.have.length(1);
    const { data } = (await test.call('GET', `/admin/audit?target=${json.id}`)).json;
    expect(data.map(({ action }: { action: string }) => action)).to.deep.equal([
      'operator.started',
      'operator.stopped',
      'schedule.set',
    ]);
  });

  it('take no plan that says nothing, and no destination of somebody else', async () => {
    const [merchant, other] = [await test.merchant(), await test.merchant()];
    const destination = await test.destination(merchant.id);
    const theirs = await test.destination(other.id);
    for (const [plan, param] of [
      [{ destination: theirs }, 'destination'],
      [{ destination, interval: 'weekly' }, 'weekday'],
      [{ destination, interval: 'daily', weekday: 2 }, 'weekday'],
    ] as const) {
      const { status, json } = await set(merchant, plan);
      expect([status, json.error.param]).to.deep.equal([400, param]);
    }
    const { json } = await set(merchant, { destination });
    const empty = await told(json.id, 'operator.planned');
    expect(empty.status).to.equal(409);
  });
});

/** While the network took a payment back that is in the books, its merchant is not paid out in live mode. */
describe('payouts of a merchant with a difference', function () {
  this.timeout(60_000);
  let test: TestService;

  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  it('are refused until somebody has looked into it', async () => {
    const merchant = await test.merchant();
    const { payouts, db } = test.service.wired;
    const open = { _id: 'dif_of_a_test', merchantId: merchant.id, mode: 'live', state: 'found' };
    await db
      .collection<typeof open & { data: { kind: string } }>('differences')
      .insertOne({ ...open, data: { kind: 'reversed_there' } });
    const asked = { merchantId: merchant.id, amountTzs: 1_000, destinationId: 'dst_none', madeBy: 'test' };
    const attendance = { stepId: 'one', cause: { kind: 'call', id: 'one' } as const, writes: () => [] };
    const create = (mode: 'live' | 'test') =>
      payouts.create({ ...asked, mode }, attendance).then(
        () => 'made',
        (error: Error) => error.message,
      );
    expect(await create('live')).to.include('took a payment back');
    expect(await create('test'), 'test mode has no differences').to.equal('is none of yours in this mode.');
    await db.collection('differences').deleteMany({});
    expect(await create('live')).to.equal('is none of yours in this mode.');
  });
});
