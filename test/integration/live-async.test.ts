import { expect } from 'chai';
import { vodacomTanzania } from '../../src/rails/mpesa/codes.ts';
import { networkStories } from '../../src/rails/rails.ts';
import { type Live, openLive } from '../support/live.ts';
import { until } from '../support/until.ts';

/** Live mode where the network answers a push at once and calls back later. */
describe('live mode, asynchronous', function () {
  this.timeout(300_000);
  let live: Live;

  before(async () => {
    live = await openLive({ mode: 'async' });
  });
  after(() => live.close());
  afterEach(() => {
    expect(live.simulator.invariants(), 'the books of the network').to.deep.include({ clean: true });
  });

  const created = async (phone: string): Promise<string> => {
    const answer = await live.create(phone);
    expect(answer.status, answer.text).to.equal(202);
    return answer.json.id;
  };

  it('collects by a callback and a question', async () => {
    const id = await created('255740000001');
    expect(await live.final(id)).to.include({ status: 'succeeded' });
    expect(live.debits(id)).to.equal(1);
    const { json } = await live.service.call('GET', `/admin/collections/${id}/evidence`);
    expect(json.answers.map(({ outcome }: { outcome: string }) => outcome)).to.deep.equal([
      'accepted',
      'succeeded',
    ]);
  });

  it('returns a late payment: taken first, and found by its own callback or by asking', async () => {
    const id = await created('255740000014');
    // Its prompt is out: a clock that is moved before would end it unsent.
    const isSent = async () => (await live.service.actor(id)).state.startsWith('created.awaitingApproval');
    expect(await until(isSent), 'sent').to.equal(true);
    const reaches = (state: string, ms: number) =>
      until(async () => {
        live.clock.advance(ms);
        await live.service.sweep();
        return (await live.service.actor(id)).state === state;
      }, 90_000);
    const tell = async (type: string) => {
      const event = { type, reason: 'the customer wants it back' };
      const sent = await live.service.call('POST', `/admin/actors/${id}/events`, { body: event });
      expect(sent.status, sent.text).to.equal(200);
    };
    expect(await reaches('expired.watching', 60_000), 'expired').to.equal(true);
    live.simulator.network.find(id.slice(4))!.scenario = {
      outcome: { kind: 'paid', afterMs: 0 },
      callbacksMs: [],
    };
    live.clock.advance(60_000);
    await tell('operator.asked');
    expect(await reaches('expired.latePaid.held', 1_000), 'held').to.equal(true);
    await tell('operator.returnedLate');
    // The callback names the reversal's own reference, and rings the bell of the payment.
    const stored = live.service.service.wired.db.collection('railCallbacks');
    const reversal = `R${id.slice(5)}`;
    const isHeard = async () =>
      (await stored.countDocuments({
        collectionId: id,
        body: { $regex: reversal },
        rungAt: { $type: 'date' },
      })) === 1;
    expect(await until(isHeard), 'its callback').to.equal(true);
    expect(await reaches('expired.latePaid.returned', 5_000), 'returned').to.equal(true);
    const { json } = await live.service.call('GET', `/admin/collections/${id}/evidence`);
    const outcomes = json.answers.map(
      ({ operation, outcome }: Record<string, string>) => `${operation} ${outcome}`,
    );
    expect(outcomes).to.include.members(['reversal accepted', 'query reversed']);
    const alerts = await live.service.service.wired.db.collection('alerts').find({ about: id }).toArray();
    expect(alerts.map(({ kind }) => kind)).to.deep.equal(['late_payment']);
  });

  for (const code of vodacomTanzania.producedFailureCodes) {
    it(`tells the merchant ${code}, as in synchronous mode`, async () => {
      const [phone] = Object.entries(networkStories).find(([, { ends }]) => ends === code)!;
      const id = await created(phone);
      expect(await live.final(id)).to.include({ status: 'failed', failure_code: code });
      expect(live.debits(id)).to.equal(0);
    });
  }
});
