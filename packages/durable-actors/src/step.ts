import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  createMachine,
  getNextTransitions,
} from 'xstate';
import {
  type ActorDoc,
  type ActorEvent,
  type Call,
  type MachineDefinition,
  NewerDocument,
  Poison,
  type Timer,
  versionOf,
} from './document.ts';

/**
 * The pure half of the engine: what a chart says to an event, as data. This is the only file that calls
 * XState, so the traps of its pure functions (README.md, "Traps") are all met here.
 */

/** An effect that a chart asked for. */
export interface Asked {
  type: string;
  params: Record<string, unknown>;
}

export interface Transitioned {
  snapshot: { value: unknown; context: Record<string, unknown> };
  state: string;
  fields: Record<string, unknown>;
  timers: Timer[];
  asked: Asked[];
  /** State, context, timers or effects differ from before. */
  changed: boolean;
  moved: boolean;
}

/** XState's own union leaves out cancel and emit, so the engine has its own. */
type ChartAction =
  | {
      type: 'xstate.raise';
      params: { event: { type: string }; id: string | undefined; delay: number | undefined };
    }
  | { type: 'xstate.cancel'; params: { sendId: string } }
  | { type: string; params: unknown };

/** Timer events are XState's own; nobody but the timer worker may send them. */
export const reservedPrefix = 'xstate.';

/** Nobody but the timer worker fires timers; `*` would match everything. */
export function faultOf(event: ActorEvent): Error | undefined {
  if (event.type.startsWith(reservedPrefix)) return new Error(`${event.type} is reserved for timers`);
  return event.type === '' || event.type === '*' ? new Error('an event needs a name') : undefined;
}

/** `{ created: 'awaitingApproval' }` → `created.awaitingApproval`. */
export function stateText(value: unknown): string {
  if (typeof value === 'string') return value;
  const [entry, ...others] = Object.entries(value as Record<string, unknown>);
  if (!entry || others.length > 0) throw new Poison('a chart of the engine has exactly one active branch');
  const inner = stateText(entry[1]);
  return inner === '' ? entry[0] : `${entry[0]}.${inner}`;
}

/** Documents that a migration lifted, and as what they are stored. */
const lifted = new WeakMap<ActorDoc, ActorDoc>();

/** The stored form of a document that was migrated on load; undefined for one that needed none. */
export function liftedFrom(doc: ActorDoc): ActorDoc | undefined {
  return lifted.get(doc);
}

/**
 * Brings a stored document to the version of the code.
 * @throws NewerDocument, or Poison when it is not whole or cannot be lifted
 */
export function migrated(definition: MachineDefinition, stored: ActorDoc): ActorDoc {
  const current = versionOf(definition);
  const { _id, machineVersion } = stored;
  if (machineVersion > current) throw new NewerDocument(`${_id} is of version ${machineVersion}`);
  let doc = stored;
  while (doc.machineVersion < current) {
    const lift = definition.migrations[doc.machineVersion];
    if (!lift) throw new Poison(`no migration from version ${doc.machineVersion} of ${definition.name}`);
    try {
      doc = { ...lift(doc), machineVersion: doc.machineVersion + 1 };
    } catch (error) {
      throw new Poison(`the migration of ${_id} from version ${doc.machineVersion} threw: ${String(error)}`);
    }
  }
  if (doc.machineVersion !== current || !isWhole(doc)) throw new Poison(`${_id} is not a whole document`);
  const strange = doc.calls.find(({ type }) => !definition.calls[type]);
  if (strange) throw new Poison(`${_id} waits for ${strange.type}, which nobody can make`);
  if (doc !== stored) lifted.set(doc, stored);
  return doc;
}

/**
 * A stored document as readers show it: lifted to this code's version; one that cannot be is given as it is stored.
 * Never writes: setting aside is for whoever takes a step.
 */
export function shown<D extends ActorDoc>(definition: MachineDefinition, stored: D): D {
  try {
    return migrated(definition, stored) as D;
  } catch (error) {
    if (error instanceof Poison || error instanceof NewerDocument) return stored;
    throw error;
  }
}

/** Has what every step relies on; whether the chart knows the state is found out when it is restored. */
function isWhole({ snapshot, timers, calls }: ActorDoc): boolean {
  const isDated = ({ dueAt }: { dueAt: Date }) => dueAt instanceof Date;
  return (
    typeof snapshot?.context === 'object' &&
    snapshot.context !== null &&
    Array.isArray(timers) &&
    timers.every(isDated) &&
    Array.isArray(calls) &&
    calls.every(isDated)
  );
}

