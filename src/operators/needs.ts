import {
  type ActorDoc,
  type Actors,
  type Clock,
  dueIn,
  dueIndex,
  inQuarantine,
  type Queues,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Archive } from '../archive/archive.ts';
import { lateOuterStates, lateStates, reviewStates } from '../collections/collections.ts';
import type { Config } from '../config.ts';
import { countMax, lateMs } from '../desk/desk.ts';
import { idFloor } from '../ids.ts';
import type { AuditWatch } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import type { Rails } from '../rails/rails.ts';
import { awaitingStates } from '../reconciliation/reconciliation.ts';
import { unclearStates } from '../refunds/refunds.ts';
import { type SettlementReader, settlementDate } from '../settlement/settlement.ts';
import { dateDueAtMs, isoTime } from '../time.ts';
import { payoutNeeds } from './payoutNeeds.ts';
import { waitingProposals } from './secondPerson.ts';
import { type Tile, tally, tallyMoney, tallyStanding, tile } from './tiles.ts';

export type { Tile, TileKind } from './tiles.ts';

/** What needs a person: one tile per kind of trouble, each with the list behind it. No tile: nothing to do. */

export interface OverviewDeps {
  db: Db;
  clock: Clock;
  config: Pick<Config, 'sweepIntervalMs'>;
  actors: Actors;
  rails: Rails;
  queues: Queues;
  auditWatch: AuditWatch;
  archive: Archive;
  settlementReader: SettlementReader;
}

/** After midnight settlements take a moment; then one that still waits is overdue. */
const settlingMs = 5 * limits.minuteMs;
/** Deliveries that were given up longer ago need nobody any more. */
const exhaustedMs = 7 * limits.dayMs;
/** A collection may take this much longer than its rail's own deadlines. */
const deadlineGraceMs = limits.minuteMs;

const promptStates = [
  'created.pushing.sending',
  'created.pushing.backingOff',
  'created.awaitingApproval.waiting',
  'created.awaitingApproval.noticed',
  'created.confirming.polling',
];
const failingStates = ['failing.warned', 'failing.warnedTwice', 'lastTry'];
const disabledStates = ['disabled.automatic.probing', 'disabled.automatic.resting'];

/** The tiles of a mode, the most pressing first. */
export async function readNeeds(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const tiles = await Promise.all([
    breaches(deps, mode),
    underReview(deps, mode),
    pastDeadline(deps, mode),
    latePayments(deps, mode),
    secondPerson(deps, mode),
    payoutNeeds(deps, mode),
    unclearRefunds(deps, mode),
    railDown(deps, mode),
    settlements(deps, mode),
    endpoints(deps, mode),
    exhausted(deps, mode),
    differences(deps, mode),
    quarantined(deps, mode),
    wakeupsLate(deps, mode),
    archiving(deps),
    machinery(deps, mode),
  ]);
  return tiles.flat().filter(({ count }) => count > 0);
}

async function breaches({ auditWatch }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { open, staleSince } = await auditWatch.state();
  const ours = open.filter(({ breach }) => breach.mode === undefined || breach.mode === mode);
  const first = Math.min(...ours.map(({ firstSeenAt }) => firstSeenAt.getTime()));
  const oldest_at = ours.length > 0 ? isoTime(first) : null;
  const link = '/admin/ledger/audit';
  const stale = staleSince
    ? [tile('audit_stale', link, { count: 1, oldest_at: isoTime(staleSince.getTime()) })]
    : [];
  return [tile('ledger_breach', link, { count: ours.length, oldest_at }), ...stale];
}

async function underReview(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const sum = await tallyMoney(deps, { machine: 'collection', mode, states: reviewStates });
  const link = `/admin/collections?mode=${mode}&state=created.underReview`;
  return [tile('under_review', link, sum)];
}

