import type { Clock } from '@kusanya/durable-actors';
import type { RailTerms } from '../../../machines/collection.ts';
import type { MpesaConfig } from '../../config.ts';
import type {
  CallbackParse,
  Capabilities,
  Evidence,
  PayoutRail,
  PushOutcome,
  PushRequest,
  Rail,
  RailLine,
  RawCallback,
  ReverseOrder,
  ReverseOutcome,
  ReverseRequest,
  StatusAnswer,
  StatusQuery,
} from '../port.ts';
import {
  answeredPush,
  answeredReversal,
  answeredReversalQuery,
  answeredStatus,
  reasonedStatus,
} from './answers.ts';
import { parseMpesaCallback } from './callback.ts';
import { type ClientOptions, MpesaClient } from './client.ts';
import { amountText, referencesOf, reversalReferenceOf } from './fields.ts';
import { MpesaPayouts } from './payouts.ts';
import { mpesaChannel, mpesaTerms } from './terms.ts';
import { checkedAddress, networkAt, type WireAnswer } from './wire.ts';

export type { MpesaWatch } from './client.ts';
export { actorOfConversation } from './fields.ts';
export { railSessionsSpec, StoredSessions, sessionsName } from './store.ts';
export { mpesaTerms } from './terms.ts';

interface MpesaOptions extends ClientOptions {
  terms?: RailTerms;
}

/** M-Pesa Tanzania over Vodacom's OpenAPI (docs/RAILS.md). */
export class MpesaRail implements Rail {
  readonly name = mpesaChannel;
  readonly terms: RailTerms;
  readonly capabilities: Capabilities;
  readonly addresses: readonly string[];
  readonly line: RailLine;
  /** Absent where the application may not pay (`MPESA_PAYOUTS`). */
  readonly payouts?: PayoutRail;
  readonly #config: MpesaConfig;
  readonly #clock: Clock;
  readonly #client: MpesaClient;

  /** @throws Error when the address is neither https nor loopback, or the public key is none. */
  constructor({ terms = mpesaTerms, ...options }: MpesaOptions) {
    const { config, clock } = options;
    this.addresses = [checkedAddress(config.baseUrl)];
    const answers = config.isSynchronous ? 'synchronous' : 'asynchronous';
    this.line = { ...networkAt(config.baseUrl), answers };
    this.terms = { ...terms, approvalLadderMs: [...config.askDelaysMs] };
    this.#config = config;
    this.#clock = clock;
    this.#client = new MpesaClient(options);
    if (config.paysWallets) this.payouts = new MpesaPayouts({ client: this.#client, config });
    this.capabilities = {
      queryableBy: ['reference', 'receipt', 'conversation'],
      referenceIsIdempotent: true,
      promptLifeMs: terms.promptLifeMs,
      notFoundGraceMs: terms.notFoundGraceMs,
      producedFailureCodes: this.#client.market.producedFailureCodes,
      callbacks: config.isSynchronous ? 'maybe' : 'always',
    };
  }

  async requestPayment(
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<PushOutcome & { evidence?: Evidence }> {
    const references = referencesOf(request.collectionId);
    const sending = {
      operation: 'push',
      path: 'c2bPayment/singleStage/',
      references,
      described: 'input_PurchasedItemsDesc',
    } as const;
    const answer = await this.#client.sendPayment(sending, request, signal);
    const { conversation } = references;
    const { isSynchronous } = this.#config;
    const outcome = answeredPush(this.#client.market, answer, { conversation, isSynchronous });
    return { ...outcome, evidence: this.#evidence(answer) };
  }

  async queryStatus(
    query: StatusQuery,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }> {
    const answer = await this.#client.query(referencesOf(query.collectionId).conversation, signal);
    const status = await reasonedStatus(this.#client.market, answer, query.claims ?? (async () => []));
    return { ...status, evidence: this.#evidence(answer) };
  }

  async reversePayment(
    order: ReverseOrder,
    signal: AbortSignal,
  ): Promise<ReverseOutcome & { evidence?: Evidence }> {
    const ask = {
      ...({ operation: 'reversal', path: 'reversal/', timeoutMs: this.#client.times.pushMs } as const),
      fields: {
        input_TransactionID: order.receipt,
        input_ReversalAmount: amountText(order.amountTzs),
        input_Country: this.#client.market.country,
        input_ServiceProviderCode: this.#config.serviceProviderCode,
        input_ThirdPartyConversationID: reversalReferenceOf(order),
      },
    };
    const giveUpAtMs = this.#clock.now() + this.#client.times.queryMs;
    const answer = await (order.once
      ? this.#client.sendOnce(ask, order.once, signal)
      : this.#client.call({ ...ask, giveUpAtMs }, signal));
    return { ...answeredReversal(this.#client.market, answer), evidence: this.#evidence(answer) };
  }

  /**
   * First the payment, which says whether it was reversed; if it stands, the reversal by its own reference: one that
   * was taken and is still under way shows there only.
   */
  async queryReversal(
    request: ReverseRequest,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }> {
    if (request.refundId !== undefined) return this.#askReversal(request, signal);
    const payment = await this.#client.query(referencesOf(request.collectionId).conversation, signal);
    const status = answeredStatus(this.#client.market, payment);
    if (status.kind !== 'succeeded') return { ...status, evidence: this.#evidence(payment) };
    return this.#askReversal(request, signal);
  }

  async #askReversal(request: ReverseRequest, signal: AbortSignal) {
    const answer = await this.#client.query(reversalReferenceOf(request), signal);
    return { ...answeredReversalQuery(this.#client.market, answer), evidence: this.#evidence(answer) };
  }

  parseCallback(raw: RawCallback): CallbackParse {
    return parseMpesaCallback(raw);
  }

  probe(signal: AbortSignal): Promise<'up' | 'down'> {
    return this.#client.probe(signal);
  }

  async tend(): Promise<void> {
    await this.#client.tend();
  }

  /** Closes idle connections. */
  close(): void {
    this.#client.close();
  }

  #evidence(answer: WireAnswer): Evidence {
    return this.#client.evidence(answer);
  }
}
