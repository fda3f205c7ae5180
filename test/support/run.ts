import {
  type ActorDoc,
  type Call,
  type CallAnswer,
  type CallView,
  MovableClock,
  type SendOptions,
  type Timer,
} from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { ActorWorkers } from '../../packages/durable-actors/src/work.ts';
import type { Position, Timed } from './charts.ts';
import type { Model, Move } from './moves.ts';
import type { Answering, Process, Rig } from './rig.ts';

/**
 * One actor in the real engine beside its chart alone: every move is made in both, and after every step the
 * stored document must be what the chart makes of the same events.
 */

/** How a move came in: as the answer to a call, as a timer, or as an event of somebody's own. */
export interface Entry {
  event: Timed;
  stepId: string;
  call?: Call;
  timer?: Timer;
}

/** One actor in the engine beside its chart; every move is made in both, and both must agree. */
export class Run {
  readonly rig: Rig;
  readonly id: string;
  readonly clock: MovableClock;
  readonly input: { at: number } & Record<string, unknown>;
  #process: Process;
  #answering: Answering = () => Promise.reject(new Error('nobody said what to answer'));
  #position: Position;
  /** Calls the chart asked for and has had no answer to. */
  #open: string[];
  #writes: string[];
  #steps = 0;
  #doc: ActorDoc | undefined;
  /** How often each call was made, by its id. */
  readonly made = new Map<string, { type: string; times: number }>();

  private constructor(rig: Rig, input: { at: number } & Record<string, unknown>) {
    this.rig = rig;
    this.id = rig.newId();
    this.input = input;
    this.clock = new MovableClock(input.at);
    this.#process = rig.process(this.clock, (view) => this.#make(view));
    this.#position = rig.chart.begin(input);
    this.#open = [];
    this.#writes = [];
    this.#expect(this.#position);
  }

  get position(): Position {
    return this.#position;
  }

  get workers(): ActorWorkers {
    return this.#process.workers;
  }

  /** A new actor. */
  static async begin(rig: Rig, input: { at: number } & Record<string, unknown>): Promise<Run> {
    const run = new Run(rig, input);
    await run.#create();
    await run.compare();
    return run;
  }