/** Still with the customer or being asked about, though every deadline of its rail has passed. */
async function pastDeadline(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { clock, rails } = deps;
  const { pushWindowMs, promptLifeMs, confirmDeadlineMs } = (rails[mode] ?? rails.test).terms;
  const allowedMs = pushWindowMs + promptLifeMs + confirmDeadlineMs + deadlineGraceMs;
  const more = { _id: { $lt: idFloor('col', clock.now() - allowedMs) } };
  const sum = await tallyMoney(deps, { machine: 'collection', mode, states: promptStates, more });
  const seconds = Math.ceil(allowedMs / limits.secondMs);
  const states = 'created.pushing,created.awaitingApproval,created.confirming';
  const link = `/admin/collections?mode=${mode}&state=${states}&older_than=${seconds}`;
  return [tile('past_deadline', link, sum)];
}

async function latePayments(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const sum = await tallyMoney(deps, { machine: 'collection', mode, states: lateStates });
  const link = `/admin/collections?mode=${mode}&state=${lateOuterStates.join(',')}`;
  return [tile('late_payment', link, sum)];
}

/** Decisions that one person proposed, and that nobody agreed to yet. */
async function secondPerson({ db, clock }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const waiting = await waitingProposals(db, mode, clock.now(), countMax + 1);
  const counted = waiting.slice(0, countMax);
  const sum = {
    count: counted.length,
    is_more: waiting.length > countMax,
    amount_tzs: counted.reduce((total, { amountTzs }) => total + Number(amountTzs), 0),
    oldest_at: counted.at(-1)?.at.toISOString() ?? null,
  };
  return [tile('second_person', `/admin/proposals?mode=${mode}`, sum)];
}

async function unclearRefunds(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const sum = await tallyMoney(deps, { machine: 'refund', mode, states: unclearStates });
  const link = `/admin/refunds?mode=${mode}&state=created.underReview`;
  return [tile('refund_unclear', link, { ...sum, machine: 'refund' })];
}

async function railDown(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const states = ['open.waiting', 'open.held', 'halfOpen'];
  const sum = await tallyStanding(deps, { machine: 'breaker', mode, states });
  return [tile('rail_down', '/admin/rails', sum)];
}

async function settlements(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { clock, settlementReader } = deps;
  const held = await tallyStanding(deps, { machine: 'settlement', mode, states: ['held'] });
  // What was due at the last midnight; what has no money waiting any more needs nobody.
  const { date } = settlementDate(clock.now() - settlingMs, 0);
  const page = { limit: limits.listMax };
  const due = await settlementReader.search({ mode, state: 'due', dueBy: date }, page);
  const waiting = due.rows.filter(({ pendingTzs }) => pendingTzs > 0);
  const oldest = waiting.at(-1);
  const overdue = {
    count: waiting.length,
    is_more: due.hasMore && waiting.length > 0,
    amount_tzs: waiting.reduce((sum, { pendingTzs }) => sum + pendingTzs, 0),
    oldest_at: oldest ? isoTime(dateDueAtMs(oldest.doc.data.date)) : null,
  };
  const link = `/admin/settlements?mode=${mode}&state=`;
  return [
    tile('settlement_overdue', `${link}due&due_by=${date}`, overdue),
    tile('settlement_held', `${link}held`, held),
  ];
}

async function endpoints(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const link = `/admin/machines/endpoint/actors?mode=${mode}&state=`;
  const counted = (states: readonly string[], since: string) => {
    const oldest = { $toDate: `$snapshot.context.${since}` };
    return tallyStanding(deps, { machine: 'endpoint', mode, states, oldest });
  };
  const [failing, disabled] = await Promise.all([
    counted(failingStates, 'failingSince'),
    counted(disabledStates, 'disabledAt'),
  ]);
  return [
    tile('endpoint_failing', `${link}${failingStates.join(',')}`, { ...failing, machine: 'endpoint' }),
    tile('endpoint_disabled', `${link}disabled.automatic`, { ...disabled, machine: 'endpoint' }),
  ];
}

