import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Actors } from './actors.ts';
import type { AskAhead } from './ahead.ts';
import { errandsOf } from './bundle.ts';
import { Claim } from './claim.ts';
import { type Clock, stopwatch } from './clock.ts';
import {
  type ActorDoc,
  ActorMissing,
  type Call,
  type CallAnswer,
  type CallEffect,
  type CallPostponed,
  type CallView,
  NewerDocument,
  Poison,
  type SendResult,
  type WorkWatch,
} from './document.ts';
import { failpoint } from './failpoint.ts';
import { callQueue, type Handover, nextTimer, wakeQueue } from './handover.ts';
import type { Errand, Lanes, Place } from './lanes.ts';
import type { Log } from './log.ts';
import { isOutage } from './mongo.ts';
import { withPatience } from './patience.ts';
import type { Queues } from './queue.ts';
import { inTime } from './time-limit.ts';

/** A call that has to wait. */
interface Waits {
  postponed: CallPostponed;
  doc: ActorDoc;
  call: Call;
}

/** A call on its way. */
interface Making extends Pick<CallView, 'doc' | 'call' | 'earlierStarts' | 'lane'> {
  machine: string;
  effect: CallEffect;
  claim: Claim;
  place: Place;
}

interface WorkersOptions {
  actors: Actors;
  queues: Queues;
  handover: Handover;
  lanes: Lanes;
  clock: Clock;
  log: Log;
  watch?: Partial<WorkWatch>;
}

/** Early by less than this is on time: clocks of processes differ a little. */
const earlyMs = 20;
/** An errand about a document of newer code is put back for this long, until a newer worker takes it. */
const newerMs = 2_000;
/** Pause between attempts to tell an answer while MongoDB is away. */
const answerPauseMs = 500;
/** What is asked before its step is committed holds that up for so long at the most. */
const aheadMs = 300;
/** A call that was set aside for so long may have been made by others: it is looked at again. */
const asideMs = 1_000;
/** Where there is no place to give up. */
const nowhere: Place = { aside: (until) => until, leave: () => {} };
/** Actors that are woken at once, and jobs of them that are taken at once: each may hold many. */
const wakesAtOnce = 200;
const wakeJobsAtOnce = 10;

/** Does what its lanes hold. Every decision is taken on the actor's document, never on the errand. */
export class ActorWorkers {
  readonly #options: WorkersOptions;
  readonly #stopping = new AbortController();

