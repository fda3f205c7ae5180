import type { CreateOptions, Transport } from './transport.ts';
import type { Balance, Collection, SetTestOutcome } from './written/schemas.ts';

/** What takes a customer, or a midnight, at once: for tests, with a test key. A live one is refused and changes nothing. */
export class TestHelpers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Decides how a collection ends, and ends it within milliseconds. Answers it as it was just before. */
  outcome(id: string, params: SetTestOutcome, options: CreateOptions): Promise<Collection> {
    return this.#transport.call('setTestOutcome', { id, body: params }, options);
  }

  /** Makes all that is pending available now. Answers the balance after it. */
  settle(options: CreateOptions): Promise<Balance> {
    return this.#transport.call('settleTestMoney', { body: {} }, options);
  }
}
