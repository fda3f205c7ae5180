import type {
  CallAnswer,
  CallEffect,
  CallView,
  MachineDefinition,
  WriteEffect,
} from '@kusanya/durable-actors';
import {
  type AttemptDetail,
  type deliveryCalls,
  deliveryMachine,
  type deliveryWrites,
} from '../../machines/delivery.ts';
import { type endpointCalls, endpointMachine, type endpointWrites } from '../../machines/endpoint.ts';
import { type replayCalls, replayMachine } from '../../machines/replay.ts';
import { alertOf } from '../alerts.ts';
import { type AttemptDeps, attempt, laneOf } from './attempt.ts';
import {
  type AttemptDoc,
  attemptId,
  attemptsSpec,
  type DeliveryDoc,
  deliveriesSpec,
  endpointsSpec,
  replaysSpec,
} from './documents.ts';
import { type HeldDeps, probeDelivery, releaseHeld } from './held.ts';
import { planOfDeliveries } from './lists.ts';
import { deliveryMigrations, endpointMigrations } from './migrations.ts';
import { replayPage } from './replay.ts';
import { lanes } from './slots.ts';

export { strandedRelease } from './held.ts';

/** From an attempt's end until its answer is recorded, at the most. */
const recordingMs = 10_000;

/** What the effects of deliveries and endpoints need. */
export type WebhookDeps = AttemptDeps & HeldDeps;

function deliveryWriteEffects(): Record<(typeof deliveryWrites)[number], WriteEffect> {
  return {
    recordAttempt: (step) => {
      const { _id, data } = step.doc as DeliveryDoc;
      const detail = step.event.detail as AttemptDetail;
      const reason = step.event.reason as string | undefined;
      const doc: AttemptDoc = {
        _id: attemptId(_id, detail.number),
        deliveryId: _id,
        endpointId: data.endpointId,
        number: detail.number,
        at: new Date(detail.startedAt),
        durationMs: Math.round(detail.durationMs),
        ok: step.event.type === 'attempt.succeeded',
        ...(detail.status === undefined ? {} : { status: detail.status }),
        ...(reason === undefined ? {} : { reason }),
        ...(detail.excerpt ? { excerpt: detail.excerpt } : {}),
      };
      return [{ op: 'insert', into: attemptsSpec.name, doc, onDuplicate: 'race' }];
    },
  };
}

function deliveryCallEffects(deps: WebhookDeps): Record<(typeof deliveryCalls)[number], CallEffect> {
  return {
    postWebhook: {
      concurrency: lanes[0]!.concurrency,
      // An attempt ends by its own clock; until then nobody makes it again.
      patienceMs: deps.config.webhooks.timeoutMs + recordingMs,
      lanes,
      lane: (doc) => laneOf(deps, doc as DeliveryDoc),
      run: (view) => attempt(deps, view),
    },
    tellEndpoint: { concurrency: 20, patienceMs: 15_000, run: (view) => tellEndpoint(deps, view) },
  };
}

function endpointWriteEffects(): Record<(typeof endpointWrites)[number], WriteEffect> {
  return {
    raiseAlert: (step, params) => [alertOf(step, String(params.kind))],
  };
}

function endpointCallEffects(deps: WebhookDeps): Record<(typeof endpointCalls)[number], CallEffect> {
  return {
    probeDelivery: { concurrency: 5, patienceMs: 30_000, run: (view) => probeDelivery(deps, view) },
    releaseHeld: { concurrency: 10, patienceMs: 60_000, run: (view) => releaseHeld(deps, view) },
  };
}

function replayCallEffects(deps: WebhookDeps): Record<(typeof replayCalls)[number], CallEffect> {
  return {
    replayPage: { concurrency: 2, patienceMs: 60_000, run: (view) => replayPage(deps, view) },
  };
}

/** The machines of the room, with their effects. */
export function webhookDefinitions(deps: WebhookDeps): MachineDefinition[] {
  return [
    {
      name: 'delivery',
      plural: deliveriesSpec.name,
      machine: deliveryMachine,
      ended: ['delivered', 'failed', 'canceled'],
      idPrefix: 'dlv',
      planOf: planOfDeliveries,
      writes: deliveryWriteEffects(),
      calls: deliveryCallEffects(deps),
      migrations: deliveryMigrations,
    },
    {
      name: 'endpoint',
      plural: endpointsSpec.name,
      machine: endpointMachine,
      ended: ['deleted'],
      idPrefix: 'we',
      writes: endpointWriteEffects(),
      calls: endpointCallEffects(deps),
      migrations: endpointMigrations,
    },
    {
      name: 'replay',
      plural: replaysSpec.name,
      machine: replayMachine,
      ended: ['done', 'canceled'],
      idPrefix: 'rpl',
      writes: {},
      calls: replayCallEffects(deps),
      migrations: {},
    },
  ];
}

async function tellEndpoint({ actors }: WebhookDeps, { doc, call }: CallView): Promise<CallAnswer> {
  const { outcome, charged, at } = call.params as { outcome: string; charged: boolean; at: number };
  await actors().send(
    { machine: 'endpoint', id: (doc as DeliveryDoc).data.endpointId },
    { type: `attempt.${outcome}`, at, ...(outcome === 'failed' ? { charged } : {}) },
    { stepId: call.id, cause: { kind: 'call', id: call.id } },
  );
  return { event: { type: 'endpoint.told' } };
}
