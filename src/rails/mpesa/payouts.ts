import type { PayoutTerms } from '../../../machines/payout.ts';
import type { MpesaConfig } from '../../config.ts';
import { usualPayoutTerms } from '../payoutTerms.ts';
import type { Evidence, PayoutAnswer, PayoutQuery, PayoutRail, SendOutcome, SendRequest } from '../port.ts';
import { answeredPayout, answeredPayoutQuery } from './answers.ts';
import type { MpesaClient } from './client.ts';
import { amountText, itemDescription, payoutReferencesOf } from './fields.ts';

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
    const { conversation, display } = payoutReferencesOf(request.payoutId);
    const { isSynchronous, serviceProviderCode } = this.#config;
    const { market, times } = this.#client;
    const answer = await this.#client.sendOnce(
      {
        operation: 'payout',
        path: 'b2cPayment/',
        fields: {
          input_Amount: amountText(request.amountTzs),
          input_CustomerMSISDN: request.msisdn,
          input_Country: market.country,
          input_Currency: market.currency,
          input_ServiceProviderCode: serviceProviderCode,
          input_TransactionReference: display,
          input_ThirdPartyConversationID: conversation,
          input_PaymentItemsDesc: itemDescription(request.description),
        },
        timeoutMs: isSynchronous ? times.pushMs : times.queryMs,
      },
      request,
      signal,
    );
    const outcome = answeredPayout(market, answer, { conversation, isSynchronous });
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
