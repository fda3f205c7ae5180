import {
  type Actors,
  type Cause,
  type Clock,
  type NewActor,
  StepRaced,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { EventDoc, Events } from '../events/events.ts';
import { derivedId, idTime } from '../ids.ts';
import { limits } from '../limits.ts';
import { isOwn, type Own, type Whose } from '../whose.ts';
import { type DeliveryDoc, deliveriesSpec, type EndpointDoc, type NewDelivery } from './documents.ts';

interface ResendDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  events: Pick<Events, 'find'>;
  webhooks: { list(merchantId: string): Promise<EndpointDoc[]>; newDelivery(of: NewDelivery): NewActor };
}

/** What a merchant asks for. */
export interface Resend extends Whose {
  eventId: string;
  /** Absent: to every endpoint that wants events of this type. */
  endpointId?: string | undefined;
  idempotencyKey: string;
  requestId: string;
}

/** Which delivery carries the event to which endpoint. */
export interface Resent {
  endpointId: string;
  deliveryId: string;
}

/**
 * Sends an event of a merchant once more: its deliveries make an attempt outside of their schedule, and an endpoint that
 * is younger than the event gets a delivery. One that is under way, or held for a disabled endpoint, is left to go on.
 * What was done is recorded last; each step has an id that follows from the Idempotency-Key, so whoever repeats a request
 * that broke off in the middle does nothing twice. Undefined: there is no such event or endpoint.
 * @throws StepReplayed: another request with this key was answered
 */
export async function resendEvent(
  deps: ResendDeps,
  asked: Resend,
  record: (resent: readonly Resent[]) => Write,
): Promise<Resent[] | undefined> {
  const { merchantId, eventId, endpointId } = asked;
  const event = await deps.events.find(eventId);
  if (!event || !isOwn(asked, event)) return undefined;
  const endpoints = (await deps.webhooks.list(merchantId)).filter((each) => isOwn(asked, each));
  const meant = endpoints.filter(({ _id, data: { eventTypes } }) =>
    endpointId === undefined ? wants(eventTypes, event.type) : _id === endpointId,
  );
  if (endpointId !== undefined && meant.length === 0) return undefined;
  const deliveries = await deps.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ 'data.eventId': { $eq: eventId } })
    .toArray();
  const resent = await Promise.all(
    meant.map(async ({ _id }) => {
      const known = deliveries.find(({ data }) => data.endpointId === _id);
      return { endpointId: _id, deliveryId: await sendAgain(deps, asked, event, _id, known?._id) };
    }),
  );
  await deps.actors.commit([record(resent)]);
  return resent;
}

function wants(eventTypes: readonly string[] | undefined, type: string): boolean {
  return eventTypes === undefined ? type.startsWith('collection.') : eventTypes.includes(type);
}

async function sendAgain(
  { actors, clock, webhooks }: ResendDeps,
  { merchantId, mode, eventId, idempotencyKey, requestId }: Resend,
  { type }: Own<EventDoc>,
  endpointId: string,
  known: string | undefined,
): Promise<string> {
  const at = clock.now();
  // A key is kept for a day, and may name another operation after that.
  const day = Math.floor(at / limits.idempotencyTtlMs);
  const stepId = derivedId(
    'req',
    0,
    `${merchantId}.${mode}.${eventId}.${endpointId}.${idempotencyKey}.${day}`,
  );
  const cause: Cause = { kind: 'merchant', id: requestId };
  // One delivery for an event and an endpoint, whoever asks first. It stands where the event stands.
  const id = known ?? derivedId('dlv', idTime(eventId), `${eventId}.${endpointId}`);
  if (known !== undefined) {
    const again = { type: 'merchant.resent', at };
    await actors.send({ machine: 'delivery', id }, again, { stepId, cause, again: true });
    return id;
  }
  const delivery = { ...webhooks.newDelivery({ eventId, endpointId, type, merchantId, mode, atMs: at }), id };
  await actors.create(delivery, { stepId, cause }).catch((error) => {
    if (!(error instanceof StepRaced)) throw error;
  });
  return id;
}
