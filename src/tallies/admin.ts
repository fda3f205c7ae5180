import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { csvLine } from '../csv.ts';
import {
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  ModeField,
  Moment,
  momentMs,
} from '../desk/desk.ts';
import { type Fault, faulty, forOperators } from '../http/http.ts';
import { idPattern } from '../ids.ts';

import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { isoTime } from '../time.ts';
import {
  type Counted,
  dayOf,
  daysOf,
  hourOf,
  hoursOf,
  type Numbers,
  readTallies,
  readTallyState,
  type Stretch,
  sumOf,
  type TallyKind,
  tallyKinds,
  tallyProgressSpec,
  tookMs,
} from './tallies.ts';

/** Operators look at what was counted, and have it counted anew. */
interface TallyAdminDeps {
  db: Db;
  clock: Clock;
}

/** What is answered at once: a document for each day. */
const daysMax = { hour: 31, day: 400 } as const;

const TallyQuery = Type.Object(
  {
    mode: ModeField,
    kind: Type.Optional(
      Type.Enum([...tallyKinds], {
        default: 'payments',
        description: 'payments: those that ended; webhooks: attempts; settled: what became available.',
      }),
    ),
    of: Type.Optional(
      Type.String({
        maxLength: 40,
        pattern: `${idPattern('mer')}|${idPattern('we')}`,
        description: 'A merchant, or of webhooks an endpoint; absent: all.',
      }),
    ),
    by: Type.Optional(Type.Enum(['hour', 'day'], { default: 'hour' })),
    from: Moment,
    to: Moment,
  },
  { additionalProperties: false },
);

interface Asked {
  mode: Mode;
  kind?: TallyKind;
  of?: string;
  by?: 'hour' | 'day';
  from?: string;
  to?: string;
}

const description =
  'In the order of time, with zeros left out: `n` counts the documents that were counted, `tzs` and `fees` are whole ' +
  'shillings, `failed:declined` is a part of `failed`, `took:20` counts those that took at most 20 seconds and more ' +
  'than the bound before. Hours and days are those of Dar es Salaam; without from and to the last 24 hours, or 31 days. ' +
  'What is before `counted_from` is not counted yet. For pictures: the books are the truth.';

export function showTallies(deps: TallyAdminDeps) {
  return forOperators({
    doc: described('getTallies', 'What happened, counted by the hour or day', 200, description),
    query: TallyQuery,
    handler: async ({ query }) => {
      const { kind, of, by, counted, countedFromMs, isWhole } = await talliesOf(deps, query);
      const body = {
        object: 'tallies',
        ...{ kind, mode: query.mode, of: of ?? 'all', by },
        is_whole: isWhole,
        counted_from: countedFromMs === undefined ? null : isoTime(countedFromMs),
        total: told(sumOf(counted)),
        data: counted.map(({ atMs, numbers }) => ({ at: isoTime(atMs), ...told(numbers) })),
      };
      return { status: 200, body };
    },
  });
}

/** Numbers, with the times to success that half and 95 % of the payments stayed within. */
function told(numbers: Numbers) {
  return { numbers, median_ms: tookMs(numbers, 0.5), p95_ms: tookMs(numbers, 0.95) };
}

/** GET /admin/tallies.csv: the table behind a picture, with a column for each name that occurs. */
export function exportTallies(deps: TallyAdminDeps) {
  return forOperators({
    doc: {
      ...described('exportTallies', 'What happened by the hour or day, as CSV', 200, description),
      answers: { 200: { description: 'The file.', contentType: 'text/csv', schema: Type.String() } },
    },
    query: TallyQuery,
    handler: async ({ query }) => {
      const { kind, of, by, counted } = await talliesOf(deps, query);
      const names = [...new Set(counted.flatMap(({ numbers }) => Object.keys(numbers)))].sort();
      const lines = counted.map(({ atMs, numbers }) =>
        csvLine([
          isoTime(atMs),
          isoTime(atMs + limits.eatOffsetMs).replace('Z', '+03:00'),
          ...names.map((name) => numbers[name] ?? 0),
        ]),
      );
      const name = [kind, query.mode, of, by].filter(Boolean).join('-');
      return {
        status: 200,
        body: csvLine(['at', 'at_eat', ...names]) + lines.join(''),
        headers: {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${name}.csv"`,
        },
      };
    },
  });
}

async function talliesOf({ db, clock }: TallyAdminDeps, query: Asked) {
  const { mode, of, kind = 'payments', by = 'hour' } = query;
  const stretch = stretchOf(query, by, clock.now());
  const [docs, states] = await Promise.all([
    readTallies(db, { kind, mode, of }, stretch),
    readTallyState(db),
  ]);
  const state = states.find((each) => each.kind === kind);
  const counted: Counted[] = by === 'hour' ? hoursOf(docs, stretch) : daysOf(docs, stretch);
  return { kind, of, by, counted, countedFromMs: state?.fromMs, isWhole: state?.isWhole ?? false };
}

/** @throws parameter_invalid where it ends before it begins, or is too long */
function stretchOf({ from, to }: Asked, by: 'hour' | 'day', nowMs: number): Stretch {
  const toMs = to === undefined ? nowMs : momentMs('to', to);
  const usualMs = by === 'hour' ? hourOf(toMs - 1) - 23 * limits.hourMs : dayOf(toMs - 1) - 30 * limits.dayMs;
  const fromMs = from === undefined ? usualMs : momentMs('from', from);
  const fault = (param: string, message: string): Fault => ({ param, code: 'parameter_invalid', message });
  if (fromMs >= toMs) throw faulty([fault('from', 'from must be earlier than to.')]);
  if (toMs - fromMs > (daysMax[by] + 1) * limits.dayMs)
    throw faulty([fault('from', `At most ${daysMax[by]} days at once, by the ${by}.`)]);
  return { fromMs, toMs };
}

/** Everything is forgotten and counted again, the latest hours first. No payment notices. */
export function recount(deps: CommandDeps) {
  return forCommands(deps, {
    doc: described(
      'recountTallies',
      'Count everything anew',
      202,
      'From the events, attempts and settlement entries that are stored. The latest hours are there within a minute; ' +
        'then it goes back in steps of ten seconds a minute. Until it is done, pictures say from when on they know.',
    ),
    body: commandBody('TallyRecount', {}),
    handler: async (command) => {
      const wantedAt = new Date(command.at);
      const writes = tallyKinds.map((kind) => ({
        op: 'update' as const,
        into: tallyProgressSpec.name,
        filter: { _id: kind },
        update: { $set: { wantedAt } },
        isUpsert: true as const,
        onMiss: 'race' as const,
      }));
      await command.commit(writes, { action: 'tallies.recounted', target: 'tallies' });
      return { status: 202, body: { object: 'tally_recount', wanted_at: isoTime(command.at) } };
    },
  });
}
