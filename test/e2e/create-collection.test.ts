import { expect } from 'chai';
import { clockAtNoon } from '../support/noon.ts';
import { type Answer, startTestService, type TestMerchant, type TestService } from '../support/service.ts';

interface Fault {
  param: string;
  code: string;
}

/** The rest of a body whose amount is written out. */
const phoneAndReference = '"phone":"255700000000","reference":"order-1"';

/** CONTRACT 8.1 and 8.5, 6 and 7. */
describe('POST /v1/collections', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(() => test.stop());

  it('answers 202 with a collection that is created, has its fee and echoes what was sent', async () => {
    const sent = {
      amount: 12_500,
      phone: '+255 712-345 678',
      reference: 'order-1002',
      description: 'Two kilos of coffee ☕',
      metadata: { order_id: 'A-1002', table: 7, gift: false },
    };
    const { clock } = test.service.wired;
    const before = clock.now();
    const { status, json } = await merchant.create(sent);
    expect(status).to.equal(202);
    const { id, created_at, expires_at, ...fields } = json;
    expect(fields).to.deep.equal({
      ...sent,
      object: 'collection',
      status: 'created',
      fee: 250,
      currency: 'TZS',
      channel: 'MPESA_TZ',
      mode: 'test',
    });
    expect(id).to.match(/^col_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(Date.parse(created_at)).to.be.within(before - 1_000, clock.now() + 1_000);
    expect(Date.parse(expires_at)).to.be.above(Date.parse(created_at));
  });

  it('needs amount, phone and reference only: description stays away and metadata is empty', async () => {
    const { status, json } = await merchant.create();
    expect(status).to.equal(202);
    expect(json).to.not.have.any.keys('description', 'completed_at', 'failure_code', 'failure_message');
    expect(json.metadata).to.deep.equal({});
  });

  it('takes 2 % as the fee, a half shilling rounded up', async () => {
    const amounts = [100, 124, 125, 149, 175, 4_999, 5_000, 5_000_000];
    const answers = await Promise.all(amounts.map((amount) => merchant.create({ amount })));
    expect(answers.map(({ json }) => json.fee)).to.deep.equal([2, 2, 3, 3, 4, 100, 100, 100_000]);
  });

  it('takes amounts from 100 to 5,000,000 whole shillings, however JSON spells the number', async () => {
    for (const amount of ['100', '5000000', '5e3', '5000.0']) {
      const answer = await merchant.create({}, undefined, `{"amount":${amount},${phoneAndReference}}`);
      expect(answer.status, amount).to.equal(202);
      expect(answer.json.amount).to.equal(Number(amount));
    }
  });

  it('takes a mobile number in its three spellings, of any operator, and echoes it as sent', async () => {
    const phones = ['255712345678', '+255612345678', '0799999999', '0 65-0 00 00 01', '+255-700-000-000'];
    for (const phone of phones) {
      const { status, json } = await merchant.create({ phone });
      expect([status, json.phone]).to.deep.equal([202, phone]);
    }
  });

  it('takes references and descriptions up to their last character, emoji counted as one', async () => {
    for (const reference of ['x', 'é'.repeat(100), '🧾'.repeat(100), ' a b ']) {
      const { status, json } = await merchant.create({ reference, description: reference });
      expect([status, json.reference, json.description]).to.deep.equal([202, reference, reference]);
    }
    expect((await merchant.create({ description: '🧾'.repeat(255) })).status).to.equal(202);
    expect((await merchant.create({ description: '' })).json.description).to.equal('');
  });

  it('the same reference may be used again', async () => {
    const both = await Promise.all([merchant.create(), merchant.create()]);
    expect(both.map(({ status }) => status)).to.deep.equal([202, 202]);
    expect(both[0]!.json.id).to.not.equal(both[1]!.json.id);
  });

  it('gives metadata back as sent, name by name and value by value, also once it has been stored', async () => {
    const metadata = {
      'a.b': 'dot',
      $where: 'sleep(1000)',
      $gt: '',
      zero: 0,
      minus: -1.5e-7,
      big: 2 ** 53,
      no: false,
      text: '\u0000 "quoted" \\ 💵 ',
      ' ': 'x'.repeat(500),
      ['k'.repeat(40)]: 'é'.repeat(500),
      toString: 'kept',
      2: 'a number sorts first in JavaScript',
    };
    const { status, json } = await merchant.create({ metadata });
    expect(status).to.equal(202);
    expect(json.metadata).to.deep.equal(metadata);
    const { json: read } = await merchant.get(`/v1/collections/${json.id}`);
    expect(JSON.stringify(read.metadata)).to.equal(JSON.stringify(metadata));
    const text =
      '{"amount":5000,"phone":"255700000000","reference":"r","metadata":{"b":1.10,"a":"é","10":2e1}}';
    const spelt = await merchant.create({}, undefined, text);
    // A number comes back as the same number, which JSON has many ways to write; the order of names is nobody's.
    expect(spelt.json.metadata).to.deep.equal({ b: 1.1, a: 'é', 10: 20 });
  });

  it('takes fifty keys of metadata', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`key-${n}`, n]));
    expect((await merchant.create({ metadata })).json.metadata).to.deep.equal(metadata);
  });

  describe('refuses, and creates nothing', () => {
    let refused: TestMerchant;

    before(async () => {
      refused = await test.merchant();
    });

    for (const { name, body, faults } of badBodies()) {
      it(`${name}: ${faults.join(', ').replace('\0', '\\0')}`, async () => {
        const key = `bad-${name}`;
        const text = typeof body === 'string' ? body : undefined;
        const answer = await refused.create(text ? {} : (body as object), key, text);
        expect(answer.status, answer.text).to.equal(400);
        const { error } = answer.json;
        const found = error.errors.map(({ param, code }: Fault) => `${param} ${code}`);
        expect(found).to.deep.equal(faults);
        // The first fault speaks for the answer as a whole.
        const { param, code, message } = error;
        expect({ param, code, message }).to.deep.equal(error.errors[0]);
        expect(error.type).to.equal('invalid_request_error');
      });
    }

    it('a body without any field: all three are named', async () => {
      const { json } = await refused.create({}, 'empty', '{}');
      const missing = ['amount', 'phone', 'reference'].map((param) => `${param} parameter_missing`);
      expect(json.error.errors.map(({ param, code }: Fault) => `${param} ${code}`)).to.have.members(missing);
    });

    it('amounts in cents are told the unit', async () => {
      const { json } = await refused.create({ amount: 500_000_000 });
      expect(json.error.message).to.include('whole shillings').and.to.include('5000 is TZS 5,000');
    });

    it('a query parameter, which the path does not take', async () => {
      const answer = await test.call('POST', '/v1/collections?dry_run=true', {
        token: refused.key,
        headers: { 'idempotency-key': 'query' },
        body: { amount: 5000, phone: '255700000000', reference: 'order-1' },
      });
      expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'parameter_unknown']);
    });

    it('so that of all of the above nothing is left: no collection and no stored answer', async () => {
      const { json } = await refused.get('/v1/collections');
      expect(json).to.deep.equal({ object: 'list', data: [], has_more: false });
      const { db } = test.service.wired;
      const stored = await db.collection<{ _id: string }>('idempotency').countDocuments({
        _id: { $gte: `${refused.id}.`, $lt: `${refused.id}/` },
      });
      expect(stored).to.equal(0);
    });
  });

  it('holds amounts to the bounds agreed with the merchant', async () => {
    const bounded = await test.merchant({ amount_min: 1_000, amount_max: 2_000 });
    const codes = [];
    for (const amount of [999, 1_000, 2_000, 2_001]) {
      const { status, json } = await bounded.create({ amount });
      codes.push(status === 202 ? status : json.error.code);
    }
    expect(codes).to.deep.equal(['amount_too_small', 202, 202, 'amount_too_large']);
    // They are a merchant's own in both directions: beyond the default there is room, too.
    const large = await test.merchant({ amount_max: 3_000_000_000 });
    const { json } = await large.create({ amount: 3_000_000_000 });
    expect([json.amount, json.fee]).to.deep.equal([3_000_000_000, 60_000_000]);
    const { json: read } = await large.get(`/v1/collections/${json.id}`);
    expect([read.amount, read.fee]).to.deep.equal([3_000_000_000, 60_000_000]);
  });

  it('metadata beyond 16 KiB is refused even where each value is small enough', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`k${n}`, 'x'.repeat(450)]));
    const answer: Answer = await merchant.create({ metadata });
    expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'metadata_invalid']);
  });
});

