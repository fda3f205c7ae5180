import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Guest, lanes, Seats } from '../../src/webhooks/seats.ts';

type Sat = { leave(): void };

describe('seats at an endpoint', () => {
  /** It stands still: no attempt takes any time unless a test says so. */
  let clock: MovableClock;
  let seats: Seats;
  let holders = 0;

  beforeEach(() => {
    clock = new MovableClock(Date.now());
    seats = new Seats(clock);
  });

  const guest = (more: Partial<Guest> = {}): Guest => {
    holders += 1;
    return {
      ...{ holder: `call.${holders}`, endpointId: 'we_1', merchantId: 'mer_1', lane: 'first', isWell: true },
      ...more,
    };
  };
  const take = (more?: Partial<Guest>) => seats.take(guest(more));
  const sit = async (more?: Partial<Guest>): Promise<Sat> => {
    const seat = await take(more);
    if ('stepBackMs' in seat) throw new Error('was told to step back');
    return seat;
  };
  /** One attempt that took so long. */
  const took = async (ms: number, more?: Partial<Guest>) => {
    const seat = await sit(more);
    clock.advance(ms);
    seat.leave();
  };
  /** How many sit down at once, before the first has to wait or to step back. */
  const free = async (more?: Partial<Guest>): Promise<Sat[]> => {
    const sat: Sat[] = [];
    for (;;) {
      const seat = take(more);
      const isSeated = await Promise.race([seat, new Promise((resolve) => setImmediate(resolve, undefined))]);
      if (!isSeated || 'stepBackMs' in (isSeated as object)) {
        void seat.then((late) => 'leave' in late && late.leave());
        return sat;
      }
      sat.push(isSeated as Sat);
    }
  };

  it('are twenty at first, forty at one that is quick, ten at one that takes long, one at one that fails', async () => {
    expect(await free({ endpointId: 'we_new' })).to.have.length(20);
    await took(5, { endpointId: 'we_quick', merchantId: 'mer_2' });
    expect(await free({ endpointId: 'we_quick', merchantId: 'mer_2' })).to.have.length(40);
    await took(9_000, { endpointId: 'we_slow', merchantId: 'mer_3', lane: 'slow' });
    expect(await free({ endpointId: 'we_slow', merchantId: 'mer_3', lane: 'slow' })).to.have.length(10);
    expect(await free({ endpointId: 'we_bad', merchantId: 'mer_4', isWell: false })).to.have.length(1);
  });

  it('of a merchant are a quarter of each lane, however many endpoints it has', async () => {
    for (const { name: lane, concurrency } of lanes) {
      let seated = 0;
      for (let n = 0; n < 16; n += 1) seated += (await free({ endpointId: `we_${lane}${n}`, lane })).length;
      expect(seated, lane).to.equal(concurrency / 4);
      const [neighbour] = await free({ endpointId: `we_${lane}x`, merchantId: 'mer_2', lane });
      expect(neighbour, `${lane}: the neighbour’s`).to.not.equal(undefined);
    }
  });

  it('go to those who wait in the order of their coming', async () => {
    await took(5);
    const a = await sit({ isWell: false });
    const order: string[] = [];
    const [b, c, d] = ['b', 'c', 'd'].map(async (name) => {
      const seat = await sit({ isWell: false });
      order.push(name);
      return seat;
    });
    a.leave();
    (await b!).leave();
    (await c!).leave();
    (await d!).leave();
    expect(order).to.deep.equal(['b', 'c', 'd']);
  });

  it('are never more than there are while they change hands', async () => {
    let seated = 0;
    let most = 0;
    let done = 0;
    const attempt = async (n: number): Promise<void> => {
      const seat = await take({ isWell: false });
      if ('stepBackMs' in seat)
        return void (await new Promise((resolve) => setTimeout(resolve, 5)).then(() => attempt(n)));
      seated += 1;
      most = Math.max(most, seated);
      await new Promise((resolve) => setTimeout(resolve, n % 3));
      seated -= 1;
      done += 1;
      seat.leave();
    };
    await Promise.all(Array.from({ length: 60 }, (_, n) => attempt(n)));
    expect([most, done]).to.deep.equal([1, 60]);
  });

  it('are one as soon as the endpoint fails: nobody who waits gets a second', async () => {
    const [a, b] = [await sit(), await sit()];
    const waiting = take({ isWell: false });
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
    await sit({ isWell: false });
    clock.advance(400);
    const seat = await take({ isWell: false });
    expect(seat).to.have.property('stepBackMs').that.is.within(300, 500);
  });

  it('those who stepped back are in the queue too: the longer it is, the longer the next stays away', async () => {
    await sit({ isWell: false });
    clock.advance(1_000);
    for (let n = 0; n < 9; n += 1) await take({ isWell: false });
    const seat = await take({ isWell: false });
    expect(seat).to.have.property('stepBackMs').that.is.within(7_500, 12_500);
  });

  it('an endpoint belongs to the slow as soon as one attempt takes long, and until it has become quick', async () => {
    expect(seats.isSlow('we_1')).to.equal(false);
    const seat = await sit();
    clock.advance(999);
    expect(seats.isSlow('we_1')).to.equal(false);
    clock.advance(2);
    expect(seats.isSlow('we_1'), 'while it is under way').to.equal(true);
    seat.leave();
    expect(seats.isSlow('we_1'), 'when it is over').to.equal(true);
    await took(0);
    await took(0);
    expect(seats.isSlow('we_1')).to.equal(false);
  });
});
