import {
  type ActorDoc,
  type Actors,
  type Clock,
  type Committer,
  type Handover,
  inTime,
  type Lanes,
  type Queues,
  queueNames,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Archive } from '../archive/archive.ts';
import type { AuditWatch } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { settlementDate, settlementsSpec } from '../settlement/settlement.ts';
import { countInState, statesIn } from '../standing.ts';
import { endpointStatus } from '../webhooks/webhooks.ts';
import type { Metrics } from './counts.ts';

const modes: readonly Mode[] = ['live', 'test'];

/** Figures this old are good enough: several scrapers cost no more than one. */
const freshMs = 5 * limits.secondMs;
/** A part that takes longer is left out: a scrape must not wait for a store that hangs. */
const patienceMs = 2 * limits.secondMs;
const countMax = 10_000;

interface GaugesOptions {
  metrics: Metrics;
  db: Db;
  clock: Clock;
  actors: Actors;
  queues: Queues;
  auditWatch: AuditWatch;
  archive: Pick<Archive, 'latestRun'>;
  committer: Pick<Committer, 'counts'>;
  handover: Pick<Handover, 'failures'>;
  lanes: Pick<Lanes, 'counts'>;
  /** What a person should look at: the overview's tiles. */
  needs(mode: Mode): Promise<{ kind: string; count: number; machine: string | null }[]>;
}

/** Sets the gauges from what is stored, by queries that an index answers or that are counted up to a bound. */
export class Gauges {
  readonly #options: GaugesOptions;
  readonly #parts: Readonly<Record<string, () => Promise<() => void>>>;
  #setAt = Number.NEGATIVE_INFINITY;
  #setting: Promise<void> | undefined;

