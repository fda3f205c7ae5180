import type { CallAnswer, Clock, Committed, CommittedBatch, WorkWatch } from '@kusanya/durable-actors';
import type { AttemptDetail } from '../../machines/delivery.ts';
import { type AlertDoc, alertsSpec } from '../alerts.ts';
import { type Log, withoutFieldNames } from '../log.ts';
import type { Metrics } from './counts.ts';

export interface WorkObserver extends WorkWatch {
  metrics: Metrics;
  committed(batch: CommittedBatch): void;
  stepped(step: Committed): void;
  /** The network called back. */
  heard(): void;
  /** What the network answers, by result code. */
  rail: {
    answered(operation: string, code: string): void;
    refusedByGate(operation: string, httpStatus: number): void;
  };
}

/**
 * Counts and logs what the engine does: a line for each step, each call that was made and each alert. Lines name
 * things by their ids and hold nothing that a merchant or a customer wrote.
 */
export function observeWork(metrics: Metrics, clock: Clock, every: Log): WorkObserver {
  const log = withoutFieldNames(every);
  return {
    metrics,
    rail: {
      answered: (op, code) => metrics.providerAnswers.inc({ op, code }),
      refusedByGate: (op, status) => metrics.providerGateRefusals.inc({ op, status }),
    },
    heard: () => metrics.lastCallback.set(clock.now() / 1_000),
    committed: ({ members, seconds }) => {
      metrics.batchSize.observe(members.length);
      metrics.commitSeconds.observe(seconds);
      for (const { writes } of members) {
        for (const write of writes) {
          if (write.into !== alertsSpec.name || write.op !== 'insert') continue;
          const { kind, about, merchantId, mode } = write.doc as AlertDoc;
          metrics.alerts.inc({ kind });
          log.warn({ kind, about, merchantId, mode }, 'alert');
        }
      }
    },
    stepped: (step) => {
      const { machine, doc, event, cause, from } = step;
      metrics.engineSteps.inc({ machine, cause: cause.kind });
      if (machine === 'collection') countCollection(metrics, step);
      else if (machine === 'delivery') countDelivery(metrics, step);
      const by = `${cause.kind} ${cause.id}`;
      const line = { machine, actor: doc._id, seq: doc.seq, event: event.type, from, to: doc.state, by };
      log.info({ ...line, mode: doc.mode, merchantId: doc.merchantId }, 'step');
    },
    fired: ({ machine, event, lateMs }) => {
      metrics.timerLatenessSeconds.observe({ kind: `${machine}.${delayOf(event)}` }, lateMs / 1_000);
    },
    called: ({ machine, doc, call, answer, durationMs }) => {
      const outcome = answer?.event.type ?? 'none';
      const op = operations[call.type];
      if (op) {
        const labels = { mode: doc.mode, op, outcome: outcome.slice(outcome.indexOf('.') + 1) };
        metrics.providerSeconds.observe(labels, durationMs / 1_000);
      }
      const line = { machine, actor: doc._id, call: call.type, callId: call.id, outcome };
      log.info({ ...line, ...wordsOf(answer?.event), durationMs: Math.round(durationMs) }, 'attempt');
    },
  };
}

/** The calls that go to a network. */
const operations: Readonly<Record<string, string>> = {
  pushPrompt: 'push',
  askRail: 'query',
  reversePayment: 'reversal',
};

const finals = ['succeeded', 'failed', 'expired'];

function countCollection(metrics: Metrics, { doc, event, from }: Committed): void {
  const { mode, data, snapshot } = doc;
  if (from === null) {
    metrics.collectionsCreated.inc({ mode, channel: String(data.channel) });
    return;
  }
  const status = topOf(doc.state);
  if (status === topOf(from) || !finals.includes(status)) return;
  const { failureCode, createdAt } = snapshot.context;
  metrics.collectionsFinal.inc({
    mode,
    status,
    failure_code: status === 'failed' ? String(failureCode ?? '') : '',
  });
  if (topOf(from) === 'created') {
    metrics.timeToFinalSeconds.observe({ mode }, secondsBetween(Number(createdAt), event.at));
  }
}

function countDelivery(metrics: Metrics, { doc, event }: Committed): void {
  const isSuccess = event.type === 'attempt.succeeded';
  if (!isSuccess && event.type !== 'attempt.failed') return;
  const { mode, snapshot } = doc;
  metrics.webhookAttempts.inc({ mode, outcome: isSuccess ? 'succeeded' : String(event.reason) });
  // Delivered again at an operator's wish says nothing about how long the event was on its way.
  if (!isSuccess || snapshot.context.cameFrom === 'delivered') return;
  metrics.deliveryLagSeconds.observe({ mode }, secondsBetween(Number(snapshot.context.createdAt), event.at));
}

/** What of an answer helps to read the log: codes and figures, never text that somebody else wrote. */
function wordsOf(event: CallAnswer['event'] | undefined): Record<string, unknown> {
  if (!event) return {};
  const { reason, code, detail } = event as {
    reason?: unknown;
    code?: unknown;
    detail?: Partial<AttemptDetail>;
  };
  return { reason, code, number: detail?.number, status: detail?.status };
}

/** `xstate.after.answerTimeout.pushing` → `answerTimeout`: the chart's own name of the delay. */
function delayOf(event: string): string {
  return event.split('.')[2] ?? event;
}

function topOf(state: string): string {
  return state.split('.', 1)[0]!;
}

function secondsBetween(fromMs: number, toMs: number): number {
  return Math.max(0, toMs - fromMs) / 1_000;
}
