import { Ahead, type Attempt, type Taken } from './ahead.ts';
import type { Clock } from './clock.ts';
import type { Committer } from './commit.ts';
import {
  type ActorDoc,
  type ActorEvent,
  ActorMissing,
  type ActorRef,
  type Cause,
  type Committed,
  type MachineDefinition,
  type NewActor,
  Poison,
  type SendOptions,
  type SendResult,
  StepRaced,
  StepRefused,
} from './document.ts';
import type { Lanes } from './lanes.ts';
import type { Log } from './log.ts';
import type { Write } from './mongo.ts';
import {
  changedCall,
  conflictOf,
  type Planned,
  planBirth,
  planStep,
  type Rehearsal,
  rehearse,
  updateOf,
} from './plan.ts';
import { checkDefinition, earliest, faultOf, next, shown } from './step.ts';
import { ActorStore, type Release, type StoreOptions } from './store.ts';
import { CommitUnknown } from './transaction.ts';

/**
 * THE ENGINE: the only way any state changes. A step loads an actor's document, asks the pure chart,
 * and commits the new snapshot, the writes the chart asked for, the calls still to make and the timers, all
 * at once or not at all. Only after the commit are calls and timers handed to the queue.
 */

interface ActorsOptions extends StoreOptions {
  /** The name of this process, which stands in the calls that it has in hand. */
  owner?: string;
  /** Causes for whose answer somebody waits: their steps overtake those of workers in the group commit. */
  awaited?: readonly Cause['kind'][];
  /** Where it takes them in hand. Absent or closed: it makes none, and they go to the queue. */
  lanes?: Lanes;
}

/** How long races for an actor are run, and how many at least: a process with a long queue for it wins many in a row. */
const racePatienceMs = 10_000;
const racesMin = 40;
/** Races over writes that belong to others than the actor: recomputed this often before the sender hears of it. */
const maxForeignRaces = 3;

export class Actors {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #committer: Committer;
  readonly #store: ActorStore;
  /** As whose a call is marked that this process has in hand. */
  readonly #mine: { owner?: string };
  readonly #lanes: Lanes | undefined;
  readonly #awaited: ReadonlySet<Cause['kind']>;
  readonly #queues = new Map<string, Promise<unknown>>();
  readonly #listeners: ((step: Committed) => void)[] = [];
  readonly definitions: readonly MachineDefinition[];
  readonly ahead: Ahead;

