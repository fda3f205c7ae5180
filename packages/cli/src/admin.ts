import { nameOf, type Place, placesOf, type StateConfig, treeOf, waysOf } from './chart.ts';
import { type Call, command } from './command.ts';
import { exits, usage } from './failure.ts';
import { countOf, shown, spanOf } from './moment.ts';
import type { Operators } from './operators.ts';

const modes = ['test', 'live'] as const;

interface Tile {
  kind: string;
  count: number;
  is_more: boolean;
  amount_tzs: number | null;
  oldest_at: string | null;
  link: string;
  machine: string | null;
}

interface Overview {
  at: string;
  needs_you: Tile[];
  machinery: {
    version: string;
    node: string;
    processes: number;
    machines: { machine: string; version: string }[];
  };
}

interface Readiness {
  status: string;
  mongo: boolean;
  redis: boolean;
  wrong: string[];
}

/** A clock that differs by more makes times of the two hard to compare. */
const skewMaxMs = 2_000;

export const doctor = command({
  name: 'admin doctor',
  says: 'operators: what needs you, stores, versions, clocks',
  about: ['Exit 1: something is wrong, or needs you.'],
  options: {},
  run: async ({ output, around, operators }) => {
    const service = await operators();
    const { signal } = around;
    const readiness = await service.read<Readiness>('/readyz', { any: true, signal });
    const askedMs = around.nowMs();
    const [test, live] = await Promise.all([
      overviewOf(service, 'test', signal),
      overviewOf(service, 'live', signal),
    ]);
    const answeredMs = around.nowMs();
    // The service read its clock at some time in between.
    const atMs = Date.parse(test.at);
    const skewMs = atMs < askedMs ? atMs - askedMs : Math.max(0, atMs - answeredMs);
    const { version, node, processes, machines } = test.machinery;
    const checks = [
      {
        name: 'requests',
        ok: readiness.status === 'ok',
        says: [readiness.status, ...readiness.wrong].join('; '),
      },
      { name: 'mongo', ok: readiness.mongo, says: readiness.mongo ? 'answers' : 'does not answer' },
      {
        name: 'redis',
        ok: readiness.redis,
        says: readiness.redis ? 'answers' : 'does not answer: timers fire late',
      },
      { name: 'clock', ok: Math.abs(skewMs) <= skewMaxMs, says: skewWords(skewMs) },
      { name: 'processes', ok: processes > 0, says: `${processes} of ${version} on Node ${node}` },
      {
        name: 'machines',
        ok: true,
        says: machines.map(({ machine, version: of }) => `${machine} ${of}`).join(', '),
      },
    ];
    const needs = [
      ...test.needs_you.map((tile) => ({ mode: 'test', ...tile })),
      ...live.needs_you.map((tile) => ({ mode: 'live', ...tile })),
    ];
    const mark = (ok: boolean) => (ok ? output.paint('good', '✓') : output.paint('bad', '!'));
    output.result(
      { at: test.at, checks, needs_you: needs },
      ...checks.map(({ name, ok, says }) => `${mark(ok)} ${name.padEnd(9)}  ${says}`),
      `${mark(needs.length === 0)} needs you  ${needs.length === 0 ? 'nothing' : `${needs.length} ${needs.length === 1 ? 'thing' : 'things'}`}`,
      ...needs.map((tile) => `    ${tile.mode}  ${tileWords(tile, around.nowMs())}`),
    );
    return needs.length === 0 && checks.every(({ ok }) => ok) ? exits.ok : exits.failed;
  },
});

interface Row {
  id?: unknown;
  state?: unknown;
  status?: unknown;
  updated_at?: unknown;
  created_at?: unknown;
}

export const stuck = command({
  name: 'admin stuck',
  says: 'operators: what waits for a person, one line each',
  about: ['Payments, settlements, deliveries, endpoints. Exit 1: something does.'],
  options: {
    limit: { type: 'string', value: 'COUNT', says: 'of each kind, 1 to 100; 20 where nothing is said' },
    mode: { type: 'string', value: 'MODE', words: modes, says: 'test or live; both where nothing is said' },
  },
  run: async ({ values, output, around, operators }) => {
    const limit = countOf('limit', values.limit ?? '20', 1, 100);
    const service = await operators();
    const { signal } = around;
    const found: { mode: string; why: string; id: string; state: string; since: string }[] = [];
    for (const mode of modes.filter((each) => values.mode === undefined || each === values.mode)) {
      for (const { kind, link } of (await overviewOf(service, mode, signal)).needs_you) {
        if (!link.includes('?')) continue;
        const { data } = await service.read<{ data?: Row[] }>(`${link}&limit=${limit}`, { signal });
        for (const { id, state, status, updated_at, created_at } of data ?? [])
          found.push({
            ...{ mode, why: kind, id: String(id), state: String(state ?? status ?? '') },
            since: String(updated_at ?? created_at ?? ''),
          });
      }
    }
    const rows = found.map(({ mode, why, id, state, since }) => [mode, why, id, state, shown(since)]);
    const lines = output.table(['mode', 'why', 'id', 'stands in', 'since (UTC)'], rows);
    output.result(
      { object: 'list', data: found },
      ...(rows.length === 0 ? ['Nothing waits for a person.'] : lines),
    );
    return rows.length === 0 ? exits.ok : exits.failed;
  },
});

interface Actor {
  id: string;
  machine: string;
  machine_version: string;
  seq: number;
  state: string;
  mode: string;
  updated_at: string;
  quarantined: { at: string; why: string } | null;
  timers: { event: string; due_at: string }[];
  calls: { type: string; started_at: string | null }[];
  accepts: string[];
}

