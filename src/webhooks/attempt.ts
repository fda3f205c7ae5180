import type {
  ActorDoc,
  CallAnswer,
  CallEffect,
  CallPostponed,
  CallView,
  Clock,
} from '@kusanya/durable-actors';
import type { AttemptDetail } from '../../machines/delivery.ts';
import type { Config } from '../config.ts';
import type { EventDoc, Events } from '../events/events.ts';
import { limits } from '../limits.ts';
import type { Recent } from '../recent.ts';
import type { DeliveryDoc, EndpointDoc } from './documents.ts';
import { type MishapDeps, postedAs, waitsToBeOvertaken } from './mishaps.ts';
import type { AttemptResult, WebhookPoster } from './post.ts';
import { signatureHeaders } from './sign.ts';
import type { Lane, Slots } from './slots.ts';
import type { Webhooks } from './webhooks.ts';

/**
 * One attempt to deliver, from top to bottom: the endpoint is read, a slot is taken, the same bytes as ever are signed
 * afresh and sent (post.ts: one clock over all of it, dial.ts: to no private address), and the answer is told to the
 * delivery's chart. What is counted and when is tried again is the chart's.
 */
export interface AttemptDeps extends MishapDeps {
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
/** What was read so long ago is read again before anything is sent. */
const recentMs = 50;
/** Between looks for what is to come first. */
const lookMs = 200;

/**
 * The answer to the call `postWebhook`. A disabled endpoint holds its deliveries, a deleted one cancels them; one that
 * fails or takes long has a lane of its own, so that it does not stand in its neighbours' way.
 */
export async function attempt(deps: AttemptDeps, view: CallView): ReturnType<CallEffect['run']> {
  const doc = view.doc as DeliveryDoc;
  const now = await lookedAt(deps, view);
  if (!('endpoint' in now)) return now;
  const isWell = now.endpoint.state === 'active';
  const lane = laneFor(deps, doc, isWell);
  const queuedIn = view.lane as Lane | undefined;
  // Towards the slow only: one that has become quick meanwhile is sent from where it is.
  const moves = queuedIn !== undefined && queuedIn !== lane && (queuedIn === 'first' || lane === 'slow');
  if (moves) return { postponeMs: 0, lane };

  const { _id: endpointId } = now.endpoint;
  const wanted = {
    callId: view.call.id,
    endpointId,
    merchantId: doc.merchantId,
    lane: queuedIn ?? lane,
    isWell,
  };
  const slot = await deps.slots.take(wanted, view.aside);
  if ('left' in slot) return slot;
  if ('stepBackMs' in slot) return { postponeMs: slot.stepBackMs };
  let result: AttemptResult;
  try {
    // While it waited its endpoint may have been disabled, or may have ended.
    const then = slot.waitedMs > recentMs ? await lookedAt(deps, view) : now;
    if (!('endpoint' in then)) return then;
    result = await send(deps, doc, then.endpoint, then.event);
  } finally {
    // The slot is for the receiver's part only: what we do with the answer holds up no other attempt.
    slot.release();
  }
  return { event: result.ok ? await succeeded(deps, doc, result) : failed(deps, doc, result) };
}

/** What is to be sent where; or what is to be said instead. */
async function lookedAt(
  deps: AttemptDeps,
  view: CallView,
): Promise<{ endpoint: EndpointDoc; event: EventDoc } | CallAnswer | CallPostponed> {
  const doc = view.doc as DeliveryDoc;
  const [endpoint, event] = await Promise.all([endpointOf(deps, doc), deps.events.find(doc.data.eventId)]);
  if (!endpoint || endpoint.state === 'deleted' || !doc.state.startsWith('pending')) {
    return { event: { type: 'attempt.canceled' } };
  }
  if (isHeld(doc, endpoint)) return { event: { type: 'attempt.withheld' } };
  if (view.earlierStarts >= lossesMax) {
    return { event: failed(deps, doc, { ...workerLost, startedAt: deps.clock.now() }) };
  }
  if (!event) throw new Error(`event ${doc.data.eventId} of ${doc._id} is not there`);
  if (await waitsToBeOvertaken(deps, doc, event)) return { postponeMs: lookMs };
  return { endpoint, event };
}

/** A disabled endpoint gets nothing but probes: what is sent again to learn whether it is well. */
function isHeld({ state, snapshot }: DeliveryDoc, endpoint: EndpointDoc): boolean {
  const isExtra = state === 'pending.extra' && snapshot.context.cameFrom !== 'delivered';
  const isProbe = isExtra && endpoint.state !== 'disabled.operator';
  return endpoint.state.startsWith('disabled') && !isProbe;
}

/** The lane of an attempt, now that its endpoint is read. */
function laneFor(deps: AttemptDeps, doc: DeliveryDoc, isWell: boolean): Lane {
  const lane = laneOf(deps, doc);
  return isWell || lane === 'slow' ? lane : 'retry';
}

/** The lane that a delivery is queued in, as far as one can tell before its endpoint is read. */
export function laneOf({ slots }: Pick<AttemptDeps, 'slots'>, doc: DeliveryDoc): Lane {
  if (slots.isSlow(doc.data.endpointId)) return 'slow';
  // A delivery that was just born; one that was held comes back beside the fresh ones, not before them.
  return doc.seq === 1 ? 'first' : 'retry';
}

/** The same bytes as ever, a fresh time and signature. */
function send(
  { webhooks, poster, clock }: AttemptDeps,
  doc: DeliveryDoc,
  endpoint: EndpointDoc,
  event: EventDoc,
): Promise<AttemptResult> {
  const body = Buffer.from(event.body);
  const secrets = webhooks.signingSecrets(endpoint);
  const signature = signatureHeaders({ eventId: event._id, body, secrets, atMs: clock.now() });
  return postedAs(doc, () =>
    poster.post({
      url: endpoint.data.url,
      mode: doc.mode,
      endpointKey: endpoint._id,
      body,
      headers: { ...signature, 'Webhook-Attempt': String(doc.snapshot.context.tries) },
    }),
  );
}

/** Of a success the endpoint hears only while it is not simply active, as it is read after the answer. */
async function succeeded(deps: AttemptDeps, doc: DeliveryDoc, result: AttemptResult) {
  const endpoint = await endpointOf(deps, doc);
  const endpointActive = endpoint?.state === 'active';
  return { type: 'attempt.succeeded', status: result.status, endpointActive, detail: detailOf(doc, result) };
}

function failed({ config }: AttemptDeps, doc: DeliveryDoc, { reason, charged, ...seen }: Failure) {
  const jitterMs = jitter(config, doc);
  return { type: 'attempt.failed', reason, charged, jitterMs, detail: detailOf(doc, seen) };
}

/** The worker died again and again in the middle of this attempt: it counts, but not against the endpoint. */
const workerLost = { reason: 'worker_lost', charged: false, durationMs: 0 } as const;

/** What is known of an attempt when it is over. */
type Seen = Pick<AttemptResult, 'startedAt' | 'durationMs' | 'status' | 'excerpt'>;
type Failure = Seen & { charged: boolean; reason?: AttemptResult['reason'] | 'worker_lost' };

function detailOf(doc: DeliveryDoc, { startedAt, durationMs, status, excerpt }: Seen): AttemptDetail {
  return {
    ...{ number: doc.snapshot.context.tries, startedAt, durationMs },
    ...(status === undefined ? {} : { status }),
    ...(excerpt ? { excerpt } : {}),
  };
}

/** A little more than the published wait, never less: at most 5 % and 60 s. */
function jitter({ webhooks }: Config, doc: DeliveryDoc): number {
  const delayMs = webhooks.retryDelaysMs[doc.snapshot.context.attempt - 1] ?? 0;
  return Math.round(Math.random() * Math.min(delayMs * webhooks.retryJitter, limits.minuteMs));
}

async function endpointOf({ endpoints }: AttemptDeps, doc: DeliveryDoc): Promise<EndpointDoc | undefined> {
  return (await endpoints.read(doc.data.endpointId)) as EndpointDoc | undefined;
}
