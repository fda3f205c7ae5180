import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { newSigningSecret, signatureHeaders } from '../../src/webhooks/sign.ts';
import { hasOpenssl, makeVectors, type Vectors, vectorsPath } from '../support/signature-vectors.ts';

const vectors: Vectors = JSON.parse(readFileSync(vectorsPath, 'utf8'));

function bytesOf(base64: string): Buffer {
  return Buffer.from(base64, 'base64');
}

describe('signature: vectors', () => {
  it('are what the openssl command computes', function () {
    if (!hasOpenssl()) this.skip();
    expect(makeVectors()).to.deep.equal(vectors);
  });

  for (const each of vectors.sign) {
    it(`sign: ${each.name}`, () => {
      const given = { eventId: each.event_id, secrets: each.secrets, atMs: each.at_ms };
      const body = bytesOf(each.body_base64);
      expect(signatureHeaders({ ...given, body })).to.deep.equal(each.headers);
      expect(signatureHeaders({ ...given, body: body.toString('utf8') })).to.deep.equal(each.headers);
    });
  }
});

describe('signature: other people’s libraries verify it unchanged', () => {
  const body = '{"id":"evt_1","type":"collection.succeeded","data":{"description":"kahawa ☕"}}';
  const older = newSigningSecret();
  const newer = newSigningSecret();
  const sign = (...secrets: string[]) =>
    signatureHeaders({ eventId: 'evt_1', body, secrets, atMs: Date.now() });
  const { webhooks } = new Stripe('sk_test_unused');

  it('stripe’s constructEvent takes the header with the body as text or as bytes', () => {
    const header = sign(older)['Service-Signature'];
    expect(webhooks.constructEvent(body, header, older)).to.have.property('id', 'evt_1');
    expect(webhooks.constructEvent(Buffer.from(body), header, older)).to.have.property('id', 'evt_1');
  });

  it('stripe’s constructEvent takes either secret while a rotation overlaps', () => {
    const header = sign(newer, older)['Service-Signature'];
    expect(webhooks.constructEvent(body, header, newer)).to.have.property('id', 'evt_1');
    expect(webhooks.constructEvent(body, header, older)).to.have.property('id', 'evt_1');
    expect(() => webhooks.constructEvent(body, header, newSigningSecret())).to.throw(/signature/i);
  });

  it('the header is the one stripe itself would make', () => {
    const header = sign(older)['Service-Signature'];
    const timestamp = Number(/^t=(\d+),/.exec(header)?.[1]);
    const theirs = webhooks.generateTestHeaderString({ payload: body, secret: older, timestamp });
    expect(header).to.equal(theirs);
  });

  it('standardwebhooks verifies the extra headers with the same secret, also during a rotation', () => {
    const one = sign(older);
    const both = sign(newer, older);
    expect(new Webhook(older).verify(body, one)).to.have.property('id', 'evt_1');
    expect(new Webhook(older).verify(body, both)).to.have.property('id', 'evt_1');
    expect(new Webhook(newer).verify(body, both)).to.have.property('id', 'evt_1');
    expect(() => new Webhook(newSigningSecret()).verify(body, both)).to.throw(/signature/i);
    expect(() => new Webhook(older).verify(`${body} `, one)).to.throw(/signature/i);
  });
});

describe('signature: signing', () => {
  it('refuses to send a webhook unsigned, or signed with something that is no secret of ours', () => {
    const given = { eventId: 'evt_1', body: '{}', atMs: 0 };
    const wrong = [
      '',
      'whsec_',
      'whsec_short',
      'whsec_not base64 at all, not at all, no',
      `${newSigningSecret()}\n`,
    ];
    expect(() => signatureHeaders({ ...given, secrets: [] })).to.throw(TypeError);
    for (const secret of wrong) {
      expect(() => signatureHeaders({ ...given, secrets: [secret] }), secret).to.throw(TypeError);
    }
  });

  it('makes secrets of 32 random bytes in standard base64', () => {
    const made = Array.from({ length: 200 }, newSigningSecret);
    expect(new Set(made)).to.have.property('size', made.length);
    for (const secret of made) {
      expect(secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).to.have.length(32);
    }
  });
});
