import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { MovableClock } from '../../src/clock.ts';
import { impatient } from '../../src/queue.ts';
import { Seats } from '../../src/webhooks/webhooks.ts';
import { until } from '../support/service.ts';
import { freshDatabase, stores } from '../support/stores.ts';

type Sat = { leave(): void };

describe('seats at an endpoint', () => {
  /** It stands still: no attempt takes any time unless a test says so. */
  const clock = new MovableClock(Date.now());
  const prefix = freshDatabase('seats');
  let redis: Redis;
  let endpoints = 0;
  let endpoint: string;

  before(async () => {
    redis = new Redis((await stores()).redisUrl, impatient);
    await new Promise((resolve) => redis.once('ready', resolve));
  });
  beforeEach(() => {
    endpoints += 1;
    endpoint = `we_${endpoints}`;
  });
  after(() => redis.disconnect());

  const process = (of = redis) => new Seats(of, prefix, clock);
  const sit = async (seats: Seats, holder: string, count = 2): Promise<Sat> => {
    const seat = await seats.take(endpoint, holder, count);
    if ('stepBackMs' in seat) throw new Error(`${holder} was told to step back`);
    return seat;
  };
  const leases = () => redis.zcard(`${prefix}.seats.${endpoint}`);
  /** Nobody waits for Redis to hear of it. */
  const allGivenBack = async () => {
    expect(await until(async () => (await leases()) === 0), 'all seats are given back').to.equal(true);
  };

  it('are so many and no more, over all processes', async () => {
    const [one, other] = [process(), process()];
    await sit(one, 'a');
    const b = await sit(other, 'b');
    expect(await one.take(endpoint, 'c', 2)).to.have.property('stepBackMs');
    b.leave();
    await sit(one, 'c');
    expect(await other.take(endpoint, 'd', 2)).to.have.property('stepBackMs');
  });

  it('go to those who wait in the order of their coming, and Redis is not asked again', async () => {
    const seats = process();
    const a = await sit(seats, 'a', 1);
    const asked = questions();
    const order: string[] = [];
    const [b, c, d] = ['b', 'c', 'd'].map(async (holder) => {
      const seat = await sit(seats, holder, 1);
      order.push(holder);
      return seat;
    });
    a.leave();
    (await b!).leave();
    (await c!).leave();
    const last = await d!;
    expect(order).to.deep.equal(['b', 'c', 'd']);
    expect(asked()).to.equal(0);
    expect(await leases()).to.equal(1);
    last.leave();
    await allGivenBack();
  });

  it('are never more than there are while they change hands', async () => {
    const seats = process();
    let seated = 0;
    let most = 0;
    let done = 0;
    const attempt = async (n: number): Promise<void> => {
      const seat = await seats.take(endpoint, `h${n}`, 3);
      if ('stepBackMs' in seat) return void (await sleep(5).then(() => attempt(n)));
      seated += 1;
      most = Math.max(most, seated);
      await sleep(n % 3);
      seated -= 1;
      done += 1;
      seat.leave();
    };
    await Promise.all(Array.from({ length: 120 }, (_, n) => attempt(n)));
    expect([most, done]).to.deep.equal([3, 120]);
    await allGivenBack();
  });

  it('are one as soon as the endpoint fails: nobody who waits gets a second', async () => {
    const seats = process();
    const [a, b] = [await sit(seats, 'a'), await sit(seats, 'b')];
    const waiting = seats.take(endpoint, 'c', 1);
    let isSeated = false;
    void waiting.then(() => {
      isSeated = true;
    });
    a.leave();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSeated).to.equal(false);
    b.leave();
    expect(await waiting).to.have.property('leave');
  });

  it('are stepped back from at once when the wait would be long, for about as long', async () => {
    const seats = process();
    await sit(seats, 'slow', 1);
    clock.advance(300);
    const seat = await seats.take(endpoint, 'next', 1);
    expect(seat).to.have.property('stepBackMs').that.is.within(225, 375);
  });

  it('are counted by each process for itself while Redis is away', async () => {
    const away = new Redis({ ...impatient, port: 1, lazyConnect: true });
    away.on('error', () => undefined);
    const seats = process(away);
    const a = await sit(seats, 'a', 1);
    const waiting = sit(seats, 'b', 1);
    a.leave();
    (await waiting).leave();
    away.disconnect();
  });

  /** Counts from now on how often Redis is asked for a seat. */
  function questions(): () => number {
    const asking = redis as unknown as { kusanyaTakeSeat(...given: unknown[]): Promise<number> };
    const take = asking.kusanyaTakeSeat.bind(redis);
    let asked = 0;
    asking.kusanyaTakeSeat = (...given) => {
      asked += 1;
      return take(...given);
    };
    return () => asked;
  }
});
