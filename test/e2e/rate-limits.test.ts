import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { type Answer, startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** CONTRACT 15.1. Five at once, then one a second. */
describe('rate limits', () => {
  const env = { RATE_LIMIT_PER_SECOND: '1', RATE_LIMIT_BURST: '5' };
  let test: TestService;

  before(async () => {
    test = await startTestService(env);
  });

  after(() => test.stop());

  const limitsOf = ({ headers }: Answer) =>
    ['limit', 'remaining', 'reset'].map((name) => headers.get(`ratelimit-${name}`));
  const whoami = (token: string, at = test) => at.call('GET', '/v1/whoami', { token });
  /** Of as many requests at once, how many get through. */
  const allowed = async (count: number, ask: () => Promise<Answer>) => {
    const answers = await Promise.all(Array.from({ length: count }, ask));
    const others = answers.filter(({ status }) => status !== 429);
    for (const { json } of others) expect(json.error?.code).to.not.equal('rate_limited');
    return others.length;
  };
  /** Uses up what a merchant may do at once. */
  const exhaust = (merchant: TestMerchant) => allowed(20, () => whoami(merchant.key));

  /**
   * Redis gets 20 ms to answer; on a busy machine it sometimes takes longer, and for a second the process counts
   * by itself. What is promised of the common count has to show in one of a few rounds, each with a merchant of
   * its own: were the promise broken, it would show in none.
   */
  const inSomeRound = async (check: (merchant: TestMerchant) => Promise<void>) => {
    for (let round = 1; ; round += 1) {
      const merchant = await test.merchant();
      try {
        await check(merchant);
        return;
      } catch (error) {
        if (round === 5) throw error;
        await wait(1_100);
      }
    }
  };

  it('every authenticated answer says how many there are, how many are left, and when all are back', async () => {
    const merchant = await test.merchant();
    expect(limitsOf(await whoami(merchant.key))).to.deep.equal(['5', '4', '1']);
    const unknown = await merchant.get('/v1/collections/col_0');
    expect(unknown.status).to.equal(404);
    expect(limitsOf(unknown)[0]).to.equal('5');
    const refused = await merchant.create({ amount: 1 });
    expect(refused.status).to.equal(400);
    expect(limitsOf(refused)).to.not.include(null);
  });

  it('a suspended merchant’s requests are counted too, and the 403 says so', async () => {
    const merchant = await test.merchant();
    const body = { suspended: true, reason: 'chargebacks' };
    expect((await test.call('PATCH', `/admin/merchants/${merchant.id}`, { body })).status).to.equal(200);
    const refused = await merchant.create();
    expect(refused.json.error.code).to.equal('merchant_suspended');
    expect(limitsOf(refused)).to.deep.equal(['5', '4', '1']);
    expect(await exhaust(merchant)).to.be.below(20);
  });

  it('an answer to nobody in particular says nothing of limits', async () => {
    for (const path of ['/v1/whoami', '/v1/nothing', '/v1/openapi.json']) {
      expect(limitsOf(await test.call('GET', path)), path).to.deep.equal([null, null, null]);
    }
  });

  it('beyond what may come at once it is 429 rate_limited, with the seconds to wait', async () => {
    const merchant = await test.merchant();
    const answers = await Promise.all(Array.from({ length: 20 }, () => whoami(merchant.key)));
    const limited = answers.find(({ status }) => status === 429)!;
    const { type, code } = limited.json.error;
    expect([type, code]).to.deep.equal(['rate_limit_error', 'rate_limited']);
    expect(limited.headers.get('ratelimit-remaining')).to.equal('0');
    expect(limited.headers.get('retry-after')).to.equal('1');
    await wait(1_100);
    expect((await whoami(merchant.key)).status).to.equal(200);
  });

  it('parallel requests are counted one by one', () =>
    inSomeRound(async (merchant) => {
      // Five, and what the second or two that they take brings back.
      expect(await allowed(30, () => whoami(merchant.key))).to.be.within(5, 7);
    }));

  it('a limited request creates nothing, and its key can be used afterwards', async () => {
    const merchant = await test.merchant();
    const keys = Array.from({ length: 15 }, (_, n) => `limited-${n}`);
    const answers = await Promise.all(keys.map((key) => merchant.create({}, key)));
    const limited = keys.filter((_, n) => answers[n]!.status === 429);
    expect(limited).to.not.be.empty;
    await wait(2_200);
    const made = answers.filter(({ status }) => status === 202).map(({ json }) => json.id);
    const { json: list } = await merchant.get('/v1/collections');
    expect(list.data.map(({ id }: { id: string }) => id)).to.have.members(made);
    const again = await merchant.create({}, limited[0]);
    expect([again.status, again.headers.has('idempotent-replayed')]).to.deep.equal([202, false]);
  });

  it('one merchant’s flood is nobody else’s, nor the other mode’s', async () => {
    const [merchant, other] = await Promise.all([test.merchant(), test.merchant()]);
    const { secret: live } = await test.issueKey(merchant.id, 'live');
    await exhaust(merchant);
    expect(limitsOf(await whoami(other.key))[1]).to.equal('4');
    expect(limitsOf(await whoami(live))[1]).to.equal('4');
  });

  it('all keys of a merchant share one limit: a second key is no second helping', () =>
    inSomeRound(async (merchant) => {
      const { secret } = await test.issueKey(merchant.id, 'test');
      await exhaust(merchant);
      expect(await allowed(10, () => whoami(secret))).to.be.below(3);
    }));

  it('two processes share one limit', async () => {
    const twin = await startTestService(env, { database: test.config.mongodbDatabase });
    try {
      await inSomeRound(async (merchant) => {
        await exhaust(merchant);
        expect(await allowed(10, () => whoami(merchant.key, twin))).to.be.below(3);
      });
    } finally {
      await twin.stop();
    }
  });

  it('a merchant’s own rate goes first, and 0 switches the limit off', async () => {
    const fast = await test.merchant({ rate_limit_per_second: 50 });
    expect(limitsOf(await whoami(fast.key))[0]).to.equal('100');
    const free = await test.merchant({ rate_limit_per_second: 0 });
    expect(await exhaust(free)).to.equal(20);
    expect(limitsOf(await whoami(free.key))).to.deep.equal([null, null, null]);
  });

  it('are checked after the key and before the body', () =>
    inSomeRound(async (merchant) => {
      await exhaust(merchant);
      expect(await allowed(10, () => merchant.create({}, 'x', '{'))).to.be.below(3);
      expect((await whoami(`${merchant.key}x`)).status).to.equal(401);
    }));
});
