import type { CallOptions, Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';

/** An event as the service answers it. */
export type AnyEvent = Operations['getEvent']['answer'];

export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** In doubt about a webhook: what was really sent. */
  retrieve(id: string, options?: CallOptions): Promise<AnyEvent> {
    return this.#transport.call('getEvent', { id }, options);
  }
}
