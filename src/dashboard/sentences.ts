import { type Html, html } from '../pages/pages.ts';
import { dayText, momentText, shillings } from './format.ts';
import type { Answered, Delivery, Endpoint, Payment, RowOf, Transaction, Visit } from './page.ts';
import { failureWords, type Pair, words } from './words.ts';

/** What the pages say in whole sentences, and what the API's names are called. */

type Tone = 'good' | 'bad' | 'care' | 'busy' | 'calm';

export function pill(visit: Visit, tone: Tone, text: Pair): Html {
  return html`<span class="pill ${tone}">${visit.t(text)}</span>`;
}

export const statusWords: Readonly<Record<Payment['status'], readonly [Tone, Pair]>> = {
  created: ['busy', words.created],
  succeeded: ['good', words.succeeded],
  failed: ['bad', words.failedOnes],
  expired: ['calm', words.expired],
};

export function statusPill(visit: Visit, { status }: Pick<Payment, 'status'>): Html {
  const [tone, text] = statusWords[status];
  return pill(visit, tone, text);
}

/** Why a payment failed, for whoever has the customer on the telephone. */
export function whyFailed(visit: Pick<Visit, 't'>, payment: Pick<Payment, 'failure_code'>): string {
  return visit.t(failureWords[payment.failure_code ?? 'provider_error']);
}

/** A payment in one sentence. */
export function paymentSentence(visit: Visit, payment: Payment, late: boolean): string {
  const { t } = visit;
  const amount = shillings(payment.amount);
  const { phone, reference } = payment;
  const at = payment.completed_at === undefined ? '' : momentText(visit, payment.completed_at);
  switch (payment.status) {
    case 'created':
      return t([
        `${amount} from ${phone} for ${reference}: we wait for the customer to enter the PIN.`,
        `${amount} kutoka ${phone} kwa oda ${reference}: tunasubiri mteja aweke PIN kwenye simu.`,
      ]);
    case 'succeeded':
      return t([
        `${phone} paid ${amount} for ${reference} on ${at}.`,
        `${phone} amelipa ${amount} kwa oda ${reference}, ${at}.`,
      ]);
    case 'failed':
      return t([
        `${amount} from ${phone} for ${reference} was not paid: ${whyFailed(visit, payment)}.`,
        `${amount} kutoka ${phone} kwa oda ${reference} hazikulipwa: ${whyFailed(visit, payment)}.`,
      ]);
    case 'expired':
      return late
        ? t([
            `${amount} from ${phone} for ${reference} came too late; the money is held, and somebody decides.`,
            `${amount} kutoka ${phone} kwa oda ${reference} zimechelewa; pesa zimeshikiliwa hadi uamuzi ufanyike.`,
          ])
        : t([
            `${amount} from ${phone} for ${reference} was not paid: nobody entered the PIN in time.`,
            `${amount} kutoka ${phone} kwa oda ${reference} hazikulipwa: PIN haikuwekwa kwa wakati.`,
          ]);
  }
}

type Milestone = RowOf<'/dashboard/payments/:id/timeline'>['what'];

const milestoneWords: Readonly<Record<Milestone, Pair>> = {
  created: ['Your system asked for the payment.', 'Mfumo wako umeomba malipo.'],
  prompted: ['The customer’s phone was asked for the PIN.', 'Mteja ameombwa kuweka PIN kwenye simu.'],
  asking: [
    'The time on the phone is over; we ask the network.',
    'Muda kwenye simu umeisha; tunauliza mtandao.',
  ],
  underReview: [
    'The network cannot tell; somebody looks into it.',
    'Mtandao hauna jibu; suala linafuatiliwa.',
  ],
  succeeded: ['The customer paid.', 'Mteja amelipa.'],
  failed: ['It failed.', 'Imeshindikana.'],
  expired: ['It ran out: nobody entered the PIN.', 'Muda umeisha: PIN haikuwekwa.'],
  paidLate: ['The customer paid after all; the money is held.', 'Mteja alilipa baadaye; pesa zimeshikiliwa.'],
  returning: ['The money goes back to the customer.', 'Pesa zinarudishwa kwa mteja.'],
  returned: ['The money went back to the customer.', 'Pesa zimerudishwa kwa mteja.'],
  reversed: ['The payment was taken back.', 'Malipo yamebatilishwa.'],
};

export function milestone(visit: Visit, what: Milestone): string {
  return visit.t(milestoneWords[what]);
}

