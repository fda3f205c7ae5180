import { expect } from 'chai';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 13.10: what was held is released beside what is fresh, not before it. More: HELD=10000. */
const heldCount = Number(process.env.HELD ?? 250);

describe(`${heldCount} held deliveries`, () => {
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;
  let endpointId: string;

  before(async function () {
    this.timeout(60_000 + 30 * heldCount);
    test = await startTestService();
    receiver = await startReceiver();
    merchant = await test.merchant();
    endpointId = (await test.endpoint(merchant.id, receiver.url)).id;
    await command('disable');
    for (let from = 0; from < heldCount; from += 50) {
      await Promise.all(Array.from({ length: Math.min(50, heldCount - from) }, event));
    }
    await reaches(heldCount, 'held');
  });

  after(async () => {
    await receiver?.close();
    await test?.stop();
  });

  const command = (verb: 'enable' | 'disable') =>
    test.call('POST', `/admin/endpoints/${endpointId}/${verb}`, { body: { reason: 'as agreed' } });
  const count = (state: string) =>
    test.service.wired.db.collection('deliveries').countDocuments({ 'data.endpointId': endpointId, state });
  const reaches = async (number: number, state: string) => {
    const reached = await until(async () => (await count(state)) === number, 30_000 + 30 * heldCount);
    expect(reached, `${await count(state)} are ${state}`).to.equal(true);
  };
  /** A collection that fails at once, which is to say: an event. */
  const event = async (): Promise<string> => (await merchant.create({ phone: '255700000004' })).json.id;

  it('wait, and a fresh event that comes while they are released is not behind them', async function () {
    this.timeout(60_000 + 30 * heldCount);
    expect(receiver.received).to.have.length(0);
    await command('enable');
    await until(async () => receiver.received.length > 0);
    const fresh = await event();
    await reaches(0, 'held');
    await reaches(heldCount + 1, 'delivered');
    const came = receiver.received.map((each) => each.event.data.id as string);
    const place = came.indexOf(fresh);
    expect(place, 'the fresh one came').to.be.at.least(0);
    expect(came.length - place - 1, 'came after it').to.be.above(heldCount / 10);
    expect(new Set(came).size, 'each came once')
      .to.equal(came.length)
      .and.to.equal(heldCount + 1);
  });
});
