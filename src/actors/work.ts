import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job } from 'bullmq';
import type { Clock } from '../clock.ts';
import { failpoint } from '../failpoint.ts';
import type { Log } from '../log.ts';
import type { Queues } from '../queue.ts';
import type { Actors } from './actors.ts';
import { Claim } from './claim.ts';
import { isOutage } from './commit.ts';
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
  type WorkWatch,
} from './document.ts';
import { callQueue, type Handover, nextTimer, wakeId, wakeQueue } from './handover.ts';

interface JobData {
  machine: string;
  actor: string;
  call?: string;
}

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
}

interface WorkersOptions {
  actors: Actors;
  queues: Queues;
  handover: Handover;
  clock: Clock;
  log: Log;
  wakeConcurrency?: number;
  watch?: WorkWatch;
}

/** Early by less than this is on time: clocks of processes differ a little. */
const earlyMs = 20;
/** A job about a document of newer code is put back for this long, until a newer worker takes it. */
const newerMs = 2_000;
/** Pause between attempts to tell an answer while MongoDB is away. */
const answerPauseMs = 500;
/** Calls that this process makes at once while there is no queue to take them from. */
const makingHereMax = 200;

/** Runs what BullMQ wakes us up for. Every decision is taken on the actor's document, never on the job. */
export class ActorWorkers {
  readonly #options: WorkersOptions;
  readonly #stopping = new AbortController();
  readonly #makingHere = new Map<string, Promise<unknown>>();

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Starts a worker for the timers and one for every kind (and lane) of call. */
  start(): void {
    const { actors, queues } = this.#options;
    queues.work(wakeQueue, this.#options.wakeConcurrency ?? 50, (job, token) => this.#wakeJob(job, token));
    for (const definition of actors.definitions) {
      for (const [type, effect] of Object.entries(definition.calls)) {
        const lanes = effect.lanes ?? [{ name: undefined, concurrency: effect.concurrency }];
        for (const { name, concurrency } of lanes) {
          queues.work(callQueue(type, name), concurrency, (job, token) => this.#callJob(job, token, name));
        }
      }
    }
  }

  /** Open pushes are told to stop: they answer "unknown" rather than hold up the end of the process. */
  async stop(patienceMs: number): Promise<void> {
    const hurry = setTimeout(() => this.#stopping.abort(), patienceMs / 2);
    const here = Promise.all(this.#makingHere.values());
    await Promise.all([
      this.#options.queues.stopWorkers(patienceMs),
      Promise.race([here, sleep(patienceMs, undefined, { ref: false })]),
    ]);
    clearTimeout(hurry);
    this.#stopping.abort();
  }

  /**
   * Fires whatever timers of an actor are due by its document, earliest first. Returns the actor when it came
   * too early: it has timers, but none of them is due.
   */
  async wake(machine: string, id: string): Promise<ActorDoc | undefined> {
    const { actors, clock } = this.#options;
    for (let fired = 0; fired < 50; fired += 1) {
      const doc = await actors.read({ machine, id });
      if (!doc || doc.quarantined || doc.timers.length === 0) return undefined;
      const now = clock.now();
      const dueAt = nextTimer(doc.timers);
      if (dueAt > now + earlyMs) return fired === 0 ? doc : undefined;
      const due = doc.timers.find((timer) => timer.dueAt.getTime() === dueAt)!;
      const stepId = `${id}.${due.armedSeq}.${due.id}`;
      failpoint('beforeTimer');
      await actors.send(
        { machine, id },
        // Never before its time, however little: guards compare.
        { type: due.event, at: Math.max(now, dueAt) },
        { stepId, cause: { kind: 'timer', id: due.id }, fires: { id: due.id, armedSeq: due.armedSeq } },
      );
      failpoint('afterTimer');
      this.#options.watch?.fired({ machine, event: due.event, lateMs: Math.max(0, now - dueAt) });
    }
    return undefined;
  }

  /** Makes a call if its document still has it and answers it to the actor; or hears that it has to wait. */
  async make(
    machine: string,
    id: string,
    callId: string,
    earlierStarts: number,
    lane?: string,
  ): Promise<Waits | undefined> {
    const { actors, clock } = this.#options;
    const has = (each: ActorDoc) => each.calls.some((open) => open.id === callId);
    const doc = await actors.find({ machine, id }, has);
    const call = doc?.calls.find((each) => each.id === callId);
    if (!doc || doc.quarantined || !call) return undefined;
    const effect = actors.definition(machine).calls[call.type]!;
    this.#options.handover.remind(machine, doc); // the step that asked for the call left it to us
    if (effect.atMostOnce && call.startedAt) {
      await this.#lost(machine, id, callId, effect);
      return undefined;
    }
    const claim = new Claim(clock, effect.atMostOnce && (() => actors.claim({ machine, id }, callId)));
    const making = this.#run({ machine, doc, call, earlierStarts, lane, effect, claim });
    return this.#withPatience(making, callId, effect, claim);
  }

  /** Has the effect make the call, and tells what it answers; whose call it is is decided by the claim. */
  async #run({ machine, doc, call, earlierStarts, lane, effect, claim }: Making): Promise<Waits | undefined> {
    const { clock, watch } = this.#options;
    const view: CallView = {
      ...{ doc, call, earlierStarts, lane, at: clock.now(), signal: this.#stopping.signal },
      claim: claim.ask,
      get claimedAt() {
        return claim.claimedAt;
      },
    };
    const told = (answer?: CallAnswer) =>
      watch?.called({ machine, doc, call, answer, durationMs: claim.durationMs });
    failpoint('beforeCall');
    const answer = await effect.run(view).catch((error) => {
      told();
      throw error;
    });
    failpoint('afterCall');
    const claimed = await claim.outcome();
    if (claimed === 'refused') {
      await this.#lost(machine, doc._id, call.id, effect);
      return undefined;
    }
    if ('left' in answer) return undefined;
    if ('postponeMs' in answer) return { postponed: answer, doc, call };
    told(answer);
    const unclaimed = effect.atMostOnce !== undefined && claimed === 'unasked';
    await this.#answer(machine, doc._id, call.id, effect, answer, unclaimed);
    failpoint('afterCallAnswer');
    return undefined;
  }

  /** One that hangs gives its place free once the sweep may have it made again; a late answer is still told. */
  async #withPatience<T>(
    making: Promise<T>,
    callId: string,
    effect: CallEffect,
    claim: Claim,
  ): Promise<T | undefined> {
    const { log } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<'over'>((resolve) => {
      timer = setTimeout(resolve, effect.patienceMs, 'over').unref();
    });
    claim.whenClaimed = () => timer?.refresh();
    const first = await Promise.race([making, over]).finally(() => clearTimeout(timer));
    if (first !== 'over') return first;
    log.warn({ call: callId }, 'a call takes longer than anybody waits for it');
    making.catch((error) => log.warn({ call: callId, error: String(error) }, 'late answer not told'));
    return undefined;
  }

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

  /** A claimed call that nobody answered: what became of it is unknown, and it is never made again. */
  async #lost(machine: string, id: string, callId: string, effect: CallEffect): Promise<void> {
    const { actors, clock } = this.#options;
    const doc = await actors.read({ machine, id });
    const call = doc?.calls.find((each) => each.id === callId);
    if (!call?.startedAt || clock.now() < call.dueAt.getTime()) return;
    await actors.send({ machine, id }, effect.atMostOnce!.lost(call, clock.now()), {
      stepId: `${callId}.lost`,
      cause: { kind: 'call', id: callId },
      answers: { callId, factual: false },
    });
  }

  /** An unanswered call whose time is over: given up if it is made at most once, else made again. */
  async overdue(machine: string, doc: ActorDoc, call: Call): Promise<void> {
    const { actors, handover } = this.#options;
    const effect = actors.definition(machine).calls[call.type];
    if (effect?.atMostOnce && call.startedAt) await this.#lost(machine, doc._id, call.id, effect);
    else if (effect && handover.canQueue) handover.call(machine, doc, call);
    else this.#makeHere(machine, doc._id, call.id);
  }

  /** Without the queue, and in the background: a slow one holds up no sweep, and the next finds it under way. */
  #makeHere(machine: string, id: string, callId: string): void {
    if (this.#makingHere.has(callId) || this.#makingHere.size >= makingHereMax) return;
    const made = this.make(machine, id, callId, 0)
      .catch((error) => this.#options.log.warn({ call: callId, error: String(error) }, 'left to the sweep'))
      .finally(() => this.#makingHere.delete(callId));
    this.#makingHere.set(callId, made);
  }

  async #wakeJob(job: Job, token: string): Promise<void> {
    const { machine, actor } = job.data as JobData;
    const { handover, clock } = this.#options;
    await this.#tolerate(job, token, async () => {
      const early = await this.wake(machine, actor);
      if (!early) return;
      // The job for that very moment cannot be added while it is in hand, so it goes back; others are leftovers.
      const dueAt = nextTimer(early.timers);
      if (job.id === wakeId(actor, dueAt)) await putBack(job, token, dueAt - clock.now());
      handover.remind(machine, early);
    });
  }

  async #callJob(job: Job, token: string, lane?: string): Promise<void> {
    const { machine, actor, call } = job.data as JobData;
    await this.#tolerate(job, token, async () => {
      await this.#waitForItsTime(job, token);
      const stalled = Math.max(0, job.stalledCounter ?? 0);
      const waits = await this.make(machine, actor, call!, stalled, lane);
      if (!waits) return;
      const { postponed } = waits;
      if (postponed.lane !== undefined && postponed.lane !== lane) {
        this.#options.handover.call(machine, waits.doc, waits.call, postponed.lane);
        return;
      }
      await putBack(job, token, postponed.postponeMs);
    });
  }

  /** BullMQ judges delays by the worker's own clock; the document's time counts. */
  async #waitForItsTime(job: Job, token: string): Promise<void> {
    if (!job.opts.delay) return;
    const { machine, actor, call } = job.data as JobData;
    const doc = await this.#options.actors.read({ machine, id: actor });
    const notBefore = doc?.calls.find(({ id }) => id === call)?.notBefore.getTime();
    const now = this.#options.clock.now();
    if (notBefore === undefined || notBefore <= now + earlyMs) return;
    await putBack(job, token, notBefore - now);
  }

  /** A fault of one actor or of MongoDB is logged; the document still says what is due, and the sweep asks again. */
  async #tolerate(job: Job, token: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof DelayedError) throw error;
      if (error instanceof NewerDocument) await putBack(job, token, newerMs);
      const level = error instanceof ActorMissing || error instanceof Poison ? 'info' : 'warn';
      this.#options.log[level](
        { job: job.id, queue: job.queueName, error: String(error) },
        'left to the sweep',
      );
    }
  }
}

/** Back into the queue for a while, by the worker's own clock, by which BullMQ judges delays. Never returns. */
async function putBack(job: Job, token: string, afterMs: number): Promise<never> {
  await job.moveToDelayed(Date.now() + Math.max(1, Math.ceil(afterMs)), token);
  throw new DelayedError();
}
