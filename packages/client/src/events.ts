import { List } from './list.ts';
import type { CallOptions, CreateOptions, Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';

/** An event as the service answers it. */
export type AnyEvent = Operations['getEvent']['answer'];

export type Resend = Operations['resendEvent']['answer'];

export type EventFilters = NonNullable<Operations['listEvents']['query']>;

export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** In doubt about a webhook: what was really sent. */
  retrieve(id: string, options?: CallOptions): Promise<AnyEvent> {
    return this.#transport.call('getEvent', { id }, options);
  }

  /** One more attempt to the named endpoint, or to each that wants events of this type. */
  resend(id: string, params: Operations['resendEvent']['body'], options: CreateOptions): Promise<Resend> {
    return this.#transport.call('resendEvent', { id, body: params }, options);
  }

  /** With `wait` (0 to 10 seconds) and nothing to give, the answer waits for an event. */
  list(filters: EventFilters = {}, options?: CallOptions): List<AnyEvent, EventFilters> {
    return new List((query) => this.#transport.call('listEvents', { query }, options), filters);
  }
}
