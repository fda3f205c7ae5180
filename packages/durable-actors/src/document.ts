import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { Doc, Write } from './mongo.ts';

/** Who may cause a step. A service adds its own by declaration merging, as it does to `Labels`. */
export interface CauseKinds {
  timer: true;
  call: true;
  /** A person who steps in: sets a quarantined actor free, say. */
  operator: true;
}

/**
 * What a service lists its actors by: given at birth, kept beside the snapshot, never changed. Fields are added by
 * declaration merging: `declare module '@kusanya/durable-actors' { interface Labels { customerId: string } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: it is filled by whoever uses the package
export interface Labels {}

/** Who or what caused a step. */
export interface Cause {
  kind: keyof CauseKinds;
  id: string;
}

/** An event to a chart. `at` is the time in milliseconds, given by whoever sends it. */
export interface ActorEvent {
  type: string;
  at: number;
  [field: string]: unknown;
}

export interface Timer {
  /** XState's id of the delayed transition; it is per state, not per entry, hence `armedSeq`. */
  id: string;
  event: string;
  dueAt: Date;
  armedSeq: number;
}

export interface Call {
  /** `<actor>.<seq>.<n>`: stable, so that the other side can recognise a repetition. */
  id: string;
  type: string;
  params: Record<string, unknown>;
  /** Not to be made before this moment. */
  notBefore: Date;
  /** When the sweep asks again if nobody has answered. */
  dueAt: Date;
  /** Set only on calls that are made at most once: whoever set it made the call. */
  startedAt?: Date;
  /** The process that has it in hand; when that is dead it is anybody's. Absent: it went to the queue. */
  owner?: string;
  /** How many processes died with it in hand. */
  losses?: number;
}

/** An actor at rest: one document, the snapshot of its chart and all that is still to happen. */
export interface ActorDoc extends Doc, Labels {
  machineVersion: number;
  seq: number;
  /** The chart's state as dotted text, `created.awaitingApproval`. */
  state: string;
  snapshot: { value: unknown; context: Record<string, unknown> };
  timers: Timer[];
  calls: Call[];
  /** Of the sweep (`partOf`). Absent: no step was taken since there are parts. */
  part?: number;
  /** The earliest timer or unanswered call, or earlier (`dueOf` is exact); in the sweep's index. */
  dueAt: Date | null;
  /** The id of the latest step, so that a commit whose acknowledgement was lost is recognised. */
  lastStep: string;
  updatedAt: Date;
  data: Record<string, unknown>;
  quarantined?: { at: Date; why: string };
}

/** One line of an actor's history, `_id` is `<actor>/<seq>`. */
export interface StepLine extends Doc {
  actor: string;
  machine: string;
  seq: number;
  at: Date;
  event: Record<string, unknown>;
  from: string | null;
  to: string;
  actions: string[];
  cause: Cause;
  stepId: string;
}

/** What a write effect sees: the step as it will be committed. */
export interface StepView {
  doc: ActorDoc;
  /** The context before the step; on creation the same as the new one. */
  before: Record<string, unknown>;
  event: ActorEvent;
  at: number;
  cause: Cause;
}

/** A new actor: its machine's input (with `at`, the time in milliseconds), its data and its labels. */
export interface NewActor extends Labels {
  machine: string;
  id: string;
  input: { at: number } & Record<string, unknown>;
  data: Record<string, unknown>;
}

/** What a write effect asks of the commit: writes, and new actors that are born in it. */
export type Wanted = Write[] | { actors: NewActor[] };

/** Reads if it must, writes nothing itself: it returns what the commit is to write. */
export type WriteEffect = (step: StepView, params: Record<string, unknown>) => Wanted | Promise<Wanted>;

export interface CallView {
  doc: ActorDoc;
  call: Call;
  at: number;
  /** How many workers died with this call in hand, as far as its queue and its document remember. */
  earlierStarts: number;
  /** The lane it was queued in; undefined when the sweep makes it without the queue. */
  lane: string | undefined;
  signal: AbortSignal;
  /**
   * To be asked just before the first byte of a call that is made at most once. False: nothing may be sent. Until
   * then the call is anybody's. Never rejects; true for every other kind of call.
   */
  claim(): Promise<boolean>;
  /**
   * Waits for something without its place in the lane, which others need meanwhile; for less than the patience of the
   * call. Undefined: the call is no more for this process to make, and it answers `left`.
   */
  aside<T>(until: Promise<T>): Promise<T | undefined>;
  /** When the call became ours to make (ms); undefined while it has not. */
  readonly claimedAt: number | undefined;
}

/** What a call answers: an event to its own actor (the engine adds `at`), and writes for the same commit. */
export interface CallAnswer {
  event: { type: string; [field: string]: unknown };
  writes?: Write[];
}

/** The call cannot be made just now and steps back without being charged: later, perhaps in another lane. */
export interface CallPostponed {
  postponeMs: number;
  lane?: string;
}

/** The call was not made, and not by any decision about it: whoever comes to it next makes it. */
export interface CallLeft {
  left: true;
}

