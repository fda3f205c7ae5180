import { List } from './list.ts';
import type { CallOptions, CreateOptions, Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';
import type {
  CreateWebhookEndpoint,
  DeletedWebhookEndpoint,
  Delivery,
  RotateWebhookSecret,
  TestWebhookEndpoint,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
  WebhookEndpointWithSecret,
} from './written/schemas.ts';

export type WebhookEndpointFilters = NonNullable<Operations['listWebhookEndpoints']['query']>;
export type DeliveryFilters = NonNullable<Operations['listWebhookDeliveries']['query']>;

/** Where webhooks go, and what became of them. In live mode the operator has to allow changes. */
export class WebhookEndpoints {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Store the `secret` of the answer: it is shown once. The same call with the same key shows it again for a day. */
  create(params: CreateWebhookEndpoint, options: CreateOptions): Promise<WebhookEndpointWithSecret> {
    return this.#transport.call('createWebhookEndpoint', { body: params }, options);
  }

  retrieve(id: string, options?: CallOptions): Promise<WebhookEndpoint> {
    return this.#transport.call('getWebhookEndpoint', { id }, options);
  }

  list(
    filters: WebhookEndpointFilters = {},
    options?: CallOptions,
  ): List<WebhookEndpoint, WebhookEndpointFilters> {
    return new List((query) => this.#transport.call('listWebhookEndpoints', { query }, options), filters);
  }

  /** Only the named fields change; null takes one away. */
  update(id: string, params: UpdateWebhookEndpoint, options?: CallOptions): Promise<WebhookEndpoint> {
    return this.#transport.call('updateWebhookEndpoint', { id, body: params }, options);
  }

  delete(id: string, options?: CallOptions): Promise<DeletedWebhookEndpoint> {
    return this.#transport.call('deleteWebhookEndpoint', { id }, options);
  }

  /** A new secret; until the overlap ends both sign, so give both to `webhooks.verify`. */
  rotateSecret(
    id: string,
    params: RotateWebhookSecret,
    options: CreateOptions,
  ): Promise<WebhookEndpointWithSecret> {
    return this.#transport.call('rotateWebhookSecret', { id, body: params }, options);
  }

  /** Sends an `endpoint.test`, which tells of no payment. */
  test(id: string, params: TestWebhookEndpoint, options: CreateOptions): Promise<Delivery> {
    return this.#transport.call('testWebhookEndpoint', { id, body: params }, options);
  }

  /** After three days of nothing but failure, once the fault is mended: what was held is sent. */
  enable(id: string, options: CreateOptions): Promise<WebhookEndpoint> {
    return this.#transport.call('enableWebhookEndpoint', { id, body: {} }, options);
  }

  /** What was and is to be sent to it, with the attempts and what they were answered. */
  deliveries(
    id: string,
    filters: DeliveryFilters = {},
    options?: CallOptions,
  ): List<Delivery, DeliveryFilters> {
    return new List(
      (query) => this.#transport.call('listWebhookDeliveries', { id, query }, options),
      filters,
    );
  }
}