async function exhausted(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const more = { _id: { $gte: idFloor('dlv', deps.clock.now() - exhaustedMs) } };
  const sum = await tallyStanding(deps, { machine: 'delivery', mode, states: ['failed'], more });
  const link = `/admin/deliveries?mode=${mode}&status=failed&newer_than=${exhaustedMs / limits.secondMs}`;
  return [tile('delivery_exhausted', link, { ...sum, machine: 'delivery' })];
}

/** Where a statement and our books do not agree, and only a person can say why. */
async function differences(deps: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const sum = await tallyMoney(deps, { machine: 'difference', mode, states: awaitingStates });
  const link = `/admin/machines/difference/actors?mode=${mode}&state=${awaitingStates.join(',')}`;
  return [tile('difference_open', link, { ...sum, machine: 'difference' })];
}

/** One tile for each machine that has some. */
function quarantined({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  return Promise.all(
    actors.definitions.map(async ({ name, plural }) => {
      const { amount_tzs: _none, ...sum } = await tally(db, plural, {
        match: inQuarantine,
        sort: { dueAt: 1 },
        hint: dueIndex,
        only: { mode },
        oldest: '$dueAt',
      });
      const link = `/admin/machines/${name}/actors?mode=${mode}&quarantined=true`;
      return tile('quarantined', link, { ...sum, machine: name });
    }),
  );
}

/** One tile for each machine that has some. */
function wakeupsLate({ db, actors, clock }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  return Promise.all(
    actors.definitions.map(async ({ name, plural }) => {
      const { amount_tzs: _none, ...sum } = await tally(db, plural, {
        match: dueIn({ $lt: new Date(clock.now() - lateMs) }),
        sort: { dueAt: 1 },
        hint: dueIndex,
        only: { mode },
        oldest: '$dueAt',
      });
      const link = `/admin/machines/${name}/actors?mode=${mode}&overdue=true`;
      return tile('wakeups_late', link, { ...sum, machine: name });
    }),
  );
}

/** A night of the archive that broke off, until one has not. */
async function archiving({ archive }: OverviewDeps): Promise<Tile[]> {
  const run = await archive.latestRun();
  return run?.fault
    ? [tile('archive_failed', '/admin/archive', { count: 1, oldest_at: run.at.toISOString() })]
    : [];
}

/** Of the installation, whatever the mode. */
async function machinery({ db, clock, config, queues }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const leader = await db
    .collection<ActorDoc & { until: Date }>('leases')
    .findOne({ _id: 'sweeper' }, { projection: { until: 1 } });
  const untilMs = (leader?.until.getTime() ?? 0) + 2 * config.sweepIntervalMs;
  const isSwept = untilMs >= clock.now();
  const faults = await redisFaults(queues);
  const link = `/admin/overview?mode=${mode}`;
  return [
    ...(isSwept ? [] : [tile('no_worker', link, { count: 1 })]),
    ...faults.map((kind) => tile(kind, link, { count: 1 })),
  ];
}

/** What is wrong with Redis: away, throwing keys out, or forgetting them with its process. */
export async function redisFaults(
  queues: Queues,
): Promise<('redis_down' | 'redis_evicts' | 'redis_forgets')[]> {
  if (!queues.ready) return ['redis_down'];
  try {
    // INFO tells what CONFIG would, and is not forbidden on hosted servers.
    const text = `${await queues.redis.info('memory')}\n${await queues.redis.info('persistence')}`;
    const policy = /^maxmemory_policy:(\S+)/m.exec(text)?.[1];
    const isKept = /^aof_enabled:1/m.test(text);
    return [
      ...(policy && policy !== 'noeviction' ? (['redis_evicts'] as const) : []),
      ...(isKept ? [] : (['redis_forgets'] as const)),
    ];
  } catch {
    return ['redis_down'];
  }
}
