import { expect } from 'chai';
import fc from 'fast-check';
import {
  answeredPush,
  answeredReversal,
  answeredReversalQuery,
  answeredStatus,
  reasonedStatus,
} from '../../src/rails/mpesa/answers.ts';
import { parseMpesaCallback } from '../../src/rails/mpesa/callback.ts';
import { vodacomTanzania } from '../../src/rails/mpesa/codes.ts';
import {
  actorOfConversation,
  amountText,
  itemDescription,
  payoutReferencesOf,
  referencesOf,
  reversalReferenceOf,
} from '../../src/rails/mpesa/fields.ts';
import { fieldsOf, isNeverConnected, type WireAnswer } from '../../src/rails/mpesa/wire.ts';
import { networkStories } from '../../src/rails/rails.ts';

const conversation = '01JDXK9V3Q4ZB7M2N8T5R6W0AH';

function answered(httpStatus: number, fields: Record<string, string> = {}): WireAnswer {
  return { kind: 'answered', httpStatus, fields, text: JSON.stringify(fields) };
}
const push = (answer: WireAnswer, isSynchronous = true) =>
  answeredPush(vodacomTanzania, answer, { conversation, isSynchronous });
const coded = (code: string, httpStatus = 400, more: Record<string, string> = {}) =>
  answered(httpStatus, { output_ResponseCode: code, ...more });

