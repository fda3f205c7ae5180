import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import type { Vectors } from '../../../test/support/signature-vectors.ts';
import { webhooks } from '../src/index.ts';
import { genuineBytes } from '../src/signature.ts';

const vectorsPath = new URL('../../../test/unit/signature.vectors.json', import.meta.url);
const vectors: Vectors = JSON.parse(readFileSync(vectorsPath, 'utf8'));
const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';
const newer = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgdHdvLi4=';
const stranger = 'whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCwgMzIgYnl0ZXM=';
const body = '{"id":"evt_1","type":"collection.succeeded","data":{"description":"kahawa ☕"}}';

/** What a call threw: the reason of a refusal, or `accepted`. */
async function verdict(verifying: Promise<unknown>): Promise<string> {
  return await verifying.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof webhooks.SignatureRefused) return error.reason;
      throw error;
    },
  );
}

describe('webhooks.verify', () => {
  for (const each of vectors.verify) {
    it(`${each.verdict}: ${each.name}`, async () => {
      const options = { nowSeconds: each.now_seconds, toleranceSeconds: each.tolerance_seconds };
      const expected = each.verdict === 'accept' ? 'accepted' : each.reason;
      const bytes = Buffer.from(each.body_base64, 'base64');
      const forms = [bytes, new Uint8Array(bytes).buffer, ...(each.body === undefined ? [] : [each.body])];
      for (const raw of forms)
        expect(await verdict(genuineBytes(raw, each.header, each.secret, options))).to.equal(expected);
    });
  }

  it('gives the event', async () => {
    const headers = await webhooks.sign(body, secret);
    const event = await webhooks.verify(body, headers['Service-Signature'], secret);
    expect(event).to.deep.equal(JSON.parse(body));
  });

  it('uses the present time and 300 seconds when told nothing else', async () => {
    const at = async (nowSeconds: number) =>
      (await webhooks.sign(body, secret, { nowSeconds }))['Service-Signature'];
    const now = Date.now() / 1000;
    expect(await verdict(webhooks.verify(body, await at(now), secret))).to.equal('accepted');
    for (const t of [now - 310, now + 310])
      expect(await verdict(webhooks.verify(body, await at(t), secret))).to.equal(
        'timestamp_out_of_tolerance',
      );
  });

  it('takes one of several secrets', async () => {
    const { 'Service-Signature': header } = await webhooks.sign(body, secret);
    expect(await verdict(webhooks.verify(body, header, [newer, secret]))).to.equal('accepted');
    expect(await verdict(webhooks.verify(body, header, [newer, stranger]))).to.equal('signature_mismatch');
    expect(await verdict(webhooks.verify(body, header, []))).to.equal('secret_missing');
    expect(await verdict(webhooks.verify(body, header, [secret, '']))).to.equal('secret_missing');
  });

  it('refuses a parsed body, a repeated header and an unset secret by name', async () => {
    const { 'Service-Signature': header } = await webhooks.sign(body, secret);
    const parsed = JSON.parse(body) as string;
    const unset = process.env.KUSANYA_NO_SUCH_SECRET as string;
    expect(await verdict(webhooks.verify(parsed, header, secret))).to.equal('body_not_raw');
    expect(await verdict(webhooks.verify(body, [header, header], secret))).to.equal('header_missing');
    expect(await verdict(webhooks.verify(body, header, unset))).to.equal('secret_missing');
  });

  it('refuses when the clock or the tolerance is not a number', async () => {
    const { 'Service-Signature': header } = await webhooks.sign(body, secret, { nowSeconds: 0 });
    for (const options of [{ nowSeconds: Number.NaN }, { nowSeconds: 0, toleranceSeconds: Number.NaN }])
      expect(await verdict(webhooks.verify(body, header, secret, options))).to.equal(
        'timestamp_out_of_tolerance',
      );
  });

  it('accepts what was signed, whatever the bytes, and refuses any other bytes', async () => {
    const vector = fc.asyncProperty(
      fc.string(),
      fc.nat(4_000_000_000),
      fc.nat(),
      async (text, nowSeconds, place) => {
        const signed = Buffer.from(JSON.stringify({ id: 'evt_1', text }));
        const { 'Service-Signature': header } = await webhooks.sign(signed, secret, { nowSeconds });
        const altered = Buffer.from(signed);
        altered[place % altered.length]! ^= 1;
        expect(await verdict(webhooks.verify(signed, header, secret, { nowSeconds }))).to.equal('accepted');
        expect(await verdict(genuineBytes(altered, header, secret, { nowSeconds }))).to.equal(
          'signature_mismatch',
        );
      },
    );
    await fc.assert(vector);
  });

  it('refuses any header by name', async () => {
    const parts = ['t=', 'v1=', ',', '1780000000', '=', 'a'.repeat(64), ' ', 'é', '-', '\u0000'];
    const property = fc.asyncProperty(fc.array(fc.constantFrom(...parts)), async (pieces) => {
      const refused = await verdict(webhooks.verify(body, pieces.join(''), secret, { nowSeconds: 0 }));
      expect(refused).to.not.equal('accepted');
    });
    await fc.assert(property);
  });
});

describe('webhooks.sign', () => {
  for (const each of vectors.sign) {
    it(`makes the service’s headers: ${each.name}`, async () => {
      const raw = Buffer.from(each.body_base64, 'base64');
      const given = { nowSeconds: each.at_ms / 1000, id: each.event_id };
      expect(await webhooks.sign(raw, each.secrets, given)).to.deep.equal(each.headers);
    });
  }

  it('refuses what is no secret, and a body without an id', async () => {
    for (const wrong of ['', 'whsec_', 'whsec_short', 'abc', []])
      await webhooks.sign(body, wrong).then(
        () => expect.fail(`signed with ${wrong}`),
        (error) => expect(error).to.be.instanceOf(TypeError),
      );
    await webhooks.sign('{}', secret).then(
      () => expect.fail('signed'),
      (error) => expect(error).to.be.instanceOf(TypeError),
    );
  });

  it('is what the libraries of Stripe and of Standard Webhooks verify, also during a rotation', async () => {
    for (const secrets of [secret, [newer, secret]]) {
      const headers = await webhooks.sign(body, secrets);
      const { webhooks: stripe } = new Stripe('sk_test_unused');
      expect(stripe.constructEvent(body, headers['Service-Signature'], secret)).to.have.property(
        'id',
        'evt_1',
      );
      expect(new Webhook(secret).verify(body, headers)).to.have.property('id', 'evt_1');
      expect(() => new Webhook(stranger).verify(body, headers)).to.throw(/signature/i);
    }
  });
});
