import type { Clock } from '../src/clock.ts';
import type { PushLine, Sighting } from '../src/rails/rails.ts';
import type { Fault, Faults, Operation } from './faults.ts';
import { breachOf, codeTable, pushRules, queryRules, reversalRules } from './fields.ts';
import type { Bearers } from './keys.ts';
import type { Network, Payment } from './network.ts';
import type { Sessions } from './sessions.ts';

/** Vodacom's OpenAPI as its callers see it: four operations, answered in its own format. */
export type Reply =
  | { does: 'answers'; status: number; body: string; contentType?: string }
  | { does: 'cuts'; status: number; body: string }
  | { does: 'resets' | 'hangs' };

export interface Call {
  operation: Operation;
  authorization: string | undefined;
  origin: string | undefined;
  fields: Readonly<Record<string, unknown>>;
}

interface OpenApiOptions {
  clock: Clock;
  bearers: Bearers;
  sessions: Sessions;
  network: Network;
  faults: Faults;
  mode: 'sync' | 'async';
  /** Waits until the clock says so; false when the simulator was closed meanwhile. */
  until(atMs: number): Promise<boolean>;
  /** Told of every payment that was taken: its callbacks are to be sent. */
  onPush(payment: Payment): void;
}

const operations: Readonly<Record<string, Operation>> = {
  'GET getSession': 'session',
  'POST c2bPayment/singleStage': 'push',
  'GET queryTransactionStatus': 'query',
  'PUT reversal': 'reversal',
};

/** The operation at an address; undefined when there is none. The first part of the path is the environment. */
export function operationAt(method: string, path: string): Operation | undefined {
  const rest = /^(?:\/(?:sandbox|openapi))?\/ipg\/v2\/vodacomTZN\/(.+?)\/?$/.exec(path)?.[1];
  return rest === undefined ? undefined : operations[`${method} ${rest}`];
}

const html = '<html><body><h1>Bad Gateway</h1></body></html>';

/** What refusals are called on the wire; cancelled, wrong PIN and declined are not told apart (INS-6), and INS-1 names none. */
const codeOf: Readonly<Record<string, string>> = {
  insufficient_funds: 'INS-2006',
  payer_not_found: 'INS-2051',
  payer_limit_reached: 'INS-990',
  rejected: 'INS-21',
  provider_error: 'INS-1',
};

export class OpenApi {
  readonly #options: OpenApiOptions;
  readonly #endedFor = new Set<string>();

  constructor(options: OpenApiOptions) {
    this.#options = options;
  }

  async answer(call: Call): Promise<Reply> {
    const { faults } = this.#options;
    const { operation, fields } = call;
    const msisdn = textOf(fields.input_CustomerMSISDN);
    const reference = textOf(fields.input_QueryReference ?? fields.input_ThirdPartyConversationID);
    const fault = faults.take(operation, {
      ...(msisdn ? { msisdn } : {}),
      ...(reference ? { reference } : {}),
    });
    if (fault?.when === 'before') return spoiled(fault, undefined);
    const reply = await this.#answer(call);
    return fault ? spoiled(fault, reply) : reply;
  }

