import type {
  Evidence,
  PayoutAnswer,
  PushOutcome,
  ReverseOutcome,
  SendOutcome,
  StatusAnswer,
} from '../port.ts';
import { type Market, payoutFailure, pushMeaning, reasonOf, statusMeaning } from './codes.ts';
import type { WireAnswer } from './wire.ts';

/** What an answer of M-Pesa amounts to. Pure; the codes are in codes.ts. */

/** Without a code these come from the gate before the platform: nothing reached it. */
const gateStatuses = [401, 403, 429];

/**
 * A push's answer. `conversation`: the reference that we sent; an answer that names another one is not ours.
 * `isSynchronous`: the answer is the outcome; else INS-0 only says that the request was taken, whatever comes with it.
 */
export function answeredPush(
  market: Market,
  answer: WireAnswer,
  { conversation, isSynchronous }: { conversation: string; isSynchronous: boolean },
): PushOutcome {
  if (answer.kind === 'notSent') return notSent(answer);
  if (answer.kind === 'lost') return { kind: 'unknown', why: answer.why };
  const { fields, httpStatus } = answer;
  const code = fields.output_ResponseCode;
  if (!code) {
    if (gateStatuses.includes(httpStatus)) return { kind: 'notAttempted', ...refusedByGate(httpStatus) };
    return { kind: 'unknown', why: httpStatus >= 500 ? 'http_error' : 'unreadable' };
  }
  const named = fields.output_ThirdPartyConversationID;
  if (named && named !== conversation) return { kind: 'unknown', why: 'other_payment' };
  const meaning = pushMeaning(market, code);
  if (meaning.is === 'unclear') return { kind: 'unknown', why: meaning.why };
  if (meaning.is === 'exhausted') return { kind: 'notAttempted', why: 'session_exhausted', fault: 'us' };
  if (meaning.is === 'failed') return { kind: 'failed', code: meaning.code, fault: meaning.fault };
  // A synchronous answer without its receipt has been taken too, and is asked about.
  const receipt = isSynchronous ? receiptOf(fields.output_TransactionID) : undefined;
  return receipt ? { kind: 'succeeded', receipt } : { kind: 'accepted' };
}

/** Nothing was sent. Where the rail said why in words of its own, somebody here has to act on it. */
function notSent({ why, code }: Extract<WireAnswer, { kind: 'notSent' }>): PushOutcome {
  return { kind: 'notAttempted', why, ...(code ? { fault: 'us' } : {}) };
}

/** Too many calls are the gate's daily business; any other refusal is a matter of our settings. */
function refusedByGate(httpStatus: number): { why: 'gate_refused' | 'gate_busy'; fault?: 'us' } {
  return httpStatus === 429 ? { why: 'gate_busy' } : { why: 'gate_refused', fault: 'us' };
}

/** A query's answer. INS-0 says only that the question was answered; paid is Completed and not Reversed. */
export function answeredStatus(market: Market, answer: WireAnswer): StatusAnswer {
  if (answer.kind === 'notSent') return { ...notSent(answer), kind: 'unknown' } as StatusAnswer;
  if (answer.kind === 'lost') return { kind: 'unknown', why: answer.why };
  const { fields, httpStatus } = answer;
  const code = fields.output_ResponseCode;
  if (!code) {
    if (gateStatuses.includes(httpStatus)) return { kind: 'unknown', ...refusedByGate(httpStatus) };
    return { kind: 'unknown', why: httpStatus >= 500 ? 'http_error' : 'unreadable' };
  }
  if (market.notFound.includes(code)) return { kind: 'notFound' };
  // Any other code is about the question: INS-6 here does not say that the payment failed.
  if (market.generalErrors.includes(code)) return { kind: 'unknown', why: 'general_error' };
  if (code !== 'INS-0') return { kind: 'unknown', why: 'ambiguous_code' };
  const meaning = statusMeaning(market, fields.output_ResponseTransactionStatus ?? '');
  if (!meaning) return { kind: 'unknown', why: 'unknown_status' };
  if (meaning.is === 'failed') return { kind: 'failed', code: meaning.code, fault: meaning.fault };
  if (meaning.is === 'nothing') return { kind: 'notFound' };
  if (meaning.is !== 'paid') return { kind: meaning.is };
  const reversed = (fields.output_Reversed ?? 'false').toLowerCase();
  if (reversed === 'true') return { kind: 'reversed' };
  if (reversed !== 'false') return { kind: 'unknown', why: 'unknown_status' };
  const receipt = receiptOf(fields.output_OriginalTransactionID) ?? receiptOf(fields.output_TransactionID);
  return { kind: 'succeeded', ...(receipt ? { receipt } : {}) };
}

/**
 * A question's answer with the reason of a failure, where only a callback tells it: "Failed" is the rail's verdict, and
 * all that an unsigned claim may add is why (insufficient_funds rather than provider_error).
 */
export async function reasonedStatus(
  market: Market,
  answer: WireAnswer,
  claims: () => Promise<readonly string[]>,
): Promise<StatusAnswer> {
  const status = answeredStatus(market, answer);
  if (answer.kind !== 'answered' || status.kind !== 'failed') return status;
  const meaning = statusMeaning(market, answer.fields.output_ResponseTransactionStatus ?? '');
  if (meaning?.is !== 'failed' || !meaning.isUnnamed) return status;
  return { ...status, ...reasonOf(market, await claims()) };
}

