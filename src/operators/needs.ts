import {
  type ActorDoc,
  type Actors,
  type Clock,
  dueIn,
  dueIndex,
  type Queues,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { collectionsSpec, lateOuterStates, lateStates, reviewStates } from '../collections/collections.ts';
import type { Config } from '../config.ts';
import { countMax, lateMs } from '../desk/desk.ts';
import { idFloor } from '../ids.ts';
import type { AuditWatch } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import type { Rails } from '../rails/rails.ts';
import { awaitingStates, differencesSpec } from '../reconciliation/reconciliation.ts';
import { refundsSpec, unclearStates } from '../refunds/refunds.ts';
import { type SettlementReader, settlementDate } from '../settlement/settlement.ts';
import { dateDueAtMs, isoTime } from '../time.ts';
import { deliveriesSpec, endpointsSpec } from '../webhooks/webhooks.ts';
import { payoutNeeds } from './payoutNeeds.ts';
import { waitingProposals } from './secondPerson.ts';
import { standing, type Tile, tally, tile } from './tiles.ts';

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

async function underReview({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { amountTzs, ...sum } = await tally(
    db,
    collectionsSpec.name,
    standing(actors, 'collection', mode, reviewStates),
  );
  const link = `/admin/collections?mode=${mode}&state=created.underReview`;
  return [tile('under_review', link, { ...sum, amount_tzs: amountTzs })];
}

/** Still with the customer or being asked about, though every deadline of its rail has passed. */
async function pastDeadline({ db, actors, clock, rails }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { pushWindowMs, promptLifeMs, confirmDeadlineMs } = (rails[mode] ?? rails.test).terms;
  const allowedMs = pushWindowMs + promptLifeMs + confirmDeadlineMs + deadlineGraceMs;
  const before = { _id: { $lt: idFloor('col', clock.now() - allowedMs) } };
  const { amountTzs, ...sum } = await tally(
    db,
    collectionsSpec.name,
    standing(actors, 'collection', mode, promptStates, before),
  );
  const seconds = Math.ceil(allowedMs / limits.secondMs);
  const states = 'created.pushing,created.awaitingApproval,created.confirming';
  const link = `/admin/collections?mode=${mode}&state=${states}&older_than=${seconds}`;
  return [tile('past_deadline', link, { ...sum, amount_tzs: amountTzs })];
}

async function latePayments({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { amountTzs, ...sum } = await tally(
    db,
    collectionsSpec.name,
    standing(actors, 'collection', mode, lateStates),
  );
  const link = `/admin/collections?mode=${mode}&state=${lateOuterStates.join(',')}`;
  return [tile('late_payment', link, { ...sum, amount_tzs: amountTzs })];
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

async function unclearRefunds({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { amountTzs, ...sum } = await tally(
    db,
    refundsSpec.name,
    standing(actors, 'refund', mode, unclearStates),
  );
  const link = `/admin/refunds?mode=${mode}&state=created.underReview`;
  return [tile('refund_unclear', link, { ...sum, amount_tzs: amountTzs, machine: 'refund' })];
}

async function railDown({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const states = ['open.waiting', 'open.held', 'halfOpen'];
  const { amountTzs: _none, ...sum } = await tally(db, 'breakers', standing(actors, 'breaker', mode, states));
  return [tile('rail_down', '/admin/rails', sum)];
}

async function settlements(
  { db, actors, clock, settlementReader }: OverviewDeps,
  mode: Mode,
): Promise<Tile[]> {
  const { amountTzs: _none, ...held } = await tally(
    db,
    'settlements',
    standing(actors, 'settlement', mode, ['held']),
  );
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

async function endpoints({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const link = `/admin/machines/endpoint/actors?mode=${mode}&state=`;
  const since = (field: string) => ({ oldest: { $toDate: `$snapshot.context.${field}` } });
  const [failing, disabled] = await Promise.all([
    tally(db, endpointsSpec.name, {
      ...standing(actors, 'endpoint', mode, failingStates),
      ...since('failingSince'),
    }),
    tally(db, endpointsSpec.name, {
      ...standing(actors, 'endpoint', mode, disabledStates),
      ...since('disabledAt'),
    }),
  ]);
  const { amountTzs: _one, ...near } = failing;
  const { amountTzs: _other, ...off } = disabled;
  return [
    tile('endpoint_failing', `${link}${failingStates.join(',')}`, { ...near, machine: 'endpoint' }),
    tile('endpoint_disabled', `${link}disabled.automatic`, { ...off, machine: 'endpoint' }),
  ];
}

async function exhausted({ db, actors, clock }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const since = { _id: { $gte: idFloor('dlv', clock.now() - exhaustedMs) } };
  const { amountTzs: _none, ...sum } = await tally(
    db,
    deliveriesSpec.name,
    standing(actors, 'delivery', mode, ['failed'], since),
  );
  const link = `/admin/deliveries?mode=${mode}&status=failed&newer_than=${exhaustedMs / limits.secondMs}`;
  return [tile('delivery_exhausted', link, { ...sum, machine: 'delivery' })];
}

/** Where a statement and our books do not agree, and only a person can say why. */
async function differences({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  const { amountTzs, ...sum } = await tally(
    db,
    differencesSpec.name,
    standing(actors, 'difference', mode, awaitingStates),
  );
  const link = `/admin/machines/difference/actors?mode=${mode}&state=${awaitingStates.join(',')}`;
  return [tile('difference_open', link, { ...sum, amount_tzs: amountTzs, machine: 'difference' })];
}

/** One tile for each machine that has some. */
function quarantined({ db, actors }: OverviewDeps, mode: Mode): Promise<Tile[]> {
  return Promise.all(
    actors.definitions.map(async ({ name, plural }) => {
      const { amountTzs: _none, ...sum } = await tally(db, plural, {
        match: { 'quarantined.at': { $type: 'date' } },
        sort: { 'quarantined.at': 1 },
        hint: { 'quarantined.at': 1 },
        only: { mode },
        oldest: '$quarantined.at',
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
      const { amountTzs: _none, ...sum } = await tally(db, plural, {
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
