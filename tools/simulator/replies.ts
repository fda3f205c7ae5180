import type { NetworkStatus } from '../../src/rails/rails.ts';
import type { Fault } from './faults.ts';
import { codeTable } from './fields.ts';
import type { Payment } from './network.ts';

/** What the network says, in its own format. */
export type Reply =
  | { does: 'answers'; status: number; body: string; contentType?: string; isGate?: true }
  | { does: 'cuts'; status: number; body: string }
  | { does: 'resets' | 'hangs' };

export const html = '<html><body><h1>Bad Gateway</h1></body></html>';

/** What refusals are called on the wire; cancelled, wrong PIN and declined are not told apart (INS-6), and INS-1 names none. */
const codeOf: Readonly<Record<string, string>> = {
  insufficient_funds: 'INS-2006',
  payer_not_found: 'INS-2051',
  payer_limit_reached: 'INS-990',
  rejected: 'INS-21',
  provider_error: 'INS-1',
};

export function refusalCode(failure: string): string {
  return codeOf[failure] ?? 'INS-6';
}

/** How an asynchronous outcome is called in a callback; undefined while there is none. */
export function callbackCode(seen: NetworkStatus): string | undefined {
  if (seen.kind === 'succeeded') return 'INS-0';
  if (seen.kind === 'failed') return refusalCode(seen.code);
  return seen.kind === 'expired' ? 'INS-9' : undefined;
}

export function wordOf(seen: NetworkStatus): string {
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

export function idsOf({ conversationId, reference }: Payment): Record<string, string> {
  return { output_ConversationID: conversationId, output_ThirdPartyConversationID: reference };
}

export function bodyOf(code: string, more: Record<string, string>): string {
  const text = codeTable[code]?.[1] ?? 'Undocumented';
  return JSON.stringify({ output_ResponseCode: code, output_ResponseDesc: text, ...more });
}

export function coded(
  code: string,
  more: Record<string, string> = {},
  status = codeTable[code]?.[0] ?? 400,
): Reply {
  return { does: 'answers', status, body: bodyOf(code, more) };
}

/** The gate before the platform has a format of its own, without a code. Nothing has reached the platform. */
export function gate(status = 401, text = 'API or Session key is not authorized'): Reply {
  return { does: 'answers', status, body: JSON.stringify({ output_error: text }), isGate: true };
}

/** A reply as a fault leaves it. */
export function spoiled(fault: Fault, reply: Reply | undefined): Reply {
  switch (fault.does) {
    case 'resets':
    case 'hangs':
      return { does: fault.does };
    case 'fails':
      return { does: 'answers', status: fault.httpStatus ?? 502, body: html, contentType: 'text/html' };
    case 'refuses':
      return fault.httpStatus === undefined ? gate() : gate(fault.httpStatus, 'refused');
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
