import {
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  createEmptyActor,
  type EventObject,
  type StateValue,
} from 'xstate';

/**
 * A chart without the engine: the same rules written a second time, so that the two can be compared, plus what
 * only tests want to know (which transitions a step took). Every step goes through JSON, as a stored actor does.
 */

export interface Timed extends EventObject {
  at: number;
  [field: string]: unknown;
}

export interface Armed {
  id: string;
  dueAt: number;
}

export interface Asked {
  type: string;
  params: Record<string, unknown>;
}

/** A chart at rest, as its document would hold it, and what its last step did. */
export interface Position {
  status: 'active';
  output: undefined;
  error: undefined;
  state: string;
  value: StateValue;
  context: Record<string, unknown>;
  timers: Armed[];
  now: number;
  asked: Asked[];
  /** Keys of the transitions that the last step took, `source event #branch`. */
  taken: string[];
}

type Action = { type: string; params?: unknown };
type Raised = { event: { type: string }; id?: string; delay?: number };

export class Chart {
  readonly machine: AnyStateMachine;
  readonly nodes: readonly AnyStateNode[];
  /** Every transition there is: each branch of each `on`, `after` and `always` of each state. */
  readonly transitions: ReadonlyMap<AnyTransitionDefinition, string>;
  /** Ids of timers by the states that want them. */
  readonly #wanted = new Map<string, string[]>();

  constructor(machine: AnyStateMachine) {
    this.machine = machine;
    this.nodes = withDescendants(machine.root);
    this.transitions = new Map(this.nodes.flatMap(keyedTransitions));
  }

  /** A new actor. */
  begin(input: { at: number }): Position {
    const { scope, actions, transitions } = recorder();
    const snapshot = this.machine.getInitialSnapshot(scope, input as never) as AnyMachineSnapshot;
    return this.#rest(snapshot, actions, transitions, [], input.at);
  }

  /** What an event makes of it. `fires`: the timer that the event is, which is then no longer armed. */
  step(position: Position, event: Timed, fires?: string): Position {
    const { scope, actions, transitions } = recorder();
    const before = this.restore(position);
    const after = this.machine.transition(before, event, scope) as AnyMachineSnapshot;
    const timers = position.timers.filter(({ id }) => id !== fires);
    return this.#rest(after, actions, transitions, timers, event.at);
  }

  /** Fires one timer, at its time or now if that is over. */
  fire(position: Position, id: string): Position {
    const timer = position.timers.find((each) => each.id === id);
    if (!timer) throw new Error(`${id} is not armed in ${position.state}`);
    return this.step(position, { type: id, at: Math.max(position.now, timer.dueAt) }, id);
  }

  /** The snapshot that a stored actor is restored to. */
  restore({ value, context }: Pick<Position, 'value' | 'context'>): AnyMachineSnapshot {
    const stored = JSON.parse(JSON.stringify({ value, context }));
    return this.machine.resolveState(stored) as AnyMachineSnapshot;
  }

  /** Ids of the timers that the active states want to have armed. */
  wantedTimers(position: Pick<Position, 'value' | 'context'>): readonly string[] {
    const states = JSON.stringify(position.value);
    let wanted = this.#wanted.get(states);
    if (!wanted) {
      const nodes = (this.restore(position) as unknown as { _nodes: AnyStateNode[] })._nodes;
      wanted = [...new Set(nodes.flatMap((node) => node.after.map(({ eventType }) => eventType)))];
      this.#wanted.set(states, wanted);
    }
    return wanted;
  }

  #rest(
    snapshot: AnyMachineSnapshot,
    actions: Action[],
    taken: AnyTransitionDefinition[],
    before: Armed[],
    now: number,
  ): Position {
    if (snapshot.status !== 'active') throw new Error(`the chart ended: ${String(snapshot.error)}`);
    let timers = before;
    const asked: Asked[] = [];
    for (const { type, params } of actions) {
      if (type === 'xstate.cancel') {
        timers = timers.filter(({ id }) => id !== (params as { sendId: string }).sendId);
      } else if (type === 'xstate.raise') {
        const { id, delay, event } = params as Raised;
        if (delay === undefined || id !== event.type) throw new Error(`a free raise of ${event.type}`);
        if (!Number.isFinite(delay) || delay < 0) throw new Error(`${id} has the delay ${delay}`);
        timers = [...timers.filter((timer) => timer.id !== id), { id, dueAt: now + delay }];
      } else {
        asked.push({ type, params: (params ?? {}) as Record<string, unknown> });
      }
    }
    return {
      status: 'active',
      output: undefined,
      error: undefined,
      state: textOf(snapshot.value),
      value: snapshot.value,
      context: snapshot.context,
      timers,
      now,
      asked,
      taken: taken.map((each) => this.transitions.get(each) ?? `unknown ${each.eventType}`),
    };
  }
}

/** The timer that fires next; the first armed among equals. */
export function earliestOf(timers: readonly Armed[]): Armed | undefined {
  return timers.reduce<Armed | undefined>(
    (least, timer) => (least && least.dueAt <= timer.dueAt ? least : timer),
    undefined,
  );
}

/** `{ created: 'awaitingApproval' }` → `created.awaitingApproval`. */
export function textOf(value: StateValue): string {
  if (typeof value === 'string') return value;
  const branches = Object.entries(value);
  if (branches.length !== 1) throw new Error(`not one active branch: ${JSON.stringify(value)}`);
  const [name, inner] = branches[0]!;
  return `${name}.${textOf(inner!)}`;
}

function withDescendants(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(withDescendants)];
}

function keyedTransitions(node: AnyStateNode): [AnyTransitionDefinition, string][] {
  const byEvent = [...node.transitions.entries(), ['always', node.always ?? []] as const];
  return byEvent.flatMap(([event, branches]) =>
    branches.map((branch, index): [AnyTransitionDefinition, string] => [
      branch,
      `${node.id} ${event} #${index}`,
    ]),
  );
}

/** An actor scope that only listens: the actions as data, and the transitions as the inspector is told of them. */
function recorder() {
  const actions: Action[] = [];
  const transitions: AnyTransitionDefinition[] = [];
  const self = createEmptyActor();
  self.system.inspect((inspected) => {
    if (inspected.type === '@xstate.microstep') transitions.push(...inspected._transitions);
  });
  const scope: AnyActorScope = {
    self,
    id: self.id,
    sessionId: self.sessionId,
    system: self.system,
    logger: () => {},
    defer: () => {},
    emit: () => {},
    stopChild: () => {},
    actionExecutor: (action) => {
      actions.push(action);
    },
  };
  return { scope, actions, transitions };
}
