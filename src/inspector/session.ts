import type { Cause, MachineDefinition, StepLine } from '@kusanya/durable-actors';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import type { StepFeed } from './feed.ts';
import { type StepFilter, type StepNotice, shown } from './notice.ts';
import { Outbox, type Sink } from './outbox.ts';
import type { ActorSource, Stored } from './source.ts';
import {
  actorMessage,
  definitionOf,
  eventMessage,
  outsiderMessage,
  type Snapshot,
  snapshotMessage,
  snapshotOf,
  sourceOf,
  valueAt,
} from './wire.ts';

/**
 * One viewer's stream: the actors, how they got where they are, then every step as it happens. MongoDB is what
 * counts: a notice that skips a number sends us to the history for what is between, and every few seconds the
 * actors in view are read again, so that a lost notice costs only time. Nothing is told twice.
 */
interface SessionOptions {
  feed: StepFeed;
  source: ActorSource;
  log: Log;
  filter: StepFilter;
  /** Of how many actors, those made last, the stream begins. */
  last: number;
  sink: Sink;
  checkMs?: number;
}

/** A step as it is told, from a notice or from the history. */
interface Told {
  actor: string;
  machine: string;
  seq: number;
  at: number;
  event: { type: string };
  cause: Cause;
  snapshot: Snapshot;
}

/** Lines of history that a stream begins with, of one actor and of each of several. */
const historyMax = { one: 500, each: 50 };
/** Notices that wait for a look at the history; what is dropped here is found in it. */
const noticesMax = 1_000;
/** Actors that are looked after even without notices; and those of which we remember what was told. */
const checkedMax = 200;
const rememberedMax = 10_000;
const endOfHistory = 99_999_999;

