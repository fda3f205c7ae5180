import type { Clock } from '@kusanya/durable-actors';
import { EndpointLoad } from './endpointLoad.ts';

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

/** A merchant's part of a lane. */
interface Share {
  inFlight: number;
  places: number;
  /** Call → the attempt that waits here and how it is let in, in the order of coming. */
  waiting: Map<string, { attempt: Attempt; letIn: () => void }>;
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

  /** A slot at once, or after a short wait; else how long to step back. */
  async take({ isWell, ...request }: SlotRequest): Promise<Slot> {
    const load = entryOf(this.#loads, request.endpointId, () => new EndpointLoad(this.#clock));
    const share = entryOf(this.#shares, shareId(request), () => newShare(request.lane));
    const attempt = { ...request, load, share, slots: load.slots(isWell) };
    load.comeAgain(attempt.callId);
    if (isFree(attempt)) begin(attempt);
    else if (!isSoonFree(attempt) || !(await hasWaited(attempt))) return this.#stepBack(attempt);
    return { release: () => this.#end(attempt) };
  }

  #stepBack(attempt: Attempt): Slot {
    const { callId, load, share } = attempt;
    const waitMs = waitMsBehind(attempt, share.waiting.size + load.away);
    const boundedMs = Math.min(Math.max(waitMs, stepBackLeastMs), stepBackMostMs);
    const stepBackMs = boundedMs * (0.75 + Math.random() / 2);
    load.leave(callId, stepBackMs);
    this.#forgetIdle(attempt);
    return { stepBackMs };
  }

  /** Its slot goes to those who wait for it. */
  #end(attempt: Attempt): void {
    const { callId, load, share } = attempt;
    load.end(callId);
    share.inFlight -= 1;
    for (const { attempt: next, letIn } of share.waiting.values()) if (isFree(next)) letIn();
    this.#forgetIdle(attempt);
  }

  /** A pace is worth remembering while attempts go there, and for so many endpoints besides; a restart presumes again. */
  #forgetIdle(attempt: Attempt): void {
    const id = shareId(attempt);
    const share = this.#shares.get(id);
    if (share?.inFlight === 0 && share.waiting.size === 0) this.#shares.delete(id);
    if (this.#loads.size > loadsMax && attempt.load.isIdle) this.#loads.delete(attempt.endpointId);
  }
}

function isFree({ load, share, slots }: Attempt): boolean {
  return share.inFlight < share.places && load.inFlight < slots;
}

function begin({ callId, load, share }: Attempt): void {
  share.inFlight += 1;
  load.begin(callId);
}

/** Whether it is worth waiting here, with the place of the lane in hand. */
function isSoonFree(attempt: Attempt): boolean {
  const { size } = attempt.share.waiting;
  const most = attempt.load.isKnown ? waitingMax : waitingMaxAtFirst;
  return size < most && waitMsBehind(attempt, size) <= shortWaitMs;
}

/** Waits in line, a little longer than expected. Whether it was let in, and so has begun. */
function hasWaited(attempt: Attempt): Promise<boolean> {
  const { callId, share } = attempt;
  return new Promise((resolve) => {
    const leave = (isLetIn: boolean) => {
      clearTimeout(timer);
      share.waiting.delete(callId);
      if (isLetIn) begin(attempt);
      resolve(isLetIn);
    };
    const timer = setTimeout(() => leave(false), 2 * shortWaitMs);
    share.waiting.set(callId, { attempt, letIn: () => leave(true) });
  });
}

/** How long it takes until a slot is free after `ahead` others. */
function waitMsBehind({ load, share, slots }: Attempt, ahead: number): number {
  return (load.paceMs * (ahead + 1)) / Math.min(slots, share.places);
}

function shareId({ merchantId, lane }: Pick<SlotRequest, 'merchantId' | 'lane'>): string {
  return `${merchantId}.${lane}`;
}

function newShare(lane: Lane): Share {
  return { inFlight: 0, places: placesOf.get(lane)!, waiting: new Map() };
}

/** The entry of that id, made if there is none. */
function entryOf<T>(map: Map<string, T>, id: string, make: () => T): T {
  const known = map.get(id);
  if (known !== undefined) return known;
  const made = make();
  map.set(id, made);
  return made;
}
