import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from 'mongodb';
import type { AttemptDetail, deliveryCalls, deliveryWrites } from '../../machines/delivery.ts';
import type { endpointCalls, endpointWrites } from '../../machines/endpoint.ts';
import type { replayCalls } from '../../machines/replay.ts';
import type {
  Actors,
  CallAnswer,
  CallEffect,
  CallPostponed,
  CallView,
  WriteEffect,
} from '../actors/actors.ts';
import { raiseAlert } from '../alerts.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { EventDoc, Events } from '../events/events.ts';
import { limits } from '../limits.ts';
import { type Seats, seatsWhenActive, seatsWhenFailing } from './inflight.ts';
import type { AttemptResult, WebhookPoster } from './post.ts';
import { failedSince, type ReplayDoc, replayPageSize } from './replay.ts';
import { signatureHeaders } from './sign.ts';
import {
  type AttemptDoc,
  attemptsSpec,
  type DeliveryDoc,
  deliveriesSpec,
  type EndpointDoc,
  type Webhooks,
} from './webhooks.ts';

/** What the effects of deliveries and endpoints need. */
export interface WebhookNeeds {
  db: Db;
  /** Late bound: the corridor is built from these effects. */
  actors(): Actors;
  clock: Clock;
  config: Config;
  events: Events;
  poster: WebhookPoster;
  webhooks: Webhooks;
  seats: Seats;
}

/** First attempts to endpoints that are well; everything else waits its turn beside them. */
const firstLane = 'first';
const retryLane = 'retry';
/** Deaths of a worker in the middle of one attempt before it counts in the schedule. */
const lossesMax = 3;
/** Held deliveries that one call releases; the next call goes on where it ended. */
const releaseSize = 100;
/** So many at once and then a pause: at most 100 a second for each endpoint, or they would flood its lane. */
const releaseAtOnce = 10;
const releasePauseMs = 100;
/** Endpoints that one round of the sweep looks after. */
const strandedMax = 1_000;

