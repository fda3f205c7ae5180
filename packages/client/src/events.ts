import { List } from './list.ts';
import { type AnyEvent, type EventFilters, type TailOptions, tail } from './tail.ts';
import type { CallOptions, CreateOptions, Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';

export type Resend = Operations['resendEvent']['answer'];

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

  /**
   * Events as they happen, without an endpoint: for programs behind a firewall, and laptops. Goes on for ever, over
   * broken lines; begins when it is iterated. After a restart give the last id as `after`: nothing is lost then, and
   * what happened in the two minutes before it can come again.
   *
   * @throws {KusanyaError} for a refusal, such as a revoked key.
   */
  tail(options: TailOptions = {}): AsyncGenerator<AnyEvent, void, undefined> {
    return tail(this, this.#transport.waitSeconds, options);
  }
}