  constructor(options: ActorsOptions) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#committer = options.committer;
    this.#store = new ActorStore(options);
    this.ahead = new Ahead({ ...options, planner: this.#store });
    this.#mine = options.owner === undefined ? {} : { owner: options.owner };
    this.#lanes = options.lanes;
    this.#awaited = new Set(options.awaited ?? ['operator']);
    this.definitions = [...options.definitions];
    for (const definition of this.definitions) checkDefinition(definition);
  }

  definition(machine: string): MachineDefinition {
    return this.#store.define(machine);
  }

  /** Hears of every committed step of this process, after the commit. Must not throw and must not wait. */
  onStep(listener: (step: Committed) => void): void {
    this.#listeners.push(listener);
  }

  /** The actor as stored, brought to the code's version; undefined when there is none. */
  async read(ref: ActorRef): Promise<ActorDoc | undefined> {
    return this.#store.read(ref.machine, ref.id);
  }

  /** A document that was read elsewhere, as `read` gives it. @throws Poison (then it is set aside), NewerDocument */
  async understood(machine: string, stored: ActorDoc): Promise<ActorDoc> {
    return this.#store.understood(this.definition(machine), stored);
  }

  /** Documents that were read elsewhere, with what they share in its place; no more. */
  awake<D extends ActorDoc>(machine: string, stored: readonly D[]): Promise<D[]> {
    return this.#store.shared.wake(this.definition(machine), stored);
  }

  /** The same as readers show them: lifted to this code's version too, or as stored where that cannot be. Never writes. */
  async shown<D extends ActorDoc>(machine: string, stored: readonly D[]): Promise<D[]> {
    return (await this.awake(machine, stored)).map((doc) => shown(this.definition(machine), doc));
  }

  /** Commits writes that belong to no actor (plain audited records). */
  async commit(writes: Write[]): Promise<void> {
    const outcome = await this.#committer.commit(writes, true);
    if (!outcome.ok) throw conflictOf(outcome.write);
  }

  /**
   * Makes a new actor; its first snapshot, effects and the extra writes are one commit.
   * @throws StepReplayed when an idempotency record among the writes exists, StepRaced when the actor does.
   */
  async create(
    actor: NewActor,
    attendant: Pick<SendOptions, 'stepId' | 'cause' | 'writes'>,
  ): Promise<ActorDoc> {
    const whole = { ...attendant, ...this.#holder };
    const { definition, planned } = await planBirth(this.#store, actor, whole);
    try {
      const outcome = await this.#committer.commit(planned.writes, this.#awaited.has(attendant.cause.kind));
      if (!outcome.ok) throw conflictOf(outcome.write);
    } catch (error) {
      if (!(error instanceof CommitUnknown) || !(await this.read(actor))) throw error;
    }
    this.#committed(definition, planned, { type: 'created', at: actor.input.at }, attendant.cause, null);
    return planned.doc;
  }

  /**
   * Sends an event. Steps of one actor in this process queue one after another; against other processes the
   * sequence number decides, and a lost race is decided again on what the winner left.
   * @throws ActorMissing, Poison (quarantined), StepRefused, StepRaced, or MongoDB's error.
   */
  send(ref: ActorRef, event: ActorEvent, options: SendOptions): Promise<SendResult> {
    const fault = options.fires ? undefined : faultOf(event);
    if (fault) return Promise.reject(fault);
    return this.#inTurn(ref.id, () => this.#step(ref, event, options));
  }

  /** One after another for each actor: two commits of one process that race for it would part a whole batch. */
  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(id) ?? Promise.resolve();
    const mine = before.then(work);
    const settled = mine
      .catch(() => undefined)
      .then(() => {
        if (this.#queues.get(id) === settled) this.#queues.delete(id);
      });
    this.#queues.set(id, settled);
    return mine;
  }

  /** What an event would do, without doing it: no call is made and nothing written. @throws what its effects throw */
  async dryRun(ref: ActorRef, event: ActorEvent, cause: Cause): Promise<Rehearsal> {
    const fault = faultOf(event);
    if (fault) throw fault;
    const { doc } = await this.#store.load(ref.machine, ref.id, true);
    return rehearse(this.#store, this.definition(ref.machine), doc, event, cause);
  }

  /**
   * Lets a quarantined actor go on, once this code understands it; undefined when there is nothing to let go.
   * @throws Poison, NewerDocument, ActorMissing
   */
  async release(ref: ActorRef, release: Release): Promise<ActorDoc | undefined> {
    const doc = await this.read(ref);
    if (!doc) throw new ActorMissing(`no ${ref.machine} ${ref.id}`);
    return this.#store.release(this.definition(ref.machine), doc, release);
  }

  /** The actor as this process knows it, if that satisfies; else as stored. Saves a read where one is not needed. */
  async find(ref: ActorRef, satisfies: (doc: ActorDoc) => boolean): Promise<ActorDoc | undefined> {
    const known = this.#store.known(ref.id);
    if (known && satisfies(known)) return known;
    const doc = await this.read(ref);
    // Whoever looks for an open call will answer it, and that step needs the document again.
    if (doc && !doc.quarantined && doc.seq >= (this.#store.known(ref.id)?.seq ?? 0))
      this.#store.remember(doc);
    return doc;
  }

  /** Marks a call that may be made only once as begun. False: somebody else did, or it is gone. */
  claim(ref: ActorRef, callId: string): Promise<boolean> {
    return this.#inTurn(ref.id, () => this.#claim(ref, callId));
  }

  async #claim(ref: ActorRef, callId: string): Promise<boolean> {
    const claimed = await this.#amend(ref, ({ calls }, definition) =>
      changedCall(calls, callId, (call) => {
        if (call.startedAt) return undefined;
        const now = this.#clock.now();
        const dueAt = new Date(now + definition.calls[call.type]!.patienceMs);
        return { ...call, startedAt: new Date(now), dueAt, ...this.#mine };
      }),
    );
    return claimed !== undefined;
  }

  /** Takes over a call that a dead process had in hand; undefined: it is gone, claimed, or somebody else's by now. */
  adopt(ref: ActorRef, callId: string, dead: string): Promise<ActorDoc | undefined> {
    return this.#inTurn(ref.id, () =>
      this.#amend(ref, ({ calls }) =>
        changedCall(calls, callId, (call) => {
          if (call.startedAt || call.owner !== dead) return undefined;
          return { ...call, ...this.#mine, losses: (call.losses ?? 0) + 1 };
        }),
      ),
    );
  }

  /** Says when an actor is due, where what a claim has left is too early. */
  refile(ref: ActorRef): Promise<ActorDoc | undefined> {
    return this.#inTurn(ref.id, () =>
      this.#amend(ref, ({ timers, calls, dueAt }) => {
        const exact = earliest(timers, calls);
        return exact?.getTime() === dueAt?.getTime() ? undefined : { dueAt: exact };
      }),
    );
  }

  /**
   * Changes what stands beside the snapshot, in a commit of its own; undefined: there is nothing to change. `dueAt` stays,
   * too early then, never too late: that index is the dearest part of a claim, and the answer changes it anyway.
   */
  async #amend(
    ref: ActorRef,
    change: (doc: ActorDoc, definition: MachineDefinition) => Partial<ActorDoc> | undefined,
  ): Promise<ActorDoc | undefined> {
    const definition = this.definition(ref.machine);
    const giveUpAt = performance.now() + racePatienceMs;
    for (let race = 0; performance.now() < giveUpAt; race += 1) {
      const { doc, cached } = await this.#store.load(ref.machine, ref.id, race > 0);
      const changed = change(doc, definition);
      if (!changed) {
        if (!cached) return undefined;
        continue;
      }
      const after: ActorDoc = { ...doc, ...changed, seq: doc.seq + 1 };
      // Unlike a step it is not repeated when its outcome is unknown: better no call than two.
      const write = updateOf(definition, doc, await this.#store.shared.rest(definition, after));
      const outcome = await this.#committer.commit([write]);
      if (outcome.ok) {
        this.#store.remember(after);
        return after;
      }
      this.#store.forget(ref.id);
      await pauseAfter(race);
    }
    return undefined;
  }

  /** Who has the calls of a step in hand. */
  get #holder(): { owner?: string } {
    return this.#lanes?.isOpen ? this.#mine : {};
  }

