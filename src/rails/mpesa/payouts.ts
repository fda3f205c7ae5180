import type { PayoutTerms } from '../../../machines/payout.ts';
import type { MpesaConfig } from '../../config.ts';
import { usualPayoutTerms } from '../payoutTerms.ts';
import type { Evidence, PayoutAnswer, PayoutQuery, PayoutRail, SendOutcome, SendRequest } from '../port.ts';
import { answeredPayout, answeredPayoutQuery } from './answers.ts';
import type { MpesaClient } from './client.ts';
import { payoutReferencesOf } from './fields.ts';

/** Pays wallets from our own: B2C of Vodacom's OpenAPI, asked about as everything else, by our own reference. */
export class MpesaPayouts implements PayoutRail {
  readonly terms: PayoutTerms = usualPayoutTerms;
  readonly #client: MpesaClient;
  readonly #config: MpesaConfig;

  constructor({ client, config }: { client: MpesaClient; config: MpesaConfig }) {
    this.#client = client;
    this.#config = config;
  }

  async sendPayout(
    request: SendRequest,
    signal: AbortSignal,
  ): Promise<SendOutcome & { evidence?: Evidence }> {
    const references = payoutReferencesOf(request.payoutId);
    const sending = {
      operation: 'payout',
      path: 'b2cPayment/',
      references,
      described: 'input_PaymentItemsDesc',
    } as const;
    const answer = await this.#client.sendPayment(sending, request, signal);
    const { conversation } = references;
    const { isSynchronous } = this.#config;
    const outcome = answeredPayout(this.#client.market, answer, { conversation, isSynchronous });
    return { ...outcome, evidence: this.#client.evidence(answer) };
  }

  async queryPayout(
    { payoutId }: PayoutQuery,
    signal: AbortSignal,
  ): Promise<PayoutAnswer & { evidence?: Evidence }> {
    const answer = await this.#client.query(payoutReferencesOf(payoutId).conversation, signal);
    const told = answeredPayoutQuery(this.#client.market, answer);
    return { ...told, evidence: this.#client.evidence(answer) };
  }
}
