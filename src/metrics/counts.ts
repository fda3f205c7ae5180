import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * THE METRICS: every name that /metrics shows, in one place. Counters and histograms count what this process did,
 * where it is done; gauges are looked up in the stores when somebody asks (gauges.ts), so each process shows the
 * same and a sum over processes takes their maximum. Labels are of short lists: never an id, a merchant or a phone.
 */
export class Metrics {
  readonly registry = new Registry();

  readonly httpSeconds = this.#histogram(
    'http_request_duration_seconds',
    'Time from a request’s arrival to its answer.',
    ['method', 'route', 'status'],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  );

  readonly collectionsCreated = this.#counter('collections_created_total', 'Collections made.', [
    'mode',
    'channel',
  ]);
  readonly collectionsFinal = this.#counter(
    'collections_final_total',
    'Collections that reached a final status.',
    ['mode', 'status', 'failure_code'],
  );
  readonly timeToFinalSeconds = this.#histogram(
    'collection_time_to_final_seconds',
    'Time from a collection’s creation to its final status.',
    ['mode'],
    [1, 2, 5, 10, 20, 30, 60, 90, 120, 300, 600, 1_800, 3_600, 21_600, 86_400],
  );
  readonly collectionsInState = this.#gauge(
    'collections_in_state',
    'Collections that something is still expected of, by the chart’s state. Counted up to 10,000.',
    ['mode', 'state'],
  );
  readonly collectionsOverdue = this.#gauge(
    'collections_overdue',
    'Collections that have no verdict though every deadline of their network has passed. Counted up to 1,000.',
    ['mode'],
  );

  readonly providerSeconds = this.#histogram(
    'provider_request_duration_seconds',
    'Time of a call to the network, the customer’s PIN included, our own waits for a session or the phone not.',
    ['mode', 'op', 'outcome'],
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120],
  );
  readonly providerAnswers = this.#counter(
    'provider_answers_total',
    'Answers of the network by result code; op session: sessions asked for.',
    ['op', 'code'],
  );
  readonly providerGateRefusals = this.#counter(
    'provider_gate_refusals_total',
    'Calls that the network’s gate turned away without a result code.',
    ['op', 'status'],
  );
  readonly lastCallback = this.#gauge(
    'provider_last_callback_timestamp_seconds',
    'When the network last called this process back. Absent before the first time.',
  );

  readonly webhookAttempts = this.#counter('webhook_attempts_total', 'Attempts to deliver an event.', [
    'mode',
    'outcome',
  ]);
  readonly deliveryLagSeconds = this.#histogram(
    'webhook_delivery_lag_seconds',
    'Time from an event to its first 2xx, by endpoint.',
    ['mode'],
    [0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 21_600, 86_400],
  );
  readonly webhookEndpoints = this.#gauge('webhook_endpoints', 'Endpoints by state. Counted up to 10,000.', [
    'state',
  ]);
  readonly webhookDeliveries = this.#gauge(
    'webhook_deliveries',
    'Deliveries that are not over, by state. Counted up to 10,000.',
    ['state'],
  );

  readonly laneErrands = this.#gauge('lane_errands', 'Work that this process has in hand, in memory.', [
    'queue',
    'state',
  ]);
  readonly queueJobs = this.#gauge('queue_jobs', 'Jobs in Redis.', ['queue', 'state']);
  readonly timerLatenessSeconds = this.#histogram(
    'timer_lateness_seconds',
    'How long after its time a timer of a chart fired.',
    ['kind'],
    [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600],
  );
  readonly timersMissing = this.#gauge(
    'timers_missing',
    'Actors whose time has come and that nobody has attended to for a minute. Counted up to 1,000 by mode.',
    ['machine'],
  );
  readonly needsPerson = this.#gauge(
    'needs_person',
    'What the overview asks a person to look at, by kind. Absent where there is nothing. Counted up to 1,000.',
    ['mode', 'kind'],
  );

  readonly settlementLastSuccess = this.#gauge(
    'settlement_last_success_timestamp_seconds',
    'When money last became available. Absent before the first time.',
    ['mode'],
  );
  readonly ledgerImbalance = this.#gauge(
    'ledger_imbalance',
    'Debits less credits that the audit found and that is not cleared, in whole shillings, without its sign.',
    ['mode', 'currency'],
  );
  readonly ledgerAudited = this.#gauge(
    'ledger_audit_timestamp_seconds',
    'When an audit last began that has ended: recent every minute, full every night.',
    ['kind'],
  );
  readonly archived = this.#gauge(
    'archive_run_timestamp_seconds',
    'When the archive’s latest night began: outcome complete, unfinished or failed. Absent before the first.',
    ['outcome'],
  );
  readonly alerts = this.#counter('alerts_total', 'Alerts raised, by kind.', ['kind']);

  readonly batchSize = this.#histogram(
    'engine_batch_size',
    'Steps committed together.',
    [],
    [1, 2, 4, 8, 16, 32, 64, 128],
  );
  readonly commitSeconds = this.#histogram(
    'engine_commit_seconds',
    'Time of one commit, repetitions included.',
    [],
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  );
  readonly engineSteps = this.#counter('engine_steps_total', 'Steps committed.', ['machine', 'cause']);
  readonly engineConflicts = this.#counter(
    'engine_conflicts_total',
    'Commits refused by what others had written, or by a rule of the books.',
  );
  readonly engineRetries = this.#counter(
    'engine_retries_total',
    'Batches that MongoDB had us repeat as they were.',
  );
  readonly handoverFailures = this.#counter(
    'engine_handover_failures_total',
    'Jobs that Redis did not take at once. The sweep hands them over again.',
  );

  readonly scrapeErrors = this.#gauge(
    'metrics_unavailable',
    '1 where this part of the figures could not be read just now; its names are then absent.',
    ['part'],
  );

  /** The text of all metrics, those of the process included. */
  async text(): Promise<string> {
    return Registry.merge([processRegistry(), this.registry]).metrics();
  }

  /** One finished request. Methods and routes nobody serves are one each. */
  request({ method, route, status, durationMs }: RequestLine): void {
    this.httpSeconds.observe(
      { method: route === 'none' ? 'other' : method, route, status },
      durationMs / 1_000,
    );
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] });
  }
}

interface RequestLine {
  method: string;
  route: string;
  status: number;
  durationMs: number;
}

let ofProcess: Registry | undefined;

/** Memory, event loop, garbage: the process has them once, however many services run in it. */
function processRegistry(): Registry {
  if (!ofProcess) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}
