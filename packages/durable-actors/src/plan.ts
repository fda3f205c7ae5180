import type { UpdateFilter } from 'mongodb';
import {
  type ActorDoc,
  type ActorEvent,
  type Answers,
  type Call,
  type Cause,
  type MachineDefinition,
  type NewActor,
  Poison,
  type SendOptions,
  type StepLine,
  StepRaced,
  StepRefused,
  StepReplayed,
  versionOf,
} from './document.ts';
import type { Doc, MongoCollectionSpec, Write } from './mongo.ts';
import { partOf } from './parts.ts';
import type { SharedParts } from './shared.ts';
import { earliest, first, liftedFrom, next, type Transitioned } from './step.ts';

/** The history: one line for every step that a person may look for. Lines of an actor are a range of `_id`. */
export const stepsSpec: MongoCollectionSpec = { name: 'steps' };

/** A call that nobody has claimed is looked for this soon, where its effect says nothing else. */
const usualPickupMs = 5_000;

/** A step as it is to be committed. The first write is always the actor's own. */
export interface Planned {
  doc: ActorDoc;
  writes: Write[];
  newCalls: Call[];
  asked: string[];
  /** Actors born in this commit. */
  children: { definition: MachineDefinition; planned: Planned }[];
}

/** What of the engine a step is planned with. */
export interface Planner {
  define(machine: string): MachineDefinition;
  shared: Pick<SharedParts, 'rest'>;
}

/** What comes with an event besides the event (see `SendOptions`). */
export interface Attendant {
  stepId: string;
  cause: Cause;
  writes?: SendOptions['writes'];
  data?: (now: Record<string, unknown>) => Record<string, unknown>;
  answers?: Answers;
  /** The process that takes in hand at once what is to be called; undefined: it goes to the queue. */
  owner?: string;
}

/** An actor's first step. Its input's `at` is the time of it. */
export async function planBirth(
  planner: Planner,
  actor: NewActor,
  attendant: Attendant,
): Promise<{ definition: MachineDefinition; planned: Planned }> {
  const { machine, id, input, data, ...labels } = actor;
  const definition = planner.define(machine);
  const chart = first(definition, input, 1);
  const unborn: ActorDoc = {
    ...labels,
    _id: id,
    machineVersion: versionOf(definition),
    seq: 0,
    state: '',
    snapshot: chart.snapshot,
    timers: [],
    calls: [],
    dueAt: null,
    lastStep: attendant.stepId,
    updatedAt: new Date(input.at),
    data,
  };
  const event = { type: 'created', at: input.at };
  return { definition, planned: await planStep(planner, definition, unborn, null, chart, event, attendant) };
}

/** Turns what the chart said into the new document, the history line and the writes of the commit. */
export async function planStep(
  planner: Planner,
  definition: MachineDefinition,
  doc: ActorDoc,
  from: string | null,
  chart: Transitioned,
  event: ActorEvent,
  attendant: Attendant,
): Promise<Planned> {
  const { answers, cause, owner } = attendant;
  const data = attendant.data?.(doc.data);
  refuseChange(definition, doc.snapshot.context, chart.snapshot.context);
  const seq = doc.seq + 1;
  const kept = answers ? doc.calls.filter(({ id }) => id !== answers.callId) : doc.calls;
  const newCalls = callsOf(definition, doc._id, seq, chart, event.at, owner);
  const calls = newCalls.length > 0 ? [...kept, ...newCalls] : kept;
  const changed: ActorDoc = {
    ...doc,
    ...chart.fields,
    part: partOf(doc._id),
    machineVersion: versionOf(definition),
    seq,
    state: chart.state,
    snapshot: chart.snapshot,
    timers: chart.timers,
    calls,
    dueAt: dueAfter(definition, doc, chart, calls, event.at),
    lastStep: attendant.stepId,
    updatedAt: new Date(event.at),
    data: data ? changedData(doc.data, data) : doc.data,
  };
  const resting = await planner.shared.rest(definition, changed);
  const writes: Write[] = [
    from === null
      ? { op: 'insert', into: definition.plural, doc: resting, onDuplicate: 'race' }
      : updateOf(definition, doc, resting, data, chart.fields),
  ];
  // An answer that changed nothing a person would look for ("still pending") leaves no line.
  if (chart.moved || chart.asked.length > 0 || cause.kind !== 'call') {
    const line = lineOf(definition, changed, from, chart, event, attendant);
    writes.push({ op: 'insert', into: stepsSpec.name, doc: line, onDuplicate: 'race' });
  }
  const view = { doc: changed, before: doc.snapshot.context, event, at: event.at, cause };
  const children: Planned['children'] = [];
  for (const { type, params } of chart.asked) {
    const wanted = await definition.writes[type]?.(view, params);
    if (Array.isArray(wanted)) writes.push(...wanted);
    for (const actor of Array.isArray(wanted) ? [] : (wanted?.actors ?? [])) {
      const child = await planBirth(planner, actor, { stepId: attendant.stepId, cause, owner });
      children.push(child);
      writes.push(...child.planned.writes);
    }
  }
  const own = attendant.writes ?? [];
  writes.push(...(typeof own === 'function' ? own(changed) : own));
  const asked = chart.asked.map(({ type }) => type);
  return { doc: changed, writes, newCalls, asked, children };
}