const transactionWords: Readonly<Record<Transaction['type'], Pair>> = {
  collection: ['payment', 'malipo'],
  settlement: ['money of a day arrived', 'pesa za siku zimeingia'],
  late_payment: ['late payment, held', 'malipo yaliyochelewa, yameshikiliwa'],
  late_payment_accepted: ['late payment, accepted', 'malipo yaliyochelewa, yamekubaliwa'],
  late_payment_returned: ['late payment, sent back', 'malipo yaliyochelewa, yamerudishwa'],
  collection_reversed: ['payment taken back', 'malipo yamebatilishwa'],
  payout_held: ['payout begun', 'kutoa pesa kumeanza'],
  payout: ['payout', 'pesa zimetolewa'],
  payout_released: ['payout not made', 'pesa hazikutolewa'],
  payout_returned: ['payout came back', 'pesa zilizotolewa zimerudi'],
  payout_found_paid: ['payout was paid after all', 'pesa zilitolewa kweli'],
  refund_held: ['refund begun', 'kurudisha pesa kumeanza'],
  refund: ['refund', 'pesa zimerudishwa'],
  refund_released: ['refund not made', 'pesa hazikurudishwa'],
  refund_found_paid: ['refund was paid after all', 'pesa zilirudishwa kweli'],
};

export function transactionName(visit: Visit, type: Transaction['type']): string {
  return visit.t(transactionWords[type]);
}

export const transactionTypes = Object.entries(transactionWords);

export const deliveryWords: Readonly<Record<Delivery['status'], readonly [Tone, Pair]>> = {
  pending: ['busy', words.deliveryPending],
  held: ['care', words.deliveryHeld],
  delivered: ['good', words.delivered],
  failed: ['bad', words.deliveryFailed],
  canceled: ['calm', words.canceled],
};

export function deliveryPill(visit: Visit, { status }: Pick<Delivery, 'status'>): Html {
  const [tone, text] = deliveryWords[status] ?? asItIs(status);
  return pill(visit, tone, text);
}

const healthWords: Readonly<Record<Endpoint['status'], readonly [Tone, Pair]>> = {
  active: ['good', words.active],
  failing: ['care', words.failing],
  disabled: ['bad', words.disabled],
};

export function healthPill(visit: Visit, { status }: Pick<Endpoint, 'status'>): Html {
  const [tone, text] = healthWords[status] ?? asItIs(status);
  return pill(visit, tone, text);
}

/** What the API may call by a name that is newer than these words. */
function asItIs(name: string): readonly [Tone, Pair] {
  return ['calm', [name, name]];
}

/** Why an attempt failed, by the answer’s status or by what came instead. */
export function attemptAnswer(visit: Visit, { status, reason }: Delivery['attempts'][number]): string {
  if (status !== undefined) return `HTTP ${status}`;
  const said = reason === undefined ? undefined : attemptReasons[reason];
  return said ? visit.t(said) : (reason ?? visit.t(words.noAnswer));
}

const attemptReasons: Readonly<Record<string, Pair>> = {
  timeout: ['no answer within 10 seconds', 'hakuna jibu ndani ya sekunde 10'],
  connect_error: ['it could not be reached', 'haikupatikana'],
  dns_error: ['its name is not known', 'jina lake halijulikani'],
  tls_error: ['its certificate is not good', 'cheti chake si sahihi'],
  redirect: ['it sent us elsewhere', 'imetuelekeza kwingine'],
};

/** When a payment’s money is there, by what it did to the balance. */
export function moneySentence(
  visit: Visit,
  list: Answered<'/dashboard/payments/:id/transactions'>,
): string | undefined {
  const credit = list.data.find(({ type }) => type === 'collection' || type === 'late_payment_accepted');
  if (!credit) return undefined;
  const amount = shillings(credit.net);
  const date = credit.settlement_date;
  if (date === undefined) return visit.t([`${amount} is yours to use.`, `${amount} unaweza kuzitumia.`]);
  const name = dayText(visit, date);
  return Date.parse(`${date}T00:00:00+03:00`) <= visit.nowMs
    ? visit.t([`${amount} arrived on ${name}.`, `${amount} ziliingia ${name}.`])
    : visit.t([`${amount} arrives on ${name}.`, `${amount} zitaingia ${name}.`]);
}

/** What a form that led here did, by the route’s name. */
export const doneWords: Readonly<Record<string, Pair>> = {
  resendEvent: ['It is being sent again.', 'Inatumwa tena.'],
  createWebhookEndpoint: ['The address is registered.', 'Anwani imesajiliwa.'],
  updateWebhookEndpoint: ['It is changed.', 'Imebadilishwa.'],
  enableWebhookEndpoint: ['It is enabled.', 'Imewashwa.'],
  deleteWebhookEndpoint: ['It is deleted.', 'Imefutwa.'],
  testWebhookEndpoint: ['The test event is on its way.', 'Tukio la majaribio linatumwa.'],
};
