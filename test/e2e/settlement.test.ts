import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { clockAtNoon, untilNoonMs } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 14.2: pending funds become available at T+1 by default, at 00:00 EAT (21:00 UTC). */
describe('settlement', () => {
  const { dayMs, hourMs, minuteMs, secondMs, eatOffsetMs } = limits;
  const net = 4_900;
  /** It runs on, but only tests move it over midnight. */
  const clock = clockAtNoon();
  let test: TestService;

  before(async () => {
    // The sweeper hardly comes by itself here: each test says which way the settlement is to happen.
    test = await startTestService({}, { clock, sweepIntervalMs: 10 * limits.minuteMs });
  });

  // Noon in Dar es Salaam, so that nothing depends on when the tests run.
  beforeEach(() => clock.advance(untilNoonMs(clock.now())));

  after(() => test.stop());

  const nextMidnight = () => Math.ceil((clock.now() + eatOffsetMs) / dayMs) * dayMs - eatOffsetMs;
  const moveTo = (ms: number) => clock.advance(ms - clock.now());
  const balanceOf = async (merchant: TestMerchant) => {
    const { pending, available, reserved } = (await merchant.get('/v1/balance')).json;
    return { pending, available, reserved };
  };
  /** A merchant with so many payments that succeeded today. */
  const paid = async (settings = {}, payments = 1) => {
    const merchant = await test.merchant(settings);
    const made = await Promise.all(Array.from({ length: payments }, () => merchant.create()));
    for (const { json } of made) expect((await merchant.final(json.id)).status).to.equal('succeeded');
    return merchant;
  };
  const run = async (body: object = {}) => {
    const sent = { reason: 'now', ...body };
    const { status, json, text } = await test.call('POST', '/admin/settlements/run', { body: sent });
    expect(status, text).to.equal(200);
    return json;
  };
  const settlementOf = (merchant: TestMerchant, dueAtMs: number) =>
    `stl.test.${merchant.id}.${new Date(dueAtMs + eatOffsetMs).toISOString().slice(0, 10)}`;
  /** Who or what moved the money: the causes of a settlement's `settlement.due` steps. */
  const causes = async (merchant: TestMerchant, dueAtMs: number) =>
    (await test.history(settlementOf(merchant, dueAtMs)))
      .filter(({ event }) => event.type === 'settlement.due')
      .map(({ cause }) => `${cause.kind} ${cause.id}`);
  const entriesOf = (merchant: TestMerchant, type: RegExp) =>
    test.service.wired.db.collection('journal_entries').countDocuments({ merchantId: merchant.id, type });

  it('has nothing to settle on a delay of 0 days: available at once, told with its date, and no settlement', async () => {
    const merchant = await paid({ settlement_delay_days: 0 });
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
    expect((await merchant.get('/v1/settlements')).json.data).to.deep.equal([]);
    const [told] = (await merchant.get('/v1/balance_transactions')).json.data;
    const today = new Date(clock.now() + eatOffsetMs).toISOString().slice(0, 10);
    expect(told).to.include({ type: 'collection', settlement_date: today, net });
  });

  it('leaves money pending until midnight in Dar es Salaam, and makes it available then', async () => {
    const merchant = await paid({}, 3);
    const midnight = nextMidnight();
    expect(new Date(midnight).getUTCHours()).to.equal(21);
    moveTo(midnight - minuteMs);
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 3 * net, available: 0, reserved: 0 });
    moveTo(midnight);
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 3 * net, reserved: 0 });
  });

  it('happens by the settlement’s own timer at midnight', async () => {
    const merchant = await paid();
    const midnight = nextMidnight();
    await run();
    const settlement = await test.actor(settlementOf(merchant, midnight));
    expect(settlement.state).to.equal('due');
    expect(settlement.timers.map(({ due_at }: { due_at: string }) => due_at)).to.deep.equal([
      new Date(midnight).toISOString(),
    ]);
    // A round of the sweeper sees the timer come near; from then on it waits in the queue, in real time.
    moveTo(midnight - 5 * secondMs);
    await test.sweep();
    await until(async () => (await balanceOf(merchant)).available > 0);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
    expect(await causes(merchant, midnight)).to.deep.equal([`timer ${settlement.id}`]);
    const settled = await test.actor(settlement.id);
    expect(settled.state).to.equal('settled');
    expect(settled.context.settledAt).to.be.at.least(midnight);
  });

  it('happens by the sweep where nobody woke up at midnight', async () => {
    const merchant = await paid();
    const midnight = nextMidnight();
    moveTo(midnight + 7 * hourMs);
    await test.sweep();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
    expect(await causes(merchant, midnight)).to.deep.equal(['timer sweep']);
  });

  it('happens by an operator’s run, which says what it did', async () => {
    const merchant = await paid({}, 2);
    const midnight = nextMidnight();
    // The settlement is made now: one that is made after midnight may settle by its own timer at once.
    await run();
    moveTo(midnight + minuteMs);
    const early = await run({ as_of: new Date(midnight - 1).toISOString() });
    expect(early).to.include({ settled: 0, amount: 0 });
    const report = await run({ reason: 'the night shift asked' });
    expect(report).to.include({ object: 'settlement_run', settled: 1, amount: 2 * net });
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 2 * net, reserved: 0 });
    expect(await causes(merchant, midnight)).to.deep.equal(['operator admin']);
  });

  it('happens once, whoever comes and how often: the timer, the sweep and the operator together', async () => {
    const merchants = await Promise.all([paid(), paid({}, 2), paid()]);
    const midnight = nextMidnight();
    moveTo(midnight + 2 * minuteMs);
    const runs = Array.from({ length: 5 }, () => run());
    const reports = await Promise.all([...runs, test.sweep().then(() => undefined)]);
    clock.advance(2 * minuteMs);
    await Promise.all([test.sweep(), run()]);
    expect(await run()).to.include({ made: 0, settled: 0, amount: 0 });
    const moved = reports.reduce((sum, report) => sum + (report?.amount ?? 0), 0);
    expect(moved).to.be.at.most(4 * net);
    for (const [merchant, payments] of [
      [merchants[0], 1],
      [merchants[1], 2],
      [merchants[2], 1],
    ] as const) {
      expect(await balanceOf(merchant!)).to.deep.equal({
        pending: 0,
        available: payments * net,
        reserved: 0,
      });
      // However many collections: one entry for a merchant's day.
      expect(await entriesOf(merchant!, /settle/)).to.equal(1);
    }
  });

  it('settles each day’s money on its own day', async () => {
    const merchant = await paid();
    clock.advance(dayMs);
    const { json } = await merchant.create();
    await merchant.final(json.id);
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: net, reserved: 0 });
    clock.advance(dayMs);
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 2 * net, reserved: 0 });
  });

  it('counts days as they are in Dar es Salaam: before midnight is not after it', async () => {
    const midnight = nextMidnight();
    moveTo(midnight - hourMs / 2);
    const late = await paid();
    moveTo(midnight + hourMs / 2);
    const early = await paid();
    await run();
    expect((await balanceOf(late)).available).to.equal(net);
    expect(await balanceOf(early)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    // Still the same day in Dar es Salaam, though the next one in UTC.
    moveTo(midnight + 5 * hourMs);
    await run();
    expect(await balanceOf(early)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    moveTo(midnight + dayMs);
    await run();
    expect(await balanceOf(early)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
  });

  it('takes as many days as were agreed with the merchant', async () => {
    const merchant = await paid({ settlement_delay_days: 3 });
    for (const available of [0, 0, net]) {
      moveTo(nextMidnight());
      await run();
      expect((await balanceOf(merchant)).available).to.equal(available);
      clock.advance(hourMs);
    }
  });

  it('a change of the days does not move money that is already under way', async () => {
    const merchant = await paid();
    await test.call('PATCH', `/admin/merchants/${merchant.id}`, {
      body: { settlement_delay_days: 9, reason: 'risk' },
    });
    moveTo(nextMidnight());
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
    const { json } = await merchant.create();
    await merchant.final(json.id);
    clock.advance(hourMs);
    moveTo(nextMidnight());
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: net, reserved: 0 });
  });

  it('on T+0 money is available at once, and there is nothing to settle', async () => {
    const merchant = await paid({ settlement_delay_days: 0 }, 2);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 2 * net, reserved: 0 });
    moveTo(nextMidnight() + dayMs);
    await run();
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: 2 * net, reserved: 0 });
    expect(await entriesOf(merchant, /settle/)).to.equal(0);
  });

  it('is held by an operator, and goes on when released', async () => {
    const merchant = await paid();
    const midnight = nextMidnight();
    moveTo(midnight - hourMs);
    await run();
    const id = settlementOf(merchant, midnight);
    const command = (type: string) =>
      test.call('POST', `/admin/actors/${id}/events`, { body: { type, reason: 'an investigation' } });
    expect((await command('operator.held')).json.to).to.equal('held');
    moveTo(midnight + minuteMs);
    expect((await run()).settled).to.equal(0);
    expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    expect((await command('operator.released')).json.to).to.equal('due');
    await until(async () => {
      await run();
      return (await balanceOf(merchant)).available === net;
    });
    expect(await balanceOf(merchant)).to.deep.equal({ pending: 0, available: net, reserved: 0 });
  });
});
