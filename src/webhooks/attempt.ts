import type { ActorDoc, CallAnswer, CallPostponed, CallView, Clock } from '@kusanya/durable-actors';
import type { AttemptDetail } from '../../machines/delivery.ts';
import type { Config } from '../config.ts';
import type { EventDoc, Events } from '../events/events.ts';
import { limits } from '../limits.ts';
import type { Recent } from '../recent.ts';
import type { DeliveryDoc, EndpointDoc } from './documents.ts';
import type { AttemptResult, WebhookPoster } from './post.ts';
import { signatureHeaders } from './sign.ts';
import type { Lane, Slots } from './slots.ts';
import type { Webhooks } from './webhooks.ts';

/**
 * One attempt to deliver, from top to bottom: the endpoint is read, a slot is taken, the same bytes as ever are signed
 * afresh and sent (post.ts: one clock over all of it, dial.ts: to no private address), and the answer is told to the
 * delivery's chart. What is counted and when is tried again is the chart's.
 */
export interface AttemptDeps {
  /** Endpoints as they are, or were a moment ago where another process has changed one. */
  endpoints: Recent<ActorDoc | undefined>;
  clock: Clock;
  config: Config;
  events: Events;
  poster: WebhookPoster;
  webhooks: Webhooks;
  slots: Slots;
}

/** Deaths of a worker in the middle of one attempt before it counts in the schedule. */
const lossesMax = 3;

/** The lane that a delivery is queued in, as far as one can tell before its endpoint is read. */
export function laneOf({ slots }: Pick<AttemptDeps, 'slots'>, doc: DeliveryDoc): Lane {
  if (slots.isSlow(doc.data.endpointId)) return 'slow';
  // A delivery that was just born; one that was held comes back beside the fresh ones, not before them.
  return doc.seq === 1 ? 'first' : 'retry';
}

/**
 * The answer to the call `postWebhook`. A disabled endpoint holds its deliveries, a deleted one cancels them; one that
 * fails or takes long has a lane of its own, so that it does not stand in its neighbours' way.
 */
export async function attempt(deps: AttemptDeps, view: CallView): Promise<CallAnswer | CallPostponed> {
  const doc = view.doc as DeliveryDoc;
  const { tries, cameFrom } = doc.snapshot.context;
  const [endpoint, event] = await Promise.all([endpointOf(deps, doc), deps.events.find(doc.data.eventId)]);
  if (!endpoint || endpoint.state === 'deleted' || !doc.state.startsWith('pending')) {
    return { event: { type: 'attempt.canceled' } };
  }
  const isProbe =
    doc.state === 'pending.extra' && cameFrom !== 'delivered' && endpoint.state !== 'disabled.operator';
  if (endpoint.state.startsWith('disabled') && !isProbe) return { event: { type: 'attempt.withheld' } };
  if (view.earlierStarts >= lossesMax) return { event: lost(deps, doc) };

  const isWell = endpoint.state === 'active';
  const best = laneOf(deps, doc);
  const lane = isWell || best === 'slow' ? best : 'retry';
  // Towards the slow only: one that has become quick meanwhile is sent from where it is.
  if (view.lane !== undefined && view.lane !== lane && (view.lane === 'first' || lane === 'slow')) {
    return { postponeMs: 0, lane };
  }
  if (!event) throw new Error(`event ${doc.data.eventId} of ${doc._id} is not there`);
  const slot = await deps.slots.take({
    callId: view.call.id,
    endpointId: endpoint._id,
    merchantId: doc.merchantId,
    lane: (view.lane as Lane | undefined) ?? lane,
    isWell,
  });
  if ('stepBackMs' in slot) return { postponeMs: slot.stepBackMs };
  // The slot is for the receiver's part only: what we do with the answer holds up no other attempt.
  const result = await send(deps, doc, endpoint, event, tries).finally(() => slot.release());
  return { event: result.ok ? await succeeded(deps, doc, result) : failed(deps, doc, result) };
}

/** The same bytes as ever, a fresh time and signature. */
function send(
  { webhooks, poster, clock }: AttemptDeps,
  doc: DeliveryDoc,
  endpoint: EndpointDoc,
  event: EventDoc,
  tries: number,
): Promise<AttemptResult> {
  const body = Buffer.from(event.body);
  const secrets = webhooks.signingSecrets(endpoint);
  const signature = signatureHeaders({ eventId: event._id, body, secrets, atMs: clock.now() });
  return poster.post({
    url: endpoint.data.url,
    mode: doc.mode,
    endpointKey: endpoint._id,
    body,
    headers: { ...signature, 'Webhook-Attempt': String(tries) },
  });
}

/** Of a success the endpoint hears only while it is not simply active, as it is read after the answer. */
async function succeeded(deps: AttemptDeps, doc: DeliveryDoc, result: AttemptResult) {
  const endpoint = await endpointOf(deps, doc);
  const endpointActive = endpoint?.state === 'active';
  return { type: 'attempt.succeeded', status: result.status, endpointActive, detail: detailOf(doc, result) };
}

function failed({ config }: AttemptDeps, doc: DeliveryDoc, result: AttemptResult) {
  const { reason, charged } = result;
  return {
    ...{ type: 'attempt.failed', reason, charged },
    ...{ jitterMs: jitter(config, doc), detail: detailOf(doc, result) },
  };
}

/** The worker died again and again in the middle of this attempt: it counts, but not against the endpoint. */
function lost({ config, clock }: AttemptDeps, doc: DeliveryDoc) {
  const detail = detailOf(doc, { startedAt: clock.now(), durationMs: 0 });
  return {
    ...{ type: 'attempt.failed', reason: 'worker_lost', charged: false },
    ...{ jitterMs: jitter(config, doc), detail },
  };
}

function detailOf(
  doc: DeliveryDoc,
  { startedAt, durationMs, status, excerpt }: Partial<AttemptResult> & AttemptTimes,
): AttemptDetail {
  return {
    ...{ number: doc.snapshot.context.tries, startedAt, durationMs },
    ...(status === undefined ? {} : { status }),
    ...(excerpt ? { excerpt } : {}),
  };
}

type AttemptTimes = Pick<AttemptResult, 'startedAt' | 'durationMs'>;

/** A little more than the published wait, never less: at most 5 % and 60 s. */
function jitter({ webhooks }: Config, doc: DeliveryDoc): number {
  const delayMs = webhooks.retryDelaysMs[doc.snapshot.context.attempt - 1] ?? 0;
  return Math.round(Math.random() * Math.min(delayMs * webhooks.retryJitter, limits.minuteMs));
}

async function endpointOf({ endpoints }: AttemptDeps, doc: DeliveryDoc): Promise<EndpointDoc | undefined> {
  return (await endpoints.read(doc.data.endpointId)) as EndpointDoc | undefined;
}
