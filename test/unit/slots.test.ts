import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { lanes, type SlotRequest, Slots } from '../../src/webhooks/slots.ts';

type Taken = { release(): void };

describe('slots at an endpoint', () => {
  /** It stands still: no attempt takes any time unless a test says so. */
  let clock: MovableClock;
  let slots: Slots;
  let calls = 0;

  beforeEach(() => {
    clock = new MovableClock(Date.now());
    slots = new Slots(clock);
  });

  const request = (more: Partial<SlotRequest> = {}): SlotRequest => {
    calls += 1;
    return {
      ...{ callId: `call.${calls}`, endpointId: 'we_1', merchantId: 'mer_1', lane: 'first', isWell: true },
      ...more,
    };
  };
  const keepsPlace = <T>(until: Promise<T>): Promise<T | undefined> => until;
  const take = (more?: Partial<SlotRequest>) => slots.take(request(more), keepsPlace);
  const granted = async (more?: Partial<SlotRequest>): Promise<Taken> => {
    const slot = await take(more);
    if (!('release' in slot)) throw new Error('was told to step back');
    return slot;
  };
  /** One attempt that took so long. */
  const took = async (ms: number, more?: Partial<SlotRequest>) => {
    const slot = await granted(more);
    clock.advance(ms);
    slot.release();
  };
  /** All that are taken at once, before the first has to wait or to step back. */
  const free = async (more?: Partial<SlotRequest>): Promise<Taken[]> => {
    const taken: Taken[] = [];
    for (;;) {
      const slot = take(more);
      const first = await Promise.race([slot, new Promise((resolve) => setImmediate(resolve, undefined))]);
      if (!first || 'stepBackMs' in (first as object)) {
        void slot.then((late) => 'release' in late && late.release());
        return taken;
      }
      taken.push(first as Taken);
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
      let inFlight = 0;
      for (let n = 0; n < 16; n += 1) inFlight += (await free({ endpointId: `we_${lane}${n}`, lane })).length;
      expect(inFlight, lane).to.equal(concurrency / 4);
      const [neighbour] = await free({ endpointId: `we_${lane}x`, merchantId: 'mer_2', lane });
      expect(neighbour, `${lane}: the neighbour’s`).to.not.equal(undefined);
    }
  });

  it('go to those who wait in the order of their coming', async () => {
    await took(5);
    const a = await granted({ isWell: false });
    const order: string[] = [];
    const [b, c, d] = ['b', 'c', 'd'].map(async (name) => {
      const slot = await granted({ isWell: false });
      order.push(name);
      return slot;
    });
    a.release();
    (await b!).release();
    (await c!).release();
    (await d!).release();
    expect(order).to.deep.equal(['b', 'c', 'd']);
  });

  it('are never more than there are while they change hands', async () => {
    let inFlight = 0;
    let most = 0;
    let done = 0;
    const attempt = async (n: number): Promise<void> => {
      const slot = await take({ isWell: false });
      if (!('release' in slot))
        return void (await new Promise((resolve) => setTimeout(resolve, 5)).then(() => attempt(n)));
      inFlight += 1;
      most = Math.max(most, inFlight);
      await new Promise((resolve) => setTimeout(resolve, n % 3));
      inFlight -= 1;
      done += 1;
      slot.release();
    };
    await Promise.all(Array.from({ length: 60 }, (_, n) => attempt(n)));
    expect([most, done]).to.deep.equal([1, 60]);
  });

  it('are one as soon as the endpoint fails: nobody who waits gets a second', async () => {
    const [a, b] = [await granted(), await granted()];
    const waiting = take({ isWell: false });
    let isTaken = false;
    void waiting.then(() => {
      isTaken = true;
    });
    a.release();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isTaken).to.equal(false);
    b.release();
    expect(await waiting).to.have.property('release');
  });

  it('are stepped back from at once when the wait would be long, for about as long', async () => {
    await granted({ isWell: false });
    clock.advance(400);
    const slot = await take({ isWell: false });
    expect(slot).to.have.property('stepBackMs').that.is.within(300, 500);
  });

  it('of a quick endpoint are never stepped back from: whoever finds a long line keeps its place until there is room', async () => {
    await took(5);
    const first = await Promise.all(Array.from({ length: 40 }, () => granted()));
    let inHand = 0;
    const looks = Array.from({ length: 3_000 }, async () => {
      const aside = <T>(until: Promise<T>): Promise<T | undefined> => {
        inHand += 1;
        return until;
      };
      return slots.take(request(), aside);
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(inHand, 'stand in the line').to.be.within(450, 500);
    for (const each of first) each.release();
    const ended = looks.map(async (look) => {
      const slot = await look;
      if ('release' in slot) slot.release();
      return 'release' in slot;
    });
    expect((await Promise.all(ended)).filter(Boolean)).to.have.length(3_000);
  });

  it('of one that stops answering are stepped back from by those who kept their place, too', async () => {
    await took(5);
    await Promise.all(Array.from({ length: 40 }, () => granted()));
    const looks = Array.from({ length: 600 }, () => take());
    clock.advance(2_000);
    const latest = await looks.at(-1)!;
    expect(latest).to.have.property('stepBackMs').that.is.above(2_000);
  });

  it('those who stepped back are in the queue too: the longer it is, the longer the next stays away', async () => {
    await granted({ isWell: false });
    clock.advance(1_000);
    for (let n = 0; n < 9; n += 1) await take({ isWell: false });
    const slot = await take({ isWell: false });
    expect(slot).to.have.property('stepBackMs').that.is.within(7_500, 12_500);
  });

  describe('of a merchant with sixteen slow endpoints', () => {
    const slow = (n: number) => ({ endpointId: `we_${n % 16}`, lane: 'slow' as const });
    const soon = () => new Promise((resolve) => setImmediate(resolve));
    let inFlight: Taken[];

    beforeEach(async () => {
      for (let n = 0; n < 16; n += 1) await took(3_000, slow(n));
      inFlight = await Promise.all(Array.from({ length: 25 }, (_, n) => granted(slow(n))));
    });

    it('are waited for as long as the merchant has work for its places, and each attempt comes once', async () => {
      let tries = 0;
      let done = 0;
      const waiting = Array.from({ length: 30 }, async (_, n) => {
        tries += 1;
        (await granted(slow(n))).release();
        done += 1;
      });
      await soon();
      expect([tries, done]).to.deep.equal([30, 0]);
      for (const each of inFlight) each.release();
      await Promise.all(waiting);
      expect([tries, done]).to.deep.equal([30, 30]);
    });

    it('are come back for when all that are ahead, of whichever endpoint, will have had their turn', async () => {
      const all = Array.from({ length: 200 }, (_, n) => take(slow(n)));
      await soon();
      const latest = await take(slow(201));
      expect(latest)
        .to.have.property('stepBackMs')
        .that.is.within(0.75 * 24_000, 1.25 * 24_300);
      for (const each of inFlight) each.release();
      const granted = all.map(async (each) => {
        const slot = await each;
        if ('release' in slot) slot.release();
        return 'release' in slot;
      });
      const came = (await Promise.all(granted)).filter(Boolean).length;
      expect(came, 'the line that was at hand').to.be.within(30, 40);
    });

    it('are not looked for again before the time: whoever steps back has its job', async () => {
      await Promise.all(Array.from({ length: 40 }, (_, n) => Promise.race([take(slow(n)), soon()])));
      const again = request(slow(3));
      const first = await slots.take(again, keepsPlace);
      expect(first).to.have.property('stepBackMs');
      expect(await slots.take(again, keepsPlace)).to.deep.equal({ left: true });
      clock.advance((first as { stepBackMs: number }).stepBackMs);
      expect(await Promise.race([slots.take(again, keepsPlace), soon()])).to.not.deep.equal({ left: true });
      for (const each of inFlight) each.release();
    });

    it('go to nobody who was told meanwhile that it is not his to make', async () => {
      const gone = slots.take(request(slow(0)), async () => undefined);
      const next = take(slow(1));
      expect(await gone).to.deep.equal({ left: true });
      for (const each of inFlight) each.release();
      expect(await next).to.have.property('release');
      await soon();
      expect(await free(slow(2)), 'all but the one that is held').to.have.length(10);
      expect(await free(slow(3))).to.have.length(10);
      expect(await free(slow(4))).to.have.length(4);
    });
  });

  it('an endpoint belongs to the slow as soon as one attempt takes long, and until it has become quick', async () => {
    expect(slots.isSlow('we_1')).to.equal(false);
    const slot = await granted();
    clock.advance(999);
    expect(slots.isSlow('we_1')).to.equal(false);
    clock.advance(2);
    expect(slots.isSlow('we_1'), 'while it is under way').to.equal(true);
    slot.release();
    expect(slots.isSlow('we_1'), 'when it is over').to.equal(true);
    await took(0);
    await took(0);
    expect(slots.isSlow('we_1')).to.equal(false);
  });
});
