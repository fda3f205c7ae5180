/** A state of a chart's definition, as much of it as is drawn. The operators' routes give it as XState has it. */
export interface StateConfig {
  id?: string;
  initial?: string;
  states?: Readonly<Record<string, StateConfig>>;
  on?: Readonly<Record<string, Transitions>>;
  after?: Readonly<Record<string, Transitions>>;
  always?: Transitions;
}

type Transitions = string | TransitionConfig | readonly (string | TransitionConfig)[];

interface TransitionConfig {
  target?: string;
  guard?: string | { type?: string };
}

/** A state of the chart, and how the actor stands to it. */
export interface Place {
  path: string;
  /** `here`: it is in this state, or in one inside. `was`: it has been. */
  standing: 'here' | 'was' | 'never';
}

/** A way on from where the actor stands. */
export interface Way {
  on: string;
  guard: string | undefined;
  to: string;
}

/** Every state, outer ones first, in the order of the file. */
export function placesOf(definition: StateConfig, state: string, visited: ReadonlySet<string>): Place[] {
  const holds = (path: string, inner: string) => inner === path || inner.startsWith(`${path}.`);
  return allStates(definition).map(({ path }) => {
    const isOld = [...visited].some((each) => holds(path, each));
    return { path, standing: holds(path, state) ? 'here' : isOld ? 'was' : 'never' };
  });
}

/**
 * The tree of states, each drawn by `draw`. Those inside a state that it has never been in are named behind it, so that
 * the tree fits on a screen.
 */
export function treeOf(
  places: readonly Place[],
  draw: (place: Place, inside: readonly string[]) => string,
): string[] {
  const childrenOf = (path: string) => places.filter((each) => parentOf(each.path) === path);
  const linesOf = (place: Place): string[] => {
    const children = childrenOf(place.path);
    if (place.standing === 'never')
      return [
        draw(
          place,
          children.map(({ path }) => nameOf(path)),
        ),
      ];
    const inner = children.flatMap((child, at) => {
      const [first, rest] = at === children.length - 1 ? ['└ ', '  '] : ['├ ', '│ '];
      return linesOf(child).map((line, nth) => (nth === 0 ? first : rest) + line);
    });
    return [draw(place, []), ...inner];
  };
  return childrenOf('').flatMap(linesOf);
}

export function nameOf(path: string): string {
  return path.split('.').at(-1)!;
}

/** What leads away from a state, the nearest first: its own transitions, then those of the states around it. */
export function waysOf(definition: StateConfig, state: string): Way[] {
  const all = [...allStates(definition), { path: '', config: definition }];
  const byId = new Map(all.flatMap(({ path, config }) => (config.id ? [[config.id, path] as const] : [])));
  const parts = state.split('.');
  const around = [...parts.map((_, at) => parts.slice(0, parts.length - at).join('.')), ''];
  const ways = around.flatMap((path) => {
    const config = all.find((each) => each.path === path)?.config ?? {};
    const named = [
      ...Object.entries(config.after ?? {}).map(([delay, each]) => [`after ${delay}`, each] as const),
      ...Object.entries(config.on ?? {}),
      ...(config.always ? [['at once', config.always] as const] : []),
    ];
    return named.flatMap(([on, transitions]) =>
      [transitions].flat().flatMap((each) => {
        const { target, guard } = typeof each === 'string' ? { target: each } : (each as TransitionConfig);
        const name = typeof guard === 'string' ? guard : guard?.type;
        return [{ on, guard: name, to: target === undefined ? undefined : targetOf(target, path, byId) }];
      }),
    );
  });
  // What a state hears, also without moving, is not heard by those around it, unless its guard says no.
  const heard = new Set<string>();
  return ways.flatMap(({ on, guard, to }) => {
    if (heard.has(on)) return [];
    if (guard === undefined) heard.add(on);
    return to === undefined ? [] : [{ on, guard, to }];
  });
}

function allStates(config: StateConfig, path = ''): { path: string; config: StateConfig }[] {
  return Object.entries(config.states ?? {}).flatMap(([name, inner]) => {
    const own = path === '' ? name : `${path}.${name}`;
    return [{ path: own, config: inner }, ...allStates(inner, own)];
  });
}

function parentOf(path: string): string {
  return path.split('.').slice(0, -1).join('.');
}

function targetOf(target: string, from: string, byId: ReadonlyMap<string, string>): string {
  const [, id, rest = ''] = /^#([^.]+)(\..*)?$/.exec(target) ?? [];
  const whole =
    id !== undefined
      ? `${byId.get(id) ?? id}${rest}`
      : target.startsWith('.')
        ? `${from}${target}`
        : `${parentOf(from)}.${target}`;
  return whole.replace(/^\./, '');
}
