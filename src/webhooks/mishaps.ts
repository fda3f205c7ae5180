import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { EventDoc, Events } from '../events/events.ts';
import { limits } from '../limits.ts';
import { type DeliveryDoc, deliveriesSpec } from './documents.ts';

/** What befalls the webhooks of some test numbers on purpose (CONTRACT 10.2): their first attempts, and no later ones. */
export interface MishapDeps {
  db: Db;
  clock: Clock;
  events: Pick<Events, 'idsOf'>;
}

/** For so long an event waits to be overtaken: then nothing will. */
const patienceMs = limits.minuteMs;

/** An expiry that waits for what comes after it: for its event, and then until that was sent once. */
export async function waitsToBeOvertaken(
  { db, clock, events }: MishapDeps,
  { data: { mishap, endpointId }, state }: DeliveryDoc,
  { _id, type, collectionId, createdAt }: EventDoc,
): Promise<boolean> {
  if (mishap !== 'overtaken' || state !== 'pending.scheduled' || type === 'collection.succeeded')
    return false;
  if (clock.now() > createdAt.getTime() + patienceMs) return false;
  const later = (await events.idsOf(collectionId)).filter((id) => id > _id);
  if (later.length === 0) return true;
  const unsent = {
    'data.eventId': { $in: later },
    'data.endpointId': endpointId,
    state: 'pending.scheduled',
  };
  return (await db.collection(deliveriesSpec.name).findOne(unsent, { projection: { _id: 1 } })) !== null;
}

/** A first attempt that comes twice: the same bytes at the same moment. The delivery knows of one of them. */
export async function postedAs<Result>(
  { data, snapshot }: DeliveryDoc,
  post: () => Promise<Result>,
): Promise<Result> {
  const isDoubled = data.mishap === 'doubled' && snapshot.context.tries === 1;
  const [result] = await Promise.all([post(), ...(isDoubled ? [post()] : [])]);
  return result;
}