describe('what M-Pesa’s answers mean', () => {
  const definite: Record<string, [code: string, fault: string]> = {
    'INS-6': ['declined', 'customer'],
    'INS-13': ['rejected', 'us'],
    'INS-15': ['rejected', 'merchant'],
    'INS-17': ['rejected', 'us'],
    'INS-20': ['rejected', 'us'],
    'INS-21': ['rejected', 'us'],
    'INS-26': ['rejected', 'us'],
    'INS-28': ['rejected', 'us'],
    'INS-30': ['rejected', 'us'],
    'INS-990': ['payer_limit_reached', 'customer'],
    'INS-991': ['payer_limit_reached', 'customer'],
    'INS-995': ['rejected', 'merchant'],
    'INS-996': ['rejected', 'us'],
    'INS-997': ['rejected', 'us'],
    'INS-998': ['rejected', 'us'],
    'INS-2006': ['insufficient_funds', 'customer'],
    'INS-2051': ['payer_not_found', 'merchant'],
  };
  for (const [code, [failure, fault]] of Object.entries(definite)) {
    it(`${code} fails as ${failure}, whatever the HTTP status`, () => {
      for (const httpStatus of [200, 201, 400, 401, 422, 500]) {
        expect(push(coded(code, httpStatus))).to.deep.equal({ kind: 'failed', code: failure, fault });
      }
    });
  }

  const exhausted = ['INS-992', 'INS-993', 'INS-994'];
  for (const code of exhausted) {
    it(`${code} says that nothing was sent, because of us: our session has used up its limits`, () => {
      const why = 'session_exhausted';
      expect(push(coded(code))).to.deep.equal({ kind: 'notAttempted', why, fault: 'us' });
    });
  }

  for (const [code, why] of [
    ['INS-1', 'general_error'],
    ['INS-9', 'ambiguous_code'],
    ['INS-23', 'ambiguous_code'],
    ['INS-10', 'duplicate_reference'],
  ]) {
    it(`${code} decides nothing`, () => {
      expect(push(coded(code!))).to.deep.equal({ kind: 'unknown', why });
    });
  }

  it('names every code of the table in these tests, and produces no failure that it does not declare', () => {
    const unclear = ['INS-0', 'INS-1', 'INS-9', 'INS-10', 'INS-23', ...exhausted];
    expect(Object.keys(vodacomTanzania.push).sort()).to.deep.equal(
      [...Object.keys(definite), ...unclear].sort(),
    );
    const produced = [...Object.values(definite).map(([failure]) => failure), 'cancelled', 'provider_error'];
    expect([...vodacomTanzania.producedFailureCodes].sort()).to.deep.equal([...new Set(produced)].sort());
    const scripted = Object.values(networkStories).map(({ ends }) => ends);
    expect(scripted).to.include.members([...vodacomTanzania.producedFailureCodes]);
  });

  it('never fails by a code that is not in the table', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 100, max: 599 }), (code, httpStatus) => {
        fc.pre(!Object.hasOwn(vodacomTanzania.push, code));
        expect(push(coded(code, httpStatus))).to.deep.equal({ kind: 'unknown', why: 'unmapped_code' });
      }),
    );
  });

  it('has succeeded with INS-0 and a receipt; without one it is on its way', () => {
    expect(push(coded('INS-0', 201, { output_TransactionID: '49XCDF6' }))).to.deep.equal({
      kind: 'succeeded',
      receipt: '49XCDF6',
    });
    expect(push(coded('INS-0', 201))).to.deep.equal({ kind: 'accepted' });
  });

  it('is on its way with an asynchronous INS-0, whatever comes with it', () => {
    const taken = coded('INS-0', 201, { output_TransactionID: '49XCDF6' });
    expect(push(taken, false)).to.deep.equal({ kind: 'accepted' });
  });

  it('carries the words with which a session was refused, and whose fault that is', () => {
    const refused = {
      kind: 'notSent',
      why: 'no_session',
      text: '',
      code: 'INS-989',
      httpStatus: 400,
    } as const;
    expect(push(refused)).to.deep.equal({ kind: 'notAttempted', why: 'no_session', fault: 'us' });
    const away = { kind: 'notSent', why: 'no_session', text: 'ECONNREFUSED' } as const;
    expect(push(away)).to.deep.equal({ kind: 'notAttempted', why: 'no_session' });
  });

  it('takes no answer for another payment', () => {
    const other = { output_TransactionID: '49XCDF6', output_ThirdPartyConversationID: 'X1' };
    expect(push(coded('INS-0', 201, other))).to.deep.equal({ kind: 'unknown', why: 'other_payment' });
  });

  it('may be sent again only after 401, 403 and 429 without a code', () => {
    for (const httpStatus of [401, 403]) {
      const refused = { kind: 'notAttempted', why: 'gate_refused', fault: 'us' };
      expect(push(answered(httpStatus))).to.deep.equal(refused);
    }
    expect(push(answered(429))).to.deep.equal({ kind: 'notAttempted', why: 'gate_busy' });
    for (const httpStatus of [200, 201, 302, 400, 404, 408, 409, 500, 502, 503, 504]) {
      expect(push(answered(httpStatus)).kind, String(httpStatus)).to.equal('unknown');
    }
  });

  const status = (fields: Record<string, string>, httpStatus = 200) =>
    answeredStatus(vodacomTanzania, answered(httpStatus, fields));
  const said = (word: string, more: Record<string, string> = {}) =>
    status({ output_ResponseCode: 'INS-0', output_ResponseTransactionStatus: word, ...more });

  it('is paid only by INS-0, Completed and not Reversed', () => {
    expect(said('Completed', { output_Reversed: 'False', output_OriginalTransactionID: 'A1' })).to.deep.equal(
      {
        kind: 'succeeded',
        receipt: 'A1',
      },
    );
    expect(said('Completed', { output_Reversed: 'True' })).to.deep.equal({ kind: 'reversed' });
    expect(said('Completed', { output_Reversed: 'Perhaps' }).kind).to.equal('unknown');
    expect(said('Pending')).to.deep.equal({ kind: 'pending' });
    expect(said('Expired')).to.deep.equal({ kind: 'expired' });
    expect(said('Cancelled')).to.include({ kind: 'failed', code: 'cancelled' });
    expect(said('Failed')).to.include({ kind: 'failed', code: 'provider_error' });
    expect(said('N/A'), 'a silent customer leaves nothing behind').to.deep.equal({ kind: 'notFound' });
    for (const word of ['', 'Done', 'constructor']) {
      expect(said(word), word).to.deep.equal({ kind: 'unknown', why: 'unknown_status' });
    }
  });

  it('takes from callbacks why a payment failed, and never that it failed', async () => {
    const asked = (word: string, ...claims: string[]) => {
      const fields = { output_ResponseCode: 'INS-0', output_ResponseTransactionStatus: word };
      return reasonedStatus(vodacomTanzania, answered(200, fields), async () => claims);
    };
    const { code, fault } = (await asked('Failed', 'INS-2006')) as { code: string; fault: string };
    expect([code, fault]).to.deep.equal(['insufficient_funds', 'customer']);
    expect(await asked('Failed', 'INS-9', 'INS-6', 'INS-7777')).to.include({ code: 'declined' });
    for (const claims of [[], ['INS-0'], ['INS-1'], ['INS-6', 'INS-2006'], ['constructor']])
      expect(await asked('Failed', ...claims), claims.join()).to.include({ code: 'provider_error' });
    expect(await asked('Cancelled', 'INS-2006'), 'the rail’s own word').to.include({ code: 'cancelled' });
    for (const word of ['Pending', 'Expired', 'N/A'])
      expect(await asked(word, 'INS-2006'), word).to.deep.equal(said(word));
  });

  it('learns nothing of the payment from a refused question', () => {
    for (const code of ['INS-1', 'INS-6', 'INS-9', 'INS-13', 'INS-996', 'INS-2006', 'INS-7777']) {
      expect(status({ output_ResponseCode: code }, 401).kind, code).to.equal('unknown');
    }
    expect(status({ output_ResponseCode: 'INS-23' })).to.deep.equal({ kind: 'notFound' });
    expect(status({}, 401).kind).to.equal('unknown');
    expect(status({}, 502)).to.deep.equal({ kind: 'unknown', why: 'http_error' });
  });

  it('has reversed only with INS-0 and a receipt, and not when it was refused or never sent', () => {
    const reversal = (answer: WireAnswer) => answeredReversal(vodacomTanzania, answer).kind;
    expect(reversal(coded('INS-0', 201, { output_TransactionID: 'R1' }))).to.equal('succeeded');
    for (const code of vodacomTanzania.reversalRefused)
      expect(reversal(coded(code)), code).to.equal('failed');
    expect(reversal(coded('INS-0')), 'taken, and carried out later').to.equal('accepted');
    for (const code of ['INS-1', 'INS-9', 'INS-10', 'INS-7777']) {
      expect(reversal(coded(code)), code).to.equal('unknown');
    }
    expect(reversal({ kind: 'notSent', why: 'no_session', text: '' })).to.equal('notAttempted');
    expect(reversal({ kind: 'lost', why: 'timeout', text: '' })).to.equal('unknown');
  });

  it('takes a reversal’s own reference for what it says of the reversal, while the payment stands', () => {
    const asked = (answer: WireAnswer) => answeredReversalQuery(vodacomTanzania, answer).kind;
    const word = (status: string) => coded('INS-0', 200, { output_ResponseTransactionStatus: status });
    expect(asked(word('Completed'))).to.equal('reversed');
    expect(asked(word('Pending'))).to.equal('pending');
    for (const status of ['Failed', 'Cancelled', 'Expired'])
      expect(asked(word(status))).to.equal('succeeded');
    expect(asked(coded('INS-23')), 'never arrived').to.equal('succeeded');
    for (const answer of [word('Who knows'), coded('INS-1'), coded('INS-6')])
      expect(asked(answer)).to.equal('unknown');
    expect(asked({ kind: 'lost', why: 'timeout', text: '' })).to.equal('unknown');
  });

  it('finds the collection of a reversal, a payout and a refund by their own references', () => {
    const id = 'col_01JDXK9V3Q4ZB7M2N8T5R6W0AH';
    const { conversation, reversal } = referencesOf(id);
    expect(reversal).to.not.equal(conversation);
    for (const each of [conversation, reversal])
      expect(actorOfConversation(each)).to.deep.equal({ machine: 'collection', id });
    const payout = `po_${id.slice(4)}`;
    const { conversation: sent, display } = payoutReferencesOf(payout);
    expect([sent.length, display.length]).to.deep.equal([26, 16]);
    expect(actorOfConversation(sent)).to.deep.equal({ machine: 'payout', id: payout });
    for (const none of ['po_1', id, '']) expect(() => payoutReferencesOf(none), none).to.throw(RangeError);
    const refundId = `rf_${id.slice(4)}`;
    const back = reversalReferenceOf({ collectionId: id, refundId });
    expect(actorOfConversation(back)).to.deep.equal({ machine: 'refund', id: refundId });
    for (const other of ['RR', `R${reversal}`, `PR${sent.slice(2)}x`, 'P', `r${reversal.slice(1)}`, '', 'R'])
      expect(actorOfConversation(other), other).to.equal(undefined);
  });

  it('lists the few errors that mean never connected; every other one is unknown', () => {
    for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'CERT_HAS_EXPIRED']) {
      expect(isNeverConnected({ code }), code).to.equal(true);
    }
    for (const code of [
      'ECONNRESET',
      'EPIPE',
      'HPE_INVALID_CONSTANT',
      'ERR_SSL_BAD',
      undefined,
      'EWHATEVER',
    ]) {
      expect(isNeverConnected({ code }), String(code)).to.equal(false);
    }
    expect(isNeverConnected({ errors: [{ code: 'ECONNREFUSED' }, { code: 'ECONNRESET' }] })).to.equal(false);
    expect(isNeverConnected({ errors: [{ code: 'ECONNREFUSED' }, { code: 'ENETUNREACH' }] })).to.equal(true);
  });
});

