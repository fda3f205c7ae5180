import { randomUUID } from 'node:crypto';
import {
  type Actors,
  type Clock,
  type CommittedBatch,
  Lease,
  type MachineDefinition,
  type Queues,
  Runtime,
  shown,
  stateText,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { AnyMachineSnapshot } from 'xstate';
import { breakerMachine } from '../machines/breaker.ts';
import { collectionMachine } from '../machines/collection.ts';
import { settlementMachine } from '../machines/settlement.ts';
import { quarantineAlert } from './alerts.ts';
import { Archive, Archiver } from './archive/archive.ts';
import {
  Collections,
  collectionMigrations,
  collectionsSpec,
  crowdedStates,
  endedStates,
  planOfCollections,
  readable,
  sampleCollection,
} from './collections/collections.ts';
import { type CollectionDeps, collectionCallEffects, collectionWriteEffects } from './collections/effects.ts';
import type { Config } from './config.ts';
import { Events, Tails } from './events/events.ts';
import { Refusals } from './http/http.ts';
import { StepFeed } from './inspector/inspector.ts';
import { AuditWatch, archivedJournal, FeePlans, journalSource, stripeOf } from './ledger/ledger.ts';
import { limits } from './limits.ts';
import type { Log } from './log.ts';
import { Merchants } from './merchants/merchants.ts';
import { Metrics, observeWork, type WorkObserver } from './metrics/metrics.ts';
import { storesEdition } from './mongo.ts';
import { Operators } from './operators/operators.ts';
import { payoutDefinitions } from './payouts/effects.ts';
import { BankFiles, Destinations, Payouts, Schedules } from './payouts/payouts.ts';
import { breakerCallEffects, breakerWriteEffects } from './rails/effects.ts';
import {
  Bells,
  Breakers,
  breakerMigrations,
  breakersSpec,
  Callbacks,
  checkApart,
  GuardedRail,
  MpesaRail,
  type MpesaWatch,
  PhoneTurns,
  type Rails,
  StoredSessions,
  sessionsName,
  TestRail,
} from './rails/rails.ts';
import { Recent } from './recent.ts';
import { reconciliationDefinitions } from './reconciliation/effects.ts';
import { differenceTerms, Reconciliations } from './reconciliation/reconciliation.ts';
import { type RefundDeps, refundDefinitions } from './refunds/effects.ts';
import { Refunds, refundsFor } from './refunds/refunds.ts';
import { settlementCallEffects, settlementWriteEffects } from './settlement/effects.ts';
import {
  SettlementReader,
  Settlements,
  settlementMigrations,
  settlementsSpec,
  settlesByDelay,
} from './settlement/settlement.ts';
import { outermost, placeOf } from './standing.ts';
import { readTallyState, Tallier, type TallyKind } from './tallies/tallies.ts';
import { type WebhookDeps, webhookDefinitions } from './webhooks/effects.ts';
import { OwnEndpoints, Slots, WebhookPoster, Webhooks } from './webhooks/webhooks.ts';

/** Joins each machine to its effects; the only file that knows all rooms. */

/** How far ahead timers are handed to Redis; the rest waits in the documents. */
export const horizonMs = 2 * limits.minuteMs;

/** A worker sends by what an endpoint was at most so long ago; what this process changes it knows at once. */
const endpointMaxAgeMs = 50;
/** Short, because after a kill the next process waits this long before it sweeps. */
const leaseMs = 15 * limits.secondMs;

export interface Wired {
  db: Db;
  /** The same, for what may rightly take long and nobody waits for. */
  patientDb: Db;
  clock: Clock;
  log: Log;
  config: Config;
  /** Counts and logs what the engine does. */
  watch: WorkObserver;
  queues: Queues;
  rails: Rails;
  runtime: Runtime;
  committer: Runtime['committer'];
  actors: Actors;
  handover: Runtime['handover'];
  lanes: Runtime['lanes'];
  /** Tells whoever watches of every committed step. */
  feed: StepFeed;
  bells: Bells;
  callbacks: Callbacks;
  /** Makes the breakers of the live rail; to be done before anything is served. */
  prepareRails(): Promise<void>;
  closeRails(): void;
  lease: Lease;
  merchants: Merchants;
  operators: Operators;
  collections: Collections;
  refunds: Refunds;
  events: Events;
  /** Requests that wait for events. */
  tails: Tails;
  webhooks: Webhooks;
  /** Endpoints in the hands of their merchants. */
  ownEndpoints: OwnEndpoints;
  poster: WebhookPoster;
  webhookDeps: WebhookDeps;
  settlements: Settlements;
  settlementReader: SettlementReader;
  /** Networks' statements beside the books. */
  reconciliations: Reconciliations;
  /** Money that merchants are paid, where it goes, and the files for the bank. */
  payouts: Payouts;
  schedules: Schedules;
  destinations: Destinations;
  bankFiles: BankFiles;
  auditWatch: AuditWatch;
  tallier: Tallier;
  archive: Archive;
  archiver: Archiver;
  /** Why requests were refused. */
  refusals: Refusals;
  feePlans: FeePlans;
  /** Takes or renews this process's counter stripe. */
  leaseStripe(): Promise<void>;
}

interface WiringOptions {
  db: Db;
  /** The same, for what may rightly take long and nobody waits for. */
  patientDb: Db;
  clock: Clock;
  log: Log;
  config: Config;
  queues: Queues;
}

export function wire({ db, patientDb, clock, log, config, queues }: WiringOptions): Wired {
  const watch = observeWork(new Metrics(), clock, log);
  const events = new Events(db);
  const committed = (batch: CommittedBatch) => {
    events.remember(batch.members.flatMap(({ writes }) => writes));
    watch.committed(batch);
  };
  const lease = new Lease(db, clock, randomUUID(), leaseMs, config.workerLostAfterMs, storesEdition);
  const stripe = stripeOf(lease);
  const merchants = new Merchants({ db, clock, log, keyHashSecret: config.keyHashSecret });
  const webhooks = new Webhooks({ db, clock, config });
  const poster = posterOf(config, clock);
  // The engine needs the effects and some effects need the engine, which they reach when they run.
  const late = {} as { actors: Actors; bells: Bells; settlements: Settlements; payouts: Payouts };
  const railDeps = { db, clock, log, config, lease, watch: watch.rail };
  const { rails, prepareRails, closeRails } = railsOf(railDeps, late);
  const endpoints = new Recent((id) => late.actors.read({ machine: 'endpoint', id }), endpointMaxAgeMs);
  const slots = new Slots(clock);
  const sending = { db, clock, config, events, poster, webhooks, endpoints, slots };
  const webhookDeps: WebhookDeps = { ...sending, actors: () => late.actors };
  const archive = new Archive({ db, dir: config.archive.dir });
  const archived = archivedJournal(archive);
  const collectionDeps: CollectionDeps = {
    ...{ db, rails, stripe: stripe.number, deliveriesOf: webhooks.deliveriesOf.bind(webhooks), archived },
    settlesOn: settlesByDelay((id) => merchants.delayDays(id), config.settlementDelayDays),
    refundOf: refundsFor({ rails, merchantOf: (id) => merchants.find(id) }),
  };
  const reconciliations = new Reconciliations({ db, clock, config });
  const { isWithheld } = reconciliations;
  const definitions = definitionsOf({
    collection: collectionDeps,
    webhook: webhookDeps,
    settlement: { settle: (doc) => late.settlements.settle(doc) },
    payout: {
      ...{ db, rails, config, isWithheld, deliveriesOf: collectionDeps.deliveriesOf },
      ...{ payouts: () => late.payouts, merchantOf: (id) => merchants.find(id) },
    },
    refund: { db, rails, actors: () => late.actors, deliveriesOf: collectionDeps.deliveriesOf },
    breaker: { railNamed: (name) => (rails.live?.name === name ? rails.live : undefined) },
    reconciliation: { db, clock, rails, terms: differenceTerms, actors: () => late.actors },
  });
  const runtime = new Runtime({
    ...{ db, clock, log, queues, definitions, lease, horizonMs },
    watch: { ...watch, committed },
    onQuarantine: quarantineAlert,
    awaited: ['merchant', 'operator'],
  });
  const { actors, committer, handover, lanes } = runtime;
  actors.onStep(({ machine, doc }) => machine === 'endpoint' && endpoints.forget(doc._id));
  const feed = new StepFeed({ actors, redis: queues.redis, prefix: config.redisPrefix, log });
  const tails = new Tails({ events, redis: queues.redis, prefix: config.redisPrefix, log });
  const common = { db, actors, clock, log };
  const settlements = new Settlements(common);
  const bells = new Bells({ ...common, queues });
  const paying = payoutRoom({ ...common, config, rails, isWithheld });
  Object.assign(late, { actors, bells, settlements, payouts: paying.payouts });
  const parts = { db, patientDb, clock, log, config };
  const past = pastOf({ ...parts, archive, lease, charts: actors.definitions });
  const callbacks = callbacksOf(config, { ...common, bells, rails, heard: watch.heard });
  return {
    ...{ db, patientDb, clock, log, config, queues, rails, runtime, committer },
    ...{ actors, handover, lanes, bells, lease, merchants },
    ...{ events, tails, webhooks, poster, webhookDeps, settlements },
    ...{ callbacks, prepareRails, closeRails, feed, watch },
    ...{ leaseStripe: stripe.lease, refusals: new Refusals({ db, clock, log }) },
    operators: new Operators({ db, ...config }),
    ...{ reconciliations, ...paying, ...past },
    ...moneyRooms({ ...parts, actors, rails, merchants, webhooks, archive }),
  };
}

function callbacksOf(
  { mpesa }: Config,
  deps: Omit<ConstructorParameters<typeof Callbacks>[0], 'secret'>,
): Callbacks {
  return new Callbacks({ ...deps, secret: mpesa?.callbackSecret });
}

/** What is asked of a merchant's payments and money, by merchants, operators and the auditor. */
function moneyRooms(parts: {
  db: Db;
  patientDb: Db;
  actors: Actors;
  clock: Clock;
  log: Log;
  config: Config;
  rails: Rails;
  merchants: Merchants;
  webhooks: Webhooks;
  archive: Archive;
}) {
  const { patientDb, merchants, webhooks, archive, ...shared } = parts;
  const { db, actors, clock, log, config, rails } = shared;
  const commit = (writes: Write[]) => actors.commit(writes);
  const firstTerms = { bps: config.feeBps, fixedTzs: config.feeFixedTzs };
  const feePlans = new FeePlans({ db, clock, firstTerms, commit });
  const gone = { eventsBegin: () => archive.beginsAt('events'), archived: archivedJournal(archive) };
  const understood = { ...readable(actors), ...gone };
  return {
    feePlans,
    collections: new Collections({ ...shared, feePlan: (id) => feePlans.current(id) }),
    refunds: new Refunds({ db, actors, clock, rails, windowMs: config.refundWindowMs }),
    ownEndpoints: new OwnEndpoints({ db, actors, clock, merchants, webhooks, sample: sampleCollection }),
    settlementReader: new SettlementReader(db, (doc) => shown(actors.definition('settlement'), doc)),
    auditWatch: new AuditWatch({ db: patientDb, clock, log, understood, commit }),
  };
}

/** What counts the past, and what takes it out of MongoDB once it is counted. */
function pastOf(parts: {
  db: Db;
  patientDb: Db;
  archive: Archive;
  clock: Clock;
  log: Log;
  lease: Lease;
  charts: Actors['definitions'];
  config: Config;
}) {
  const { db, patientDb, archive, clock, log, lease, charts, config } = parts;
  // What pictures are counted from.
  const counted = new Set(['events', 'journal']);
  const archiver = new Archiver({
    ...{ db: patientDb, clock, log, lease, charts, ...config.archive },
    books: journalSource(patientDb, clock),
    mayGo: async (kind) => !counted.has(kind) || (await readTallyState(db)).every(({ isWhole }) => isWhole),
  });
  const beginsAt = (kind: TallyKind) => archive.beginsAt(kind === 'settled' ? 'journal' : 'events');
  return { archive, archiver, tallier: new Tallier({ db: patientDb, clock, log, beginsAt }) };
}

function payoutRoom(deps: ConstructorParameters<typeof Payouts>[0]) {
  return {
    ...{ payouts: new Payouts(deps), destinations: new Destinations(deps) },
    ...{ bankFiles: new BankFiles(deps), schedules: new Schedules(deps) },
  };
}

function posterOf({ webhooks }: Config, clock: Clock): WebhookPoster {
  return new WebhookPoster({
    clock,
    timeoutMs: webhooks.timeoutMs,
    allowCidrs: webhooks.allowCidrs,
    dnsServers: webhooks.dnsServers,
    ...(webhooks.dnsCanary ? { dnsCanary: webhooks.dnsCanary } : {}),
  });
}

type RailDeps = Omit<WiringOptions, 'queues' | 'patientDb'> & { lease: Lease; watch: MpesaWatch };
/** The rail of each mode; the live one behind its breakers, where one is configured. */
function railsOf(
  { db, clock, log, config, lease, watch }: RailDeps,
  late: { actors: Actors; bells: Bells },
): { rails: Rails; prepareRails(): Promise<void>; closeRails(): void } {
  const test = new TestRail({
    clock,
    simulator: config.simulator,
    ring: (...bell) => late.bells.ringLater(...bell),
  });
  if (!config.mpesa) {
    const rails = { test, live: undefined };
    checkApart(rails);
    return { rails, prepareRails: async () => {}, closeRails: () => {} };
  }
  const name = sessionsName(config.mpesa);
  const sessions = new StoredSessions({ db, clock, secretsKey: config.secretsKey, name });
  const mpesa = new MpesaRail({ config: config.mpesa, clock, sessions, watch });
  const breakers = new Breakers({ actors: () => late.actors, clock, log, rail: mpesa.name });
  const turns = new PhoneTurns({ db, clock, lease });
  const rails = { test, live: new GuardedRail({ rail: mpesa, breakers, turns, clock }) };
  checkApart(rails);
  return { rails, prepareRails: () => breakers.prepare(), closeRails: () => mpesa.close() };
}

/** What the machines' effects need. */
interface EffectDeps {
  collection: CollectionDeps;
  webhook: WebhookDeps;
  settlement: Parameters<typeof settlementCallEffects>[0];
  payout: Parameters<typeof payoutDefinitions>[0];
  refund: RefundDeps;
  breaker: Parameters<typeof breakerCallEffects>[0];
  reconciliation: Parameters<typeof reconciliationDefinitions>[0];
}

/** Every machine with its effects, in the order in which a payment meets them. */
function definitionsOf(deps: EffectDeps): MachineDefinition[] {
  return [
    {
      name: 'collection',
      plural: collectionsSpec.name,
      machine: collectionMachine,
      ended: endedStates,
      idPrefix: 'col',
      planOf: planOfCollections,
      writes: collectionWriteEffects(deps.collection),
      calls: collectionCallEffects(deps.collection),
      fields: ({ value }: AnyMachineSnapshot) => {
        const state = stateText(value);
        return { status: outermost(state), place: placeOf(crowdedStates, state) };
      },
      crowded: crowdedStates,
      shared: ['terms'],
      migrations: collectionMigrations,
    },
    ...webhookDefinitions(deps.webhook),
    {
      name: 'settlement',
      plural: settlementsSpec.name,
      machine: settlementMachine,
      ended: ['settled'],
      writes: settlementWriteEffects(),
      calls: settlementCallEffects(deps.settlement),
      migrations: settlementMigrations,
    },
    ...refundDefinitions(deps.refund),
    ...reconciliationDefinitions(deps.reconciliation),
    ...payoutDefinitions(deps.payout),
    {
      name: 'breaker',
      plural: breakersSpec.name,
      machine: breakerMachine,
      ended: [],
      writes: breakerWriteEffects(),
      calls: breakerCallEffects(deps.breaker),
      migrations: breakerMigrations,
    },
  ];
}