/** Snapshots of each machine by their state: what of them says where an actor stands is the same for all who stand there. */
const standing = new WeakMap<AnyStateMachine, Map<string, AnyMachineSnapshot>>();

/** Rebuilds the snapshot. Right only for charts without invoke, spawn and history, which ours are. */
export function restore({ machine }: MachineDefinition, doc: ActorDoc): AnyMachineSnapshot {
  try {
    const { value, context } = doc.snapshot;
    const known = standing.get(machine) ?? new Map<string, AnyMachineSnapshot>();
    standing.set(machine, known);
    const name = JSON.stringify(value);
    let there = known.get(name);
    if (!there) {
      const config = { value, context: {} } as Parameters<AnyStateMachine['resolveState']>[0];
      there = machine.resolveState(config) as AnyMachineSnapshot;
      known.set(name, there);
    }
    // As XState itself goes on from a snapshot; what it may add to is of this one alone.
    return { ...there, context, children: {}, historyValue: {} };
  } catch (error) {
    throw new Poison(`${doc._id} cannot be restored: ${(error as Error).message}`);
  }
}

type Scope = Parameters<AnyStateMachine['transition']>[2];

/** The actor whose chart is asked. Ours have none: they start no others, send nothing, and are told all by events. */
const nobody = createActor(createMachine({}));
const nothing = () => {};

/**
 * What XState's pure functions make anew each time that they are asked, an actor of the machine with a system of its
 * own: a third of the time of a step, for what our charts never look at.
 */
const scope: Scope = {
  ...{ self: nobody, id: '', sessionId: '', system: nobody.system },
  ...{ defer: nothing, logger: nothing, stopChild: nothing, emit: nothing, actionExecutor: nothing },
};

/** What a machine answers, and what it asks for; nothing is waited for meanwhile, so one scope is enough for all. */
function answered(answer: (scope: Scope) => unknown): [AnyMachineSnapshot, ChartAction[]] {
  const actions: ChartAction[] = [];
  scope.actionExecutor = (action) => void actions.push(action);
  return [answer(scope) as AnyMachineSnapshot, actions];
}

/** The first snapshot of a new actor. Here XState swallows errors: an error snapshot is refused. */
export function first(definition: MachineDefinition, input: { at: number }, seq: number): Transitioned {
  const [snapshot, actions] = answered((scope) => definition.machine.getInitialSnapshot(scope, input));
  return describe(definition, undefined, [], snapshot, actions, input.at, seq);
}

/** What the chart says to an event. `timers` are the actor's own, without the one that fired. */
export function next(
  definition: MachineDefinition,
  doc: ActorDoc,
  timers: Timer[],
  event: ActorEvent,
  seq: number,
): Transitioned {
  const before = restore(definition, doc);
  // A timer of another edition of the chart would be ignored, and the actor would wait for ever.
  if (event.type.startsWith(reservedPrefix) && !definition.machine.events.includes(event.type)) {
    throw new Poison(`the chart of ${doc._id} has no timer ${event.type}`);
  }
  let result: ReturnType<typeof answered>;
  try {
    result = answered((scope) => definition.machine.transition(before, event, scope));
  } catch (error) {
    throw new Poison(`the chart of ${doc._id} threw on ${event.type}: ${(error as Error).message}`);
  }
  return describe(definition, before, timers, result[0], result[1], event.at, seq);
}

function describe(
  definition: MachineDefinition,
  before: AnyMachineSnapshot | undefined,
  oldTimers: Timer[],
  after: AnyMachineSnapshot,
  actions: ChartAction[],
  at: number,
  seq: number,
): Transitioned {
  if (after.status !== 'active') {
    throw new Poison(
      `${definition.name} ended as ${after.status}: ${String((after as { error?: unknown }).error)}`,
    );
  }
  if (!Number.isFinite(at)) throw new Error(`an event to ${definition.name} came without its time`);
  if (before?.context !== after.context) refuseUnplain(definition, after.context);
  const { timers, asked } = sort(actions, oldTimers, at, seq);
  const state = stateText(after.value);
  const moved = before === undefined || stateText(before.value) !== state;
  // Re-entering a state gives the same snapshot object although timers were re-armed, so identity of the
  // snapshot says nothing: what counts is the context, the state, the timers and the effects.
  const changed = moved || asked.length > 0 || actions.length > 0 || before.context !== after.context;
  return {
    snapshot: { value: after.value, context: after.context as Record<string, unknown> },
    state,
    fields: definition.fields?.(after) ?? {},
    timers,
    asked,
    changed,
    moved,
  };
}