export function deliveryWriteEffects(): Record<(typeof deliveryWrites)[number], WriteEffect> {
  return {
    recordAttempt: (step) => {
      const { _id, data } = step.doc as DeliveryDoc;
      const detail = step.event.detail as AttemptDetail;
      const reason = step.event.reason as string | undefined;
      const doc: AttemptDoc = {
        _id: `${_id}/${String(detail.number).padStart(4, '0')}`,
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

export function deliveryCallEffects(needs: WebhookNeeds): Record<(typeof deliveryCalls)[number], CallEffect> {
  return {
    postWebhook: {
      concurrency: 100,
      patienceMs: 20_000,
      lanes: [
        { name: firstLane, concurrency: 100 },
        { name: retryLane, concurrency: 40 },
      ],
      // A delivery that was just born; one that was held comes back beside the fresh ones, not before them.
      lane: (doc) => (doc.seq === 1 ? firstLane : retryLane),
      run: (view) => postWebhook(needs, view),
    },
    tellEndpoint: {
      concurrency: 20,
      patienceMs: 15_000,
      run: async ({ doc, call }) => {
        const { outcome, charged, at } = call.params as { outcome: string; charged: boolean; at: number };
        await needs
          .actors()
          .send(
            { machine: 'endpoint', id: (doc as DeliveryDoc).data.endpointId },
            { type: `attempt.${outcome}`, at, ...(outcome === 'failed' ? { charged } : {}) },
            { stepId: call.id, cause: { kind: 'call', id: call.id } },
          );
        return { event: { type: 'endpoint.told' } };
      },
    },
  };
}

export function endpointWriteEffects(): Record<(typeof endpointWrites)[number], WriteEffect> {
  return {
    raiseAlert: (step, params) => [
      raiseAlert({
        kind: String(params.kind),
        at: step.at,
        about: step.doc._id,
        merchantId: step.doc.merchantId,
        mode: step.doc.mode,
      }),
    ],
  };
}

export function endpointCallEffects(needs: WebhookNeeds): Record<(typeof endpointCalls)[number], CallEffect> {
  return {
    probeDelivery: { concurrency: 5, patienceMs: 30_000, run: (view) => probeDelivery(needs, view) },
    releaseHeld: { concurrency: 10, patienceMs: 60_000, run: (view) => releaseHeld(needs, view) },
  };
}

/**
 * One attempt. The worker reads the endpoint first: a disabled one holds, a deleted one cancels, and one that
 * fails has a lane and a single seat of its own, so that it does not stand in its neighbours' way.
 */
async function postWebhook(needs: WebhookNeeds, view: CallView): Promise<CallAnswer | CallPostponed> {
  const doc = view.doc as DeliveryDoc;
  const { attempt, tries, cameFrom } = doc.snapshot.context;
  const [endpoint, event] = await Promise.all([
    readEndpoint(needs, doc),
    needs.events.find(doc.data.eventId),
  ]);
  if (!endpoint || endpoint.state === 'deleted' || !doc.state.startsWith('pending')) {
    return { event: { type: 'attempt.canceled' } };
  }
  const isProbe =
    doc.state === 'pending.extra' && cameFrom !== 'delivered' && endpoint.state !== 'disabled.operator';
  if (endpoint.state.startsWith('disabled') && !isProbe) return { event: { type: 'attempt.withheld' } };
  if (view.earlierStarts >= lossesMax) return { event: lost(needs, tries, attempt) };
  const isActive = endpoint.state === 'active';
  if (!isActive && view.lane === firstLane) return { postponeMs: 0, lane: retryLane };
  if (!event) throw new Error(`event ${doc.data.eventId} of ${doc._id} is not there`);
  const seats = isActive ? seatsWhenActive : seatsWhenFailing;
  const seat = await needs.seats.take(endpoint._id, view.call.id, seats);
  if ('stepBackMs' in seat) return { postponeMs: seat.stepBackMs };
  // The seat is for the receiver's part only: what we do with the answer holds up no other attempt.
  const result = await attemptOnce(needs, doc, endpoint, event).finally(() => seat.leave());
  return { event: await outcomeOf(needs, doc, result, tries, attempt) };
}

/** The same bytes as ever, a fresh time and signature. */
async function attemptOnce(
  needs: WebhookNeeds,
  doc: DeliveryDoc,
  endpoint: EndpointDoc,
  event: EventDoc,
): Promise<AttemptResult> {
  const body = Buffer.from(event.body);
  const secrets = needs.webhooks.signingSecrets(endpoint);
  const signature = signatureHeaders({ eventId: event._id, body, secrets, atMs: needs.clock.now() });
  return needs.poster.post({
    url: endpoint.data.url,
    mode: doc.mode,
    endpointKey: endpoint._id,
    body,
    headers: { ...signature, 'Webhook-Attempt': String(doc.snapshot.context.tries) },
  });
}

/** The answer as an event. Of a success the endpoint hears only while it is not simply active. */
async function outcomeOf(
  needs: WebhookNeeds,
  doc: DeliveryDoc,
  result: AttemptResult,
  tries: number,
  attempt: number,
) {
  const detail: AttemptDetail = {
    number: tries,
    startedAt: result.startedAt,
    durationMs: result.durationMs,
    ...(result.status === undefined ? {} : { status: result.status }),
    ...(result.excerpt ? { excerpt: result.excerpt } : {}),
  };
  if (result.ok) {
    const endpoint = await readEndpoint(needs, doc);
    return {
      type: 'attempt.succeeded',
      status: result.status,
      endpointActive: endpoint?.state === 'active',
      detail,
    };
  }
  const { reason, charged } = result;
  return { type: 'attempt.failed', reason, charged, jitterMs: jitter(needs.config, attempt), detail };
}

/** The worker died again and again in the middle of this attempt: it counts, but not against the endpoint. */
function lost(needs: WebhookNeeds, tries: number, attempt: number) {
  const detail: AttemptDetail = { number: tries, startedAt: needs.clock.now(), durationMs: 0 };
  return {
    type: 'attempt.failed',
    reason: 'worker_lost',
    charged: false,
    jitterMs: jitter(needs.config, attempt),
    detail,
  };
}

/** A little more than the published wait, never less: at most 5 % and 60 s. */
function jitter({ webhooks }: Config, attempt: number): number {
  const delayMs = webhooks.retryDelaysMs[attempt - 1] ?? 0;
  return Math.round(Math.random() * Math.min(delayMs * webhooks.retryJitter, limits.minuteMs));
}

async function readEndpoint(needs: WebhookNeeds, doc: DeliveryDoc): Promise<EndpointDoc | undefined> {
  return (await needs.actors().read({ machine: 'endpoint', id: doc.data.endpointId })) as
    | EndpointDoc
    | undefined;
}

/** Has one real delivery tried although the endpoint is disabled (or about to be). */
async function probeDelivery(needs: WebhookNeeds, { doc, call, at }: CallView): Promise<CallAnswer> {
  const oldestHeld = call.params.which === 'oldestHeld';
  const found = await needs.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ 'data.endpointId': doc._id, state: oldestHeld ? 'held' : 'failed' })
    .sort({ _id: oldestHeld ? 1 : -1 })
    .limit(1)
    .next();
  if (!found) return { event: { type: 'probe.none' } };
  await needs
    .actors()
    .send(
      { machine: 'delivery', id: found._id },
      { type: 'delivery.probed', at },
      { stepId: call.id, cause: { kind: 'call', id: call.id } },
    );
  return { event: { type: 'probe.started' } };
}

/** Releases held deliveries, oldest first, a page at a time while the endpoint stays active. */
async function releaseHeld(needs: WebhookNeeds, { doc, call }: CallView): Promise<CallAnswer> {
  const endpoint = await needs.actors().read({ machine: 'endpoint', id: doc._id });
  if (!endpoint || !isOpen(endpoint.state)) return { event: { type: 'release.done' } };
  const released = await releasePage(needs, doc._id, call.id);
  return { event: { type: released === releaseSize ? 'release.more' : 'release.done' } };
}

function isOpen(state: string): boolean {
  return state === 'active' || state.startsWith('failing');
}

async function releasePage(needs: WebhookNeeds, endpointId: string, cause: string): Promise<number> {
  const held = await needs.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ 'data.endpointId': endpointId, state: 'held' }, { projection: { _id: 1 } })
    .sort({ _id: 1 })
    .limit(releaseSize)
    .toArray();
  const release = ({ _id }: { _id: string }) =>
    needs
      .actors()
      .send(
        { machine: 'delivery', id: _id },
        { type: 'delivery.released', at: needs.clock.now() },
        { stepId: `${cause}.${_id}`, cause: { kind: 'call', id: cause } },
      );
  for (let from = 0; from < held.length; from += releaseAtOnce) {
    await Promise.all(held.slice(from, from + releaseAtOnce).map(release));
    await sleep(releasePauseMs);
  }
  return held.length;
}

