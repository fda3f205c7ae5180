import { setTimeout as wait } from 'node:timers/promises';
import { SystemClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/**
 * A machine that is suspended stops its monotonic clock, and the wall clock runs on: by the time that went by for the
 * process a push is in time, for everybody else it is not.
 */
describe('a machine that slept', function () {
  this.timeout(120_000);
  const windowMs = 8_000;
  const real = performance.now.bind(performance);
  let test: TestService;
  let clock: SystemClock;

  before(async () => {
    clock = new SystemClock();
    test = await startTestService({}, { clock, pushWindowMs: windowMs });
  });

  afterEach(() => {
    performance.now = real;
  });

  after(() => test.stop());

  /** The monotonic clock stands still for so long. */
  async function sleep(ms: number): Promise<void> {
    const stoodAt = real();
    performance.now = () => stoodAt;
    await wait(ms);
    const sleptMs = real() - stoodAt;
    performance.now = () => real() - sleptMs;
  }

  /** A payment whose push is held up just before the rail, until it is let go. */
  async function heldUp(): Promise<{ id: string; letGo: () => void }> {
    const { test: rail } = test.service.wired.rails;
    const push = rail.requestPayment.bind(rail);
    let letGo = () => {};
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let isThere = false;
    rail.requestPayment = async (...request) => {
      isThere = true;
      await gate;
      return push(...request);
    };
    const merchant = await test.merchant();
    const { status, json } = await merchant.create({});
    expect(status, JSON.stringify(json)).to.equal(202);
    expect(await until(async () => isThere), 'the push is about to be made').to.equal(true);
    rail.requestPayment = push;
    return { id: json.id, letGo };
  }

  it('makes no push after its time', async () => {
    const { id, letGo } = await heldUp();
    await sleep(windowMs + 1_000);
    letGo();
    await until(async () => !(await test.actor(id)).state.startsWith('created.pushing'));
    const { state, context } = await test.actor(id);
    expect([state.split('.')[0], context.failureCode]).to.deep.equal(['failed', 'provider_unavailable']);
    expect(context.pushedAt, 'never pushed').to.equal(null);
    expect(Math.abs(clock.now() - Date.now()), 'and has the time again').to.be.below(2_000);
  });

  it('makes one that is still in time', async () => {
    const { id, letGo } = await heldUp();
    await sleep(1_000);
    letGo();
    await until(async () => !(await test.actor(id)).state.startsWith('created.pushing'));
    expect((await test.actor(id)).context.pushedAt).to.be.a('number');
  });

  it('makes no push while nobody tells it the time', async () => {
    const { id, letGo } = await heldUp();
    const measure = clock.measured;
    await sleep(windowMs + 1_000);
    clock.measured = async () => {
      throw new Error('MongoDB does not answer');
    };
    letGo();
    await until(async () => (await pushClaims(id)) === 1);
    await wait(500);
    clock.measured = measure;
    expect((await test.actor(id)).context.pushedAt, 'nothing is known of a push').to.equal(null);
  });

  const pushClaims = (id: string) =>
    test.service.wired.db
      .collection<{ _id: string }>('collections')
      .countDocuments({ _id: id, 'calls.startedAt': { $exists: true } });
});
