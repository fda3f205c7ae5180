import { expect } from 'chai';
import { selfSigned } from '../support/certificates.ts';
import { check } from '../support/checker.ts';
import {
  closeReceivers,
  type Receiver,
  startHttp,
  startHttps,
  startRaw,
  startTcp,
} from '../support/receivers.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const payments = isLong ? 100 : 4;

/** Ways in which a receiver can be bad. Names that resolve to elsewhere are in webhook-dialling.test.ts. */
const bad: Record<string, () => Promise<Receiver>> = {
  'hangs before it answers': () => startHttp(() => {}),
  'drips its answer': () =>
    startRaw((socket) => {
      const drip = setInterval(() => socket.write('H'), 100);
      socket.on('close', () => clearInterval(drip));
    }),
  'sends a body without end': () =>
    startHttp((_request, response) => {
      const more = setInterval(() => response.write(Buffer.alloc(16_384)), 5);
      response.on('close', () => clearInterval(more));
    }),
  'sends headers without end': () =>
    startRaw((socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(300_000)}`)),
  'resets the connection': () => startTcp((socket) => socket.resetAndDestroy()),
  'shows a certificate of its own': () =>
    startHttps(selfSigned(['127.0.0.1']), (_request, response) => response.end()),
  'answers 500': () => startHttp((_request, response) => response.writeHead(500).end()),
};

describe(`receivers that are bad beside one that is good (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({ WEBHOOK_TIMEOUT: '1s', WEBHOOK_RETRY_DELAYS: '200ms,200ms' });
  });

  after(async () => {
    await world.close();
    await closeReceivers();
  });

  it('the good one gets everything; each bad one is tried as often as promised; a redirect is not followed', async function () {
    this.timeout(isLong ? 1_500_000 : 600_000);
    const toGood = () =>
      startHttp((_request, response) => response.writeHead(307, { location: world.receiver.url }).end());
    const opened = await Promise.all([...Object.values(bad), toGood].map((open) => open()));
    const ids: string[] = [];
    for (const { url } of opened) {
      const answer = await world.operate('POST', `/admin/merchants/${world.merchantId}/endpoints`, {
        ...{ mode: 'test', url, reason: 'for a test' },
      });
      expect(answer?.status, JSON.stringify(answer)).to.equal(201);
      ids.push(answer!.json.id as string);
    }
    await Promise.all(Array.from({ length: payments }, () => world.create()));
    expect(await world.settle(), 'payments end, and the good one has heard of all').to.equal(true);
    const deliveries = world.db.collection('deliveries');
    const statesOf = () =>
      deliveries
        .aggregate([{ $group: { _id: { to: '$data.endpointId', state: '$state' }, n: { $sum: 1 } } }])
        .toArray();
    const toBad = { 'data.endpointId': { $in: ids } };
    // A body without end is a 200 whose rest nobody reads.
    const isOver = { state: { $in: ['failed', 'delivered'] } };
    const over = await until(
      async () =>
        (await deliveries.countDocuments({ ...toBad, ...isOver })) ===
        (await deliveries.countDocuments(toBad)),
      isLong ? 900_000 : 240_000,
    );
    if (!over) process.stderr.write(`${JSON.stringify(await statesOf(), undefined, 1)}\n`);
    expect(over, 'every delivery comes to its end').to.equal(true);
    const endless = ids[Object.keys(bad).indexOf('sends a body without end')];
    const taken = await deliveries.distinct('data.endpointId', { ...toBad, state: 'delivered' });
    expect(
      taken.filter((id) => id !== endless),
      'delivered to a bad one',
    ).to.deep.equal([]);
    const attempts = await world.db
      .collection('attempts')
      .aggregate<{ _id: string; n: number }>([
        { $match: { endpointId: { $in: ids.filter((id) => id !== endless) } } },
        { $group: { _id: '$deliveryId', n: { $sum: 1 } } },
      ])
      .toArray();
    expect([...new Set(attempts.map(({ n }) => n))], 'attempts of each delivery').to.deep.equal([3]);
    // Where the machine is busy the good one may answer too late: being asked again is an attempt of its own.
    const toThis = { endpointId: { $in: world.endpointIds } };
    const sent = await world.db.collection('attempts').countDocuments(toThis);
    expect(world.receiver.received.length, 'no oftener than it was tried').to.be.at.most(sent);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