  constructor(options: WorkersOptions) {
    this.#options = options;
    // Every open call may listen: more than ten are no leak.
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Opens the lanes for the timers and for every kind (and lane) of call, with a worker of its queue for each. */
  start(): void {
    const { actors, lanes } = this.#options;
    actors.ahead.ask = this.#askAhead;
    lanes.open(wakeQueue, wakesAtOnce, (errand) => this.#wakeErrand(errand));
    this.#work(wakeQueue, wakeJobsAtOnce);
    for (const definition of actors.definitions) {
      for (const [type, effect] of Object.entries(definition.calls)) {
        const kinds = effect.lanes ?? [{ name: undefined, concurrency: effect.concurrency }];
        for (const { name, concurrency } of kinds) {
          const queue = callQueue(definition.name, type, name);
          lanes.open(queue, concurrency, (errand, place) => {
            return this.#callErrand(queue, errand, place, name);
          });
          this.#work(queue, concurrency);
        }
      }
    }
  }

  /** A job is done when all its errands are; one that is redone finds those that are. */
  #work(queue: string, jobsAtOnce: number): void {
    const { queues, lanes, handover } = this.#options;
    queues.work(queue, jobsAtOnce, async (job) => {
      const losses = Math.max(0, job.stalledCounter ?? 0);
      const through = async (errand: Errand) => {
        if (!(await lanes.run(queue, { ...errand, losses }))) handover.leave(queue, [errand]);
      };
      await Promise.all(errandsOf(job.data).map(through));
    });
  }

  /**
   * Empties the lanes: what has not begun is handed over, what has is waited for. Open calls are told to stop: they
   * answer "unknown" rather than hold up the end of the process.
   */
  async stop(patienceMs: number): Promise<void> {
    const { queues, lanes, handover } = this.#options;
    const hurry = setTimeout(() => this.#stopping.abort(), patienceMs / 2);
    for (const [queue, errands] of lanes.close()) handover.leave(queue, errands);
    await Promise.all([queues.stopWorkers(patienceMs), inTime(lanes.drained(), patienceMs)]);
    clearTimeout(hurry);
    this.#stopping.abort();
  }

  /**
   * Fires whatever timers of an actor are due by its document, earliest first. Returns the actor when it came
   * too early: it has timers, but none of them is due.
   */
  async wake(machine: string, id: string): Promise<ActorDoc | undefined> {
    const { actors, clock } = this.#options;
    const isDue = ({ timers }: ActorDoc) => nextTimer(timers) <= clock.now() + earlyMs;
    let doc = await actors.find({ machine, id }, isDue);
    let hasFired = false;
    for (let tries = 0; tries < 50; tries += 1) {
      if (!doc || doc.quarantined || doc.timers.length === 0) return undefined;
      const now = clock.now();
      const dueAt = nextTimer(doc.timers);
      if (dueAt > now + earlyMs) return hasFired ? undefined : doc;
      const due = doc.timers.find((timer) => timer.dueAt.getTime() === dueAt)!;
      const stepId = `${id}.${due.armedSeq}.${due.id}`;
      failpoint('beforeTimer');
      const sent: SendResult = await actors.send(
        { machine, id },
        // Never before its time, however little: guards compare.
        { type: due.event, at: Math.max(now, dueAt) },
        { stepId, cause: { kind: 'timer', id: due.id }, fires: { id: due.id, armedSeq: due.armedSeq } },
      );
      failpoint('afterTimer');
      doc = sent.doc;
      if (sent.outcome !== 'stepped') continue; // somebody else was faster
      hasFired = true;
      this.#options.watch?.fired?.({ machine, event: due.event, lateMs: Math.max(0, now - dueAt) });
    }
    return undefined;
  }

  /** Makes a call if its document still has it and answers it to the actor; or hears that it has to wait. */
  async make(
    machine: string,
    id: string,
    callId: string,
    losses: number,
    lane?: string,
    place = nowhere,
  ): Promise<Waits | undefined> {
    const { actors, clock } = this.#options;
    const has = (each: ActorDoc) => each.calls.some((open) => open.id === callId);
    const doc = await actors.find({ machine, id }, has);
    const call = doc?.calls.find((each) => each.id === callId);
    if (!doc || doc.quarantined || !call) return undefined;
    const effect = actors.definition(machine).calls[call.type]!;
    // BullMQ judges delays by the worker's own clock; the document's time counts.
    const earlyBy = call.notBefore.getTime() - clock.now();
    if (earlyBy > earlyMs) return { postponed: { postponeMs: earlyBy }, doc, call };
    this.#options.handover.remind(machine, doc); // the step that asked for the call left it to us
    if (effect.atMostOnce && call.startedAt) {
      await this.#lost(machine, id, callId, effect);
      return undefined;
    }
    const claim = new Claim(clock, effect.atMostOnce && (() => actors.claim({ machine, id }, callId)));
    const earlierStarts = losses + (call.losses ?? 0);
    const making = this.#run({ machine, doc, call, earlierStarts, lane, effect, claim, place });
    return withPatience(making, this.#options.log, { callId, effect, claim });
  }

  /** Has the effect make the call, and tells what it answers; whose call it is is decided by the claim. */
  async #run(making: Making): Promise<Waits | undefined> {
    const { machine, doc, call, effect, claim, place } = making;
    const answer = await this.#made(making);
    const claimed = await claim.outcome();
    if (claimed === 'refused') {
      await this.#lost(machine, doc._id, call.id, effect);
      return undefined;
    }
    if ('left' in answer) return undefined;
    if ('postponeMs' in answer) return { postponed: answer, doc, call };
    this.#watched(making, answer);
    place.leave();
    const unclaimed = effect.atMostOnce !== undefined && claimed === 'unasked';
    await this.#answer(machine, doc._id, call.id, effect, answer, unclaimed);
    failpoint('afterCallAnswer');
    return undefined;
  }

  /** What the effect answers. */
  async #made(making: Making): ReturnType<CallEffect['run']> {
    const { doc, call, earlierStarts, lane, effect, claim } = making;
    const view: CallView = {
      ...{ doc, call, earlierStarts, lane, at: this.#options.clock.now(), signal: this.#stopping.signal },
      claim: claim.ask,
      aside: (until) => this.#aside(making, until),
      get claimedAt() {
        return claim.claimedAt;
      },
    };
    failpoint('beforeCall');
    const answer = await effect.run(view).catch((error) => {
      this.#watched(making);
      throw error;
    });
    failpoint('afterCall');
    return answer;
  }

  async #aside<T>({ machine, doc, call, claim, place }: Making, until: Promise<T>): Promise<T | undefined> {
    const elapsedMs = stopwatch();
    const value = await place.aside(until);
    claim.whenBegun();
    if (value === undefined || elapsedMs() < asideMs) return value;
    const now = await this.#options.actors.read({ machine, id: doc._id });
    const isOpen = !now?.quarantined && now?.calls.some(({ id, startedAt }) => id === call.id && !startedAt);
    return isOpen ? value : undefined;
  }

  #watched({ machine, doc, call, claim }: Making, answer?: CallAnswer): void {
    this.#options.watch?.called?.({ machine, doc, call, answer, durationMs: claim.durationMs });
  }