describe('the fee', () => {
  let test: TestService;

  before(async () => {
    test = await startTestService({ FEE_BPS: '150', FEE_FIXED: '200' }, { clock: clockAtNoon() });
  });

  after(() => test.stop());

  it('adds its fixed part, and is deducted from what the merchant receives', async () => {
    const merchant = await test.merchant();
    const { json } = await merchant.create({ amount: 10_000 });
    expect(json.fee).to.equal(350);
    await merchant.final(json.id);
    expect((await merchant.get('/v1/balance')).json.pending).to.equal(9_650);
  });

  it('that would reach the amount refuses it', async () => {
    const merchant = await test.merchant();
    const { status, json } = await merchant.create({ amount: 203 });
    expect([status, json.error.code, json.error.param]).to.deep.equal([400, 'amount_too_small', 'amount']);
    expect((await merchant.create({ amount: 204 })).json.fee).to.equal(203);
    expect((await merchant.get('/v1/collections')).json.data).to.have.length(1);
  });
});

/** Every kind of bad field, as a change to a good body or as a whole text, with the faults it must get. */
function badBodies(): { name: string; body: object | string; faults: string[] }[] {
  const rows: [name: string, body: object | string, ...faults: string[]][] = [
    ['one shilling short', { amount: 99 }, 'amount amount_too_small'],
    ['nothing', { amount: 0 }, 'amount amount_too_small'],
    ['less than nothing', { amount: -5000 }, 'amount amount_too_small'],
    ['one shilling over', { amount: 5_000_001 }, 'amount amount_too_large'],
    ['beyond 2^53', `{"amount":9007199254740993,${phoneAndReference}}`, 'amount amount_too_large'],
    ['beyond all numbers', `{"amount":1e999,${phoneAndReference}}`, 'amount amount_too_large'],
    ['a fraction', { amount: 5000.5 }, 'amount parameter_invalid'],
    ['text for an amount', { amount: '5000' }, 'amount parameter_invalid'],
    ['null for an amount', { amount: null }, 'amount parameter_invalid'],
    ['true for an amount', { amount: true }, 'amount parameter_invalid'],
    ['a list for an amount', { amount: [5000] }, 'amount parameter_invalid'],
    ['no amount', { amount: undefined }, 'amount parameter_missing'],
    ['no phone', { phone: undefined }, 'phone parameter_missing'],
    ['a phone of another country', { phone: '+254712345678' }, 'phone phone_invalid'],
    ['a phone one digit short', { phone: '25571234567' }, 'phone phone_invalid'],
    ['a phone one digit long', { phone: '2557123456789' }, 'phone phone_invalid'],
    ['a landline', { phone: '0222123456' }, 'phone phone_invalid'],
    ['letters for a phone', { phone: '0712EVE678' }, 'phone phone_invalid'],
    ['digits of another script', { phone: '٠٧١٢٣٤٥٦٧٨' }, 'phone phone_invalid'],
    ['an empty phone', { phone: '' }, 'phone phone_invalid'],
    ['a number for a phone', { phone: 255712345678 }, 'phone phone_invalid'],
    ['no reference', { reference: undefined }, 'reference parameter_missing'],
    ['an empty reference', { reference: '' }, 'reference parameter_invalid'],
    ['a blank reference', { reference: ' \u00a0' }, 'reference parameter_invalid'],
    ['a reference of 101', { reference: 'x'.repeat(101) }, 'reference parameter_invalid'],
    ['a reference of two lines', { reference: 'order\n1' }, 'reference parameter_invalid'],
    ['a number for a reference', { reference: 1001 }, 'reference parameter_invalid'],
    ['a description of 256', { description: 'x'.repeat(256) }, 'description parameter_invalid'],
    ['null for a description', { description: null }, 'description parameter_invalid'],
    ['null for metadata', { metadata: null }, 'metadata metadata_invalid'],
    ['a list for metadata', { metadata: ['a'] }, 'metadata metadata_invalid'],
    ['null in metadata', { metadata: { a: null } }, 'metadata.a metadata_invalid'],
    ['an object in metadata', { metadata: { a: { b: 1 } } }, 'metadata.a metadata_invalid'],
    ['501 characters in metadata', { metadata: { a: 'x'.repeat(501) } }, 'metadata.a metadata_invalid'],
    ['an empty key', { metadata: { '': 1 } }, 'metadata. metadata_invalid'],
    [
      '51 keys',
      { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [n, 1])) },
      'metadata metadata_invalid',
    ],
    ['a key of 41', { metadata: { ['k'.repeat(41)]: 1 } }, `metadata.${'k'.repeat(40)} metadata_invalid`],
    ['a NUL in a key', { metadata: { 'a\0': 1 } }, 'metadata.a\0 metadata_invalid'],
    ['_bsontype', { metadata: { _bsontype: 'ObjectId' } }, 'metadata._bsontype metadata_invalid'],
    ['constructor', { metadata: { constructor: 'x' } }, 'metadata.constructor metadata_invalid'],
    ['prototype', { metadata: { prototype: 'x' } }, 'metadata.prototype metadata_invalid'],
    [
      '__proto__',
      `{"amount":5000,${phoneAndReference},"metadata":{"__proto__":"x"}}`,
      'metadata metadata_invalid',
    ],
    ['half a surrogate pair', { metadata: { a: '\ud83d' } }, 'metadata.a metadata_invalid'],
    [
      '1e999 in metadata',
      `{"amount":5000,${phoneAndReference},"metadata":{"a":1e999}}`,
      'metadata.a metadata_invalid',
    ],
    ['a misspelt field', { amuont: 5000 }, 'amuont parameter_unknown'],
    ['a status', { status: 'succeeded' }, 'status parameter_unknown'],
    ['a currency', { currency: 'USD' }, 'currency parameter_unknown'],
    ['two faults', { amount: 1, phone: '1' }, 'amount amount_too_small', 'phone phone_invalid'],
  ];
  return rows.map(([name, body, ...faults]) => ({ name, body, faults }));
}
