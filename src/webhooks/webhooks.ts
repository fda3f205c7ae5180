import { BatchReader, type Clock, type NewActor } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Config } from '../config.ts';
import { type ComingEvent, type EventType, eventTypes } from '../events/events.ts';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mishap, Mode } from '../mode.ts';
import { seal, secretsKeyOf, unseal } from '../seal.ts';
import {
  type EndpointDoc,
  endpointsOfMerchant,
  endpointsSpec,
  type NewDelivery,
  notDeleted,
  type SealedSecret,
} from './documents.ts';
import type { EndpointSettings } from './endpoints.ts';
import { newSigningSecret } from './sign.ts';

export * from './documents.ts';
export { deliveryMigrations, endpointMigrations } from './migrations.ts';
export { type Asking, OwnEndpoints } from './own.ts';
export { WebhookPoster } from './post.ts';
export { replayPageDelayMs } from './replay.ts';
export { type Resend, type Resent, resendEvent } from './resend.ts';
export { Slots } from './slots.ts';

/** Telling merchants: endpoints, and the deliveries of events to them (CONTRACT 13). */

interface WebhooksOptions {
  db: Db;
  clock: Clock;
  config: Config;
}

/** What an endpoint gets that names no type. */
const named: readonly EventType[] = eventTypes;

/** Secrets that are kept open. */
const secretsMax = 5_000;

export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #key: Buffer;
  readonly #secrets = new Map<string, string>();
  readonly #byMerchant: BatchReader<EndpointDoc[]>;

  constructor(options: WebhooksOptions) {
    this.#options = options;
    this.#key = secretsKeyOf(options.config.secretsKey);
    this.#byMerchant = new BatchReader(async (owners) => {
      const found = await this.#endpoints
        .find(
          { merchantId: { $in: [...new Set(owners.map((owner) => owner.split('.')[0]!))] }, ...notDeleted },
          { hint: endpointsOfMerchant },
        )
        .toArray();
      const byOwner = new Map<string, EndpointDoc[]>();
      for (const endpoint of found) {
        const owner = `${endpoint.merchantId}.${endpoint.mode}`;
        byOwner.set(owner, [...(byOwner.get(owner) ?? []), endpoint]);
      }
      return byOwner;
    });
  }

  /** A new endpoint to be created, and its signing secret, which nobody can read again. */
  newEndpoint(input: EndpointSettings & { merchantId: string; mode: Mode; by: string }): {
    actor: NewActor;
    secret: string;
  } {
    const { clock, config } = this.#options;
    const at = clock.now();
    const id = newId('we', at);
    const { secret, stored } = this.newSecret(id);
    const { merchantId, mode, url, description, eventTypes, by } = input;
    const data: EndpointDoc['data'] = {
      url,
      ...(description === undefined ? {} : { description }),
      ...(eventTypes === undefined ? {} : { eventTypes }),
      secrets: [stored],
      createdBy: by,
      createdAt: new Date(at),
    };
    const { disableAfterMs, autoProbe } = config.webhooks;
    return {
      actor: { machine: 'endpoint', id, input: { at, disableAfterMs, autoProbe }, merchantId, mode, data },
      secret,
    };
  }

  newSecret(endpointId: string): { secret: string; stored: SealedSecret } {
    const secret = newSigningSecret();
    const sealed = seal(secret, this.#key, endpointId);
    return { secret, stored: { sealed, createdAt: new Date(this.#options.clock.now()) } };
  }

  /** The new secret in front; the others live on for the overlap at most, and what has ended goes. */
  rotated(secrets: readonly SealedSecret[], added: SealedSecret, overlapMs: number): SealedSecret[] {
    const now = this.#options.clock.now();
    const endsAt = now + overlapMs;
    const kept = secrets
      .map((secret) => ({
        ...secret,
        expiresAt: new Date(Math.min(endsAt, secret.expiresAt?.getTime() ?? endsAt)),
      }))
      .filter(({ expiresAt }) => expiresAt.getTime() > now);
    return [added, ...kept];
  }

  /** The secrets that sign now, newest first. */
  signingSecrets(endpoint: EndpointDoc): string[] {
    const now = this.#options.clock.now();
    return endpoint.data.secrets
      .filter(({ expiresAt }) => !expiresAt || expiresAt.getTime() > now)
      .map(({ sealed }) => this.#opened(sealed, endpoint._id));
  }

  /** A sealed secret never changes, and each attempt needs it. In memory it lies as open as the key that seals it. */
  #opened(sealed: string, endpointId: string): string {
    const id = `${endpointId} ${sealed}`;
    const known = this.#secrets.get(id);
    if (known !== undefined) return known;
    const opened = unseal(sealed, this.#key, endpointId);
    if (this.#secrets.size >= secretsMax) this.#secrets.clear();
    this.#secrets.set(id, opened);
    return opened;
  }

  /** One new delivery for each endpoint of the merchant and mode that wants this type of event. */
  async deliveriesOf(event: ComingEvent & { mishap?: Mishap | undefined }): Promise<NewActor[]> {
    const { id: eventId, ...others } = event;
    const { type, merchantId, mode } = event;
    const endpoints = (await this.#byMerchant.read(`${merchantId}.${mode}`)) ?? [];
    return endpoints
      .filter(({ data }) => (data.eventTypes ?? named).includes(type))
      .map((endpoint) => this.newDelivery({ ...others, eventId, endpointId: endpoint._id }));
  }

  newDelivery({ eventId, endpointId, type, merchantId, mode, atMs, mishap }: NewDelivery): NewActor {
    const delaysMs = [...this.#options.config.webhooks.retryDelaysMs];
    return {
      machine: 'delivery',
      id: newId('dlv', atMs),
      input: { at: atMs, delaysMs, holdMs: limits.webhookHeldForMs },
      merchantId,
      mode,
      data: { eventId, endpointId, type, ...(mishap && { mishap }) },
    };
  }

  /** How many endpoints a merchant has in a mode. */
  async count(merchantId: string, mode: Mode): Promise<number> {
    return this.#endpoints.countDocuments({ merchantId, mode, ...notDeleted }, { hint: endpointsOfMerchant });
  }

  /** The endpoints of a merchant in both modes, newest first. */
  list(merchantId: string): Promise<EndpointDoc[]> {
    return this.#endpoints
      .find({ merchantId: { $eq: merchantId }, ...notDeleted }, { hint: endpointsOfMerchant })
      .sort({ _id: -1 })
      .toArray();
  }

  get #endpoints() {
    return this.#options.db.collection<EndpointDoc>(endpointsSpec.name);
  }
}

/** `disabled.automatic.probing` → `disabled`. */
export function endpointStatus(state: string): string {
  return state.split('.', 1)[0]!;
}
