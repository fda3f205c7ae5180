import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startReceiver } from '../support/service.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const merchants = isLong ? 4 : 2;
const endpointsEach = 16;
const paymentsEach = isLong ? 20 : 5;

describe(`merchants whose endpoints take long beside one that is quick (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({ WEBHOOK_TIMEOUT: '30s' });
  });
  after(() => world?.close());

  const made = async (path: string, body: object) => {
    const answer = await world.operate('POST', path, { ...body, reason: 'for a test' });
    expect(answer?.status, JSON.stringify(answer)).to.equal(201);
    return answer!.json as { id: string; secret: string };
  };

  it('the quick one hears of all before they have answered once; later they get everything too', async function () {
    this.timeout(isLong ? 1_500_000 : 600_000);
    const waiting: ServerResponse[] = [];
    const slow = await startReceiver((_received, response) => void waiting.push(response));
    try {
      const keys: string[] = [];
      for (let n = 0; n < merchants; n += 1) {
        const { id } = await made('/admin/merchants', { name: `Slow ${n}` });
        const endpoint = (m: number) => ({ mode: 'test', url: `${slow.url}?${n}.${m}` });
        for (let m = 0; m < endpointsEach; m += 1)
          await made(`/admin/merchants/${id}/endpoints`, endpoint(m));
        keys.push((await made(`/admin/merchants/${id}/keys`, { mode: 'test' })).secret);
      }
      const body = { amount: 1000, phone: '255700000004', reference: 'slow' };
      const pay = (apiKey: string, n: number) =>
        world.ask('POST', '/v1/collections', { apiKey, key: `slow-${apiKey.slice(-8)}-${n}`, body });
      const asked = keys.flatMap((key) => Array.from({ length: paymentsEach }, (_, n) => pay(key, n)));
      expect((await Promise.all(asked)).map((answer) => answer?.status)).to.deep.equal(asked.map(() => 202));
      expect(await until(async () => waiting.length >= endpointsEach), 'they are asked').to.equal(true);
      await Promise.all(Array.from({ length: paymentsEach }, () => world.create()));
      expect(await world.settle(), 'the quick one has heard of all').to.equal(true);
      slow.answer = 200;
      for (const response of waiting) response.writeHead(200).end();
      const deliveries = world.db.collection('deliveries');
      const total = (merchants * endpointsEach + 1) * paymentsEach;
      const isDone = async () => (await deliveries.countDocuments({ state: 'delivered' })) === total;
      expect(await until(isDone, 240_000), 'everything is delivered in the end').to.equal(true);
      const received = new Set(world.outside.received);
      for (const { event } of slow.received) received.add(event.id as string);
      expect(await check(world.db, { ...world.outside, received }, Date.now())).to.deep.equal([]);
    } finally {
      await slow.close();
    }
  });
});
