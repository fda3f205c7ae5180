import type { Clock } from '@kusanya/durable-actors';
import { drawnMs, type PushLine } from '../../src/rails/rails.ts';
import type { Faults, Operation } from './faults.ts';
import { breachOf, payoutRules, pushRules, queryRules, reversalRules } from './fields.ts';
import type { Bearers } from './keys.ts';
import type { Usage } from './limits.ts';
import { leftOf, type Network, type Payment, type Reversal } from './network.ts';
import { bodyOf, coded, gate, html, idsOf, type Reply, refusalCode, spoiled, wordOf } from './replies.ts';
import type { Sessions } from './sessions.ts';

/** Vodacom's OpenAPI as its callers see it: five operations, answered in its own format. */
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
  usage: Usage;
  mode: 'sync' | 'async';
  /** Short codes of the application. */
  providers: readonly string[];
  /** Its trusted sources; none: any. */
  origins: readonly string[];
  /** What a call takes besides its customer, drawn around this. */
  latency: { medianMs: number; shape: number; seed: string };
  /** Waits until the clock says so; false when the simulator was closed meanwhile. */
  until(atMs: number): Promise<boolean>;
  /** Told of every payment or payout that was taken: its callbacks are to be sent. */
  onPush(payment: Payment): void;
  /** Asynchronous: told of every reversal that was made, which has a callback of its own. */
  onReversal(reversal: Reversed): void;
}

/** A reversal that went well. */
export interface Reversed {
  payment: Payment;
  /** The reversal's own `ThirdPartyConversationID`. */
  conversation: string;
  /** The transaction id of the reversal. */
  receipt: string;
  conversationId: string;
}

const operations: Readonly<Record<string, Operation>> = {
  'GET getSession': 'session',
  'POST c2bPayment/singleStage': 'push',
  'POST b2cPayment': 'payout',
  'GET queryTransactionStatus': 'query',
  'PUT reversal': 'reversal',
};

/** The operation at an address; undefined when there is none. The first part of the path is the environment. */
export function operationAt(method: string, path: string): Operation | undefined {
  const rest = /^(?:\/(?:sandbox|openapi))?\/ipg\/v2\/vodacomTZN\/(.+?)\/?$/.exec(path)?.[1];
  return rest === undefined ? undefined : operations[`${method} ${rest}`];
}

export class OpenApi {
  readonly #options: OpenApiOptions;
  readonly #endedFor = new Set<string>();
  #calls = 0;

  constructor(options: OpenApiOptions) {
    this.#options = options;
  }

  async answer(call: Call): Promise<Reply> {
    const { faults, latency, clock, until } = this.#options;
    this.#calls += 1;
    const takesMs = drawnMs(latency.medianMs, latency.shape, `${latency.seed}.${this.#calls}`);
    if (takesMs > 0 && !(await until(clock.now() + takesMs))) return { does: 'resets' };
    const { operation, fields } = call;
    const msisdn = textOf(fields.input_CustomerMSISDN);
    const reference = textOf(fields.input_QueryReference ?? fields.input_ThirdPartyConversationID);
    const fault = faults.take(operation, {
      ...(msisdn ? { msisdn } : {}),
      ...(reference ? { reference } : {}),
    });
    if (fault?.when === 'before') return spoiled(fault, undefined);
    const reply = await this.#answer(call);
    if (!fault) return reply;
    // What the gate refuses has not reached the network, and no fault of it.
    if (reply.does === 'answers' && reply.isGate) {
      faults.giveBack(fault);
      return reply;
    }
    return spoiled(fault, reply);
  }

