import type { ReportedActor } from '../port.ts';

/** What is sent to M-Pesa in its fields, made from what we keep. Pure. */

const descriptionMaxChars = 256;
const displayChars = 16;
const idPattern = /^col_([0-9A-HJKMNP-TV-Z]{26})$/;

/** The references of a collection: minted with its id, and the same for every call for life. */
export interface References {
  /** `input_ThirdPartyConversationID`, 26 characters: the id without its prefix. Queries go by it. */
  conversation: string;
  /** `input_TransactionReference`, at most 20 characters: what the customer reads. Never used to look up. */
  display: string;
  /** The conversation id of this collection's reversal: another one, but always the same. */
  reversal: string;
}

/** @throws RangeError when it is not a collection's id: nothing else may be pushed. */
export function referencesOf(collectionId: string): References {
  const conversation = idPattern.exec(collectionId)?.[1];
  if (!conversation) throw new RangeError(`not a collection's id: ${collectionId.slice(0, 40)}`);
  // A ULID begins with 0 to 7, so no collection ever has the id that an R makes of it.
  return {
    conversation,
    display: conversation.slice(-displayChars),
    reversal: `R${conversation.slice(1)}`,
  };
}

/**
 * The conversation id of a reversal, the same for every call for life, and no payment's: a refund's is made of the
 * refund's id. @throws RangeError when it is none
 */
export function reversalReferenceOf(request: { collectionId: string; refundId?: string }): string {
  const { collectionId, refundId } = request;
  if (refundId === undefined) return referencesOf(collectionId).reversal;
  const ulid = /^rf_([0-9A-HJKMNP-TV-Z]{26})$/.exec(refundId)?.[1];
  if (!ulid) throw new RangeError(`not a refund's id: ${refundId.slice(0, 40)}`);
  return `F${ulid.slice(1)}`;
}

/** The references of a payout, for life: no collection's, reversal's or refund's. @throws RangeError when it is none */
export function payoutReferencesOf(payoutId: string): Pick<References, 'conversation' | 'display'> {
  const ulid = /^po_([0-9A-HJKMNP-TV-Z]{26})$/.exec(payoutId)?.[1];
  if (!ulid) throw new RangeError(`not a payout's id: ${payoutId.slice(0, 40)}`);
  return { conversation: `P${ulid.slice(1)}`, display: ulid.slice(-displayChars) };
}

/**
 * Whose a conversation id of ours is: a collection's, by its payment or the reversal of a late one, a payout's or a
 * refund's; undefined when it is nobody's. An id begins with 0 until the year 3084: that is what the letter stands for.
 */
export function actorOfConversation(conversation: string): ReportedActor | undefined {
  const ulid = conversation.replace(/^[PRF]/, '0');
  if (!idPattern.test(`col_${ulid}`)) return undefined;
  if (conversation.startsWith('P')) return { machine: 'payout', id: `po_${ulid}` };
  if (conversation.startsWith('F')) return { machine: 'refund', id: `rf_${ulid}` };
  return { machine: 'collection', id: `col_${ulid}` };
}

/** Letters, digits and single spaces: any punctuation in it is refused as INS-30. Never empty. */
export function itemDescription(text: string): string {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '') // accents
    .replace(/[^0-9A-Za-z]+/g, ' ')
    .slice(0, descriptionMaxChars)
    .trim();
  return plain === '' ? 'Payment' : plain;
}

/** Whole shillings in plain digits: never an exponent, a fraction or a separator. @throws RangeError */
export function amountText(amountTzs: number): string {
  if (!Number.isSafeInteger(amountTzs) || amountTzs <= 0)
    throw new RangeError(`not a whole amount: ${amountTzs}`);
  return String(amountTzs);
}