  #answer(call: Call): Promise<Reply> | Reply {
    const { bearers, sessions } = this.#options;
    const opened = bearers.open(call.authorization);
    if (call.operation === 'session') {
      const isOurs = opened === bearers.apiKey && call.origin !== undefined;
      return isOurs ? coded('INS-0', { output_SessionID: sessions.make() }, 200) : coded('INS-989');
    }
    if (opened === undefined || call.origin === undefined || !sessions.isLive(opened)) return gate();
    switch (call.operation) {
      case 'push':
        return this.#push(call.fields, opened);
      case 'query':
        return this.#query(call.fields);
      case 'reversal':
        return this.#reverse(call.fields);
    }
  }

  async #push(fields: Call['fields'], session: string): Promise<Reply> {
    const { network, sessions, onPush } = this.#options;
    const breach = breachOf(fields, pushRules);
    if (breach) return coded(breach);
    const reference = fields.input_ThirdPartyConversationID as string;
    if (network.find(reference)) return coded('INS-10', { output_ThirdPartyConversationID: reference });
    const push = {
      reference,
      display: fields.input_TransactionReference as string,
      msisdn: fields.input_CustomerMSISDN as string,
      amountTzs: Number(fields.input_Amount),
    };
    const { outcome, push: line } = network.storyOf(push.msisdn, reference);
    if (line?.does === 'ends the session' && !this.#endedFor.has(reference)) {
      this.#endedFor.add(reference);
      sessions.end(session);
      return gate();
    }
    // What never arrived is not remembered: the line tells, and every query finds nothing.
    if (outcome.kind === 'absent') return this.#spoil(line!, undefined);
    const payment = await network.push(push);
    if (!payment) return coded('INS-10', { output_ThirdPartyConversationID: reference });
    onPush(payment);
    const isPlain = !line || line.does === 'answers' || line.does === 'ends the session';
    const isAtOnce = outcome.kind === 'refused' && outcome.afterMs === 0;
    if (this.#options.mode === 'async' && isPlain && !isAtOnce) return coded('INS-0', idsOf(payment));
    return line && line.does !== 'ends the session' ? this.#spoil(line, payment) : this.#outcome(payment);
  }

  /** Synchronous: held until the customer has answered; the answer is the outcome. */
  async #outcome(payment: Payment): Promise<Reply> {
    const { network, until } = this.#options;
    const { outcome } = payment.scenario;
    if (!('afterMs' in outcome)) return { does: 'hangs' };
    if (!(await until(payment.pushedAtMs + outcome.afterMs))) return { does: 'resets' };
    await network.settle(payment);
    if (outcome.kind === 'refused') return coded(codeOf[outcome.code] ?? 'INS-6', idsOf(payment));
    await network.tell(payment, 'push');
    return coded('INS-0', { ...idsOf(payment), output_TransactionID: payment.receipt });
  }

  /** The answer of a story whose line lies. The money goes its own way. */
  async #spoil(line: PushLine, payment: Payment | undefined): Promise<Reply> {
    const { network, until, clock } = this.#options;
    if (line.does === 'hangs' || line.does === 'ends the session') return { does: 'hangs' };
    const pushedAtMs = payment?.pushedAtMs ?? clock.now();
    if (!(await until(pushedAtMs + line.afterMs))) return { does: 'resets' };
    if (payment) await network.settle(payment);
    switch (line.does) {
      case 'resets':
        return { does: 'resets' };
      case 'fails':
        return { does: 'answers', status: line.httpStatus, body: html, contentType: 'text/html' };
      case 'cuts':
        return { does: 'cuts', status: 201, body: bodyOf('INS-0', payment ? idsOf(payment) : {}) };
      case 'garbles':
        return { does: 'answers', status: 201, body: '{"output_ResponseCode":' };
      case 'answers': {
        if (line.code !== 'INS-0' || !payment) return coded(line.code, payment ? idsOf(payment) : {});
        await network.tell(payment, 'push');
        return coded('INS-0', { ...idsOf(payment), output_TransactionID: payment.receipt });
      }
    }
  }

  async #query(fields: Call['fields']): Promise<Reply> {
    const { network } = this.#options;
    const breach = breachOf(fields, queryRules);
    if (breach) return coded(breach);
    const payment = network.find(fields.input_QueryReference as string);
    const ids = { output_ThirdPartyConversationID: fields.input_ThirdPartyConversationID as string };
    if (!payment) return coded('INS-23', ids);
    payment.queries += 1;
    if (payment.scenario.flakyQueries && payment.queries % 2 === 1) {
      return { does: 'answers', status: 503, body: html, contentType: 'text/html' };
    }
    const seen = await network.see(payment);
    if (seen.kind === 'notFound') return coded('INS-23', ids);
    if (seen.kind === 'succeeded') await network.tell(payment, 'query');
    const isPaid = seen.kind === 'succeeded' || seen.kind === 'reversed';
    const answer = {
      ...ids,
      output_ConversationID: payment.conversationId,
      output_ResponseTransactionStatus: wordOf(seen),
      ...(isPaid ? { output_OriginalTransactionID: payment.receipt } : {}),
      output_Reversed: seen.kind === 'reversed' ? 'True' : 'False',
    };
    return coded('INS-0', answer, 200);
  }

  async #reverse(fields: Call['fields']): Promise<Reply> {
    const { network } = this.#options;
    const breach = breachOf(fields, reversalRules);
    if (breach) return coded(breach);
    const conversation = fields.input_ThirdPartyConversationID as string;
    const ids = { output_ThirdPartyConversationID: conversation };
    const payment = network.find(fields.input_TransactionID as string);
    if (payment) await network.settle(payment);
    if (payment?.debitedAtMs === undefined) return coded('INS-18', ids);
    if (Number(fields.input_ReversalAmount) !== payment.amountTzs) return coded('INS-15', ids);
    if (payment.reversedAtMs !== undefined)
      return coded(payment.reversal === conversation ? 'INS-10' : 'INS-6', ids);
    await network.reverse(payment, conversation);
    return coded('INS-0', {
      ...ids,
      output_ConversationID: payment.conversationId,
      output_TransactionID: `R${payment.receipt}`,
    });
  }
}