  async #answer(call: Call): Promise<Reply> {
    const { bearers, sessions, usage, clock } = this.#options;
    const { operation, fields } = call;
    if (!usage.admits(clock.now())) return gate(429, 'Too many requests');
    const opened = bearers.open(call.authorization);
    const isTrusted = this.#isTrusted(call.origin);
    if (operation === 'session') {
      if (opened !== bearers.apiKey || !isTrusted) return coded('INS-989');
      return coded('INS-0', { output_SessionID: await sessions.make() }, 200);
    }
    if (opened === undefined || !isTrusted || !sessions.isLive(opened)) return gate();
    const closed = usage.closedTo(operation, clock.now());
    if (closed) return coded(closed);
    switch (operation) {
      case 'push':
      case 'payout':
        return this.#push(operation, fields, opened);
      case 'query':
        return this.#query(fields);
      case 'reversal':
        return this.#reverse(fields);
    }
  }

  #isTrusted(origin: string | undefined): boolean {
    const { origins } = this.#options;
    return origin !== undefined && (origins.length === 0 || origins.includes(origin));
  }

  /** The first breach of the documented rules; a short code that is not the application's is none of its own. */
  #breachOf(fields: Call['fields'], rules: Parameters<typeof breachOf>[1]): string | undefined {
    const isOurs = this.#options.providers.includes(fields.input_ServiceProviderCode as string);
    return breachOf(fields, rules) ?? (isOurs ? undefined : 'INS-13');
  }

  /** A payment request, or a payout: one comes from a wallet, the other goes there. */
  async #push(kind: 'push' | 'payout', fields: Call['fields'], session: string): Promise<Reply> {
    const { network, sessions } = this.#options;
    const breach = this.#breachOf(fields, kind === 'push' ? pushRules : payoutRules);
    if (breach) return coded(breach);
    const reference = fields.input_ThirdPartyConversationID as string;
    const push = {
      reference,
      display: fields.input_TransactionReference as string,
      msisdn: fields.input_CustomerMSISDN as string,
      amountTzs: Number(fields.input_Amount),
      provider: fields.input_ServiceProviderCode as string,
      session,
    };
    const refused = network.find(reference) ? 'INS-10' : this.#limitBroken(kind, push);
    if (refused) return this.#refuse(push, refused);
    const line = network.storyOf(kind, push.msisdn, reference).push;
    if (line?.does === 'ends the session' && !this.#endedFor.has(reference)) {
      this.#endedFor.add(reference);
      await sessions.end(session);
      return gate();
    }
    const payment = await (kind === 'push' ? network.push(push) : network.pay(push));
    return payment ? this.#taken(payment) : this.#refuse(push, 'INS-10');
  }

  /** The code of the limit that it would break: of the application's payments, or of what the short code holds. */
  #limitBroken(
    kind: 'push' | 'payout',
    push: Parameters<Usage['brokenBy']>[0] & { provider: string },
  ): string | undefined {
    const { network, usage } = this.#options;
    if (kind === 'push') return usage.brokenBy(push);
    return network.floatOf(push.provider) < push.amountTzs ? 'INS-2006' : undefined;
  }

  async #refuse(push: { reference: string; msisdn: string }, code: string): Promise<Reply> {
    const { reference, msisdn } = push;
    await this.#options.network.refuse({ reference, msisdn, code });
    return coded(code, { output_ThirdPartyConversationID: reference });
  }

  /** The answer to a push that is there now, as its story has it. */
  #taken(payment: Payment): Promise<Reply> | Reply {
    const { outcome, push: line } = payment.scenario;
    // What never arrived is remembered by its reference alone: the line tells, and every query finds nothing.
    if (outcome.kind === 'absent') return this.#spoil(line!, payment);
    this.#options.onPush(payment);
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
    if (outcome.kind === 'refused') return coded(refusalCode(outcome.code), idsOf(payment));
    await network.tell(payment, 'push');
    return coded('INS-0', { ...idsOf(payment), output_TransactionID: payment.receipt });
  }

  /** The answer of a story whose line lies. The money goes its own way. */
  async #spoil(line: PushLine, payment: Payment): Promise<Reply> {
    const { network, until } = this.#options;
    if (line.does === 'hangs' || line.does === 'ends the session') return { does: 'hangs' };
    if (!(await until(payment.pushedAtMs + line.afterMs))) return { does: 'resets' };
    await network.settle(payment);
    const ids = payment.scenario.outcome.kind === 'absent' ? {} : idsOf(payment);
    switch (line.does) {
      case 'resets':
        return { does: 'resets' };
      case 'fails':
        return { does: 'answers', status: line.httpStatus, body: html, contentType: 'text/html' };
      case 'cuts':
        return { does: 'cuts', status: 201, body: bodyOf('INS-0', ids) };
      case 'garbles':
        return { does: 'answers', status: 201, body: '{"output_ResponseCode":' };
      case 'answers': {
        if (line.code !== 'INS-0') return coded(line.code, ids);
        await network.tell(payment, 'push');
        return coded('INS-0', { ...ids, output_TransactionID: payment.receipt });
      }
    }
  }

  async #query(fields: Call['fields']): Promise<Reply> {
    const { network } = this.#options;
    const breach = this.#breachOf(fields, queryRules);
    if (breach) return coded(breach);
    const payment = network.find(fields.input_QueryReference as string);
    const ids = { output_ThirdPartyConversationID: fields.input_ThirdPartyConversationID as string };
    if (!payment) return coded('INS-23', ids);
    payment.queries += 1;
    if (payment.scenario.flakyQueries && payment.queries % 2 === 1) {
      return { does: 'answers', status: 503, body: html, contentType: 'text/html' };
    }
    const asked = fields.input_QueryReference as string;
    const reversal = payment.reversals.get(asked);
    if (reversal) return coded('INS-0', reversalFields(payment, reversal, ids), 200);
    const seen = await network.statusOf(payment);
    if (seen.kind === 'notFound') return coded(payment.scenario.unindexedCode ?? 'INS-23', ids);
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
    const { network, mode, onReversal } = this.#options;
    const breach = this.#breachOf(fields, reversalRules);
    if (breach) return coded(breach);
    const conversation = fields.input_ThirdPartyConversationID as string;
    const ids = { output_ThirdPartyConversationID: conversation };
    const payment = network.find(fields.input_TransactionID as string);
    if (payment) await network.settle(payment);
    // What was paid out is not ours to take back.
    if (payment?.debitedAtMs === undefined || payment.isOut) return coded('INS-18', ids);
    if (payment.provider !== fields.input_ServiceProviderCode) return coded('INS-35', ids);
    if (payment.reversals.has(conversation)) return coded('INS-10', ids);
    if (payment.reversedAtMs !== undefined) return coded('INS-6', ids);
    const amountTzs = Number(fields.input_ReversalAmount);
    if (!(amountTzs > 0 && amountTzs <= leftOf(payment))) return coded('INS-15', ids);
    if (network.balanceOf(payment.provider) < amountTzs) return coded('INS-2006', ids);
    await network.reverse(payment, conversation, amountTzs);
    const { receipt } = payment.reversals.get(conversation)!;
    const conversationId = `${payment.conversationId}R`;
    const answer = { ...ids, output_ConversationID: conversationId };
    if (mode === 'sync') return coded('INS-0', { ...answer, output_TransactionID: receipt });
    onReversal({ payment, conversation, receipt, conversationId });
    return coded('INS-0', answer);
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A reversal as a transaction of its own. */
function reversalFields(
  payment: Payment,
  { receipt }: Reversal,
  ids: Record<string, string>,
): Record<string, string> {
  return {
    ...ids,
    output_ConversationID: `${payment.conversationId}R`,
    output_ResponseTransactionStatus: 'Completed',
    output_OriginalTransactionID: receipt,
    output_Reversed: 'False',
  };
}