describe('what M-Pesa is sent', () => {
  it('has references that follow from the collection and fit the documented patterns', () => {
    const references = referencesOf(`col_${conversation}`);
    expect(references).to.deep.equal({
      conversation,
      display: '4ZB7M2N8T5R6W0AH',
      reversal: `R${conversation.slice(1)}`,
    });
    expect(references.conversation).to.match(/^(?:[A-Za-z0-9]{10,20}|[A-Za-z0-9]{1,9}|[A-Za-z0-9]{21,32})$/);
    for (const id of ['', 'col_', 'evt_01JDXK9V3Q4ZB7M2N8T5R6W0AH', `col_${conversation}X`]) {
      expect(() => referencesOf(id), id).to.throw(RangeError);
    }
  });

  it('has a description of letters, digits and single spaces only, never empty', () => {
    expect(itemDescription('Café – 2 × "best" (№1) 🎉')).to.equal('Cafe 2 best No1');
    expect(itemDescription('🎉')).to.equal('Payment');
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 600 }), (text) => {
        expect(itemDescription(text)).to.match(/^[0-9A-Za-z]+(?: [0-9A-Za-z]+)*$/);
        expect(itemDescription(text).length).to.be.at.most(256);
      }),
    );
  });

  it('has whole amounts in plain digits', () => {
    expect(amountText(5_000_000)).to.equal('5000000');
    expect(amountText(Number.MAX_SAFE_INTEGER)).to.match(/^\d+$/);
    for (const amount of [0, -1, 1.5, Number.NaN, 1e21])
      expect(() => amountText(amount)).to.throw(RangeError);
  });
});

