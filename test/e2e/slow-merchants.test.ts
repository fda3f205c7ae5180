import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/**
 * A merchant has sixteen endpoints, and not one of them answers before the neighbours have heard of their payments:
 * whoever waited for it would wait for ever. An attempt has a minute here, so that only a free place can help.
 */
describe('merchants whose endpoints take long', () => {
  const endpointsEach = 16;
  let test: TestService;
  let slow: Receiver;
  let quick: Receiver;
  const unanswered: ServerResponse[] = [];

  before(async () => {
    test = await startTestService({ WEBHOOK_TIMEOUT: '1m' });
    slow = await startReceiver((_received, response) => void unanswered.push(response));
    quick = await startReceiver();
  });

  after(async () => {
    slow.answer = 200;
    for (const response of unanswered) response.writeHead(200).end();
    await test?.stop();
    await Promise.all([slow.close(), quick.close()]);
  });

  const slowMerchant = async (): Promise<TestMerchant> => {
    const merchant = await test.merchant();
    for (let n = 0; n < endpointsEach; n += 1) await test.endpoint(merchant.id, `${slow.url}?${n}`);
    return merchant;
  };
  /** Collections that fail at once, which is to say: events. */
  const events = (merchant: TestMerchant, count: number) =>
    Promise.all(Array.from({ length: count }, () => merchant.create({ phone: '255700000004' })));
  /** Attempts of a merchant are under way, more than its share leaves room for. */
  const fill = async (merchant: TestMerchant, count: number) => {
    const before = slow.received.length;
    await events(merchant, count);
    expect(await until(async () => slow.received.length >= before + 25), 'it fills its share').to.equal(true);
  };

  it('delay no neighbour: not while nothing is known of them, not later, and not together', async function () {
    this.timeout(180_000);
    const neighbour = await test.merchant();
    await test.endpoint(neighbour.id, quick.url);
    for (let n = 1; n <= 2; n += 1) {
      await fill(await slowMerchant(), 20);
      const [created] = await events(neighbour, 1);
      const heard = await until(async () =>
        quick.received.find(({ event }) => event.data.id === created!.json.id),
      );
      expect(heard, `beside ${n} of them the neighbour hears of its payment`).to.not.equal(undefined);
    }
    expect(unanswered.length, 'none of theirs was answered').to.equal(slow.received.length);
  });
});