/** A reversal's answer. */
export function answeredReversal(market: Market, answer: WireAnswer): ReverseOutcome {
  if (answer.kind === 'notSent') return { kind: 'notAttempted', why: answer.why };
  if (answer.kind === 'lost') return { kind: 'unknown', why: answer.why };
  const { fields, httpStatus } = answer;
  const code = fields.output_ResponseCode;
  if (!code) {
    if (gateStatuses.includes(httpStatus)) return { kind: 'notAttempted', ...refusedByGate(httpStatus) };
    return { kind: 'unknown', why: 'http_error' };
  }
  // Asynchronous: it has been taken, its transaction comes later, and it is asked about.
  if (code === 'INS-0') {
    const receipt = receiptOf(fields.output_TransactionID);
    return receipt ? { kind: 'succeeded', receipt } : { kind: 'accepted' };
  }
  if (market.reversalRefused.includes(code)) {
    const isEmpty = code === market.floatEmpty;
    const fault = isEmpty ? { fault: 'us' as const } : {};
    return { kind: 'failed', why: code, code: isEmpty ? 'float_insufficient' : 'rejected', ...fault };
  }
  return { kind: 'unknown', why: code === 'INS-10' ? 'duplicate_reference' : 'ambiguous_code' };
}

/** A query's answer about a reversal's own reference, where the payment itself stands: did it go through, or may it yet? */
export function answeredReversalQuery(market: Market, answer: WireAnswer): StatusAnswer {
  const status = answeredStatus(market, answer);
  switch (status.kind) {
    case 'succeeded':
      return { kind: 'reversed', ...(status.receipt === undefined ? {} : { receipt: status.receipt }) };
    case 'notFound':
    case 'failed':
    case 'expired':
    case 'reversed': // a reversal that was taken back
      return { kind: 'succeeded' };
    case 'pending':
    case 'unknown':
      return status;
  }
}

/** A payout's answer, by the same codes: what they say of the payer is said of us, and the customer receives. */
export function answeredPayout(
  market: Market,
  answer: WireAnswer,
  of: { conversation: string; isSynchronous: boolean },
): SendOutcome {
  const outcome = answeredPush(market, answer, of);
  if (outcome.kind === 'succeeded') return { kind: 'paid', receipt: outcome.receipt };
  return outcome.kind === 'failed'
    ? { kind: 'failed', ...payoutFailure(outcome.code, outcome.fault) }
    : outcome;
}

/** A query's answer about a payout. Nobody can let a payout lapse, so that word says nothing of it. */
export function answeredPayoutQuery(market: Market, answer: WireAnswer): PayoutAnswer {
  const status = answeredStatus(market, answer);
  switch (status.kind) {
    case 'succeeded':
      return { ...status, kind: 'paid' };
    case 'reversed':
      return { kind: 'returned' };
    case 'failed':
      return { kind: 'failed', ...payoutFailure(status.code, status.fault) };
    case 'expired':
      return { kind: 'unknown', why: 'unknown_status' };
    case 'pending':
    case 'notFound':
    case 'unknown':
      return status;
  }
}

/** A receipt as we may store and show it; the documented pattern is up to 20 letters and digits. */
function receiptOf(value: string | undefined): string | undefined {
  return value !== undefined && /^[0-9A-Za-z]{1,32}$/.test(value) ? value : undefined;
}

/** The rail's result code, where it gave one; also the one with which it refused us a session. */
export function codeOf(answer: WireAnswer): string | undefined {
  if (answer.kind === 'answered') return answer.fields.output_ResponseCode;
  return answer.kind === 'notSent' ? answer.code : undefined;
}

/** The code as a label: what is none of the documented form could be anything. */
export function labelOf(answer: WireAnswer): string {
  const code = codeOf(answer);
  if (!code) return 'none';
  return /^INS-\d{1,5}$/.test(code) ? code : 'other';
}

/** The platform itself answered a question, and not by saying that it is not well. */
export function isWell(market: Market, answer: WireAnswer): boolean {
  const code = answer.kind === 'answered' ? codeOf(answer) : undefined;
  return Boolean(code) && !market.generalErrors.includes(code!);
}

/** The limits of the session are used up. */
export function isExhausted(market: Market, answer: WireAnswer): boolean {
  const code = answer.kind === 'answered' ? codeOf(answer) : undefined;
  return code !== undefined && pushMeaning(market, code).is === 'exhausted';
}

/** Turned away by the gate before the platform. */
export function isGateRefusal(answer: WireAnswer): boolean {
  return answer.kind === 'answered' && !codeOf(answer) && gateStatuses.includes(answer.httpStatus);
}

/** Turned away for its session. Because of too many calls (429) is another matter: no other session would help. */
export function isTurnedAway(answer: WireAnswer): boolean {
  return isGateRefusal(answer) && answer.httpStatus !== 429;
}

/** Nothing could be sent, for want of a session. `refused`: what the rail said when it last gave none. */
export function withoutSession(refused: WireAnswer | undefined): WireAnswer {
  if (!refused) return { kind: 'notSent', why: 'no_session', text: 'no session became live in time' };
  const text = `no session could be had: ${refused.text}`;
  if (refused.kind !== 'answered') return { kind: 'notSent', why: 'no_session', text };
  const { httpStatus, fields } = refused;
  const code = fields.output_ResponseCode ?? `HTTP ${httpStatus}`;
  return { kind: 'notSent', why: 'no_session', text, code, httpStatus };
}

/** What is kept of an answer. */
export function evidenceOf(answer: WireAnswer, atMs: number): Evidence {
  const code = codeOf(answer);
  const { httpStatus, text } = answer;
  return {
    ...(code ? { code } : {}),
    ...(httpStatus === undefined ? {} : { httpStatus }),
    text: text.slice(0, 2_048),
    atMs,
  };
}
