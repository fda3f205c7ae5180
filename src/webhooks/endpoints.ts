import type { ActorDoc, NewActor, Write } from '@kusanya/durable-actors';
import type { Config } from '../config.ts';
import { type EventType, type eventTypes, recordEvent, testEventType } from '../events/events.ts';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { type Merchants, reviseMerchant } from '../merchants/merchants.ts';
import type { Mode } from '../mode.ts';
import { overtaken } from '../overtaken.ts';
import { Refused } from '../refused.ts';
import type { EndpointDoc, NewDelivery, SealedSecret } from './documents.ts';
import { checkUrl, hostOf, resolvePublic } from './gate.ts';

/** What operators and merchants do with endpoints alike. Each commits it in their own name. */

/** What can be set of an endpoint. */
export interface EndpointSettings {
  url: string;
  description?: string | undefined;
  /** Absent: every type. */
  eventTypes?: EventType[] | undefined;
}

/** What of the room it takes to make and to change endpoints. */
export interface EndpointMaker {
  newEndpoint(of: EndpointSettings & { merchantId: string; mode: Mode; by: string }): {
    actor: NewActor;
    secret: string;
  };
  newSecret(endpointId: string): { secret: string; stored: SealedSecret };
  rotated(secrets: readonly SealedSecret[], added: SealedSecret, overlapMs: number): SealedSecret[];
  newDelivery(of: NewDelivery): NewActor;
  count(merchantId: string, mode: Mode): Promise<number>;
}

/** Why webhooks may not go to an address, for a person who can change it; undefined: they may (CONTRACT 13.1). */
export async function addressFault(
  url: string,
  mode: Mode,
  config: Pick<Config, 'webhooks'>,
): Promise<string | undefined> {
  const { allowCidrs, dnsServers } = config.webhooks;
  const checked = checkUrl(url, { mode, allowCidrs });
  if (!checked.ok) return checked.message;
  const resolved = await resolvePublic(hostOf(checked.url), { allowCidrs, dnsServers });
  if (resolved.ok) return undefined;
  return resolved.reason === 'blocked_address'
    ? 'url leads to a private or internal address. Endpoints must be publicly reachable.'
    : 'The host of url cannot be resolved. Check its spelling and its DNS records.';
}

/** The last registration of each merchant that is under way here: they take turns rather than race. */
const turns = new Map<string, Promise<unknown>>();

function inTurn<T>(merchantId: string, work: () => Promise<T>): Promise<T> {
  const mine = (turns.get(merchantId) ?? Promise.resolve()).then(work);
  const ended = mine
    .catch(() => undefined)
    .then(() => {
      if (turns.get(merchantId) === ended) turns.delete(merchantId);
    });
  turns.set(merchantId, ended);
  return mine;
}

/**
 * Counts, and makes the endpoint only if nobody has made another one since: `create` commits the write that it is given,
 * and the merchant's revision tells.
 * @throws Refused when there are too many already
 */
export function register(
  { merchants, webhooks }: { merchants: Pick<Merchants, 'find'>; webhooks: Pick<EndpointMaker, 'count'> },
  { merchantId, mode }: NewActor,
  create: (revision: Write) => Promise<ActorDoc>,
): Promise<EndpointDoc> {
  const attempt = async () => {
    const merchant = await merchants.find(merchantId);
    if (!merchant) throw new Refused('This merchant is not there any more.');
    if ((await webhooks.count(merchantId, mode)) >= limits.webhookEndpointsMax) {
      throw new Refused(
        `A merchant has at most ${limits.webhookEndpointsMax} endpoints in a mode; delete one first.`,
      );
    }
    return (await create(reviseMerchant(merchant))) as EndpointDoc;
  };
  return inTurn(merchantId, () => overtaken(attempt, 'this merchant'));
}

/** Changes of settings by the names of the interface; null takes one away. */
export interface NamedSettings {
  url?: string | undefined;
  event_types?: EventType[] | null | undefined;
  description?: string | null | undefined;
}

/** The same as a change of an endpoint's data. */
export function settingsChange(named: NamedSettings): Record<string, unknown> {
  return {
    ...(named.url === undefined ? {} : { url: named.url }),
    ...(named.event_types === undefined ? {} : { eventTypes: named.event_types ?? undefined }),
    ...(named.description === undefined ? {} : { description: named.description ?? undefined }),
  };
}

/** A new signing secret; until the overlap ends both sign, so a receiver can change over without a gap. */
export function rotation(
  webhooks: Pick<EndpointMaker, 'newSecret' | 'rotated'>,
  endpointId: string,
  overlapSeconds: number | undefined,
): { secret: string; overlapMs: number; change: (now: Record<string, unknown>) => Record<string, unknown> } {
  const { secret, stored } = webhooks.newSecret(endpointId);
  const overlapMs = overlapSeconds === undefined ? limits.secretOverlapMs : overlapSeconds * limits.secondMs;
  const change = (now: Record<string, unknown>) => ({
    secrets: webhooks.rotated(now.secrets as SealedSecret[], stored, overlapMs),
  });
  return { secret, overlapMs, change };
}

type ShownEvent = (typeof eventTypes)[number];

/** What a test event is made of. */
export interface TestEvent {
  atMs: number;
  /** Which event the sample in it shows. */
  shown?: ShownEvent | undefined;
  /** A collection as that event would show it. It never happened. */
  sample: (type: ShownEvent, collectionId: string, atMs: number) => object;
}

/** A test event to this one endpoint, signed and retried like any other, of a type that tells of no payment. */
export function testOf(
  webhooks: Pick<EndpointMaker, 'newDelivery'>,
  { _id: endpointId, merchantId, mode }: EndpointDoc,
  { atMs, shown = 'collection.succeeded', sample }: TestEvent,
): { delivery: NewActor; event: Write } {
  const type = testEventType;
  const id = newId('evt', atMs);
  const data = {
    ...{ id: endpointId, object: 'endpoint', message: 'A test event. No payment stands behind it.' },
    sample: { type: shown, data: sample(shown, newId('col', atMs), atMs) },
  };
  const collectionId = `sample.${endpointId}`;
  const event = recordEvent({ id, type, collectionId, merchantId, mode, atMs, data });
  const delivery = webhooks.newDelivery({ eventId: id, endpointId, type, merchantId, mode, atMs });
  return { delivery, event };
}
