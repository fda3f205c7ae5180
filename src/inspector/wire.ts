import type { Cause } from '@kusanya/durable-actors';
import type { AnyStateMachine } from 'xstate';

/**
 * Our steps in the words of `@statelyai/inspect`: the three messages its receivers know, with the same fields that
 * its own inspector sends of a running actor. A test holds the two against each other.
 */
export interface Snapshot {
  status: 'active';
  value?: unknown;
  context?: Record<string, unknown>;
  children?: object;
  historyValue?: object;
  tags?: string[];
}

interface Common {
  sessionId: string;
  rootId: string;
  /** Milliseconds since 1970, as text. */
  createdAt: string;
  id: null;
  _version: string;
}

export interface ActorMessage extends Common {
  type: '@xstate.actor';
  name: string;
  /** The chart's configuration as JSON text. */
  definition: string;
  snapshot: Snapshot;
}

export interface EventMessage extends Common {
  type: '@xstate.event';
  event: { type: string };
  sourceId: string;
}

export interface SnapshotMessage extends Common {
  type: '@xstate.snapshot';
  event: { type: string };
  snapshot: Snapshot;
}

export type Message = ActorMessage | EventMessage | SnapshotMessage;

/** The version of the package whose messages these are. */
const version = '0.7.2';

function common(sessionId: string, atMs: number): Common {
  return { sessionId, rootId: sessionId, createdAt: String(atMs), id: null, _version: version };
}

export function actorMessage(
  id: string,
  atMs: number,
  about: { name: string; definition: string; snapshot: Snapshot },
): ActorMessage {
  return { type: '@xstate.actor', ...about, ...common(id, atMs) };
}

/** Somebody who sends and is no chart of ours: a merchant, a rail, a clock, a person. */
export function outsiderMessage(id: string, atMs: number): ActorMessage {
  return actorMessage(id, atMs, {
    name: id,
    definition: JSON.stringify({ id }),
    snapshot: { status: 'active' },
  });
}

export function eventMessage(
  id: string,
  atMs: number,
  event: { type: string },
  sourceId: string,
): EventMessage {
  return { type: '@xstate.event', event: untimed(event), sourceId, ...common(id, atMs) };
}

export function snapshotMessage(
  id: string,
  atMs: number,
  event: { type: string },
  snapshot: Snapshot,
): SnapshotMessage {
  return { type: '@xstate.snapshot', event: untimed(event), snapshot, ...common(id, atMs) };
}

/** The message says when; the history keeps events without their time too. */
function untimed(event: { type: string; at?: unknown }): { type: string } {
  const { at: _at, ...told } = event;
  return told;
}

/** What XState's `snapshot.toJSON()` gives for charts like ours. */
export function snapshotOf(value: unknown, context: Record<string, unknown>): Snapshot {
  return { status: 'active', value, context, children: {}, historyValue: {}, tags: [] };
}

/** `created.pushing` → `{ created: 'pushing' }`. */
export function valueAt(state: string): unknown {
  const names = state.split('.');
  return names.reduceRight<unknown>(
    (inner, name) => (inner === undefined ? name : { [name]: inner }),
    undefined,
  );
}

const definitions = new WeakMap<AnyStateMachine, string>();

/** The chart as text that `createMachine` and Stately's page read. */
export function definitionOf(machine: AnyStateMachine): string {
  let text = definitions.get(machine);
  if (!text) {
    text = JSON.stringify(machine.config, (_name, value: unknown) =>
      typeof value === 'function' ? { type: value.name } : value,
    );
    definitions.set(machine, text);
  }
  return text;
}

/** Who answers the calls of a machine's actors; what is answered within the house comes from its worker. */
function answererOf(machine: string, event: string): string {
  if (machine === 'collection' || machine === 'breaker') return 'rail';
  return event.startsWith('attempt.') ? 'receiver' : 'worker';
}

/** Whom an event came from: another actor, or an outsider by the name of its kind. */
export function sourceOf(cause: Cause, actor: string, machine: string, event: string): string {
  if (cause.kind !== 'call') return cause.kind;
  const caller = callerOf(cause.id);
  return caller === undefined || caller === actor ? answererOf(machine, event) : caller;
}

/** The actor of a call: `<actor>.<seq>.<n>`. */
function callerOf(callId: string): string | undefined {
  return /^(.+)\.\d+\.\d+$/.exec(callId)?.[1];
}
