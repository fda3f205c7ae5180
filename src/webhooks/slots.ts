import type { Clock } from '@kusanya/durable-actors';

/**
 * Which attempts may be in flight, so that one slow receiver, or one merchant with many endpoints, does not stand in
 * the way of all others. Each process counts for itself, in memory: nothing here needs Redis.
 *
 * - An endpoint has a few slots: attempts in flight to it at once. One that fails has a single slot.
 * - A merchant has a quarter of a lane's places, however many endpoints it has.
 * - An endpoint that takes long, by what it took lately or by what is in flight now, belongs into the lane of the slow.
 *
 * Every attempt holds a place of its lane while it waits here. So it waits only if a slot will soon be free; otherwise
 * it steps back, that is, it gives up its place and comes again after about as long as it would have waited.
 */
export type Lane = 'first' | 'retry' | 'slow';

/**
 * First attempts to endpoints that are well; what is tried again, and all that goes to failing ones; and all that goes
 * to those who take long.
 */
export const lanes: readonly { name: Lane; concurrency: number }[] = [
  { name: 'first', concurrency: 160 },
  { name: 'retry', concurrency: 60 },
  { name: 'slow', concurrency: 100 },
];
/** A merchant's places in a lane. */
const placesOf = new Map(lanes.map(({ name, concurrency }) => [name, concurrency / 4]));

/** Slots of an endpoint that is well: of a quick one, of others, of a slow one. */
const slotsWhenQuick = 40;
/** Attempts that can be in flight to one endpoint: so many sockets are worth keeping for it. */
export const slotsMax = slotsWhenQuick;
const slotsAtFirst = 20;
const slotsWhenSlow = 10;
const slotsWhenFailing = 1;
const quickMs = 100;
const slowMs = 1_000;
/** What an attempt takes until one has been seen. */
const presumedMs = 150;

/** Worth waiting for, by so many attempts of a merchant at once; by fewer while the endpoint's pace is not known. */
const shortWaitMs = 250;
const waitingMax = 120;
const waitingMaxAtFirst = 20;
const stepBackLeastMs = 300;
const stepBackMostMs = 60_000;
/** Endpoints whose pace is remembered although nothing is in flight to them. */
const loadsMax = 10_000;

/** A slot to be given back, or how long to step back. */
export type Slot = { release(): void } | { stepBackMs: number };

/** Who wants a slot where. */
export interface SlotRequest {
  callId: string;
  endpointId: string;
  merchantId: string;
  lane: Lane;
  /** Not failing, disabled or about to be. */
  isWell: boolean;
}

/** What an endpoint has to do just now. */
interface Load {
  /** Call → since when it is in flight, the oldest first. */
  inFlight: Map<string, number>;
  /** Calls that stepped back → until when: they stand in line too, if not here. */
  away: Map<string, number>;
  /** What an attempt takes, smoothed; absent until one has ended. */
  paceMs?: number;
}

/** A merchant's part of a lane. */
interface Share {
  inFlight: number;
  places: number;
  /** By call, in the order of coming. */
  waiting: Map<string, { attempt: Attempt; start: () => void }>;
}

/** One attempt that wants a slot, waits for it or has it. */
interface Attempt {
  callId: string;
  load: Load;
  share: Share;
  /** What its endpoint had when it came. */
  slots: number;
}

export class Slots {
  readonly #clock: Clock;
  readonly #loads = new Map<string, Load>();
  readonly #shares = new Map<string, Share>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether an endpoint takes long, by what it took lately and by what is in flight to it. */
  isSlow(endpointId: string): boolean {
    const load = this.#loads.get(endpointId);
    return load !== undefined && this.#paceOf(load) > slowMs;
  }

