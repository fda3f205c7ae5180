import { type CallView, type Clock, stopwatch } from '@kusanya/durable-actors';
import { Away, EndpointLoad } from './endpointLoad.ts';

/**
 * Which attempts may be in flight, so that one slow receiver, or one merchant with many endpoints, does not stand in
 * the way of all others. Each process counts for itself, in memory: nothing here needs Redis.
 *
 * - An endpoint has a few slots: attempts in flight to it at once. One that fails has a single slot.
 * - A merchant has a quarter of a lane's places, however many endpoints it has.
 * - An endpoint that takes long, by what it took lately or by what is in flight now, belongs into the lane of the slow.
 *
 * An attempt for which there is no slot waits in its merchant's line, without the place in the lane that others need
 * meanwhile. It waits only if its turn comes soon; otherwise it steps back, that is, it comes again by way of the queue,
 * after about as long as it would have waited. But where an endpoint is quick, a longer line is gone in a moment: whoever
 * is next keeps its place in the lane until there is room in the line, and those behind are not even looked at.
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

/**
 * So long a wait is worth it. The slow are waited for longer: as many as its places fill in that time a merchant always
 * has at hand. In other lanes a long wait is a reason to look again at what has become slow meanwhile.
 */
const waitsMs: Readonly<Record<Lane, number>> = { first: 250, retry: 250, slow: 4_000 };
/** Of a merchant in a lane. */
const waitingMax = 500;
const stepBackLeastMs = 300;
const stepBackMostMs = 60_000;
/** Endpoints whose pace is remembered although nothing is in flight to them. */
const loadsMax = 10_000;

/** A slot to be given back, and how long it was waited for; or how long to step back; or it is nothing to do here. */
export type Slot = { release(): void; waitedMs: number } | { stepBackMs: number } | { left: true };

/** Who wants a slot where. */
export interface SlotRequest {
  callId: string;
  endpointId: string;
  merchantId: string;
  lane: Lane;
  /** Not failing, disabled or about to be. */
  isWell: boolean;
}

/** A merchant's part of a lane. */
interface Share {
  inFlight: number;
  places: number;
  away: Away;
  /** Call → the attempt that waits here and how it is let in, in the order of coming. */
  waiting: Map<string, { attempt: Attempt; letIn: () => void }>;
  /** Those that are next in line, in the order of coming: one more may stand in it, or it takes too long. */
  next: Set<(hasRoom: boolean) => void>;
}

/** One attempt that wants a slot, waits for it or has it. */
interface Attempt extends Omit<SlotRequest, 'isWell'> {
  load: EndpointLoad;
  share: Share;
  /** What its endpoint had when it came. */
  slots: number;
}

export class Slots {
  readonly #clock: Clock;
  readonly #loads = new Map<string, EndpointLoad>();
  readonly #shares = new Map<string, Share>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether an endpoint takes long, by what it took lately and by what is in flight to it. */
  isSlow(endpointId: string): boolean {
    return this.#loads.get(endpointId)?.isSlow ?? false;
  }