/** A kind of call: how it is queued and what makes it. */
export interface CallEffect {
  run(view: CallView): Promise<CallAnswer | CallPostponed | CallLeft>;
  concurrency: number;
  /** After this long without an answer the sweep has the call made again (or, if at most once, given up). */
  patienceMs: number;
  /** The lanes of this call with a queue each; the first is the default. */
  lanes?: readonly { name: string; concurrency: number }[];
  lane?(doc: ActorDoc, call: Call): string;
  notBefore?(context: Record<string, unknown>): number;
  /**
   * Made at most once: the effect claims it by a commit (`CallView.claim`) before its first byte; a claimed one that
   * nobody answered is answered by `lost`. What it answers without a claim counts while nobody has claimed it.
   */
  atMostOnce?: {
    lost(call: Call, at: number): ActorEvent;
    /** One that nobody has claimed is looked for this soon: whoever claims it sets the time for its answer (5 s). */
    pickupMs?: number;
  };
  /** The answer is a fact about the world and is heard even if the call is gone. */
  factual?: boolean;
  /** It changes nothing out there: it may be made before the step that wants it is committed (`SendOptions.mayAskAhead`). */
  onlyAsks?: boolean;
}

export interface ActorRef {
  machine: string;
  id: string;
}

/** Which call an event answers. */
export interface Answers {
  callId: string;
  /** Heard even if the call is gone. */
  factual: boolean;
  /** Says that the call was not made: heard only while nobody has claimed it. */
  unclaimed?: boolean;
}

export interface SendOptions {
  /** Unique to this request, call or timer: a step that carries it, and leaves a line, is applied at most once. */
  stepId: string;
  cause: Cause;
  /**
   * Writes that belong into the same commit: an audit line, an idempotency record, an attempt. A function makes them
   * of the document as it will be, each time that the step is planned.
   */
  writes?: Write[] | ((doc: ActorDoc) => Write[]);
  /**
   * Data to change in the same commit (`data.<field>`), computed from what it is then; undefined takes a field
   * away. Never part of the chart or its history.
   */
  data?: (now: Record<string, unknown>) => Record<string, unknown>;
  /** The call that this event answers; the commit removes it. */
  answers?: Answers;
  /** The timer that fired; the commit removes it. */
  fires?: { id: string; armedSeq: number };
  /** The same step was sent before and nobody could tell what became of it: the history is asked first. */
  again?: boolean;
  /**
   * Whoever sends it sends it again until it is committed, and nobody waits for it: what the step asks of the world is
   * asked before its commit, and an answer that comes soon is a step of the same commit.
   */
  mayAskAhead?: boolean;
}

export type SendResult =
  | { outcome: 'stepped'; doc: ActorDoc; from: string; to: string; asked: string[] }
  /** The chart does not accept the event in this state. */
  | { outcome: 'ignored'; doc: ActorDoc }
  /** The call or timer it belongs to is gone. */
  | { outcome: 'dropped'; doc: ActorDoc };

/** A step that was committed, as listeners (hand-over, inspector, metrics) see it. */
export interface Committed {
  machine: string;
  doc: ActorDoc;
  event: ActorEvent;
  cause: Cause;
  from: string | null;
  newCalls: Call[];
}

/** Hears what the workers do, for metrics and logs. Must not throw and must not wait. */
export interface WorkWatch {
  /** A timer was fired, so much after its time. */
  fired(timer: { machine: string; event: string; lateMs: number }): void;
  /**
   * A call was made; no answer: it failed on our side and will be made again. `durationMs` is the call alone: what
   * it waited for before it was claimed does not count.
   */
  called(made: {
    machine: string;
    doc: ActorDoc;
    call: Call;
    answer: CallAnswer | undefined;
    durationMs: number;
  }): void;
}

export type Migration = (doc: ActorDoc) => ActorDoc;

/** A chart joined to its effects: what whoever uses the engine gives it. */
export interface MachineDefinition {
  name: string;
  /** The MongoDB collection of its actors. */
  plural: string;
  machine: AnyStateMachine;
  writes: Record<string, WriteEffect>;
  calls: Record<string, CallEffect>;
  /**
   * Indexed fields that follow from the snapshot, kept beside it. Whoever names some has no index of its own on what a
   * step changes but these and what the engine needs. Absent: nothing is known of its indexes.
   */
  fields?(snapshot: AnyMachineSnapshot): Record<string, unknown>;
  /** Objects of the context that very many actors have alike and no step changes: stored once, not with each. */
  shared?: readonly string[];
  /** `migrations[n]` lifts a document from version n to n + 1: state, context and timers together. */
  migrations: Record<number, Migration>;
}

/** An actor that the engine refuses to touch: its document cannot be understood or its chart throws. */
export class Poison extends Error {}

/** A document written by newer code than this: left for a newer worker. */
export class NewerDocument extends Error {}

/** No actor with this id. */
export class ActorMissing extends Error {}

/** A rule of what is stored refused a write of the step (a posting key, a balance guard): never retried blindly. */
export class StepRefused extends Error {
  readonly write: Write;

  constructor(write: Write) {
    super(`refused by ${write.into}`);
    this.write = write;
  }
}

/** Something the step relied on was changed by others: the sender has to read again and decide again. */
export class StepRaced extends Error {
  readonly write: Write;

  constructor(write: Write) {
    super(`raced in ${write.into}`);
    this.write = write;
  }
}

/** The step's idempotency key was claimed by another request. */
export class StepReplayed extends Error {}

/** The version of a chart, as an integer. */
export function versionOf(definition: MachineDefinition): number {
  return Number(definition.machine.version);
}