  async #create(): Promise<void> {
    const { model } = this.rig;
    await this.#process.actors.create(
      {
        machine: model.name,
        id: this.id,
        input: this.input,
        merchantId: 'mer_1',
        mode: 'test',
        data: { note: 'the room’s own' },
      },
      { stepId: `${this.id}.born`, cause: { kind: 'merchant', id: 'req_1' } },
    );
  }

  /** The process dies; another, which remembers nothing, takes over. */
  crash(): void {
    this.#process = this.rig.process(this.clock, (view) => this.#make(view));
  }

  /** The chart alone, on the same event. */
  foresee({ event, fires }: Move): Position {
    return this.rig.chart.step(this.#position, event, fires);
  }

  /** Whether the move can be made now: a timer only while it is armed. */
  canMake({ fires }: Move): boolean {
    return fires === undefined || this.#position.timers.some(({ id }) => id === fires);
  }

  /** The open call that an event would answer. */
  openCall(event: Timed): Call | undefined {
    const types = answeredBy(this.rig.model, event.type);
    return this.#doc?.calls.find((call) => types.includes(call.type));
  }

  /** The document when it was last compared. */
  get doc(): ActorDoc {
    if (!this.#doc) throw new Error(`${this.id} was never compared`);
    return this.#doc;
  }

  async stored(): Promise<ActorDoc> {
    const doc = await this.rig.stored(this.id);
    if (!doc) throw new Error(`no ${this.id}`);
    return doc;
  }

  /** Makes a move in both and compares. Returns how it came in, so that it can come again. */
  async move(asked: Move): Promise<Entry> {
    const move = this.#timed(asked);
    const next = this.foresee(move);
    this.#moveClock(move.event.at);
    const call = move.fires ? undefined : this.openCall(move.event);
    const entry = await this.#enter(move, next, call);
    this.#expect(next, call?.type);
    await this.compare();
    return entry;
  }

  /** Not before the present, and a timer not before its time. */
  #timed(move: Move): Move {
    const timer = this.#position.timers.find(({ id }) => id === move.fires);
    const at = Math.max(move.event.at, this.#position.now, timer?.dueAt ?? 0);
    return { ...move, event: { ...move.event, at } };
  }

  async #enter(move: Move, next: Position, call: Call | undefined): Promise<Entry> {
    const { event } = move;
    if (move.fires) {
      const timer = this.doc.timers.find(({ id }) => id === move.fires)!;
      await this.#fire(timer, event, next);
      return { event, stepId: '', timer };
    }
    if (call) {
      await this.#answer(call, event);
      return { event, stepId: call.id, call };
    }
    return { event, stepId: await this.send(event) };
  }

  /** The very same once more: the job, the timer or the request comes a second time. It must change nothing. */
  async repeat({ event, call, timer, stepId }: Entry): Promise<void> {
    const { name } = this.rig.model;
    const ref = { machine: name, id: this.id };
    const { actors } = this.#process;
    if (call) {
      await this.makeCall(call.id, event);
      const cause = { kind: 'call', id: call.id } as const;
      const answers = { callId: call.id, factual: false };
      const late = await actors.send(ref, event, { stepId: call.id, cause, answers });
      expect(late.outcome, 'the second answer').to.equal('dropped');
    } else if (timer) {
      const late = await actors.send(ref, { type: timer.event, at: event.at }, firing(this.id, timer));
      expect(late.outcome, 'the second time a timer fires').to.equal('dropped');
    } else {
      const cause = { kind: 'rail', id: stepId } as const;
      await actors.send(ref, event, { stepId, cause, again: true });
    }
    await this.compare();
  }

  /** Makes a call as its worker does. `event` is what it answers; without one the worker dies in the middle. */
  async makeCall(callId: string, event?: Timed): Promise<void> {
    this.#answering = () => {
      if (!event) return Promise.reject(new Error('the worker died'));
      const { at: _at, ...answer } = event;
      return Promise.resolve({ event: answer });
    };
    const making = this.workers.make(this.rig.model.name, this.id, callId, 0);
    await (event ? making : making.then(unlessMade, () => undefined));
  }

  /** Sends an event that no open call answers: a fact that comes late, or somebody's own. Returns the step's id. */
  async send(event: Timed, more: Partial<SendOptions> = {}): Promise<string> {
    this.#steps += 1;
    const stepId = `${this.id}.told.${this.#steps}`;
    const types = answeredBy(this.rig.model, event.type);
    const isFact = types.length > 0 && this.rig.model.name === 'collection';
    await this.#process.actors.send({ machine: this.rig.model.name, id: this.id }, event, {
      stepId,
      cause: isFact ? { kind: 'call', id: stepId } : { kind: 'rail', id: stepId },
      ...(isFact ? { answers: { callId: `${this.id}.gone`, factual: true } } : {}),
      ...more,
    });
    return stepId;
  }

  /** The same event once more in both, as a fact whose call is gone. */
  async again(event: Timed): Promise<void> {
    const next = this.foresee({ type: event.type, event });
    await this.send(event);
    this.#expect(next);
    await this.compare();
  }

  /** The document, its history and its committed writes are what the chart alone says. */
  async compare(): Promise<void> {
    const doc = await this.stored();
    expect(doc.quarantined, 'quarantined').to.equal(undefined);
    expect(doc.state).to.equal(this.#position.state);
    expect(doc.snapshot).to.deep.equal({ value: this.#position.value, context: this.#position.context });
    const timers = doc.timers.map(({ id, dueAt }) => ({ id, dueAt: dueAt.getTime() }));
    expect(timers, 'timers').to.have.deep.members(this.#position.timers);
    expect(
      doc.calls.map(({ type }) => type),
      'open calls',
    ).to.deep.equal(this.#open);
    const times = [...doc.timers, ...doc.calls].map(({ dueAt }) => dueAt.getTime());
    const earliest = times.length === 0 ? null : Math.min(...times);
    // A claim leaves it as it was: too early then, never too late.
    if (doc.calls.some(({ startedAt }) => startedAt))
      expect(doc.dueAt!.getTime(), 'dueAt').to.be.at.most(earliest!);
    else expect(doc.dueAt?.getTime() ?? null, 'dueAt').to.equal(earliest);
    this.#doc = doc;
  }

  /** The committed writes are those asked for; the lines of the history lead to where the actor is. */
  async compareHistory(): Promise<void> {
    const { rig, id } = this;
    const [doc, lines, written] = await Promise.all([this.stored(), rig.history(id), rig.written(id)]);
    expect(written, 'writes').to.deep.equal(this.#writes);
    let state: string | null = null;
    for (const line of lines) {
      expect(line.from, `line ${line.seq}`).to.equal(state);
      state = line.to;
    }
    expect(state, 'the history ends where the actor is').to.equal(doc.state);
    expect(lines.map(({ seq }) => seq)).to.deep.equal([...new Set(lines.map(({ seq }) => seq))]);
    const recorded = lines.flatMap(({ actions }) => actions);
    expect(recorded.filter((type) => rig.model.writes.includes(type))).to.have.members(this.#writes);
  }

  #moveClock(at: number): void {
    this.clock.advance(at - this.clock.now());
  }

  async #make(view: CallView): Promise<CallAnswer> {
    const { id, type } = view.call;
    this.made.set(id, { type, times: (this.made.get(id)?.times ?? 0) + 1 });
    return this.#answering(view);
  }

  async #answer(call: Call, event: Timed): Promise<void> {
    // A call that was claimed and not answered is not made again: its answer comes from whoever made it.
    if (call.startedAt) {
      await this.send(event, { answers: { callId: call.id, factual: true }, stepId: call.id });
    } else await this.makeCall(call.id, event);
  }

  /** Through the worker where it would fire just this timer, else by hand. */
  async #fire(timer: Timer, event: Timed, next: Position): Promise<void> {
    const isDue = ({ dueAt }: { dueAt: number }) => dueAt <= event.at + 100;
    const { name } = this.rig.model;
    if (this.#position.timers.filter(isDue).length === 1 && !next.timers.some(isDue)) {
      await this.workers.wake(name, this.id);
      return;
    }
    const fired = { type: timer.event, at: event.at };
    await this.#process.actors.send({ machine: name, id: this.id }, fired, firing(this.id, timer));
  }

  /** What the chart now expects of the world: the answered call is closed, the calls it asked for are open. */
  #expect(next: Position, answered?: string): void {
    this.#position = next;
    if (answered) this.#open.splice(this.#open.indexOf(answered), 1);
    const { calls, writes } = this.rig.model;
    const asked = next.asked.map(({ type }) => type);
    this.#open.push(...asked.filter((type) => calls.includes(type)));
    this.#writes.push(
      ...asked.filter((type) => writes.includes(type)).sort((a, b) => writes.indexOf(a) - writes.indexOf(b)),
    );
  }
}

/** The calls that an event can be the answer to; at most one of them is open. */
function answeredBy({ name }: Model, event: string): readonly string[] {
  const [who] = event.split('.', 1);
  const calls: Record<string, Record<string, string[]>> = {
    collection: { push: ['pushPrompt'], ask: ['askRail', 'askReturn'], reverse: ['reversePayment'] },
    delivery: { attempt: ['postWebhook'] },
    endpoint: { probe: ['probeDelivery'], release: ['releaseHeld'] },
    settlement: { buckets: ['collectBuckets'] },
    payout: { send: ['sendMoney'], ask: ['askPayout'] },
    refund: { reverse: ['sendRefund'], ask: ['askRefund'] },
  };
  return calls[name]?.[who!] ?? [];
}

function firing(actor: string, { id, armedSeq }: Timer): SendOptions {
  return {
    stepId: `${actor}.${armedSeq}.${id}`,
    cause: { kind: 'timer', id },
    fires: { id, armedSeq },
  };
}

function unlessMade(): void {
  throw new Error('a call that died was answered');
}
