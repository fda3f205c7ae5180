import { expect } from 'chai';
import { type Live, openLive } from '../support/live.ts';
import { until } from '../support/service.ts';

/** What operators do about live payments, over HTTP, against the simulated network. */
describe('operators in live mode', function () {
  this.timeout(300_000);
  let live: Live;

  before(async () => {
    live = await openLive();
  });
  after(() => live.close());
  afterEach(() => {
    live.simulator.faults.clear();
    expect(live.simulator.invariants(), 'the books of the network').to.deep.include({ clean: true });
  });

  const created = async (phone: string): Promise<string> => {
    const answer = await live.create(phone);
    expect(answer.status, answer.text).to.equal(202);
    return answer.json.id;
  };
  const tell = (id: string, type: string, more: object = {}) =>
    live.service.call('POST', `/admin/actors/${id}/events`, { body: { type, reason: 'looked at', ...more } });
  const stateOf = async (id: string): Promise<string> => (await live.service.actor(id)).state;
  const reaches = (id: string, state: string) =>
    until(async () => {
      await live.service.sweep();
      return (await stateOf(id)).startsWith(state);
    }, 90_000);
  const balance = async () => (await live.service.call('GET', '/v1/balance', { token: live.liveKey })).json;
  const stored = (name: string) => live.service.service.wired.db.collection(name);
  const eventsOf = async (id: string) =>
    (await stored('events').find({ collectionId: id }).toArray()).map(({ type }) => type);
  const outcomesOf = async (id: string): Promise<string[]> => {
    const { json } = await live.service.call('GET', `/admin/collections/${id}/evidence`);
    return json.answers.map(({ operation, outcome }: Record<string, string>) => `${operation} ${outcome}`);
  };

  it('ask now: the rail is asked before any timer would, and its answer ends the payment', async () => {
    const id = await created('255740000022');
    expect(await until(async () => live.debits(id) === 1)).to.equal(true);
    expect(await stateOf(id)).to.equal('created.pushing.sending');
    expect((await tell(id, 'operator.asked')).status).to.equal(200);
    expect(await live.final(id)).to.include({ status: 'succeeded' });
    expect(await outcomesOf(id)).to.deep.equal(['query succeeded']);
    expect((await tell(id, 'operator.asked')).status, 'nothing is open any more').to.equal(409);
  });

  it('ask now, of a payment under review: the answer is kept, and a verdict that is none changes nothing', async () => {
    const id = await created('255740000018');
    expect(await reaches(id, 'created.underReview')).to.equal(true);
    const reviews = (await live.service.call('GET', '/admin/reviews')).json.data;
    expect(reviews.map((each: { id: string }) => each.id)).to.include(id);
    const asked = (await outcomesOf(id)).length;
    live.clock.advance(10_000);
    expect((await tell(id, 'operator.asked')).status).to.equal(200);
    expect(await until(async () => (await outcomesOf(id)).length > asked)).to.equal(true);
    expect((await outcomesOf(id)).at(-1)).to.equal('query reversed');
    expect(await stateOf(id)).to.match(/^created\.underReview/);
    expect((await live.read(id)).status).to.equal('created');
  });

  it('resolve: a person ends what the network leaves open, once, with the event, and money only for paid', async () => {
    for (const [outcome, more] of [
      ['succeeded', { receipt: 'FROMSTATEMENT1' }],
      ['failed', { failureCode: 'declined' }],
      ['expired', {}],
    ] as const) {
      const id = await created('255740000018');
      expect(await reaches(id, 'created.underReview'), outcome).to.equal(true);
      const before = (await balance()).pending;
      expect((await tell(id, 'operator.resolved')).status, 'without an outcome').to.equal(400);
      const resolved = await tell(id, 'operator.resolved', { outcome, ...more });
      expect(resolved.status, resolved.text).to.equal(200);
      const final = await live.read(id);
      expect(final.status).to.equal(outcome);
      if (outcome === 'succeeded') expect(final.provider_reference).to.equal('FROMSTATEMENT1');
      if (outcome === 'failed') expect(final.failure_code).to.equal('declined');
      expect((await balance()).pending - before).to.equal(outcome === 'succeeded' ? 4_900 : 0);
      expect(await eventsOf(id)).to.deep.equal([`collection.${outcome}`]);
      expect((await tell(id, 'operator.resolved', { outcome })).status, 'a second time').to.equal(409);
      const audit = await stored('audit').findOne({ target: id, action: 'operator.resolved' });
      expect(audit).to.include({ reason: 'looked at' });
    }
  });

  it('return a late payment: a refused reversal posts nothing, a confirmed one posts once', async () => {
    const id = await created('255740000012');
    expect((await live.final(id)).status).to.equal('expired');
    live.clock.advance(6 * 60_000);
    expect(await reaches(id, 'expired.latePaid.held'), 'held').to.equal(true);
    const held = (await balance()).reserved;
    expect(held).to.equal(4_900);
    live.simulator.faults.add({
      operation: 'reversal',
      does: 'answers',
      when: 'before',
      times: 1,
      code: 'INS-6',
    });
    expect((await tell(id, 'operator.returnedLate')).json.to).to.equal('expired.latePaid.returning');
    expect(await reaches(id, 'expired.latePaid.held'), 'refused').to.equal(true);
    expect((await balance()).reserved, 'nothing was posted').to.equal(held);
    expect(live.simulator.network.find(id.slice(4))?.reversedAtMs).to.equal(undefined);
    const alerts = await stored('alerts').find({ about: id }).toArray();
    expect(alerts.map(({ kind }) => kind)).to.include('return_failed');
    expect((await tell(id, 'operator.returnedLate')).status).to.equal(200);
    expect(await reaches(id, 'expired.latePaid.returned'), 'returned').to.equal(true);
    expect(live.simulator.network.find(id.slice(4))?.reversedAtMs).to.be.a('number');
    expect((await balance()).reserved).to.equal(0);
    expect(await outcomesOf(id)).to.include.members(['reversal failed', 'reversal succeeded']);
    const entries = (await live.service.call('GET', `/admin/ledger/entries?mode=live&source=${id}`)).json
      .data;
    expect(entries.map(({ type }: { type: string }) => type)).to.have.length(2);
    expect((await tell(id, 'operator.returnedLate')).status, 'a second time').to.equal(409);
  });
});