/** What a step would do: its writes are those that it would commit. */
export interface Rehearsal {
  from: string;
  to: string;
  actions: string[];
  accepted: boolean;
  writes: Write[];
}

/** Plans the very step that the event would be, and commits nothing. @throws what an effect of the step throws */
export async function rehearse(
  planner: Planner,
  definition: MachineDefinition,
  doc: ActorDoc,
  event: ActorEvent,
  cause: Cause,
): Promise<Rehearsal> {
  const chart = next(definition, doc, doc.timers, event, doc.seq + 1);
  const actions = chart.asked.map(({ type }) => type);
  const outlook = { from: doc.state, to: chart.state, actions, accepted: chart.changed };
  if (!chart.changed) return { ...outlook, writes: [] };
  const attendant = { stepId: 'rehearsal', cause };
  const { writes } = await planStep(planner, definition, doc, doc.state, chart, event, attendant);
  return { ...outlook, writes };
}

/** What is stored once for all can be changed by none. */
function refuseChange(
  { name, shared = [] }: MachineDefinition,
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): void {
  const field = shared.find((each) => before[each] !== after[each]);
  if (field !== undefined) throw new Poison(`${name} changed ${field}, which it shares`);
}

/** Data after a change; undefined takes a field away. */
function changedData(
  data: Record<string, unknown>,
  change: Record<string, unknown>,
): Record<string, unknown> {
  const changed = { ...data, ...change };
  for (const [name, value] of Object.entries(change)) if (value === undefined) delete changed[name];
  return changed;
}

/**
 * When the sweep is to look at the actor: when the first of its timers and calls is due. Where a step changes no other
 * index, the moment that is stored stays while it is ahead, too early then, never too late: an update that changes one
 * index costs what it costs to change them all, and most actors have gone on by then.
 */
function dueAfter(
  { fields }: MachineDefinition,
  doc: ActorDoc,
  chart: Transitioned,
  calls: readonly Call[],
  at: number,
): Date | null {
  const exact = earliest(chart.timers, calls);
  const isAhead = exact && doc.dueAt && doc.dueAt < exact && doc.dueAt.getTime() > at;
  if (!fields || !isAhead) return exact;
  return Object.entries(chart.fields).every(([name, value]) => doc[name] === value) ? doc.dueAt : exact;
}

/** The calls a step leaves behind; anything else the chart asks for must be a write. */
function callsOf(
  definition: MachineDefinition,
  id: string,
  seq: number,
  chart: Transitioned,
  at: number,
  owner: string | undefined,
): Call[] {
  const calls: Call[] = [];
  for (const { type, params } of chart.asked) {
    const effect = definition.calls[type];
    if (!effect) {
      if (!definition.writes[type])
        throw new Poison(`${definition.name} asks for ${type}, which has no effect`);
      continue;
    }
    const notBefore = Math.max(at, effect.notBefore?.(chart.snapshot.context) ?? at);
    const patienceMs = effect.atMostOnce
      ? Math.min(effect.atMostOnce.pickupMs ?? usualPickupMs, effect.patienceMs)
      : effect.patienceMs;
    calls.push({
      id: `${id}.${seq}.${calls.length}`,
      type,
      params,
      notBefore: new Date(notBefore),
      dueAt: new Date(notBefore + patienceMs),
      ...(owner !== undefined && notBefore <= at ? { owner } : {}),
    });
  }
  return calls;
}

/** The calls after a change of one of them; undefined: it is not there, or stays as it is. */
export function changedCall(
  calls: readonly Call[],
  id: string,
  change: (call: Call) => Call | undefined,
): { calls: Call[] } | undefined {
  const call = calls.find((each) => each.id === id);
  const changed = call && change(call);
  return changed && { calls: calls.map((each) => (each === call ? changed : each)) };
}

