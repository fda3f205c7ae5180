import { DelayedError, type Job } from 'bullmq';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Queues } from '../queue.ts';
import type { Actors } from './actors.ts';
import {
  type ActorDoc,
  ActorMissing,
  type Call,
  type CallEffect,
  type CallPostponed,
  NewerDocument,
  Poison,
} from './document.ts';
import { callQueue, type Handover, wakeQueue } from './handover.ts';

interface JobData {
  machine: string;
  actor: string;
  call?: string;
}

interface WorkersOptions {
  actors: Actors;
  queues: Queues;
  handover: Handover;
  clock: Clock;
  log: Log;
  wakeConcurrency?: number;
}

/** Early by less than this is on time: clocks of processes differ a little. */
const earlyMs = 20;

/** Runs what BullMQ wakes us up for. Every decision is taken on the actor's document, never on the job. */
export class ActorWorkers {
  readonly #options: WorkersOptions;
  readonly #stopping = new AbortController();

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Starts a worker for the timers and one for every kind (and lane) of call. */
  start(): void {
    const { actors, queues } = this.#options;
    queues.work(wakeQueue, this.#options.wakeConcurrency ?? 50, (job) => this.#wakeJob(job));
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
    await this.#options.queues.stopWorkers(patienceMs);
    clearTimeout(hurry);
    this.#stopping.abort();
  }

  /** Fires whatever timers of an actor are due by its document, earliest first. */
  async wake(machine: string, id: string): Promise<void> {
    const { actors, clock } = this.#options;
    for (let fired = 0; fired < 50; fired += 1) {
      const doc = await actors.read({ machine, id });
      if (!doc || doc.quarantined) return;
      const now = clock.now();
      const due = doc.timers
        .filter((timer) => timer.dueAt.getTime() <= now + earlyMs)
        .sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime())[0];
      if (!due) {
        if (fired === 0) this.#options.handover.wake(machine, doc);
        return;
      }
      const stepId = `${id}.${due.armedSeq}.${due.id}`;
      await actors.send(
        { machine, id },
        { type: due.event, at: now },
        { stepId, cause: { kind: 'timer', id: due.id }, fires: { id: due.id, armedSeq: due.armedSeq } },
      );
    }
  }

  /** Makes a call if its document still has it and answers it to the actor; or hears that it has to wait. */
  async make(
    machine: string,
    id: string,
    callId: string,
    earlierStarts: number,
    lane?: string,
  ): Promise<{ postponed: CallPostponed; doc: ActorDoc; call: Call } | undefined> {
    const { actors, clock } = this.#options;
    const has = (each: ActorDoc) => each.calls.some((open) => open.id === callId);
    const doc = await actors.find({ machine, id }, has);
    const call = doc?.calls.find((each) => each.id === callId);
    if (!doc || doc.quarantined || !call) return undefined;
    const effect = actors.definition(machine).calls[call.type]!;
    if (effect.atMostOnce && !(await actors.claim({ machine, id }, callId))) {
      await this.#lost(machine, id, callId, effect);
      return undefined;
    }
    const at = clock.now();
    const answer = await effect.run({ doc, call, at, earlierStarts, lane, signal: this.#stopping.signal });
    if ('postponeMs' in answer) return { postponed: answer, doc, call };
    await actors.send(
      { machine, id },
      { ...answer.event, at: clock.now() },
      {
        stepId: callId,
        cause: { kind: 'call', id: callId },
        answers: { callId, factual: effect.factual ?? false },
        ...(answer.writes ? { writes: answer.writes } : {}),
      },
    );
    return undefined;
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
    const effect = this.#options.actors.definition(machine).calls[call.type];
    if (!effect) return;
    if (effect.atMostOnce && call.startedAt) await this.#lost(machine, doc._id, call.id, effect);
    else if (this.#options.queues.ready) this.#options.handover.call(machine, doc, call);
    else await this.make(machine, doc._id, call.id, 0);
  }

  async #wakeJob(job: Job): Promise<void> {
    const { machine, actor } = job.data as JobData;
    await this.#tolerate(job, () => this.wake(machine, actor));
  }

  async #callJob(job: Job, token: string, lane?: string): Promise<void> {
    const { machine, actor, call } = job.data as JobData;
    await this.#tolerate(job, async () => {
      await this.#waitForItsTime(job, token);
      const stalled = Math.max(0, job.stalledCounter ?? 0);
      const waits = await this.make(machine, actor, call!, stalled, lane);
      if (!waits) return;
      const { postponed } = waits;
      if (postponed.lane !== undefined && postponed.lane !== lane) {
        this.#options.handover.call(machine, waits.doc, waits.call, postponed.lane);
        return;
      }
      await job.moveToDelayed(Date.now() + postponed.postponeMs, token);
      throw new DelayedError();
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
    await job.moveToDelayed(Date.now() + (notBefore - now), token);
    throw new DelayedError();
  }

  /** A fault of one actor or of MongoDB is logged; the document still says what is due, and the sweep asks again. */
  async #tolerate(job: Job, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof DelayedError) throw error;
      const level =
        error instanceof ActorMissing || error instanceof NewerDocument || error instanceof Poison
          ? 'info'
          : 'warn';
      this.#options.log[level](
        { job: job.id, queue: job.queueName, error: String(error) },
        'left to the sweep',
      );
    }
  }
}
