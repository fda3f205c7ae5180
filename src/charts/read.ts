import type { AnyStateMachine, AnyStateNode } from 'xstate';

/**
 * A machine's definition as boxes and arrows, for drawing. An arrow always joins two boxes of the same parent, the
 * ones that hold its true ends: what leaves a nested state is drawn from the outer box and says where it comes from.
 * So every box can be laid out by itself, and no line crosses a border that it has nothing to do with.
 */
export interface Box {
  /** `created.awaitingApproval`, as `state` in an actor's document; empty for the machine itself. */
  path: string;
  name: string;
  /** What happens on entry and exit, and the transitions that stay. */
  rows: Note[];
  children: Box[];
  /** The child that is entered first. */
  initial: string | undefined;
  /** Between children; `from` is `anyState` where the parent itself reacts. */
  arrows: Arrow[];
}

export interface Arrow {
  from: string;
  to: string;
  notes: Note[];
}

/** One transition (or reaction) in words. */
export interface Note {
  kind: 'event' | 'after' | 'always' | 'entry' | 'exit';
  /** `push.accepted`, several that do the same, or the name of a delay. */
  events: string[];
  guard: string | undefined;
  actions: Action[];
  /** The nested state it really comes from or goes to, relative to the box it is drawn at. */
  within: string | undefined;
  into: string | undefined;
  reenters: boolean;
  /** Has a target. */
  leads: boolean;
}

/** `isEffect`: leaves a trace outside the chart (a write or a call), unlike an assignment to the context. */
export interface Action {
  text: string;
  isEffect: boolean;
}

/** The source of arrows that hold in any child of a box. */
export const anyState = '*';

interface Found {
  source: AnyStateNode;
  target: AnyStateNode | undefined;
  note: Note;
}

/** Reads the whole definition. */
export function readChart(machine: AnyStateMachine): Box {
  const boxes = new Map<AnyStateNode, Box>();
  const root = boxOf(machine.root, boxes);
  for (const node of boxes.keys()) {
    for (const found of transitionsOf(node, machine)) place(found, boxes);
  }
  return root;
}

function boxOf(node: AnyStateNode, boxes: Map<AnyStateNode, Box>): Box {
  const box: Box = {
    path: node.path.join('.'),
    name: node.key,
    rows: [],
    children: [],
    initial: undefined,
    arrows: [],
  };
  boxes.set(node, box);
  box.children = childrenOf(node).map((child) => boxOf(child, boxes));
  const [first] = box.children.length > 0 ? (node.initial.target as AnyStateNode[]) : [];
  box.initial = first?.path.join('.');
  return box;
}

function childrenOf(node: AnyStateNode): AnyStateNode[] {
  return Object.values(node.states) as AnyStateNode[];
}

/** Everything a state reacts to, in the order of the file: entry, exit, events, timers, conditions. */
function transitionsOf(node: AnyStateNode, machine: AnyStateMachine): Found[] {
  const found: Found[] = [];
  for (const kind of ['entry', 'exit'] as const) {
    const actions = actionsOf(node.config[kind], machine);
    if (actions.length > 0) found.push({ source: node, target: undefined, note: noteOf(kind, [], actions) });
  }
  const same = new Map<string, Found[]>();
  for (const [event, definitions] of node.transitions) {
    const [, delay] = /^xstate\.after\.([^.]+)\./.exec(event) ?? [];
    const kind = delay ? 'after' : 'event';
    const reactions = (definitions as Transition[]).map((each, index, all) =>
      foundOf(node, each, noteOf(kind, [delay ?? event], actionsOf(each.actions, machine)), index > 0 && all),
    );
    // Events with the very same reactions share their lines.
    const key = JSON.stringify([
      kind,
      reactions.map(({ target, note }) => ({ ...note, events: 0, to: target?.id })),
    ]);
    const earlier = kind === 'event' ? same.get(key) : undefined;
    if (earlier) for (const { note } of earlier) note.events.push(event);
    else {
      same.set(key, reactions);
      found.push(...reactions);
    }
  }
  for (const [index, each] of ((node.always ?? []) as Transition[]).entries()) {
    const note = noteOf('always', [], actionsOf(each.actions, machine));
    found.push(foundOf(node, each, note, index > 0 && node.always!));
  }
  return found;
}

/** As much of XState's definition as is drawn. */
interface Transition {
  target: readonly AnyStateNode[] | undefined;
  guard?: unknown;
  actions: readonly unknown[];
  reenter: boolean;
}

function foundOf(
  source: AnyStateNode,
  each: Transition,
  note: Note,
  after: false | readonly unknown[],
): Found {
  const guard = nameOf(each.guard) ?? (after ? 'else' : undefined);
  return {
    source,
    target: each.target?.[0],
    note: { ...note, guard, reenters: each.reenter, leads: each.target !== undefined },
  };
}

function noteOf(kind: Note['kind'], events: string[], actions: Action[]): Note {
  return {
    kind,
    events,
    guard: undefined,
    actions,
    within: undefined,
    into: undefined,
    reenters: false,
    leads: false,
  };
}

/** Puts a reaction where it is drawn: into its state's own rows, or onto an arrow between two boxes. */
function place({ source, target, note }: Found, boxes: Map<AnyStateNode, Box>): void {
  const own = boxes.get(source)!;
  if (!target || target === source || isInside(source, target)) {
    const into = target && target !== source ? boxes.get(target)!.path : undefined;
    own.rows.push({ ...note, into });
    return;
  }
  const parent = isInside(target, source) ? source : commonParent(source, target);
  const from = parent === source ? undefined : childTowards(parent, source);
  const to = childTowards(parent, target);
  const arrows = boxes.get(parent)!.arrows;
  const ends = { from: from ? boxes.get(from)!.path : anyState, to: boxes.get(to)!.path };
  let arrow = arrows.find((each) => each.from === ends.from && each.to === ends.to);
  if (!arrow) {
    arrow = { ...ends, notes: [] };
    arrows.push(arrow);
  }
  arrow.notes.push({ ...note, within: from && relative(from, source), into: relative(to, target) });
}

function isInside(node: AnyStateNode, outer: AnyStateNode): boolean {
  return node !== outer && outer.path.every((key, depth) => node.path[depth] === key);
}

function commonParent(a: AnyStateNode, b: AnyStateNode): AnyStateNode {
  let parent = a.parent as AnyStateNode;
  while (!isInside(b, parent)) parent = parent.parent as AnyStateNode;
  return parent;
}

function childTowards(parent: AnyStateNode, node: AnyStateNode): AnyStateNode {
  return parent.states[node.path[parent.path.length]!] as AnyStateNode;
}

function relative(outer: AnyStateNode, node: AnyStateNode): string | undefined {
  return node.path.slice(outer.path.length).join('.') || undefined;
}

/** An action as it was written: a name, an object with parameters, or a list of them. */
function actionsOf(written: unknown, machine: AnyStateMachine): Action[] {
  if (Array.isArray(written)) return written.flatMap((each) => actionsOf(each, machine));
  const name = nameOf(written);
  if (name === undefined) return [];
  const { params } = written as { params?: unknown };
  const values = typeof params === 'object' && params !== null ? Object.values(params) : [];
  const implementation = machine.implementations.actions[name] as { type?: string } | undefined;
  return [
    {
      text: values.length > 0 ? `${name}(${values.join(', ')})` : name,
      isEffect: implementation?.type !== 'xstate.assign',
    },
  ];
}

function nameOf(written: unknown): string | undefined {
  if (typeof written === 'string') return written;
  return (written as { type?: string } | undefined)?.type;
}
