import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { collectionMachine } from '../../machines/collection.ts';
import { limits } from '../../src/limits.ts';
import { decidesNothing } from '../../src/operators/secondPerson.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** OPERATING "A payment is under review": what is rehearsed is what is posted, and much money takes two people. */
describe('a decision about a payment', () => {
  const clock = new MovableClock();
  let test: TestService;
  let merchant: TestMerchant;
  const tokens: Record<string, string> = {};

  before(async () => {
    test = await startTestService({ DECIDE_ALONE_MAX: '10000' }, { clock });
    merchant = await test.merchant();
    for (const name of ['Neema', 'Juma']) {
      const body = { name, role: 'operator', reason: 'on call' };
      tokens[name] = (await test.call('POST', '/admin/operators', { body })).json.token;
    }
  });
  after(() => test.stop());

  const payment = async (amountTzs: number) => {
    const { id } = await test.underReview(merchant);
    await test.service.wired.db
      .collection<{ _id: string }>('collections')
      .updateOne({ _id: id }, { $set: { 'data.amountTzs': amountTzs } });
    return id;
  };
  const tell = (by: string, id: string, told: object) =>
    test.call('POST', `/admin/actors/${id}/events`, {
      token: tokens[by],
      body: { type: 'operator.resolved', reason: `as ${by} saw it`, ...told },
    });
  const paid = (receipt: string) => ({ outcome: 'succeeded', receipt });

  it('is rehearsed with the lines that it then posts, and no others', async () => {
    const id = await payment(5_000);
    const rehearsed = await tell('Neema', id, { ...paid('R-ONE'), dry_run: true });
    const [entry] = rehearsed.json.entries;
    expect(entry.lines.map(({ debit }: { debit: number }) => debit)).to.deep.equal([5_000, 0, 0]);
    const ledger = async () =>
      (await test.call('GET', `/admin/ledger/entries?mode=test&source=${id}`)).json.data;
    expect(await ledger()).to.deep.equal([]);
    expect((await test.actor(id)).state).to.match(/underReview/);
    expect((await tell('Neema', id, paid('R-ONE'))).status).to.equal(200);
    const [posted] = await ledger();
    expect(posted.lines).to.deep.equal(entry.lines);
    expect(posted.type).to.equal(entry.type);
    const failed = await tell('Neema', await payment(5_000), {
      outcome: 'failed',
      failureCode: 'declined',
      dry_run: true,
    });
    expect(failed.json.entries).to.deep.equal([]);
  });

  it('about little money is one person’s', async () => {
    expect((await tell('Neema', await payment(10_000), { outcome: 'expired' })).status).to.equal(200);
  });

  it('about much is proposed by one and done when another says the same', async () => {
    const id = await payment(10_001);
    const proposed = await tell('Neema', id, paid('R-TWO'));
    expect([proposed.status, proposed.json.object, proposed.json.by]).to.deep.equal([
      202,
      'proposal',
      'Neema',
    ]);
    expect((await test.actor(id)).state).to.match(/underReview/);
    expect((await test.actor(id)).proposal).to.deep.include({ by: 'Neema', reason: 'as Neema saw it' });
    const waiting = async () => {
      const { needs_you: tiles } = (await test.call('GET', '/admin/overview?mode=test')).json;
      const tile = tiles.find(({ kind }: { kind: string }) => kind === 'second_person');
      return [
        tile?.count,
        tile?.amount_tzs,
        (await test.call('GET', '/admin/proposals?mode=test')).json.data,
      ];
    };
    const [count, amountTzs, [listed]] = await waiting();
    expect([count, amountTzs]).to.deep.equal([1, 10_001]);
    expect(listed).to.include({ actor: id, amount_tzs: 10_001, by: 'Neema', merchant_id: merchant.id });
    expect((await test.call('GET', '/admin/proposals?mode=live')).json.data).to.deep.equal([]);
    expect((await tell('Neema', id, paid('R-TWO'))).status).to.equal(409);
    const agreed = await tell('Juma', id, paid('R-TWO'));
    expect([agreed.status, agreed.json.to]).to.deep.equal([200, 'succeeded.standing']);
    expect((await test.actor(id)).proposal).to.equal(null);
    expect(await waiting()).to.deep.equal([undefined, undefined, []]);
    const lines = (await test.call('GET', `/admin/audit?target=${id}`)).json.data;
    expect(lines.map(({ by, action }: Record<string, string>) => `${by}: ${action}`)).to.deep.equal([
      'Juma: operator.resolved',
      'Neema: operator.resolved.proposed',
    ]);
    expect(lines[0].after).to.include({ proposed_by: 'Neema', proposed_because: 'as Neema saw it' });
    // What was agreed to once is agreed to no second time.
    const undo = await tell('Juma', id, { type: 'operator.reversed' });
    expect([undo.status, undo.json.by]).to.deep.equal([202, 'Juma']);
  });

  it('is not done by two who say different things, nor by one who speaks twice', async () => {
    const id = await payment(20_000);
    await tell('Neema', id, paid('R-THREE'));
    const other = await tell('Juma', id, { outcome: 'failed', failureCode: 'declined' });
    expect([other.status, other.json.by]).to.deep.equal([202, 'Juma']);
    expect((await tell('Juma', id, { outcome: 'failed', failureCode: 'declined' })).status).to.equal(409);
    expect((await test.actor(id)).state).to.match(/underReview/);
    const agreed = await tell('Neema', id, { outcome: 'failed', failureCode: 'declined' });
    expect([agreed.status, agreed.json.to.split('.')[0]]).to.deep.equal([200, 'failed']);
  });

  it('lapses when nobody agrees within a day', async () => {
    const id = await payment(20_000);
    await tell('Neema', id, paid('R-FOUR'));
    clock.advance(limits.dayMs + 1);
    expect((await test.actor(id)).proposal).to.equal(null);
    expect((await test.call('GET', '/admin/proposals?mode=test')).json.data).to.deep.equal([]);
    expect((await tell('Juma', id, paid('R-FOUR'))).status).to.equal(202);
  });

  it('is whatever an operator tells a payment but to ask or to repeat', () => {
    const told = collectionMachine.events.filter((type) => type.startsWith('operator.'));
    expect(told).to.include.members([...decidesNothing]);
    expect(told.filter((type) => !decidesNothing.includes(type)).sort()).to.deep.equal([
      'operator.acceptedLate',
      'operator.confirmedReturn',
      'operator.refunded',
      'operator.resolved',
      'operator.returnedLate',
      'operator.reversed',
    ]);
  });
});
