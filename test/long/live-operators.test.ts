import { expect } from 'chai';
import { type Live, openLive } from '../support/live.ts';
import { until } from '../support/until.ts';

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
  });

  it('ask now, of a payment that succeeded: what the network took back is an alert, and nothing else', async () => {
    const id = await created('255740000001');
    expect(await live.final(id)).to.include({ status: 'succeeded' });
    const payment = live.simulator.network.find(id.slice(4))!;
    await live.simulator.network.reverse(payment, 'by the customer', payment.amountTzs);
    live.clock.advance(60_000);
    expect((await tell(id, 'operator.asked')).status).to.equal(200);
    const alertsOf = async () =>
      (await stored('alerts').find({ about: id }).toArray()).map(({ kind }) => kind);
    expect(await until(async () => (await alertsOf()).includes('contradiction'))).to.equal(true);
    expect((await live.read(id)).status).to.equal('succeeded');
    expect(await eventsOf(id)).to.deep.equal(['collection.succeeded']);
    expect((await tell(id, 'operator.reversed')).status).to.equal(200);
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

  const isAnswered = (id: string, outcome: string) =>
    until(async () => (await outcomesOf(id)).includes(outcome));
  /** Lets minutes pass, as the ladder of questions wants them. */
  const passesUntil = (id: string, state: string) =>
    until(async () => {
      live.clock.advance(60_000);
      await live.service.sweep();
      return (await stateOf(id)).startsWith(state);
    }, 90_000);

  it('a return that happened is never credited, though its answer was lost and the next one was not sent', async () => {
    const id = await created('255740000012');
    expect((await live.final(id)).status).to.equal('expired');
    live.clock.advance(6 * 60_000);
    expect(await reaches(id, 'expired.latePaid.held'), 'held').to.equal(true);
    // The network reverses, its answer is lost, and so is the answer to the question about it.
    live.simulator.faults.add({ operation: 'reversal', does: 'resets', when: 'after', times: 1 });
    live.simulator.faults.add({ operation: 'query', does: 'fails', when: 'before', times: 1 });
    expect((await tell(id, 'operator.returnedLate')).status).to.equal(200);
    expect(await isAnswered(id, 'reversal unknown')).to.equal(true);
    expect(await isAnswered(id, 'query unknown')).to.equal(true);
    expect(live.simulator.network.find(id.slice(4))?.reversedAtMs, 'the customer has it').to.be.a('number');
    // Now the network is away: the operator's second try is not even sent.
    await live.stopNetwork();
    expect((await tell(id, 'operator.retried')).status).to.equal(200);
    expect(await isAnswered(id, 'reversal notAttempted')).to.equal(true);
    expect(await stateOf(id)).to.equal('expired.latePaid.returning.polling');
    expect((await tell(id, 'operator.acceptedLate')).status, 'the merchant must not have it too').to.equal(
      409,
    );
    await live.startNetwork();
    expect(await passesUntil(id, 'expired.latePaid.returned'), await stateOf(id)).to.equal(true);
    expect((await balance()).reserved).to.equal(0);
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
    expect((await tell(id, 'operator.returnedLate')).json.to).to.equal('expired.latePaid.returning.polling');
    expect(await isAnswered(id, 'reversal failed'), 'refused').to.equal(true);
    // Back only when the network would know of it, and says that the payment stands.
    expect(await stateOf(id)).to.equal('expired.latePaid.returning.polling');
    expect(await passesUntil(id, 'expired.latePaid.held'), 'refused').to.equal(true);
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
