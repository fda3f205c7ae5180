import { request } from 'node:http';
import type { Network, Payment } from './network.ts';
import { callbackCode } from './openapi.ts';

interface BellsOptions {
  network: Network;
  /** Where callbacks go; undefined: none are sent. Loopback only. */
  url: string | undefined;
  until(atMs: number): Promise<boolean>;
}

/** Sends the callbacks of a payment's story. */
export class Bells {
  readonly #options: BellsOptions;

  /** @throws Error when the address is not on this machine: a rehearsal rings nobody else. */
  constructor(options: BellsOptions) {
    const host = options.url === undefined ? '127.0.0.1' : new URL(options.url).hostname;
    if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(host))
      throw new Error(`callbacks go to this machine only, not to ${host}`);
    this.#options = options;
  }

  ring(payment: Payment): void {
    const { bellsMs, forged } = payment.scenario;
    bellsMs.forEach((afterMs, index) => void this.#ringAt(payment, afterMs, forged?.[index]));
  }

  async #ringAt(payment: Payment, afterMs: number, claimed: string | undefined): Promise<void> {
    const { network, url, until } = this.#options;
    if (url === undefined || !(await until(payment.pushedAtMs + afterMs))) return;
    const seen = await network.see(payment);
    const code = claimed ?? callbackCode(seen);
    if (code === undefined) return;
    if (claimed === undefined && code === 'INS-0') await network.tell(payment, 'callback');
    await post(url, {
      input_OriginalConversationID: payment.conversationId,
      ...(code === 'INS-0' ? { input_TransactionID: payment.receipt } : {}),
      input_ResultCode: code,
      input_ResultDesc: claimed === undefined ? 'Request processed' : 'Claimed by somebody else',
      input_ThirdPartyConversationID: payment.reference,
    });
  }
}

/** Sent once; whether anybody hears it is not the network's concern. */
function post(url: string, body: object): Promise<void> {
  return new Promise((resolve) => {
    const sending = request(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      timeout: 10_000,
    });
    sending.on('response', (answer) => {
      answer.resume();
      answer.on('close', () => resolve());
    });
    sending.on('timeout', () => sending.destroy());
    sending.on('error', () => resolve());
    sending.end(JSON.stringify(body));
  });
}
