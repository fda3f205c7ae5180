import { expect } from 'chai';
import { vodacomTanzania } from '../../src/rails/mpesa/codes.ts';
import { networkStories } from '../../src/rails/rails.ts';
import { type Live, openLive } from '../support/live.ts';

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

  for (const code of vodacomTanzania.producedFailureCodes) {
    it(`tells the merchant ${code}, as in synchronous mode`, async () => {
      const [phone] = Object.entries(networkStories).find(([, { ends }]) => ends === code)!;
      const id = await created(phone);
      expect(await live.final(id)).to.include({ status: 'failed', failure_code: code });
      expect(live.debits(id)).to.equal(0);
    });
  }
});