  /** A slot, after a short wait if that is all it takes. */
  async take({ callId, endpointId, merchantId, lane, isWell }: SlotRequest): Promise<Slot> {
    const shareId = `${merchantId}.${lane}`;
    const load = entryOf<Load>(this.#loads, endpointId, () => ({ inFlight: new Map(), away: new Map() }));
    const share = entryOf<Share>(this.#shares, shareId, () => ({
      ...{ inFlight: 0, places: placesOf.get(lane)!, waiting: new Map() },
    }));
    const attempt = { callId, load, share, slots: isWell ? this.#slotsOf(load) : slotsWhenFailing };
    load.away.delete(callId);
    if (isFree(attempt)) this.#start(attempt);
    else if (!(await this.#started(attempt))) {
      const stepBackMs = this.#stepBack(attempt);
      this.#forgetIdle(endpointId, shareId);
      return { stepBackMs };
    }
    const release = () => {
      this.#end(attempt);
      this.#forgetIdle(endpointId, shareId);
    };
    return { release };
  }

  #start({ callId, load, share }: Attempt): void {
    share.inFlight += 1;
    load.inFlight.set(callId, this.#clock.now());
  }

  /** Whether it got a slot while it waited for as long as waiting is worth it. */
  #started(attempt: Attempt): Promise<boolean> {
    const { callId, load, share } = attempt;
    const most = load.paceMs === undefined ? waitingMaxAtFirst : waitingMax;
    const { size } = share.waiting;
    if (size >= most || this.#waitMs(attempt, size) > shortWaitMs) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (isStarted: boolean) => {
        clearTimeout(timer);
        share.waiting.delete(callId);
        if (isStarted) this.#start(attempt);
        resolve(isStarted);
      };
      const timer = setTimeout(() => settle(false), 2 * shortWaitMs);
      share.waiting.set(callId, { attempt, start: () => settle(true) });
    });
  }

  /** Its slot goes to those who wait for it. */
  #end({ callId, load, share }: Attempt): void {
    const now = this.#clock.now();
    const tookMs = Math.max(0, now - (load.inFlight.get(callId) ?? now));
    load.inFlight.delete(callId);
    share.inFlight -= 1;
    load.paceMs = load.paceMs === undefined ? tookMs : load.paceMs + (tookMs - load.paceMs) / 8;
    for (const { attempt, start } of share.waiting.values()) if (isFree(attempt)) start();
  }

  /** How long to stay away. */
  #stepBack(attempt: Attempt): number {
    const { callId, load, share } = attempt;
    const now = this.#clock.now();
    for (const [other, until] of load.away) {
      if (until > now) break; // in order of leaving, and so nearly of return
      load.away.delete(other);
    }
    const waitMs = this.#waitMs(attempt, share.waiting.size + load.away.size);
    const boundedMs = Math.min(Math.max(waitMs, stepBackLeastMs), stepBackMostMs);
    const stepBackMs = boundedMs * (0.75 + Math.random() / 2);
    load.away.set(callId, now + stepBackMs);
    return stepBackMs;
  }

  /** How long it waits for a slot after `ahead` others. */
  #waitMs({ load, share, slots }: Attempt, ahead: number): number {
    return (this.#paceOf(load) * (ahead + 1)) / Math.min(slots, share.places);
  }

  #slotsOf(load: Load): number {
    const paceMs = this.#paceOf(load);
    if (paceMs > slowMs) return slotsWhenSlow;
    return paceMs <= quickMs ? slotsWhenQuick : slotsAtFirst;
  }

  /** What an attempt takes, by those that ended and by the one that is in flight for longest. */
  #paceOf({ inFlight, paceMs = presumedMs }: Load): number {
    const [oldest] = inFlight.values();
    return oldest === undefined ? paceMs : Math.max(paceMs, this.#clock.now() - oldest);
  }

  /** A pace is worth remembering while attempts go there, and for so many endpoints besides; a restart presumes again. */
  #forgetIdle(endpointId: string, shareId: string): void {
    const share = this.#shares.get(shareId);
    if (share?.inFlight === 0 && share.waiting.size === 0) this.#shares.delete(shareId);
    const load = this.#loads.get(endpointId);
    const isIdle = load?.inFlight.size === 0 && load.away.size === 0;
    if (isIdle && this.#loads.size > loadsMax) this.#loads.delete(endpointId);
  }
}

function isFree({ load, share, slots }: Attempt): boolean {
  return share.inFlight < share.places && load.inFlight.size < slots;
}

/** The entry of that id, made if there is none. */
function entryOf<T>(map: Map<string, T>, id: string, make: () => T): T {
  const known = map.get(id);
  if (known !== undefined) return known;
  const made = make();
  map.set(id, made);
  return made;
}
