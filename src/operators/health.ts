import { readFileSync } from 'node:fs';
import {
  type Doc,
  dueIn,
  dueIndex,
  leasesSpec,
  type MachineDefinition,
  type Queues,
  queueNames,
  versionOf,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { collectionsSpec, type Status } from '../collections/collections.ts';
import { countMax } from '../desk/desk.ts';
import { idFloor } from '../ids.ts';
import { balancesSpec } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { memoryOf } from '../memory.ts';
import type { Mode } from '../mode.ts';
import { readBreakers, readLastCallback } from '../rails/rails.ts';
import { settlementDate } from '../settlement/settlement.ts';
import { countInState, inStates, leavesOf, outermost, type StateQuery, statesIn } from '../standing.ts';
import { isoTime } from '../time.ts';
import { deliveriesSpec } from '../webhooks/webhooks.ts';
import { type OverviewDeps, redisFaults } from './needs.ts';

/** How the service does, below what needs a person: the rail, the webhooks, the money, the machinery. */

/** A number that was counted no further than `countMax`. */
interface Counted {
  count: number;
  is_more: boolean;
}

const recentMs = 15 * limits.minuteMs;
/** Times and failure codes are those of the newest so many. */
const sampleSize = 200;
/** Balance documents that are added up: one per merchant and process. */
const balancesMax = 20_000;

/** What became of the collections of the last quarter of an hour. */
export async function readRail({ db, clock, actors, rails }: OverviewDeps, mode: Mode) {
  const rail = rails[mode];
  const since = { _id: { $gte: idFloor('col', clock.now() - recentMs) } };
  const definition = actors.definition('collection');
  const ofStates = (states: string[]) => inStates(definition, [mode], states);
  const counted = async (status: Status): Promise<Counted> => {
    const states = leavesOf(definition.machine.root).filter((state) => outermost(state) === status);
    const { match, hint, rest } = ofStates(states);
    const count = await db
      .collection<Doc>(collectionsSpec.name)
      .countDocuments({ ...match, ...since, ...rest }, { limit: countMax + 1, hint });
    return { count: Math.min(count, countMax), is_more: count > countMax };
  };
  const counts = {
    created: await counted('created'),
    succeeded: await counted('succeeded'),
    failed: await counted('failed'),
    expired: await counted('expired'),
  };
  const ended = counts.succeeded.count + counts.failed.count + counts.expired.count;
  const codes = await newest(db, ofStates(['failed.watching', 'failed.resting']), since);
  const paid = await newest(db, ofStates(['succeeded.standing']), since);
  const times = paid
    .map(memoryOf)
    .flatMap(({ completedAt, createdAt }) => (completedAt && createdAt ? [completedAt - createdAt] : []))
    .sort((a, b) => a - b);
  return {
    name: rail?.name ?? null,
    is_configured: rail !== undefined,
    breakers: mode === 'live' && rail ? await readBreakers(actors, rail.name) : [],
    last_callback_at: rail ? await readLastCallback(db, rail.name) : null,
    recent: {
      minutes: recentMs / limits.minuteMs,
      ...counts,
      /** Of those that ended; null where none did. */
      success_rate: ended === 0 ? null : counts.succeeded.count / ended,
      time_to_success_ms: { p50: part(times, 0.5), p95: part(times, 0.95), sample: times.length },
      failure_codes: tallied(codes.map((doc) => memoryOf(doc).failureCode ?? 'unknown')),
    },
  };
}

/** Deliveries under way, and how far behind they are. */
export async function readWebhooks({ db, actors, clock }: OverviewDeps, mode: Mode) {
  const deliveries = actors.definition('delivery');
  const states = await statesIn(db, deliveries, mode);
  const sum = async (root: string) => {
    const counted = { count: 0, is_more: false };
    for (const state of states.filter((each) => each === root || each.startsWith(`${root}.`))) {
      const { count, is_more } = await countState(db, deliveries, { mode, state });
      counted.count += count;
      counted.is_more ||= is_more;
    }
    return counted;
  };
  const now = clock.now();
  const [latest] = await db
    .collection<{ _id: string; dueAt: Date }>(deliveriesSpec.name)
    .aggregate<{ dueAt: Date }>(
      [
        { $match: dueIn({ $lte: new Date(now) }) },
        { $sort: { dueAt: 1 } },
        { $limit: countMax },
        { $match: { mode } },
        { $limit: 1 },
        { $project: { dueAt: 1 } },
      ],
      { hint: dueIndex },
    )
    .toArray();
  return {
    due: await sum('pending'),
    retrying: await sum('waiting'),
    held: await sum('held'),
    oldest_lag_ms: latest ? Math.max(0, now - latest.dueAt.getTime()) : 0,
  };
}

/** The sums of all merchants' balances, in whole shillings. */
export async function readMoney({ db, clock, auditWatch }: OverviewDeps, mode: Mode) {
  const [[sum], audit] = await Promise.all([
    db
      .collection<Doc>(balancesSpec.name)
      .aggregate<{ seen: number; pending: number; available: number; reserved: number }>(
        [
          { $match: { _id: { $gte: `${mode}:`, $lt: `${mode};` } } },
          { $limit: balancesMax },
          {
            $group: {
              _id: null,
              seen: { $sum: 1 },
              pending: {
                $sum: { $sum: { $map: { input: { $objectToArray: '$pending' }, in: '$$this.v' } } },
              },
              available: { $sum: '$available' },
              reserved: { $sum: '$reserved' },
            },
          },
        ],
        { hint: { _id: 1 } },
      )
      .toArray(),
    auditWatch.state(),
  ]);
  const next = settlementDate(clock.now(), 1);
  return {
    pending: Number(sum?.pending ?? 0),
    available: Number(sum?.available ?? 0),
    reserved: Number(sum?.reserved ?? 0),
    is_partial: (sum?.seen ?? 0) === balancesMax,
    next_settlement_at: isoTime(next.dueAtMs),
    audited_at: audit.recent ? isoTime(audit.recent.at.getTime()) : null,
    audited_in_full_at: audit.full ? isoTime(audit.full.at.getTime()) : null,
  };
}

/** Processes, queues, versions. */
export async function readMachinery({ db, clock, actors, queues }: OverviewDeps) {
  const leases = await db
    .collection<Doc & { owner: string; until: Date }>(leasesSpec.name)
    .find({})
    .limit(countMax)
    .toArray();
  const alive = leases.filter(({ until }) => until.getTime() > clock.now());
  return {
    version: packageVersion(),
    node: process.version,
    processes: new Set(alive.map(({ owner }) => owner)).size,
    leases: leases.map(({ _id, owner, until }) => ({ name: _id, owner, until: isoTime(until.getTime()) })),
    queues: await readQueues(queues, queueNames(actors.definitions)),
    redis_faults: await redisFaults(queues),
    machines: actors.definitions.map((each) => ({ machine: each.name, version: versionOf(each) })),
  };
}

/** Null where Redis does not answer: the overview has more to say than that. */
async function readQueues(queues: Queues, names: readonly string[]) {
  if (!queues.ready) return null;
  const counts = names.map(async (name) => {
    const jobs = await queues.queue(name).getJobCounts('waiting', 'active', 'delayed');
    return {
      queue: name,
      waiting: jobs.waiting ?? 0,
      active: jobs.active ?? 0,
      delayed: jobs.delayed ?? 0,
    };
  });
  return Promise.all(counts).catch(() => null);
}

/** How many actors are in a state; counted to `countMax`. */
export async function countState(
  db: Db,
  definition: MachineDefinition,
  of: { mode: Mode; state: string },
): Promise<Counted> {
  const { count, isMore } = await countInState(db, definition, of, countMax);
  return { count, is_more: isMore };
}

interface Ended {
  snapshot: { context: { createdAt: number; completedAt: number; failureCode: string | null } };
}

function newest(db: Db, { match, hint, rest }: StateQuery, since: object): Promise<Ended[]> {
  return db
    .collection<{ _id: string }>(collectionsSpec.name)
    .find({ ...match, ...since, ...rest }, { hint })
    .project<Ended>({ 'snapshot.context': 1 })
    .sort({ _id: -1 })
    .limit(sampleSize)
    .toArray();
}

function part(sorted: readonly number[], share: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

function tallied(codes: readonly string[]): { code: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
  return [...counts].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count);
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