  async #step(ref: ActorRef, event: ActorEvent, options: SendOptions): Promise<SendResult> {
    const definition = this.definition(ref.machine);
    // A call may be made twice; what it tells other actors is heard once. Its own answer is fenced by the call.
    let inDoubt = options.again || (options.cause.kind === 'call' && !options.answers);
    let attempt: Attempt | undefined;
    let foreignRaces = 0;
    const giveUpAt = performance.now() + racePatienceMs;
    for (let race = 0; performance.now() < giveUpAt || (race < racesMin && !inDoubt); race += 1) {
      const { doc, cached } = await this.#store.load(ref.machine, ref.id, race > 0);
      if (inDoubt && (await this.#store.wasApplied(doc, options.stepId))) {
        return this.#recognised(definition, doc, attempt);
      }
      const planned = await this.#prepare(definition, doc, event, options);
      if (typeof planned === 'string') {
        // A document from memory may be behind: what it makes of an event to drop is checked on a fresh one.
        if (cached) continue;
        return { outcome: planned, doc };
      }
      const alone: Taken = { planned, event, cause: options.cause, from: doc.state };
      const tried = await this.ahead.withAnswer(definition, doc, alone, race === 0 ? options : undefined);
      const { steps, writes } = tried;
      const isAwaited = this.#awaited.has(options.cause.kind);
      const outcome = await this.#committer.commit(writes, isAwaited).catch(unlessUnknown);
      if (outcome?.ok) return this.#taken(definition, steps);
      this.#store.forget(ref.id);
      if (!outcome) {
        inDoubt = true;
        attempt = tried;
      } else if (outcome.write !== writes[0] && steps.length === 1) {
        // Effects that read may decide otherwise the next time; a rule that a store keeps will not.
        foreignRaces += 1;
        const conflict = conflictOf(outcome.write);
        if (!(conflict instanceof StepRaced) || foreignRaces > maxForeignRaces) {
          await this.#rejected(definition, doc, outcome.write, conflict, options.cause);
        }
      }
      await pauseAfter(race);
    }
    throw new Error(`${ref.id}: lost races for ${racePatienceMs} ms`);
  }