  /** Makes a call whose step is not committed yet, if there is a place free; what answers later is told as ever. */
  readonly #askAhead: AskAhead = (machine, doc, call) => {
    const { actors, handover, lanes, clock, log } = this.#options;
    const effect = actors.definition(machine).calls[call.type]!;
    const queue = handover.queueOf(machine, doc, call);
    const errand = { machine, actor: doc._id, call: call.id };
    const claim = new Claim(clock, undefined);
    const asked = { machine, doc, call, earlierStarts: 0, lane: undefined };
    const making: Making = { ...asked, effect, claim, place: nowhere };
    return new Promise((resolve) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        resolve(undefined);
      }, aheadMs);
      const ask = async (leave: () => void) => {
        const answer = await this.#made(making);
        leave();
        clearTimeout(timer);
        if ('event' in answer) this.#watched(making, answer);
        if (!isLate) resolve('event' in answer ? answer : undefined);
        else if ('event' in answer) await this.#answer(machine, doc._id, call.id, effect, answer, false);
        else if ('postponeMs' in answer) handover.later(queue!, errand, answer.postponeMs);
      };
      const work = (leave: () => void) =>
        withPatience(ask(leave), log, { callId: call.id, effect, claim }).catch((error) => {
          this.#options.log.warn({ ...errand, queue, error: String(error) }, 'left to the sweep');
          clearTimeout(timer);
          resolve(undefined);
        });
      if (queue !== undefined && lanes.begin(queue, errand, work)) return;
      clearTimeout(timer);
      resolve(undefined);
    });
  };

  /** Tells the answer, also through an outage of MongoDB: it may be the only one there is. */
  async #answer(
    machine: string,
    id: string,
    callId: string,
    effect: CallEffect,
    { event, writes }: CallAnswer,
    unclaimed: boolean,
  ): Promise<void> {
    const { actors, clock } = this.#options;
    const giveUpAt = clock.now() + effect.patienceMs;
    for (let again = false; ; again = true) {
      try {
        await actors.send(
          { machine, id },
          { ...event, at: clock.now() },
          {
            stepId: callId,
            cause: { kind: 'call', id: callId },
            answers: { callId, factual: effect.factual ?? false, unclaimed },
            again,
            ...(writes ? { writes } : {}),
          },
        );
        return;
      } catch (error) {
        if (!isOutage(error) || this.#stopping.signal.aborted || clock.now() >= giveUpAt) throw error;
        await sleep(answerPauseMs);
      }
    }
  }

  /**
   * A claimed call that nobody answered: what became of it is unknown, and it is never made again. `dead`: the process
   * that claimed it, if that is known to have died; there is nobody left to wait for then.
   */
  async #lost(machine: string, id: string, callId: string, effect: CallEffect, dead?: string): Promise<void> {
    const { actors, clock } = this.#options;
    const doc = await actors.read({ machine, id });
    const call = doc?.calls.find((each) => each.id === callId);
    const isOver =
      call && ((dead !== undefined && call.owner === dead) || clock.now() >= call.dueAt.getTime());
    if (!call?.startedAt || !isOver) return;
    await actors.send({ machine, id }, effect.atMostOnce!.lost(call, clock.now()), {
      stepId: `${callId}.lost`,
      cause: { kind: 'call', id: callId },
      answers: { callId, factual: false },
    });
  }

  /**
   * An unanswered call whose time is over: given up if it is made at most once, else made again. By this process, if
   * it has room, since whoever had it did not make it; else by way of the queue, where `mayQueue` says so.
   */
  async overdue(machine: string, doc: ActorDoc, call: Call, mayQueue = true): Promise<void> {
    const { actors, handover } = this.#options;
    const effect = actors.definition(machine).calls[call.type];
    if (effect?.atMostOnce && call.startedAt) await this.#lost(machine, doc._id, call.id, effect);
    else if (!handover.callHere(machine, doc, call) && mayQueue) handover.queueCall(machine, doc, call);
  }

  /**
   * What a dead process had in hand becomes ours, by a commit, so that it is found again should we die too; what it
   * had claimed is lost at once.
   */
  async inherit(machine: string, doc: ActorDoc, owner: string): Promise<void> {
    const { actors, handover } = this.#options;
    const ref = { machine, id: doc._id };
    for (const call of doc.calls.filter((each) => each.owner === owner)) {
      const effect = actors.definition(machine).calls[call.type];
      if (effect?.atMostOnce && call.startedAt) await this.#lost(machine, doc._id, call.id, effect, owner);
      else {
        const adopted = await actors.adopt(ref, call.id, owner);
        const now = adopted?.calls.find(({ id }) => id === call.id);
        if (adopted && now) handover.call(machine, adopted, now);
      }
    }
  }

  #wakeErrand(errand: Errand): Promise<(() => void) | undefined> {
    const { machine, actor } = errand;
    const { handover } = this.#options;
    return this.#tolerate(wakeQueue, errand, async () => {
      const early = await this.wake(machine, actor);
      return early && (() => handover.again(machine, early));
    });
  }

  #callErrand(queue: string, errand: Errand, place: Place, lane?: string): Promise<(() => void) | undefined> {
    const { machine, actor, call, losses = 0 } = errand;
    const { handover } = this.#options;
    return this.#tolerate(queue, errand, async () => {
      const waits = await this.make(machine, actor, call!, losses, lane, place);
      if (!waits) return undefined;
      const { postponed } = waits;
      const to = postponed.lane === undefined ? queue : callQueue(machine, waits.call.type, postponed.lane);
      return () => handover.later(to, errand, postponed.postponeMs);
    });
  }

  /** A fault of one actor or of MongoDB is logged; the document still says what is due, and the sweep asks again. */
  async #tolerate(
    queue: string,
    errand: Errand,
    work: () => Promise<(() => void) | undefined>,
  ): Promise<(() => void) | undefined> {
    try {
      return await work();
    } catch (error) {
      const level = error instanceof ActorMissing || error instanceof Poison ? 'info' : 'warn';
      this.#options.log[level]({ ...errand, queue, error: String(error) }, 'left to the sweep');
      if (!(error instanceof NewerDocument)) return undefined;
      return () => this.#options.handover.later(queue, errand, newerMs);
    }
  }
}
