import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { BankFiles } from '../../src/payouts/payouts.ts';
import { testPayoutNumbers } from '../../src/rails/rails.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 22, as operators see it: destinations, payouts over a rail and by hand, and what people decide about them. */
describe('payouts', function () {
  this.timeout(120_000);
  const clock = new MovableClock();
  let test: TestService;
  const tokens: Record<string, string> = {};
  const reason = 'for a test';

  before(async () => {
    test = await startTestService(
      { PAYOUT_APPROVAL_FROM: '500000', PAYOUT_FEE: '500', DECIDE_ALONE_MAX: '300000' },
      { clock },
    );
    for (const name of ['Neema', 'Juma']) {
      const body = { name, role: 'operator', reason };
      tokens[name] = (await test.call('POST', '/admin/operators', { body })).json.token;
    }
  });
  after(async () => {
    const { breaches } = await auditAll(test.service.wired.db, clock.now() + limits.minuteMs);
    await test.stop();
    expect(breaches, 'the books agree with all of it').to.deep.equal([]);
  });

  const ask = async (by: string, method: string, path: string, body: object = {}) =>
    test.call(method, path, { token: tokens[by]!, body: { reason, ...body } });
  const tell = (by: string, id: string, told: object) => ask(by, 'POST', `/admin/actors/${id}/events`, told);

  /** A merchant with this much available, net of the fee of collecting it. */
  const funded = async (amount = 1_000_000): Promise<TestMerchant> => {
    const merchant = await test.merchant();
    const { json } = await merchant.create({ amount });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
    return merchant;
  };
  const enter = async (merchant: TestMerchant, changes: object = {}, by = 'Neema') =>
    ask(by, 'POST', `/admin/merchants/${merchant.id}/destinations`, {
      ...{ mode: 'test', kind: 'wallet', name: 'Acme Ltd', number: '0712345678' },
      ...changes,
    });
  const usable = async (merchant: TestMerchant, changes: object = {}): Promise<string> => {
    const { json } = await enter(merchant, changes);
    expect((await tell('Juma', json.id, { type: 'operator.confirmed' })).status).to.equal(200);
    return json.id;
  };
  const pay = (merchant: TestMerchant, destination: string, amount = 100_000, by = 'Neema') =>
    ask(by, 'POST', `/admin/merchants/${merchant.id}/payouts`, { mode: 'test', amount, destination });
  const balance = async (merchant: TestMerchant) => {
    const { pending, available, reserved } = (await merchant.get('/v1/balance')).json;
    return { pending, available, reserved };
  };
  const reached = (id: string, state: RegExp) =>
    until(async () => state.test((await test.actor(id)).state), 20_000);

  it('hold the amount and the fee at once, and pay them out of that', async () => {
    const merchant = await funded();
    const made = await pay(merchant, await usable(merchant));
    expect(made.status, made.text).to.equal(202);
    const { id } = made.json;
    await reached(id, /^paid/);
    expect(await balance(merchant)).to.deep.equal({ pending: 0, available: 879_500, reserved: 0 });
    const { data } = (await merchant.get('/v1/balance_transactions?limit=2')).json;
    expect(data.map(({ type, net }: { type: string; net: number }) => [type, net])).to.deep.equal([
      ['payout', -100_500],
      ['payout_held', 0],
    ]);
  });

  const ends: readonly [keyof typeof testPayoutNumbers, RegExp, string | undefined, number][] = [
    ['refused', /^failed/, 'recipient_not_found', 980_000],
    ['walletEmpty', /^failed/, 'float_insufficient', 980_000],
    ['unknown', /^created\.underReview/, undefined, 879_500],
    ['unclear', /^paid/, undefined, 879_500],
    ['returned', /^returned/, undefined, 979_500],
  ];
  for (const [name, state, failureCode, available] of ends) {
    it(`to the test number for ${name} end as documented`, async () => {
      const merchant = await funded();
      const destination = await usable(merchant, { number: testPayoutNumbers[name] });
      const { json } = await pay(merchant, destination);
      await reached(json.id, state);
      const [row] = (await test.call('GET', `/admin/payouts?merchant=${merchant.id}`)).json.data;
      expect(row.failure_code).to.equal(failureCode ?? null);
      expect((await balance(merchant)).available).to.equal(available);
    });
  }

  it('go nowhere that nobody confirmed, that was removed, or that is another merchant’s', async () => {
    const [merchant, other] = [await funded(), await funded()];
    const { json: entered } = await enter(merchant);
    const refused = await pay(merchant, entered.id);
    expect([refused.status, refused.json.error.param]).to.deep.equal([400, 'destination']);
    await tell('Juma', entered.id, { type: 'operator.confirmed' });
    expect((await pay(other, entered.id)).status).to.equal(400);
    await tell('Juma', entered.id, { type: 'operator.removed' });
    expect((await pay(merchant, entered.id)).status).to.equal(400);
    expect((await balance(merchant)).reserved).to.equal(0);
  });

  it('are refused without enough money, beyond a limit, or beyond the float', async () => {
    const merchant = await funded(200_000);
    const destination = await usable(merchant);
    const poor = await pay(merchant, destination, 196_000);
    expect([poor.status, poor.json.error.code]).to.deep.equal([409, 'balance_insufficient']);
    expect((await pay(merchant, destination, 999)).json.error.code).to.equal('amount_too_small');
    expect((await pay(merchant, destination, 10_000_001)).json.error.code).to.equal('amount_too_large');
    expect(await balance(merchant)).to.deep.equal({ pending: 0, available: 196_000, reserved: 0 });
  });

  it('from an amount on wait for somebody who did not ask for them', async () => {
    const merchant = await funded();
    const { json } = await pay(merchant, await usable(merchant), 500_000);
    expect((await test.actor(json.id)).state).to.equal('created.awaitingApproval');
    expect((await tell('Neema', json.id, { type: 'operator.approved' })).status).to.equal(409);
    expect((await tell('Juma', json.id, { type: 'operator.approved' })).status).to.equal(200);
    await reached(json.id, /^paid/);
  });

  it('that nobody approves for three days are cancelled, and their money is free again', async () => {
    const merchant = await funded();
    const { json } = await pay(merchant, await usable(merchant), 600_000);
    expect((await balance(merchant)).reserved).to.equal(600_500);
    clock.advance(72 * limits.hourMs + limits.minuteMs);
    await test.sweep();
    await reached(json.id, /^cancelled/);
    expect(await balance(merchant)).to.deep.equal({ pending: 0, available: 980_000, reserved: 0 });
  });

  describe('by hand', () => {
    const bank = {
      kind: 'bank_account',
      name: 'Acme Ltd',
      number: '0150123456789',
      bank: 'CRDB',
      rail: 'manual',
    };

    it('are written into one file, and into no other', async () => {
      const merchant = await funded();
      const destination = await usable(merchant, bank);
      const ids = [];
      for (const amount of [10_000, 20_000]) ids.push((await pay(merchant, destination, amount)).json.id);
      const [one, two] = await Promise.all(
        ['Neema', 'Juma'].map((by) => ask(by, 'POST', '/admin/payout-files', { mode: 'test' })),
      );
      const files = [one!, two!].filter(({ status }) => status === 201);
      const lines: string[] = [];
      for (const { json } of files) {
        const file = await test.call('GET', `/admin/payout-files/${json.id}/file.csv`);
        lines.push(...file.text.trim().split('\r\n').slice(1));
      }
      expect(lines.map((line) => line.split(',')[0]).sort()).to.deep.equal(ids.sort());
      const wanted = `${ids[0]},10000,TZS,bank_account,CRDB,0150123456789,Acme Ltd,${merchant.id}`;
      expect(lines).to.include(wanted);
      const again = await ask('Neema', 'POST', '/admin/payout-files', { mode: 'test' });
      expect(again.status).to.equal(409);
    });

    it('are read from a file that is closed only, and nothing joins it after that', async () => {
      const merchant = await funded();
      const destination = await usable(merchant, bank);
      const ids: string[] = [];
      for (const amount of [10_000, 20_000]) ids.push((await pay(merchant, destination, amount)).json.id);
      const { db, actors } = test.service.wired;
      const files = new BankFiles({ db, actors, clock, isWithheld: async () => false });
      const [paused, resume] = gate();
      const [reached, reach] = gate();
      /** As the route does, by a process that stands still before its last payout. */
      const making = files.make('test', 'Neema', async ({ _id: id }, { type, file }, writes) => {
        if (id === ids[1]) {
          reach();
          await paused;
        }
        const event = { type, file, by: 'Neema', reason: 'for a test', at: clock.now() };
        const by = { stepId: `${id}.${file}`, cause: { kind: 'operator', id: 'Neema' } } as const;
        return actors.send({ machine: 'payout', id }, event, { ...by, writes });
      });
      await reached;
      const listed = async () => (await test.call('GET', '/admin/payout-files?mode=test')).json.data;
      const [left] = await listed();
      const read = (id: string) => test.call('GET', `/admin/payout-files/${id}/file.csv`);
      expect(left).to.include({ is_open: true });
      expect((await read(left.id)).status, 'still being written').to.equal(409);
      expect((await ask('Juma', 'POST', `/admin/payout-files/${left.id}/sent`)).status).to.equal(409);
      // After a minute the next file closes it, and has what is left.
      clock.advance(2 * limits.minuteMs);
      const { status, json: next } = await ask('Juma', 'POST', '/admin/payout-files', { mode: 'test' });
      expect(status).to.equal(201);
      const before = await read(left.id);
      resume();
      await making;
      const after = await read(left.id);
      expect([before.status, after.text]).to.deep.equal([200, before.text]);
      const namedIn = ({ text }: { text: string }) =>
        text
          .trim()
          .split('\r\n')
          .slice(1)
          .map((line) => line.split(',')[0]);
      expect([namedIn(after), namedIn(await read(next.id))]).to.deep.equal([[ids[0]], [ids[1]]]);
    });

    /** A payout in a file that the bank has. */
    const sent = async (merchant: TestMerchant, amount: number): Promise<string> => {
      const { json } = await pay(merchant, await usable(merchant, bank), amount);
      const { json: file } = await ask('Neema', 'POST', '/admin/payout-files', { mode: 'test' });
      expect((await ask('Neema', 'POST', `/admin/payout-files/${file.id}/sent`)).status).to.equal(200);
      expect((await test.actor(json.id)).state).to.equal('created.awaitingBank');
      return json.id;
    };

    it('are paid from the bank when somebody confirms it, above an amount two', async () => {
      const merchant = await funded();
      const id = await sent(merchant, 400_000);
      const verdict = { type: 'operator.resolved', outcome: 'paid', receipt: 'FT-77' };
      expect((await tell('Neema', id, verdict)).status).to.equal(202);
      expect((await test.actor(id)).state).to.equal('created.awaitingBank');
      expect((await tell('Juma', id, verdict)).status).to.equal(200);
      expect((await test.actor(id)).state).to.match(/^paid/);
      const { data } = (await test.call('GET', `/admin/ledger/entries?mode=test&source=${id}`)).json;
      const accounts = data[0].lines.map(({ account }: { account: string }) => account.split(':')[2]);
      expect(accounts).to.deep.equal(['merchant_reserved', 'bank', 'fee_revenue']);
    });

    it('are given back when the bank refused them, and found paid after all below zero', async () => {
      const merchant = await funded(200_000);
      const id = await sent(merchant, 150_000);
      const failed = { type: 'operator.resolved', outcome: 'failed', failureCode: 'rejected' };
      expect((await tell('Neema', id, failed)).status).to.equal(200);
      expect((await balance(merchant)).available).to.equal(196_000);
      const next = await sent(merchant, 150_000);
      const found = await tell('Neema', id, { type: 'operator.foundPaid', receipt: 'FT-78' });
      expect(found.status, found.text).to.equal(200);
      expect((await balance(merchant)).available).to.equal(196_000 - 2 * 150_500);
      await tell('Neema', next, { type: 'operator.resolved', outcome: 'paid' });
      expect((await tell('Juma', id, { type: 'operator.returned' })).status).to.equal(200);
      expect((await balance(merchant)).available).to.equal(196_000 - 2 * 150_500 + 150_000);
    });

    it('are confirmed by a line of a statement, whoever reads it', async () => {
      const merchant = await funded();
      const id = await sent(merchant, 400_000);
      const { actors } = test.service.wired;
      const found = { type: 'statement.found', at: clock.now(), receipt: 'FT-79' };
      const cause = { kind: 'timer', id: 'statement' } as const;
      await actors.send({ machine: 'payout', id }, found, { stepId: `${id}.statement`, cause });
      expect((await test.actor(id)).state).to.match(/^paid/);
    });
  });

  it('never ask for a verdict in another machine’s words', async () => {
    const merchant = await funded();
    const { json } = await pay(merchant, await usable(merchant, { number: testPayoutNumbers.unknown }));
    await reached(json.id, /underReview/);
    const foreign = await tell('Neema', json.id, { type: 'operator.resolved', outcome: 'expired' });
    expect([foreign.status, foreign.json.error.param]).to.deep.equal([400, 'outcome']);
  });
});

/** Something to wait for, and what lets it go on. */
function gate(): [Promise<void>, () => void] {
  let open = () => {};
  const waiting = new Promise<void>((resolve) => {
    open = resolve;
  });
  return [waiting, open];
}