/** How an asynchronous outcome is called in a callback; undefined while there is none. */
export function callbackCode(seen: Sighting): string | undefined {
  if (seen.kind === 'succeeded') return 'INS-0';
  if (seen.kind === 'failed') return codeOf[seen.code] ?? 'INS-6';
  return seen.kind === 'expired' ? 'INS-9' : undefined;
}

function wordOf(seen: Sighting): string {
  switch (seen.kind) {
    case 'succeeded':
    case 'reversed':
      return 'Completed';
    case 'pending':
      return 'Pending';
    case 'expired':
      return 'Expired';
    case 'failed':
      return seen.code === 'cancelled' ? 'Cancelled' : 'Failed';
    default:
      return 'N/A';
  }
}

function idsOf({ conversationId, reference }: Payment): Record<string, string> {
  return { output_ConversationID: conversationId, output_ThirdPartyConversationID: reference };
}

function bodyOf(code: string, more: Record<string, string>): string {
  const text = codeTable[code]?.[1] ?? 'Undocumented';
  return JSON.stringify({ output_ResponseCode: code, output_ResponseDesc: text, ...more });
}

function coded(code: string, more: Record<string, string> = {}, status = codeTable[code]?.[0] ?? 400): Reply {
  return { does: 'answers', status, body: bodyOf(code, more) };
}

/** The gate before the platform has a format of its own, without a code. */
function gate(): Reply {
  return { does: 'answers', status: 401, body: '{"output_error":"API or Session key is not authorized"}' };
}

function spoiled(fault: Fault, reply: Reply | undefined): Reply {
  switch (fault.does) {
    case 'resets':
    case 'hangs':
      return { does: fault.does };
    case 'fails':
      return { does: 'answers', status: fault.httpStatus ?? 502, body: html, contentType: 'text/html' };
    case 'refuses':
      return fault.httpStatus === undefined
        ? gate()
        : { does: 'answers', status: fault.httpStatus, body: '{"output_error":"refused"}' };
    case 'garbles':
      return { does: 'answers', status: 201, body: '{"output_ResponseCode":' };
    case 'cuts':
      return {
        does: 'cuts',
        status: 201,
        body: reply?.does === 'answers' ? reply.body : bodyOf('INS-0', {}),
      };
    case 'answers': {
      const code = fault.code ?? 'INS-1';
      return coded(code, {}, fault.httpStatus ?? codeTable[code]?.[0]);
    }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