export class InspectSession {
  readonly #options: SessionOptions;
  readonly #outbox: Outbox;
  /** The number of the last step that was told, by actor; the latest to move come last. */
  readonly #told = new Map<string, { machine: string; seq: number }>();
  readonly #announced = new Set<string>();
  readonly #outsiders = new Set<string>();
  readonly #historyMax: number;
  #notices: StepNotice[] = [];
  #isWorking = false;
  #timer: NodeJS.Timeout | undefined;
  #unwatch: (() => void) | undefined;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#historyMax = options.filter.actor ? historyMax.one : historyMax.each;
    this.#outbox = new Outbox(options.sink, (actor) => {
      this.#announced.delete(actor);
      this.#outsiders.delete(actor);
    });
  }

  /** Begins with what the first look found; from then on goes by itself. */
  async start(found: readonly Stored[]): Promise<void> {
    const { feed, filter, checkMs } = this.#options;
    // Watching begins before anything is told: what happens meanwhile waits.
    this.#isWorking = true;
    const unwatch = await feed.watch(filter, (notice) => this.#noticed(notice));
    if (this.#isClosed) {
      unwatch();
      return;
    }
    this.#unwatch = unwatch;
    this.#timer = setInterval(() => this.#alone(() => this.#tellMissed()), checkMs ?? 3 * limits.secondMs);
    await this.#begin(found);
    this.#isWorking = false;
    this.#drain();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#unwatch?.();
    this.#notices = [];
  }

  async #begin(found: readonly Stored[]): Promise<void> {
    const oldestFirst = [...found].reverse();
    for (const { doc, definition } of oldestFirst) {
      this.#announce(doc._id, doc.updatedAt.getTime(), definition, storedSnapshot(doc));
    }
    const steps: { step: Told; atMs: number }[] = [];
    for (const stored of oldestFirst) {
      // An event may have waited to be committed: its step comes after one that carries a later time.
      let atMs = 0;
      for (const step of await this.#stepsOf(stored)) {
        atMs = Math.max(atMs, step.at);
        steps.push({ step, atMs });
      }
    }
    steps.sort((one, other) => one.atMs - other.atMs || one.step.seq - other.step.seq);
    for (const { step } of steps) this.#tell(step);
    for (const { doc, definition } of oldestFirst) this.#remember(doc._id, definition.name, doc.seq);
  }

  #noticed(notice: StepNotice): void {
    if (this.#notices.length >= noticesMax) this.#notices.shift();
    this.#notices.push(notice);
    this.#drain();
  }

  #drain(): void {
    if (this.#notices.length > 0) this.#alone(() => this.#tellNotices());
  }

  /** One thing at a time, or steps of an actor would be told out of their order. What fails is found again later. */
  #alone(work: () => Promise<void>): void {
    if (this.#isWorking || this.#isClosed) return;
    this.#isWorking = true;
    void work()
      .catch((error) => this.#options.log.debug({ error: String(error) }, 'inspector is behind'))
      .finally(() => {
        this.#isWorking = false;
        this.#drain();
      });
  }

  async #tellNotices(): Promise<void> {
    for (let notice = this.#notices.shift(); notice && !this.#isClosed; notice = this.#notices.shift()) {
      const { actor, machine, seq, at, event, cause, snapshot } = notice;
      const before = this.#told.get(actor)?.seq ?? 0;
      if (seq <= before) continue;
      if (seq > before + 1) await this.#catchUp(actor, machine, before, seq);
      const { value, context } = snapshot;
      this.#tell({ actor, machine, seq, at, event, cause, snapshot: snapshotOf(value, context) });
      this.#remember(actor, machine, seq);
    }
  }

  /** Tells what the history has between two steps. */
  async #catchUp(actor: string, machine: string, after: number, before: number): Promise<void> {
    const lines = await this.#options.source.lines(actor, after, before, this.#historyMax);
    for (const line of lines) this.#tell(toldOf(line, machine));
  }

  /** Looks whether anything was missed. */
  async #tellMissed(): Promise<void> {
    const { source, filter, last } = this.#options;
    const found = await source.matching(filter, last);
    const others = new Map<string, string[]>();
    for (const [id, { machine }] of [...this.#told].slice(-checkedMax)) {
      if (found.some((head) => head.id === id)) continue;
      others.set(machine, [...(others.get(machine) ?? []), id]);
    }
    for (const [machine, ids] of others) {
      const definition = source.definition(machine);
      if (definition) found.push(...(await source.heads(definition, ids)));
    }
    const missed = found.filter(({ id, seq }) => seq > (this.#told.get(id)?.seq ?? 0));
    for (const stored of (await source.read(missed)).reverse()) {
      for (const step of await this.#stepsOf(stored)) this.#tell(step);
      this.#remember(stored.doc._id, stored.definition.name, stored.doc.seq);
    }
  }

  /** The history of an actor since what was told, its last step with the snapshot as it is. */
  async #stepsOf({ doc, definition }: Stored): Promise<Told[]> {
    const after = this.#told.get(doc._id)?.seq ?? 0;
    const lines = await this.#options.source.lines(doc._id, after, endOfHistory, this.#historyMax);
    const steps = lines.filter(({ seq }) => seq <= doc.seq).map((line) => toldOf(line, definition.name));
    const last = steps.at(-1);
    // What came after the last line changed the context at most.
    if (last) last.snapshot = storedSnapshot(doc);
    return steps;
  }

  #tell({ actor, machine, at, event, cause, snapshot }: Told): void {
    const definition = this.#options.source.definition(machine);
    if (!definition) return;
    const source = sourceOf(cause, actor, machine, event.type);
    if (!this.#announced.has(source) && !this.#outsiders.has(source)) {
      this.#outsiders.add(source);
      this.#outbox.put(outsiderMessage(source, at));
    }
    if (!this.#announced.has(actor)) this.#announce(actor, at, definition, snapshot);
    this.#outbox.put(eventMessage(actor, at, event, source));
    this.#outbox.put(snapshotMessage(actor, at, event, snapshot));
  }

  #announce(actor: string, at: number, { name, machine }: MachineDefinition, snapshot: Snapshot): void {
    this.#announced.add(actor);
    const about = { name: `${name}:${actor}`, definition: definitionOf(machine), snapshot };
    this.#outbox.put(actorMessage(actor, at, about));
  }

  #remember(actor: string, machine: string, seq: number): void {
    this.#told.delete(actor);
    this.#told.set(actor, { machine, seq });
    if (this.#told.size <= rememberedMax) return;
    const oldest = this.#told.keys().next().value;
    if (oldest !== undefined) this.#told.delete(oldest);
  }
}

function storedSnapshot({ snapshot: { value, context } }: Stored['doc']): Snapshot {
  return snapshotOf(value, shown(context));
}

/** A line of the history says where the actor went, and not what it knew then. */
function toldOf(line: StepLine, machine: string): Told {
  const { actor, seq, at, to, cause } = line;
  const event = shown(line.event) as { type: string };
  return { actor, machine, seq, at: at.getTime(), event, cause, snapshot: snapshotOf(valueAt(to), {}) };
}