interface Step {
  seq: number;
  at: string;
  event: { type: string };
  from: string | null;
  to: string;
}

export const chart = command({
  name: 'admin chart',
  operands: ['ID'],
  says: 'operators: where a payment is on its chart',
  about: ['Deliveries, endpoints and settlements have charts too.'],
  options: {
    steps: { type: 'string', value: 'COUNT', says: 'how many of the last steps, 10 where nothing is said' },
  },
  run: async (call) => {
    const { values, operands, operators, around } = call;
    const { signal } = around;
    const steps = countOf('steps', values.steps ?? '10', 0, 10_000);
    const id = operands[0]!;
    if (!/^[\w.-]+$/.test(id)) throw usage(`${id} is no id`);
    const service = await operators();
    const actor = await service.read<Actor>(`/admin/actors/${id}`, { signal });
    const [history, machine] = await Promise.all([
      historyOf(service, id, signal),
      service.read<{ definition: StateConfig }>(`/admin/machines/${actor.machine}`, { signal }),
    ]);
    show(call, { actor, history, steps, definition: machine.definition });
    return exits.ok;
  },
});

interface Shown {
  actor: Actor;
  history: Step[];
  steps: number;
  definition: StateConfig;
}

function show({ output, around }: Call, { actor, history, steps, definition }: Shown): void {
  const { state } = actor;
  const visited = new Set(history.flatMap(({ from, to }) => (from === null ? [to] : [from, to])));
  const places = placesOf(definition, state, visited);
  const ways = waysOf(definition, state);
  const nowMs = around.nowMs();
  const marks = { here: '●', was: '✓', never: '○' } as const;
  const styles = { here: 'bold', was: 'good', never: 'quiet' } as const;
  const here = output.paint('name', `◀ here for ${spanOf(nowMs - Date.parse(actor.updated_at))}`);
  const draw = ({ path, standing }: Place, inside: readonly string[]) => {
    const name = `${marks[standing]} ${nameOf(path)}${inside.length === 0 ? '' : ` (${inside.join(', ')})`}`;
    return `${output.paint(styles[standing], name)}${path === state ? ` ${here}` : ''}`;
  };
  const next = [
    ...actor.timers.map(
      ({ event, due_at }) => `${eventWords(event)} in ${spanOf(Date.parse(due_at) - nowMs)}`,
    ),
    ...actor.calls.map(({ type, started_at }) => `${type} ${started_at ? 'is under way' : 'is to be made'}`),
  ];
  const part = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', output.paint('quiet', title), ...lines.map((line) => `  ${line}`)];
  output.result(
    { object: 'chart', actor, states: places, leads: ways, history },
    `${output.paint('bold', actor.id)}  ${state}  (${actor.mode}, ${actor.machine} of version ${actor.machine_version})`,
    ...(actor.quarantined
      ? [output.paint('bad', `Set aside since ${shown(actor.quarantined.at)}: ${actor.quarantined.why}`)]
      : []),
    '',
    ...treeOf(places, draw).map((line) => `  ${line}`),
    ...part('What comes by itself', next),
    ...part(
      'What leads on',
      output.table(
        ['on', 'if', 'to'],
        ways.map(({ on, guard = '', to }) => [on, guard, to]),
      ),
    ),
    ...part('What an operator may tell it', actor.accepts),
    ...part('How it got here (UTC)', stepLines(steps === 0 ? [] : history.slice(-steps))),
  );
}

function stepLines(steps: readonly Step[]): string[] {
  const width = Math.max(...steps.map(({ event }) => eventWords(event.type).length));
  return steps.map(({ seq, at, event, from, to }) => {
    const words = eventWords(event.type).padEnd(width);
    return `${String(seq).padStart(3)}  ${shown(at)}  ${words}  ${from === to ? 'stays' : `→ ${to}`}`;
  });
}

/** A timer's own name is longer than a person needs. */
function eventWords(type: string): string {
  const [, timer] = /^xstate\.after\.([^.]+)/.exec(type) ?? [];
  return timer ? `after ${timer}` : type;
}

async function historyOf(service: Operators, id: string, signal: AbortSignal): Promise<Step[]> {
  const steps: Step[] = [];
  for (;;) {
    const after = steps.at(-1)?.seq ?? 0;
    const path = `/admin/actors/${id}/history?limit=100&after_seq=${after}`;
    const { data, has_more } = await service.read<{ data: Step[]; has_more: boolean }>(path, { signal });
    steps.push(...data);
    if (!has_more || data.length === 0) return steps;
  }
}

function overviewOf(service: Operators, mode: string, signal: AbortSignal): Promise<Overview> {
  return service.read<Overview>(`/admin/overview?mode=${mode}`, { signal });
}

function skewWords(skewMs: number): string {
  const seconds = (Math.abs(skewMs) / 1_000).toFixed(1);
  if (Math.abs(skewMs) <= skewMaxMs) return 'agrees with this machine’s';
  return `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} this machine’s`;
}

function tileWords({ kind, count, is_more, amount_tzs, oldest_at, machine }: Tile, nowMs: number): string {
  const facts = [
    `${count}${is_more ? '+' : ''} ${kind}`,
    ...(machine ? [machine] : []),
    ...(amount_tzs ? [`TZS ${amount_tzs}`] : []),
    ...(oldest_at ? [`since ${spanOf(nowMs - Date.parse(oldest_at))}`] : []),
  ];
  return facts.join(', ');
}