  /** Steps that were committed: everybody hears of them, in their order. */
  #taken(definition: MachineDefinition, steps: Attempt['steps']): SendResult {
    for (const { planned, event, cause, from } of steps)
      this.#committed(definition, planned, event, cause, from);
    const { doc } = steps.at(-1)!.planned;
    const asked = steps.flatMap(({ planned }) => planned.asked);
    return { outcome: 'stepped', doc, from: steps[0].from, to: doc.state, asked };
  }

  /** A step that had been applied after all: everybody hears of it who would have heard of it then. */
  #recognised(definition: MachineDefinition, doc: ActorDoc, attempt: Attempt | undefined): SendResult {
    if (!attempt) return { outcome: 'stepped', doc, from: doc.state, to: doc.state, asked: [] };
    const result = this.#taken(definition, attempt.steps);
    this.#store.remember(doc); // others may have gone on from there
    return { ...result, doc } as SendResult;
  }

  /** The step as it would be committed, or why there is none. A poisoned actor is set aside. */
  async #prepare(
    definition: MachineDefinition,
    doc: ActorDoc,
    event: ActorEvent,
    options: SendOptions,
  ): Promise<Planned | 'ignored' | 'dropped'> {
    const { answers, fires } = options;
    const call = answers && doc.calls.find(({ id }) => id === answers.callId);
    const isOpen = call && !(answers.unclaimed && call.startedAt);
    if (answers && !isOpen && (answers.unclaimed || !answers.factual)) return 'dropped';
    let timers = doc.timers;
    if (fires) {
      timers = timers.filter(({ id, armedSeq }) => id !== fires.id || armedSeq !== fires.armedSeq);
      if (timers.length === doc.timers.length) return 'dropped';
    }
    try {
      const chart = next(definition, doc, timers, event, doc.seq + 1);
      if (!chart.changed && !isOpen && !fires && !options.data) return 'ignored';
      return await planStep(this.#store, definition, doc, doc.state, chart, event, {
        ...options,
        ...this.#holder,
      });
    } catch (error) {
      if (error instanceof Poison) await this.#store.quarantine(definition, doc, error.message);
      throw error;
    }
  }

  async #rejected(
    definition: MachineDefinition,
    doc: ActorDoc,
    write: Write,
    conflict: Error,
    cause: Cause,
  ): Promise<never> {
    // A caller gets a refusal as an answer; from a timer or a call it means that the stores and the chart disagree.
    if (conflict instanceof StepRefused && (cause.kind === 'timer' || cause.kind === 'call')) {
      await this.#store.quarantine(definition, doc, `a step was refused by ${write.into}`);
    }
    throw conflict;
  }

  #committed(
    definition: MachineDefinition,
    planned: Planned,
    event: ActorEvent,
    cause: Cause,
    from: string | null,
  ): void {
    const { doc, newCalls } = planned;
    this.#store.remember(doc);
    for (const listener of this.#listeners) {
      try {
        listener({ machine: definition.name, doc, event, cause, from, newCalls });
      } catch (error) {
        // The step is committed: whoever sent it must not hear otherwise.
        this.#log.error({ actor: doc._id, error: String(error) }, 'a listener threw');
      }
    }
    for (const child of planned.children) {
      this.#committed(child.definition, child.planned, { type: 'created', at: event.at }, cause, null);
    }
  }
}

function unlessUnknown(error: unknown): undefined {
  if (!(error instanceof CommitUnknown)) throw error;
}

/** After a first lost race the next try is at once; then those who race step apart. */
async function pauseAfter(race: number): Promise<void> {
  if (race > 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(50, 2 ** race)));
}
