import { request } from 'node:http';
import type { Network, Payment } from './network.ts';
import type { Reversed } from './openapi.ts';
import { callbackCode } from './replies.ts';

interface CallbacksOptions {
  network: Network;
  /** Where callbacks go; undefined: none are sent. Loopback only. */
  url: string | undefined;
  /** How long a reversal takes until its callback. */
  reversalMs: number;
  until(atMs: number): Promise<boolean>;
}

interface Callback {
  input_OriginalConversationID: string;
  input_TransactionID?: string;
  input_ResultCode: string;
  input_ResultDesc: string;
  input_ThirdPartyConversationID: string;
}

/** What became of the callbacks since the start. */
export interface Heard {
  sent: number;
  /** Answered as documented. */
  acknowledged: number;
  /** Not answered, or with another status than 2xx: the network does not come again. */
  unheard: number;
  /** Answered 2xx with something else than the documented acknowledgement, and what was wrong. */
  wrong: string[];
}

const wrongMax = 100;

/** Sends the callbacks of a payment's story, once each, and looks how they are acknowledged. */
export class Callbacks {
  readonly #options: CallbacksOptions;
  readonly heard: Heard = { sent: 0, acknowledged: 0, unheard: 0, wrong: [] };

  /** @throws Error when the address is not on this machine: a rehearsal calls nobody else. */
  constructor(options: CallbacksOptions) {
    const host = options.url === undefined ? '127.0.0.1' : new URL(options.url).hostname;
    if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(host))
      throw new Error(`callbacks go to this machine only, not to ${host}`);
    this.#options = options;
  }

  send(payment: Payment): void {
    const { callbacksMs, forged } = payment.scenario;
    callbacksMs.forEach((afterMs, index) => void this.#sendAt(payment, afterMs, forged?.[index]));
  }

  /** Asynchronous: a reversal's outcome comes under its own reference, not the payment's. */
  async sendReversal({ conversation, receipt, conversationId }: Reversed, madeAtMs: number): Promise<void> {
    const { until, reversalMs } = this.#options;
    if (!(await until(madeAtMs + reversalMs))) return;
    await this.#post({
      input_OriginalConversationID: conversationId,
      input_TransactionID: receipt,
      input_ResultCode: 'INS-0',
      input_ResultDesc: 'Request processed',
      input_ThirdPartyConversationID: conversation,
    });
  }

  async #sendAt(payment: Payment, afterMs: number, claimed: string | undefined): Promise<void> {
    const { network, url, until } = this.#options;
    if (url === undefined || !(await until(payment.pushedAtMs + afterMs))) return;
    const seen = await network.statusOf(payment);
    const code = claimed ?? callbackCode(seen);
    if (code === undefined) return;
    if (claimed === undefined && code === 'INS-0') await network.tell(payment, 'callback');
    await this.#post({
      input_OriginalConversationID: payment.conversationId,
      ...(code === 'INS-0' ? { input_TransactionID: payment.receipt } : {}),
      input_ResultCode: code,
      input_ResultDesc: claimed === undefined ? 'Request processed' : 'Claimed by somebody else',
      input_ThirdPartyConversationID: payment.reference,
    });
  }

  async #post(callback: Callback): Promise<void> {
    const { url } = this.#options;
    if (url === undefined) return;
    this.heard.sent += 1;
    const answer = await post(url, callback);
    if (!answer || answer.status < 200 || answer.status > 299) {
      this.heard.unheard += 1;
      return;
    }
    const fault = faultOf(callback, answer.body);
    if (fault === undefined) this.heard.acknowledged += 1;
    else if (this.heard.wrong.length < wrongMax)
      this.heard.wrong.push(`${callback.input_ThirdPartyConversationID}: ${fault}`);
  }
}

/** What is wrong with an acknowledgement, by the documented form; undefined: nothing. */
function faultOf(callback: Callback, body: string): string | undefined {
  let answer: Record<string, unknown>;
  try {
    answer = JSON.parse(body) as Record<string, unknown>;
  } catch {
    return 'no JSON';
  }
  const wanted: Record<string, string> = {
    output_OriginalConversationID: callback.input_OriginalConversationID,
    output_ResponseCode: '0',
    output_ThirdPartyConversationID: callback.input_ThirdPartyConversationID,
  };
  const wrong = Object.keys(wanted).find((field) => answer?.[field] !== wanted[field]);
  if (wrong) return `${wrong} is ${JSON.stringify(answer?.[wrong])}`;
  return typeof answer.output_ResponseDesc === 'string' ? undefined : 'output_ResponseDesc is missing';
}

/** Sent once; undefined when nobody answered. */
function post(url: string, body: object): Promise<{ status: number; body: string } | undefined> {
  return new Promise((resolve) => {
    const sending = request(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      timeout: 10_000,
    });
    sending.on('response', (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', () => resolve(undefined));
      answer.on('end', () => {
        resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') });
      });
    });
    sending.on('timeout', () => sending.destroy());
    sending.on('error', () => resolve(undefined));
    sending.end(JSON.stringify(body));
  });
}