/**
 * The sweep's part: deliveries that are held although their endpoint is open (it was enabled in the very moment
 * they were being held) are released too.
 */
export async function releaseStranded(needs: WebhookNeeds): Promise<void> {
  const deliveries = needs.db.collection<DeliveryDoc>(deliveriesSpec.name);
  let last = '';
  for (let looked = 0; looked < strandedMax; looked += 1) {
    // From one endpoint with held deliveries to the next, however many each of them has.
    const next = await deliveries
      .find({ 'data.endpointId': { $gt: last }, state: 'held' })
      .project<{ data: { endpointId: string } }>({ 'data.endpointId': 1, _id: 0 })
      .sort({ 'data.endpointId': 1 })
      .limit(1)
      .next();
    if (!next) return;
    last = next.data.endpointId;
    const endpoint = await needs.actors().read({ machine: 'endpoint', id: last });
    if (endpoint && isOpen(endpoint.state)) await releasePage(needs, last, `sweep.${needs.clock.now()}`);
  }
}

export function replayCallEffects(needs: WebhookNeeds): Record<(typeof replayCalls)[number], CallEffect> {
  return {
    replayPage: { concurrency: 2, patienceMs: 60_000, run: (view) => replayPage(needs, view) },
  };
}

async function replayPage(needs: WebhookNeeds, { doc, call }: CallView): Promise<CallAnswer> {
  const { data, snapshot } = doc as ReplayDoc;
  const { cursor } = snapshot.context;
  const page = await needs.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ ...failedSince(data.endpointId, data.since), ...(cursor ? { _id: { $gt: cursor } } : {}) })
    .project<{ _id: string }>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(replayPageSize)
    .toArray();
  for (const { _id } of page) {
    await needs
      .actors()
      .send(
        { machine: 'delivery', id: _id },
        { type: 'delivery.recovered', at: needs.clock.now() },
        { stepId: `${call.id}.${_id}`, cause: { kind: 'operator', id: data.by } },
      );
  }
  const last = page.at(-1)?._id ?? null;
  return {
    event: {
      type: 'page.replayed',
      cursor: last,
      replayed: page.length,
      hasMore: page.length === replayPageSize,
    },
  };
}