/** A context must read back as it was written: what is not plain JSON would change on the way. */
function refuseUnplain(definition: MachineDefinition, context: Record<string, unknown>): void {
  for (const field of Object.keys(context)) {
    if (!isPlain(context[field], 0))
      throw new Poison(`context.${field} of ${definition.name} is not plain JSON`);
  }
}

function isPlain(value: unknown, depth: number): boolean {
  if (value === null || value === undefined) return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean';
  if (depth > 16) return false;
  if (!Array.isArray(value)) {
    const prototype = Object.getPrototypeOf(value) as unknown;
    if (prototype !== Object.prototype && prototype !== null) return false;
  }
  for (const inner of Object.values(value)) if (!isPlain(inner, depth + 1)) return false;
  return true;
}

/** Divides a transition's actions into timers and effects, in their order. */
function sort(
  actions: ChartAction[],
  oldTimers: Timer[],
  at: number,
  seq: number,
): { timers: Timer[]; asked: Asked[] } {
  let timers = oldTimers;
  const asked: Asked[] = [];
  for (const action of actions) {
    if (action.type === 'xstate.cancel') {
      const { sendId } = action.params as { sendId: string };
      timers = timers.filter((timer) => timer.id !== sendId);
    } else if (action.type === 'xstate.raise') {
      const { event, id, delay } = action.params as { event: { type: string }; id?: string; delay?: number };
      const isTimer = event.type.startsWith('xstate.after.');
      if (delay === undefined && !isTimer) continue; // an immediate raise has already been taken
      if (!isTimer || id === undefined) throw new Poison(`a free delayed raise of ${event.type}: use after`);
      const dueAt = new Date(at + delay!);
      if (!(delay! >= 0) || Number.isNaN(dueAt.getTime())) {
        throw new Poison(`no delay for ${event.type}: ${delay}`);
      }
      timers = [
        ...timers.filter((timer) => timer.id !== id),
        { id, event: event.type, dueAt, armedSeq: seq },
      ];
    } else if (action.type.startsWith(reservedPrefix)) {
      throw new Poison(`${action.type} has no place in a chart of the engine`);
    } else {
      asked.push({ type: action.type, params: (action.params ?? {}) as Record<string, unknown> });
    }
  }
  return { timers, asked };
}

/** The earliest moment at which something has to happen to the actor, or null. */
export function earliest(timers: readonly Timer[], calls: readonly Call[]): Date | null {
  let due = Number.POSITIVE_INFINITY;
  for (const timer of timers) due = Math.min(due, timer.dueAt.getTime());
  for (const call of calls) due = Math.min(due, call.dueAt.getTime());
  return Number.isFinite(due) ? new Date(due) : null;
}

/**
 * When a stored actor is due: `dueAt` may be too early. What is not readable counts as it says; null: nothing has to
 * happen to it, or nothing may, for it is in quarantine.
 */
export function dueOf({
  timers,
  calls,
  dueAt,
  quarantined,
}: Pick<ActorDoc, 'timers' | 'calls' | 'dueAt' | 'quarantined'>): Date | null {
  if (quarantined) return null;
  const isDated = (all: unknown): all is { dueAt: Date }[] =>
    Array.isArray(all) && all.every((each) => (each as { dueAt?: unknown }).dueAt instanceof Date);
  const exact = isDated(timers) && isDated(calls) ? earliest(timers as Timer[], calls as Call[]) : null;
  return dueAt && (exact ?? dueAt);
}

/** What the engine cannot work with, found when it is built rather than at the first step. */
export function checkDefinition(definition: MachineDefinition): void {
  const { name, machine } = definition;
  const version = versionOf(definition);
  if (!Number.isSafeInteger(version) || version < 1) throw new Error(`${name} has no version`);
  if (!Number.isFinite(machine.options?.maxIterations)) {
    throw new Error(`${name} sets no maxIterations: a loop in it would stop the process`);
  }
}

/** The types of event that the chart takes in the actor's present state, timers left out. */
export function acceptedEvents(definition: MachineDefinition, doc: ActorDoc): string[] {
  const snapshot = restore(definition, doc);
  const types = getNextTransitions(snapshot).map(({ eventType }) => eventType);
  return [...new Set(types)].filter((type) => type !== '' && !type.startsWith(reservedPrefix)).sort();
}