  constructor(options: GaugesOptions) {
    this.#options = options;
    this.#parts = {
      needs: () => this.#needs(),
      collections: () => this.#collections(),
      webhooks: () => this.#webhooks(),
      queues: () => this.#queues(),
      settlements: () => this.#settlements(),
      books: () => this.#books(),
      archive: () => this.#archive(),
    };
  }

  /** Looks everything up again, unless that was done just now. Never throws. */
  async refresh(): Promise<void> {
    const ageMs = this.#options.clock.now() - this.#setAt;
    if (ageMs >= 0 && ageMs < freshMs) return;
    this.#setting ??= this.#set().finally(() => {
      this.#setting = undefined;
    });
    await this.#setting;
  }

  async #set(): Promise<void> {
    const { clock, metrics } = this.#options;
    const read = await Promise.all(
      Object.entries(this.#parts).map(
        async ([part, look]) => [part, await inTime(look(), patienceMs).catch(() => undefined)] as const,
      ),
    );
    for (const each of this.#all()) each.reset();
    this.#engine();
    for (const [part, set] of read) {
      metrics.scrapeErrors.set({ part }, set ? 0 : 1);
      set?.();
    }
    this.#setAt = clock.now();
  }

  /** What is set here, and nothing that is counted where it happens. */
  #all() {
    const { metrics: of } = this.#options;
    const stored = [of.collectionsInState, of.collectionsOverdue, of.webhookEndpoints, of.webhookDeliveries];
    const others = [of.laneErrands, of.queueJobs, of.timersMissing, of.needsPerson, of.settlementLastSuccess];
    const counts = [of.engineConflicts, of.engineRetries, of.handoverFailures];
    return [...stored, ...others, of.ledgerImbalance, of.ledgerAudited, of.archived, ...counts];
  }

  /** Counted where it happens, by plain numbers; shown from here. */
  #engine(): void {
    const { metrics, committer, handover, lanes } = this.#options;
    metrics.engineConflicts.inc(committer.counts.refusals);
    metrics.engineRetries.inc(committer.counts.retries);
    metrics.handoverFailures.inc(handover.failures);
    for (const { queue, running, waiting } of lanes.counts()) {
      metrics.laneErrands.set({ queue, state: 'running' }, running);
      metrics.laneErrands.set({ queue, state: 'waiting' }, waiting);
    }
  }

  async #needs(): Promise<() => void> {
    const { needs, metrics, actors } = this.#options;
    const tiles = await Promise.all(modes.map(async (mode) => ({ mode, found: await needs(mode) })));
    return () => {
      for (const { name } of actors.definitions) metrics.timersMissing.set({ machine: name }, 0);
      for (const { mode, found } of tiles) {
        metrics.collectionsOverdue.set({ mode }, 0);
        for (const { kind, count, machine } of found) {
          metrics.needsPerson.inc({ mode, kind }, count);
          if (kind === 'past_deadline') metrics.collectionsOverdue.set({ mode }, count);
          if (kind === 'wakeups_late' && machine) metrics.timersMissing.inc({ machine }, count);
        }
      }
    };
  }

  async #collections(): Promise<() => void> {
    const { metrics } = this.#options;
    const isAwaited = (state: string) => state.startsWith('created.') || state.includes('.latePaid.');
    const counts = await this.#count('collection', isAwaited);
    return () => {
      for (const { mode, state, count } of counts) metrics.collectionsInState.set({ mode, state }, count);
    };
  }

  async #webhooks(): Promise<() => void> {
    const { metrics } = this.#options;
    const isOpen = (state: string) => /^(pending|waiting|held)(\.|$)/.test(state);
    const endpoints = await this.#count('endpoint', (state) => state !== 'deleted');
    const deliveries = await this.#count('delivery', isOpen);
    return () => {
      for (const { state, count } of endpoints)
        metrics.webhookEndpoints.inc({ state: endpointStatus(state) }, count);
      for (const { state, count } of deliveries)
        metrics.webhookDeliveries.inc({ state: state.split('.', 1)[0]! }, count);
    };
  }

  /** Redis that is away is known already (needs_person); BullMQ would wait for it. */
  async #queues(): Promise<() => void> {
    const { metrics, queues, actors } = this.#options;
    if (!queues.ready) throw new Error('redis does not answer');
    const names = queueNames(actors.definitions);
    const counts = await Promise.all(
      names.map((name) => queues.queue(name).getJobCounts('waiting', 'active', 'delayed', 'failed')),
    );
    return () => {
      for (const [index, queue] of names.entries())
        for (const [state, count] of Object.entries(counts[index]!))
          metrics.queueJobs.set({ queue, state }, count);
    };
  }

  async #settlements(): Promise<() => void> {
    const { metrics, db, clock } = this.#options;
    const { date } = settlementDate(clock.now(), 0);
    const latest = await Promise.all(
      modes.map((mode) =>
        db
          .collection<ActorDoc>(settlementsSpec.name)
          .find({ 'data.date': { $lte: date }, mode, state: 'settled' })
          .sort({ 'data.date': -1, _id: -1 })
          .limit(1)
          .next(),
      ),
    );
    return () => {
      for (const [index, mode] of modes.entries()) {
        const settledAt = latest[index]?.snapshot.context.settledAt;
        if (typeof settledAt === 'number')
          metrics.settlementLastSuccess.set({ mode }, settledAt / limits.secondMs);
      }
    };
  }

  async #books(): Promise<() => void> {
    const { metrics, auditWatch } = this.#options;
    const { recent, full, open } = await auditWatch.state();
    return () => {
      for (const mode of modes) metrics.ledgerImbalance.set({ mode, currency: 'TZS' }, 0);
      for (const { breach } of open) {
        const { mode, currency, differenceTzs } = breach as Record<string, unknown>;
        if (typeof differenceTzs !== 'number') continue;
        const labels = { mode: String(mode), currency: String(currency ?? 'TZS') };
        metrics.ledgerImbalance.inc(labels, Math.abs(differenceTzs));
      }
      if (recent) metrics.ledgerAudited.set({ kind: 'recent' }, recent.at.getTime() / limits.secondMs);
      if (full) metrics.ledgerAudited.set({ kind: 'full' }, full.at.getTime() / limits.secondMs);
    };
  }

  async #archive(): Promise<() => void> {
    const { metrics, archive } = this.#options;
    const run = await archive.latestRun();
    return () => {
      if (!run) return;
      const outcome = run.fault ? 'failed' : run.isComplete ? 'complete' : 'unfinished';
      metrics.archived.set({ outcome }, run.at.getTime() / limits.secondMs);
    };
  }

  /** How many actors are in each of the states that are meant. Only the index is read. */
  async #count(
    machine: string,
    isMeant: (state: string) => boolean,
  ): Promise<{ mode: Mode; state: string; count: number }[]> {
    const { db, actors } = this.#options;
    const definition = actors.definition(machine);
    const states = await Promise.all(
      modes.map(async (mode) => {
        const used = await statesIn(db, definition, mode);
        return used.filter(isMeant).map((state) => ({ mode, state }));
      }),
    );
    return Promise.all(
      states.flat().map(async ({ mode, state }) => {
        const { count } = await countInState(db, definition, { mode, state }, countMax);
        return { mode, state, count };
      }),
    );
  }
}