/**
 * The guarded update of an actor: it matches only while the sequence number is what was loaded. `changed`: as it is to
 * rest.
 */
export function updateOf(
  { plural, shared }: Pick<MachineDefinition, 'plural' | 'shared'>,
  doc: ActorDoc,
  changed: ActorDoc,
  data?: Record<string, unknown>,
  fields?: Record<string, unknown>,
): Write {
  const filter = { _id: doc._id, seq: doc.seq };
  const update = migrationOf(doc, changed) ?? differenceOf(doc, changed, shared, data, fields);
  return { op: 'update', into: plural, filter, update, onMiss: 'race' };
}

/**
 * Only what is not as it was: what stays (the timers of a claim) would otherwise be sent, journalled and compared again
 * at every step, and what is shared never changes. What `doc` says is what is stored, as long as the filter matches.
 */
function differenceOf(
  doc: ActorDoc,
  changed: ActorDoc,
  shared: readonly string[] = [],
  data: Record<string, unknown> = {},
  fields: Record<string, unknown> = {},
): UpdateFilter<Doc> {
  const { seq, lastStep, updatedAt } = changed;
  const set: Record<string, unknown> = { seq, lastStep, updatedAt };
  const unset: Record<string, ''> = {};
  const put = (path: string, value: unknown) => {
    // MongoDB never hears of an undefined: the field would stay as it was.
    if (value === undefined) unset[path] = '';
    else set[path] = value;
  };
  if (changed.part !== doc.part) set.part = changed.part;
  if (changed.timers !== doc.timers) set.timers = changed.timers;
  if (changed.calls !== doc.calls) set.calls = changed.calls;
  if (changed.dueAt?.getTime() !== doc.dueAt?.getTime()) set.dueAt = changed.dueAt;
  for (const [name, value] of Object.entries(fields)) if (doc[name] !== value) set[name] = value;
  for (const [name, value] of Object.entries(data)) put(`data.${name}`, value);
  if (changed.state !== doc.state) {
    set.state = changed.state;
    set['snapshot.value'] = changed.snapshot.value;
  }
  const [before, after] = [doc.snapshot.context, changed.snapshot.context];
  const names = before === after ? [] : Object.keys({ ...before, ...after });
  // A name that MongoDB would read as a path: then all of it.
  if (names.some((name) => /^\$|\./.test(name))) set['snapshot.context'] = after;
  else
    for (const name of names)
      if (after[name] !== before[name] && !shared.includes(name))
        put(`snapshot.context.${name}`, after[name]);
  return { $set: set, ...(Object.keys(unset).length > 0 ? { $unset: unset } : {}) };
}

/** What was migrated on load is written back whole, with whatever fields the migration touched. */
function migrationOf(doc: ActorDoc, changed: ActorDoc): UpdateFilter<Doc> | undefined {
  const stored = liftedFrom(doc);
  if (!stored) return undefined;
  const { _id, ...all } = changed;
  const gone = Object.keys(stored).filter((field) => !(field in changed));
  if (gone.length === 0) return { $set: all };
  return { $set: all, $unset: Object.fromEntries(gone.map((field) => [field, ''])) };
}

/** The line of the history. `detail` of an event is kept in records of the service's own, not here. */
function lineOf(
  definition: MachineDefinition,
  doc: ActorDoc,
  from: string | null,
  chart: Transitioned,
  event: ActorEvent,
  attendant: Attendant,
): StepLine {
  const { detail: _detail, at, ...told } = event;
  return {
    _id: stepId(doc._id, doc.seq),
    actor: doc._id,
    machine: definition.name,
    seq: doc.seq,
    at: new Date(at),
    event: told,
    from,
    to: doc.state,
    actions: chart.asked.map(({ type }) => type),
    cause: attendant.cause,
    stepId: attendant.stepId,
  };
}

/** `_id` of a history line: sorts by sequence within its actor. */
export function stepId(actor: string, seq: number): string {
  return `${actor}/${String(seq).padStart(8, '0')}`;
}

/** The `_id`s of an actor's whole history. */
export function stepRange(actor: string): { $gt: string; $lt: string } {
  return { $gt: `${actor}/`, $lt: `${actor}0` }; // 0 follows / in the order of characters
}

/** What a refused write means to the sender of the step. */
export function conflictOf(write: Write): Error {
  const kind = write.op === 'insert' ? write.onDuplicate : write.op === 'update' ? write.onMiss : 'race';
  if (kind === 'replay') return new StepReplayed(write.into);
  return kind === 'refuse' ? new StepRefused(write) : new StepRaced(write);
}