describe('callbacks of M-Pesa', () => {
  const parse = (body: string | Buffer) => parseMpesaCallback({ body: Buffer.from(body) });
  const notice = {
    input_OriginalConversationID: 'AG_20261121_7',
    input_TransactionID: '49XCDF6',
    input_ResultCode: 'INS-0',
    input_ResultDesc: 'Request processed successfully',
    input_ThirdPartyConversationID: conversation,
  };

  it('name a payment and give evidence, never a verdict', () => {
    const parsed = parse(JSON.stringify(notice));
    expect(parsed).to.deep.include({
      kind: 'report',
      about: { machine: 'collection', id: `col_${conversation}` },
    });
    expect(Object.keys(parsed).sort()).to.deep.equal(['about', 'dedupeKey', 'hint', 'kind', 'reply']);
    expect(JSON.parse(parsed.reply.body)).to.deep.equal({
      output_OriginalConversationID: 'AG_20261121_7',
      output_ResponseCode: '0',
      output_ResponseDesc: 'Successfully Accepted Result',
      output_ThirdPartyConversationID: conversation,
    });
  });

  it('have one key per repetition and another one for another claim', () => {
    const keyOf = (changes: object) => {
      const parsed = parse(JSON.stringify({ ...notice, ...changes }));
      return parsed.kind === 'report' ? parsed.dedupeKey : '';
    };
    expect(keyOf({})).to.equal(keyOf({ input_ResultDesc: 'said otherwise' }));
    expect(keyOf({})).not.to.equal(keyOf({ input_ResultCode: 'INS-6' }));
  });

  it('are answered whatever their bytes are', () => {
    const bytes = fc.uint8Array({ maxLength: 2_000 }).map((array) => Buffer.from(array));
    const json = fc.json().map((text) => Buffer.from(text));
    const fields = fc
      .record(
        Object.fromEntries(Object.keys(notice).map((name) => [name, fc.oneof(fc.string(), fc.jsonValue())])),
      )
      .map((value) => Buffer.from(JSON.stringify(value)));
    fc.assert(
      fc.property(fc.oneof(bytes, json, fields), (body) => {
        const parsed = parseMpesaCallback({ body });
        expect(parsed.reply.status).to.equal(200);
        expect(() => JSON.parse(parsed.reply.body)).not.to.throw();
        if (parsed.kind === 'report') expect(parsed.about.id).to.match(/^(col|po|rf)_[0-9A-Z]{26}$/);
      }),
      { numRuns: 1_000 },
    );
  });

  it('echo nothing but ids', () => {
    const parsed = parse(JSON.stringify({ ...notice, input_OriginalConversationID: '<script>' }));
    expect(parsed.reply.body).not.to.include('<');
    expect(fieldsOf('{"__proto__":"x","a":1,"b":{}}')).to.deep.equal({ a: '1' });
  });
});
