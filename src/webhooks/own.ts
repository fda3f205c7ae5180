import type { ActorDoc, Actors, Cause, Clock, SendOptions, Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { newId } from '../ids.ts';
import { listPlan } from '../listPlan.ts';
import { memoryOf } from '../memory.ts';
import type { Merchants } from '../merchants/merchants.ts';
import { Refused } from '../refused.ts';
import { isOwn, type Own, ownOf, surelyOwn, type Whose } from '../whose.ts';
import {
  type AttemptDoc,
  attemptId,
  attemptsSpec,
  type DeliveryDoc,
  type DeliveryStatus,
  deliveriesSpec,
  type EndpointDoc,
  endpointsOfMerchant,
  endpointsSpec,
  notDeleted,
  statesOfDeliveries,
} from './documents.ts';
import {
  type EndpointMaker,
  type EndpointSettings,
  type NamedSettings,
  register,
  rotation,
  settingsChange,
  type TestEvent,
  testOf,
} from './endpoints.ts';

/** Whose request it is, by which key. */
export interface Asking extends Whose {
  readonly keyId: string;
  readonly requestId: string;
}

/** A delivery with its latest attempts, the oldest first. */
export interface AttemptedDelivery {
  delivery: Own<DeliveryDoc>;
  attempts: AttemptDoc[];
}

export interface DeliveryQuery {
  limit: number;
  startingAfter?: string | undefined;
  status?: DeliveryStatus | undefined;
  eventId?: string | undefined;
}

/** Of each delivery so many are shown: all of the schedule, and some sent by hand. */
const attemptsShown = 10;

interface OwnEndpointsOptions {
  db: Db;
  actors: Actors;
  clock: Clock;
  merchants: Pick<Merchants, 'find'>;
  webhooks: EndpointMaker;
  /** The sample in a test event. */
  sample: TestEvent['sample'];
}

/**
 * Endpoints in the hands of their merchant: the same charts and the same limits as in an operator's, by events of the
 * merchant's own. Undefined stands for an endpoint that is not theirs, of the other mode or not there.
 */
export class OwnEndpoints {
  readonly #options: OwnEndpointsOptions;

  constructor(options: OwnEndpointsOptions) {
    this.#options = options;
  }

  /** Newest first; what was deleted is not there. */
  async list(whose: Whose, page: { limit: number; startingAfter?: string | undefined }) {
    const { startingAfter, limit } = page;
    const found = await ownOf(this.#stored, whose)
      .find(
        { ...notDeleted, ...(startingAfter === undefined ? {} : { _id: { $lt: startingAfter } }) },
        { hint: endpointsOfMerchant },
      )
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
    const endpoints = await this.#options.actors.shown('endpoint', found.slice(0, limit));
    return { endpoints, hasMore: found.length > limit };
  }

  /** What was deleted is not there. */
  async find(whose: Whose, id: string): Promise<Own<EndpointDoc> | undefined> {
    const endpoint = await this.#read(whose, id);
    return endpoint?.state === 'deleted' ? undefined : endpoint;
  }

  /** `record` is given the endpoint as it will be, and its secret. @throws Refused when there are too many already */
  async create(
    asking: Asking,
    settings: EndpointSettings,
    record: (endpoint: Own<EndpointDoc>, secret: string) => Write,
  ): Promise<void> {
    const { actors, webhooks } = this.#options;
    const { merchantId, mode, keyId: by } = asking;
    const { actor, secret } = webhooks.newEndpoint({ ...settings, merchantId, mode, by });
    await register(this.#options, actor, (revision) =>
      actors.create(actor, {
        ...stepOf(asking, actor.input.at),
        writes: (doc) => [revision, record(surelyOwn(asking, doc), secret)],
      }),
    );
  }

  /** Changes what is set. Where nothing is named, nothing is done. */
  async update(asking: Asking, id: string, named: NamedSettings): Promise<Own<EndpointDoc> | undefined> {
    const endpoint = await this.find(asking, id);
    const change = settingsChange(named);
    if (!endpoint || Object.keys(change).length === 0) return endpoint;
    return this.#send(asking, id, 'updated', { data: () => change });
  }

  /** Deleting what is deleted is no fault: whoever repeats a request that broke off is told that it is done. */
  async remove(asking: Asking, id: string): Promise<Own<EndpointDoc> | undefined> {
    const endpoint = await this.#read(asking, id);
    if (!endpoint || endpoint.state === 'deleted') return endpoint;
    return this.#send(asking, id, 'deleted');
  }

  /** A new secret; the others sign for as long as the overlap says. `record` is given the endpoint and the new one. */
  async rotateSecret(
    asking: Asking,
    id: string,
    overlapSeconds: number | undefined,
    record: (endpoint: Own<EndpointDoc>, secret: string) => Write,
  ): Promise<boolean> {
    if (!(await this.find(asking, id))) return false;
    const { secret, change } = rotation(this.#options.webhooks, id, overlapSeconds);
    const writes = (doc: ActorDoc) => [record(surelyOwn(asking, doc), secret)];
    await this.#send(asking, id, 'updated', { data: change, writes });
    return true;
  }

  /**
   * Enables what was disabled because it failed; enabling what is enabled is no fault.
   * @throws Refused where an operator disabled it
   */
  async enable(asking: Asking, id: string, record: (endpoint: Own<EndpointDoc>) => Write): Promise<boolean> {
    if (!(await this.find(asking, id))) return false;
    const writes = (doc: ActorDoc) => [record(surelyOwn(asking, doc))];
    const enabled = await this.#send(asking, id, 'enabled', { writes }, async (doc) => {
      if (doc.state.startsWith('disabled'))
        throw new Refused('The operator disabled this endpoint; only they can enable it again.');
      await this.#options.actors.commit([record(doc)]);
    });
    return enabled !== undefined;
  }

  /** Sends a test event to it alone. */
  async test(
    asking: Asking,
    id: string,
    shown: TestEvent['shown'],
    record: (delivery: Own<DeliveryDoc>) => Write,
  ): Promise<boolean> {
    const { actors, clock, webhooks, sample } = this.#options;
    const endpoint = await this.find(asking, id);
    if (!endpoint) return false;
    const atMs = clock.now();
    const { delivery, event } = testOf(webhooks, endpoint, { atMs, shown, sample });
    const writes = (doc: ActorDoc) => [event, record(surelyOwn(asking, doc))];
    await actors.create(delivery, { ...stepOf(asking, atMs), writes });
    return true;
  }

  /** What was and is to be sent to an endpoint, newest first. */
  async deliveries(
    whose: Whose,
    endpointId: string,
    query: DeliveryQuery,
  ): Promise<{ deliveries: AttemptedDelivery[]; hasMore: boolean } | undefined> {
    if (!(await this.find(whose, endpointId))) return undefined;
    return this.#deliveries(whose, { ...query, endpointId });
  }

  /** The same to all of a merchant's endpoints, deleted ones too. */
  allDeliveries(whose: Whose, query: DeliveryQuery) {
    return this.#deliveries(whose, query);
  }

  async #deliveries(
    whose: Whose,
    query: DeliveryQuery & { endpointId?: string },
  ): Promise<{ deliveries: AttemptedDelivery[]; hasMore: boolean }> {
    const { db, actors } = this.#options;
    const { limit, startingAfter, status, ...asked } = query;
    const states = status && statesOfDeliveries(status);
    const { match, hint, rest } = await listPlan(
      { ...whoseOf(whose), ...asked, states },
      { db, definition: actors.definition('delivery') },
    );
    const below = startingAfter === undefined ? {} : { _id: { $lt: startingAfter } };
    const found = await ownOf(db.collection<DeliveryDoc>(deliveriesSpec.name), whose)
      .find({ ...match, ...rest, ...below }, { hint })
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
    const shown = await actors.shown('delivery', found.slice(0, limit));
    return { deliveries: await this.#attempted(shown), hasMore: found.length > limit };
  }

  /** Attempts are numbered, and a delivery knows how many were made: their ids follow from that. */
  async #attempted(deliveries: readonly Own<DeliveryDoc>[]): Promise<AttemptedDelivery[]> {
    const ids = deliveries.flatMap((delivery) => {
      const { tries = 0 } = memoryOf(delivery);
      const first = Math.max(1, tries - attemptsShown + 1);
      return Array.from({ length: tries - first + 1 }, (_, n) => attemptId(delivery._id, first + n));
    });
    const attempts = await this.#options.db
      .collection<AttemptDoc>(attemptsSpec.name)
      .find({ _id: { $in: ids } })
      .sort({ number: 1 })
      .toArray();
    return deliveries.map((delivery) => ({
      delivery,
      attempts: attempts.filter(({ deliveryId }) => deliveryId === delivery._id),
    }));
  }

  async #read(whose: Whose, id: string): Promise<Own<EndpointDoc> | undefined> {
    const doc = (await this.#options.actors.read({ machine: 'endpoint', id })) as EndpointDoc | undefined;
    return doc && isOwn(whose, doc) ? doc : undefined;
  }

  /** A merchant's event. `ignored`: what to do where the chart does not take it. */
  async #send(
    asking: Asking,
    id: string,
    what: 'updated' | 'enabled' | 'deleted',
    more: Pick<SendOptions, 'data' | 'writes'> = {},
    ignored?: (endpoint: Own<EndpointDoc>) => Promise<void>,
  ): Promise<Own<EndpointDoc>> {
    const { actors, clock } = this.#options;
    const at = clock.now();
    const event = { type: `merchant.${what}`, at, key: asking.keyId };
    const result = await actors.send({ machine: 'endpoint', id }, event, { ...stepOf(asking, at), ...more });
    const endpoint = surelyOwn<EndpointDoc>(asking, result.doc);
    if (result.outcome !== 'stepped') await ignored?.(endpoint);
    return endpoint;
  }

  get #stored() {
    return this.#options.db.collection<EndpointDoc>(endpointsSpec.name);
  }
}

/** Of whatever holds more than that. */
function whoseOf({ merchantId, mode }: Whose): Whose {
  return { merchantId, mode };
}

/** A request's own id may come from the client; a step's may not. */
function stepOf({ requestId }: Asking, at: number): { stepId: string; cause: Cause } {
  return { stepId: newId('req', at), cause: { kind: 'merchant', id: requestId } };
}
