import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import { type Answer, startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** CONTRACT 5. */
describe('idempotency', () => {
  const clock = clockAtNoon();
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock });
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const codeOf = ({ json }: Answer) => json.error?.code;
  const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true';
  /** How many collections a merchant has. */
  const count = async (of: TestMerchant) => (await of.get('/v1/collections?limit=100')).json.data.length;

  it('the same key and body get the first answer again, byte for byte, marked as a replay', async () => {
    const first = await merchant.create({ metadata: { b: 1, a: 2 } }, 'replayed');
    const again = await merchant.create({ metadata: { b: 1, a: 2 } }, 'replayed');
    expect([first.status, again.status]).to.deep.equal([202, 202]);
    expect(again.text).to.equal(first.text);
    expect([isReplay(first), isReplay(again)]).to.deep.equal([false, true]);
    expect(first.headers.has('idempotent-replayed')).to.equal(false);
    expect(again.headers.get('request-id')).to.not.equal(first.headers.get('request-id'));
  });

  it('the first answer comes again even when the collection has succeeded since', async () => {
    const first = await merchant.create({}, 'succeeded since');
    expect((await merchant.final(first.json.id)).status).to.equal('succeeded');
    const again = await merchant.create({}, 'succeeded since');
    expect(again.text).to.equal(first.text);
    expect(again.json.status).to.equal('created');
  });

  it('the same key with a different body is 409 idempotency_key_reused', async () => {
    const before = await count(merchant);
    const first = await merchant.create({ amount: 5000 }, 'reused');
    for (const changes of [
      { amount: 5001 },
      { metadata: {} },
      { description: '' },
      { phone: '0700000000' },
    ]) {
      const other = await merchant.create(changes, 'reused');
      expect([other.status, codeOf(other)]).to.deep.equal([409, 'idempotency_key_reused']);
      expect(other.json.error.type).to.equal('idempotency_error');
    }
    // A body that would be refused by itself is compared first: the key is what is wrong with it.
    expect(codeOf(await merchant.create({ amount: 'much' }, 'reused'))).to.equal('idempotency_key_reused');
    expect((await merchant.create({ amount: 5000 }, 'reused')).text).to.equal(first.text);
    expect(await count(merchant)).to.equal(before + 1);
  });

  it('the order of the keys and white space do not make a body different', async () => {
    const first = await merchant.create(
      {},
      'spelling',
      '{"amount":5000,"phone":"255700000000","reference":"é","metadata":{"a":1,"b":2}}',
    );
    const again = await merchant.create(
      {},
      'spelling',
      ' {\n "metadata" : {"b": 2.0, "a": 1e0},\t"reference": "\\u00e9", "phone": "255700000000", "amount": 5E3 }\r\n',
    );
    expect([again.status, again.text]).to.deep.equal([202, first.text]);
    expect(isReplay(again)).to.equal(true);
  });

  it('a refused request stores nothing: the corrected body may use its key', async () => {
    expect((await merchant.create({ amount: 1 }, 'corrected')).status).to.equal(400);
    expect((await merchant.create({ phone: 'x' }, 'corrected')).status).to.equal(400);
    expect((await merchant.create({}, 'corrected', '{"amount":')).status).to.equal(400);
    const corrected = await merchant.create({}, 'corrected');
    expect([corrected.status, isReplay(corrected)]).to.deep.equal([202, false]);
  });

  describe('the key', () => {
    const body = JSON.stringify({ amount: 5000, phone: '255700000000', reference: 'order-1' });
    const post = (keys: string | string[] | undefined) =>
      test.raw('POST', '/v1/collections', {
        key: merchant.key,
        headers: {
          'Content-Type': 'application/json',
          ...(keys === undefined ? {} : { 'Idempotency-Key': keys }),
        },
        body,
      });
    const verdict = ({ status, text }: { status: number; text: string }) =>
      `${status} ${JSON.parse(text).error?.code ?? JSON.parse(text).status}`;

    it('is required', async () => {
      expect(verdict(await post(undefined))).to.equal('400 idempotency_key_missing');
    });

    it('has 1 to 255 printable ASCII characters', async () => {
      for (const key of ['x', '~'.repeat(255), 'a b, c', '"quoted"', '$where', 'col_1/..%2F']) {
        expect(verdict(await post(key)), key).to.equal('202 created');
      }
      for (const key of ['', ' ', 'x'.repeat(256), 'a\tb', 'clé']) {
        expect(verdict(await post(key)), key).to.equal('400 idempotency_key_invalid');
      }
    });

    it('comes once: two headers are refused, also two equal ones', async () => {
      expect(verdict(await post(['one', 'two']))).to.equal('400 idempotency_key_invalid');
      expect(verdict(await post(['one', 'one']))).to.equal('400 idempotency_key_invalid');
    });

    it('is told apart by case and by every character', async () => {
      const ids = [];
      for (const key of ['Order-7', 'order-7', 'order-7.', 'order-70']) {
        ids.push((await merchant.create({}, key)).json.id);
      }
      expect(new Set(ids).size).to.equal(4);
    });

    it('is looked at before the body is judged, and after the content type', async () => {
      const bad = {
        key: merchant.key,
        headers: { 'Content-Type': 'application/json' },
        body: '{"amount":1}',
      };
      expect(verdict(await test.raw('POST', '/v1/collections', bad))).to.equal('400 idempotency_key_missing');
      const plain = { key: merchant.key, headers: { 'Content-Type': 'text/plain' }, body };
      expect(verdict(await test.raw('POST', '/v1/collections', plain))).to.equal(
        '415 unsupported_media_type',
      );
    });
  });

  describe('the scope', () => {
    it('is the merchant, not the API key: a key rotated in the middle of a retry charges nobody twice', async () => {
      const first = await merchant.create({}, 'rotated');
      const { secret } = await test.issueKey(merchant.id, 'test');
      const again = await merchant.create({}, 'rotated', undefined, secret);
      expect([again.text, isReplay(again)]).to.deep.equal([first.text, true]);
    });

    it('keeps merchants apart', async () => {
      const other = await test.merchant();
      const [mine, theirs] = [await merchant.create({}, 'shared'), await other.create({}, 'shared')];
      expect([theirs.status, isReplay(theirs)]).to.deep.equal([202, false]);
      expect(theirs.json.id).to.not.equal(mine.json.id);
      expect(codeOf(await other.create({ amount: 1 }, 'shared'))).to.equal('idempotency_key_reused');
    });

    it('keeps modes apart: a live request never gets a test answer', async () => {
      const phone = '255712345678';
      await merchant.create({ phone }, 'both modes');
      const { secret } = await test.issueKey(merchant.id, 'live');
      const live = await merchant.create({ phone }, 'both modes', undefined, secret);
      expect([live.status, codeOf(live), isReplay(live)]).to.deep.equal([503, 'channel_unavailable', false]);
      const other = await merchant.create({ phone, amount: 6000 }, 'both modes', undefined, secret);
      expect(codeOf(other)).to.equal('channel_unavailable');
    });
  });

  it('fifty parallel requests with one key make one collection and get fifty equal answers', async () => {
    const alone = await test.merchant();
    const answers = await Promise.all(Array.from({ length: 50 }, () => alone.create({}, 'parallel')));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
    expect(answers[0]!.status).to.equal(202);
    expect(answers.filter((answer) => !isReplay(answer))).to.have.length(1);
    expect(await count(alone)).to.equal(1);
    await alone.final(answers[0]!.json.id);
    expect((await alone.get('/v1/balance')).json.pending).to.equal(4900);
  });

  it('parallel requests with one key and different bodies make one collection too', async () => {
    const alone = await test.merchant();
    const amounts = Array.from({ length: 20 }, (_, n) => 1_000 + (n % 4));
    const answers = await Promise.all(amounts.map((amount) => alone.create({ amount }, 'parallel')));
    const made = answers.filter(({ status }) => status === 202);
    expect(new Set(made.map(({ text }) => text)).size).to.equal(1);
    expect(made.length).to.equal(5);
    expect(new Set(answers.filter(({ status }) => status !== 202).map(codeOf))).to.deep.equal(
      new Set(['idempotency_key_reused']),
    );
    expect(await count(alone)).to.equal(1);
  });

  it('two services that race on one database make one collection per key, whichever was asked', async () => {
    const twin = await startTestService({}, { clock, database: test.config.mongodbDatabase });
    try {
      const alone = await test.merchant();
      const atTwin = (key: string) =>
        twin.call('POST', '/v1/collections', {
          token: alone.key,
          headers: { 'idempotency-key': key },
          body: { amount: 5000, phone: '255700000000', reference: 'order-1' },
        });
      for (let key = 0; key < 6; key += 1) {
        const racers = Array.from({ length: 6 }, (_, n) =>
          n % 2 === key % 2 ? alone.create({}, `race-${key}`) : atTwin(`race-${key}`),
        );
        const answers = await Promise.all(racers);
        expect(
          new Set(answers.map(({ status, text }) => `${status} ${text}`)).size,
          answers[0]!.text,
        ).to.equal(1);
        expect(answers[0]!.status).to.equal(202);
        expect(answers.filter((answer) => !isReplay(answer))).to.have.length(1);
      }
      expect(await count(alone)).to.equal(6);
    } finally {
      await twin.stop();
    }
  });

  describe('after 24 hours', () => {
    let test: TestService;
    before(async () => {
      test = await startTestService({}, { clock });
    });
    after(() => test.stop());

    const merchants: TestMerchant[] = [];
    const newMerchant = async () => {
      merchants.push(await test.merchant());
      return merchants.at(-1)!;
    };
    /** Where a push waits for a day, no payment is taken (CONTRACT 8.9): all are over first. */
    const pass = async (ms: number) => {
      for (const each of merchants)
        for (const { id } of (await each.get('/v1/collections')).json.data) await each.final(id);
      clock.advance(ms);
    };

    it('a key is new again: the same body makes another collection, and that is replayed from then on', async () => {
      const alone = await newMerchant();
      const first = await alone.create({}, 'aged');
      await pass(limits.dayMs - limits.minuteMs);
      const stillKept = await alone.create({}, 'aged');
      expect([stillKept.text, isReplay(stillKept)]).to.deep.equal([first.text, true]);
      await pass(limits.minuteMs);
      const second = await alone.create({}, 'aged');
      expect([second.status, isReplay(second)]).to.deep.equal([202, false]);
      expect(second.json.id).to.not.equal(first.json.id);
      // A replay does not make a key live longer: the 24 hours are from its first use.
      const again = await alone.create({}, 'aged');
      expect([again.text, isReplay(again)]).to.deep.equal([second.text, true]);
      expect(await count(alone)).to.equal(2);
    });

    it('a key is new for another body too', async () => {
      const alone = await newMerchant();
      await alone.create({ amount: 5000 }, 'aged');
      await pass(limits.dayMs);
      expect((await alone.create({ amount: 7000 }, 'aged')).json.amount).to.equal(7000);
      expect(codeOf(await alone.create({ amount: 5000 }, 'aged'))).to.equal('idempotency_key_reused');
    });

    it('parallel requests take an expired key over once', async () => {
      const alone = await newMerchant();
      const first = await alone.create({}, 'aged');
      await pass(limits.dayMs);
      const answers = await Promise.all(Array.from({ length: 20 }, () => alone.create({}, 'aged')));
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
      expect(answers[0]!.json.id).to.not.equal(first.json.id);
      expect(await count(alone)).to.equal(2);
    });
  });
});