  /**
   * A slot at once, or after a wait that is spent in `aside`; else how long to step back. `left`: it waits elsewhere, or
   * is no more for this process to make.
   */
  async take({ isWell, ...request }: SlotRequest, aside: CallView['aside']): Promise<Slot> {
    const load = entryOf(this.#loads, request.endpointId, () => new EndpointLoad(this.#clock));
    const share = entryOf(this.#shares, shareId(request), () => newShare(request.lane, this.#clock));
    const attempt = { ...request, load, share, slots: load.slots(isWell) };
    const elapsedMs = stopwatch();
    // Somebody looked for it too soon: it has its job.
    if (!isFree(attempt) && load.away.has(request.callId)) return { left: true };
    while (!isFree(attempt) && !isSoonFree(attempt)) {
      const mayKeepPlace = isWell && load.isQuick;
      if (!mayKeepPlace || !(await hasRoom(share))) return this.#stepBack(attempt);
    }
    if (isFree(attempt)) {
      begin(attempt);
      return { release: () => this.#end(attempt), waitedMs: elapsedMs() };
    }
    const turn = standInLine(attempt);
    const isLetIn = await aside(turn);
    if (isLetIn) return { release: () => this.#end(attempt), waitedMs: elapsedMs() };
    if (isLetIn === false) return this.#stepBack(attempt);
    // What is left here may have its turn all the same.
    void turn.then((hasBegun) => hasBegun && this.#end(attempt));
    return { left: true };
  }

  #stepBack(attempt: Attempt): Slot {
    const { callId, load, share } = attempt;
    const waitMs = waitMsBehind(attempt, load.away.size, share.away.size);
    const boundedMs = Math.min(Math.max(waitMs, stepBackLeastMs), stepBackMostMs);
    const stepBackMs = boundedMs * (0.75 + Math.random() / 2);
    load.away.leave(callId, stepBackMs);
    share.away.leave(callId, stepBackMs);
    this.#forgetIdle(attempt);
    return { stepBackMs };
  }

  /** Its slot goes to those who wait for it. */
  #end(attempt: Attempt): void {
    const { callId, load, share } = attempt;
    load.end(callId);
    share.inFlight -= 1;
    // One has ended, so one may begin.
    for (const { attempt: next, letIn } of share.waiting.values()) {
      if (!isFree(next)) continue;
      letIn();
      break;
    }
    const [next] = share.next;
    next?.(true);
    this.#forgetIdle(attempt);
  }

  /** A pace is worth remembering while attempts go there, and for so many endpoints besides; a restart presumes again. */
  #forgetIdle(attempt: Attempt): void {
    const id = shareId(attempt);
    const share = this.#shares.get(id);
    if (share?.inFlight === 0 && share.waiting.size + share.next.size === 0) this.#shares.delete(id);
    if (this.#loads.size > loadsMax && attempt.load.isIdle) this.#loads.delete(attempt.endpointId);
  }
}

function isFree({ load, share, slots }: Attempt): boolean {
  return share.inFlight < share.places && load.inFlight < slots;
}

function begin({ callId, load, share }: Attempt): void {
  for (const { away } of [load, share]) away.comeAgain(callId);
  share.inFlight += 1;
  load.begin(callId);
}

function isSoonFree(attempt: Attempt): boolean {
  const { share, lane } = attempt;
  return share.waiting.size < waitingMax && waitMsBehind(attempt, 0, 0) <= waitsMs[lane];
}

/** Waits in line, a little longer than expected. Whether it was let in, and so has begun. */
function standInLine(attempt: Attempt): Promise<boolean> {
  const { callId, share, load, lane } = attempt;
  return new Promise((resolve) => {
    const leave = (isLetIn: boolean) => {
      clearTimeout(timer);
      share.waiting.delete(callId);
      load.waiting -= 1;
      if (isLetIn) begin(attempt);
      resolve(isLetIn);
    };
    const timer = setTimeout(() => leave(false), 2 * waitsMs[lane]);
    share.waiting.set(callId, { attempt, letIn: () => leave(true) });
    load.waiting += 1;
  });
}

/** Waits until one that was in flight has ended. False: none did, the endpoint is not quick any more. */
function hasRoom(share: Share): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isThere: boolean) => {
      clearTimeout(timer);
      share.next.delete(end);
      resolve(isThere);
    };
    const timer = setTimeout(() => end(false), waitsMs.first);
    share.next.add(end);
  });
}

/** How long it takes until a slot is free: of the endpoint, behind those who wait for it, and of the merchant. */
function waitMsBehind(
  { load, share, slots }: Attempt,
  awayOfEndpoint: number,
  awayOfMerchant: number,
): number {
  const ofEndpoint = (load.waiting + awayOfEndpoint + 1) / slots;
  const ofMerchant = (share.waiting.size + awayOfMerchant + 1) / share.places;
  return load.paceMs * Math.max(ofEndpoint, ofMerchant);
}

function shareId({ merchantId, lane }: Pick<SlotRequest, 'merchantId' | 'lane'>): string {
  return `${merchantId}.${lane}`;
}

function newShare(lane: Lane, clock: Clock): Share {
  return {
    inFlight: 0,
    places: placesOf.get(lane)!,
    waiting: new Map(),
    next: new Set(),
    away: new Away(clock),
  };
}

/** The entry of that id, made if there is none. */
function entryOf<T>(map: Map<string, T>, id: string, make: () => T): T {
  const known = map.get(id);
  if (known !== undefined) return known;
  const made = make();
  map.set(id, made);
  return made;
}
