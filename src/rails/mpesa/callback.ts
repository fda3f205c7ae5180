import { createHash } from 'node:crypto';
import type { CallbackParse, CallbackReply, RawCallback } from '../port.ts';
import { actorOfConversation } from './fields.ts';
import { fieldsOf } from './wire.ts';

/** An id that may be echoed: whatever else stands there is not sent back. */
const idPattern = /^[\w-]{1,64}$/;
const textMaxChars = 256;

/**
 * What a callback of M-Pesa names. Pure, and never throws: nothing in a
 * callback is signed, so it yields identifiers and evidence, never a verdict.
 */
export function parseMpesaCallback(raw: RawCallback): CallbackParse {
  const fields = fieldsOf(raw.body.toString('utf8'));
  const conversation = idOf(fields.input_ThirdPartyConversationID);
  const original = idOf(fields.input_OriginalConversationID);
  const about = conversation === undefined ? undefined : actorOfConversation(conversation);
  if (about === undefined) {
    return { kind: 'rejected', why: 'names no payment of ours', reply: reply(original, conversation) };
  }
  const code = fields.input_ResultCode?.slice(0, textMaxChars);
  const receipt = idOf(fields.input_TransactionID);
  const parts = [conversation, original ?? '', receipt ?? '', code ?? ''];
  return {
    kind: 'report',
    about,
    dedupeKey: createHash('sha256').update(JSON.stringify(parts)).digest('hex'),
    hint: {
      ...(code === undefined ? {} : { code }),
      ...(fields.input_ResultDesc ? { text: fields.input_ResultDesc.slice(0, textMaxChars) } : {}),
      ...(receipt === undefined ? {} : { receipt }),
      ...(original === undefined ? {} : { conversationId: original }),
    },
    reply: reply(original, conversation),
  };
}

function idOf(value: string | undefined): string | undefined {
  return value !== undefined && idPattern.test(value) ? value : undefined;
}

/** The documented answer. The same for every payment, known or not: it tells a forger nothing. */
function reply(original: string | undefined, conversation: string | undefined): CallbackReply {
  return {
    status: 200,
    contentType: 'application/json',
    body: JSON.stringify({
      output_OriginalConversationID: original ?? '',
      output_ResponseCode: '0',
      output_ResponseDesc: 'Successfully Accepted Result',
      output_ThirdPartyConversationID: conversation ?? '',
    }),
  };
}
