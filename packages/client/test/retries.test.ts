import { expect } from 'chai';
import { openProxy, type TcpProxy } from '../../../test/support/proxy.ts';
import { startTestService, type TestMerchant, type TestService } from '../../../test/support/service.ts';
import { Kusanya, KusanyaError } from '../src/index.ts';
import { errorOf } from './support/rejected.ts';

const params = { amount: 5000, phone: '255700000000', reference: 'order-1' };

describe('retries over a line that breaks', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let proxy: TcpProxy;
  let kusanya: Kusanya;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
    proxy = await openProxy({ port: Number(new URL(test.baseUrl).port) });
    kusanya = new Kusanya(merchant.key, { baseUrl: `http://127.0.0.1:${proxy.port}`, timeoutMs: 1_500 });
  });

  after(async () => {
    await proxy.close();
    await test.stop();
  });

  const named = async (reference: string) =>
    (await merchant.get(`/v1/collections?reference=${reference}`)).json.data as { id: string }[];

  for (const arrives of [true, false]) {
    it(`make one collection when ${arrives ? 'the answer' : 'the request'} is lost`, async () => {
      const reference = `lost-${arrives}`;
      const lost = proxy.silence(['POST /v1/collections', reference], arrives);
      const created = await kusanya.collections.create(
        { ...params, reference },
        { idempotencyKey: reference },
      );
      await lost;
      expect((await named(reference)).map(({ id }) => id)).to.deep.equal([created.id]);
    });
  }

  it('end with an outcome that is unknown when no answer ever comes, and the same key finds it out', async () => {
    const reference = 'never-answered';
    const impatient = new Kusanya(merchant.key, {
      baseUrl: `http://127.0.0.1:${proxy.port}`,
      timeoutMs: 1_000,
      maxRetries: 0,
    });
    const lost = proxy.silence(['POST /v1/collections', reference], true);
    const sent = impatient.collections.create({ ...params, reference }, { idempotencyKey: reference });
    const error = await errorOf(KusanyaError, sent);
    await lost;
    expect(error).to.include({ type: 'connection_error', code: 'connection_timeout', outcome: 'unknown' });
    const created = await impatient.collections.create(
      { ...params, reference },
      { idempotencyKey: reference },
    );
    expect((await named(reference)).map(({ id }) => id)).to.deep.equal([created.id]);
  });

  it('wait for a line that is cut and comes back, also in the middle of a wait', async () => {
    const created = await kusanya.collections.create(params, { idempotencyKey: 'cut' });
    proxy.cut();
    setTimeout(() => proxy.mend(), 1_500);
    expect((await kusanya.collections.wait(created.id)).status).to.equal('succeeded');
  });

  it('say that nothing was done where no line could even be opened', async () => {
    const closed = await openProxy({ port: 1 });
    await closed.close();
    const nobody = new Kusanya(merchant.key, { baseUrl: `http://127.0.0.1:${closed.port}`, maxRetries: 1 });
    const error = await errorOf(
      KusanyaError,
      nobody.collections.create(params, { idempotencyKey: 'nobody' }),
    );
    expect(error).to.include({ code: 'connection_failed', outcome: 'none', status: undefined });
    expect(error.message).to.include('ECONNREFUSED').and.not.include(merchant.key);
  });
});

/** Answers that a service gives rarely, one after the other. */
describe('retries of what was answered', () => {
  interface Sent {
    key: string | null;
    body: unknown;
    at: number;
  }

  const errorAnswer = (status: number, code: string, type: string, headers: Record<string, string> = {}) =>
    Response.json(
      { error: { type, code, message: code, request_id: 'req_of_the_service' } },
      { status, headers },
    );
  const good = () => Response.json({ id: 'col_1', status: 'created' }, { status: 202 });

  function script(answers: (() => Response)[]): { kusanya: Kusanya; sent: Sent[] } {
    const sent: Sent[] = [];
    const kusanya = new Kusanya('kusanya_test_sk_secret', {
      baseUrl: 'http://service.test',
      fetch: async (_url, { headers, body }) => {
        sent.push({ key: new Headers(headers).get('Idempotency-Key'), body, at: performance.now() });
        return answers.shift()!();
      },
    });
    return { kusanya, sent };
  }

  const create = (kusanya: Kusanya) => kusanya.collections.create(params, { idempotencyKey: 'order-1' });
  const unavailable = () => errorAnswer(503, 'service_unavailable', 'api_error', { 'Retry-After': '1' });
  const limited = (seconds: string) =>
    errorAnswer(429, 'rate_limited', 'rate_limit_error', { 'Retry-After': seconds });
  const channel = (seconds: string) =>
    errorAnswer(503, 'channel_unavailable', 'api_error', { 'Retry-After': seconds });

  it('send the same bytes and the same key, and no sooner than Retry-After says', async () => {
    const inUse = () =>
      errorAnswer(409, 'idempotency_key_in_use', 'idempotency_error', { 'Retry-After': '1' });
    const { kusanya, sent } = script([unavailable, inUse, () => limited('1'), good]);
    expect(await create(kusanya)).to.include({ id: 'col_1' });
    expect(sent).to.have.length(4);
    for (const { key, body } of sent) expect([key, body]).to.deep.equal(['order-1', JSON.stringify(params)]);
    for (const [index, { at }] of sent.slice(1).entries()) expect(at - sent[index]!.at).to.be.at.least(990);
  });

  it('repeat a bare 502 of a proxy, and an answer that broke off', async () => {
    const { kusanya, sent } = script([
      () => new Response('<html>Bad Gateway</html>', { status: 502 }),
      () => new Response('{"id":"col', { status: 202 }),
      good,
    ]);
    expect(await create(kusanya)).to.include({ id: 'col_1' });
    expect(sent).to.have.length(3);
  });

  it('try again for a network that is down only when the wait is short', async () => {
    const short = script([() => channel('1'), good]);
    expect(await create(short.kusanya)).to.include({ id: 'col_1' });
    for (const answer of [() => channel('6'), () => errorAnswer(503, 'channel_unavailable', 'api_error')]) {
      const long = script([answer]);
      const error = await errorOf(KusanyaError, create(long.kusanya));
      expect(error).to.include({ code: 'channel_unavailable', outcome: 'none' });
      expect(long.sent).to.have.length(1);
    }
  });

  it('leave a wait of minutes to the caller', async () => {
    const { kusanya, sent } = script([() => limited('300')]);
    const error = await errorOf(KusanyaError, create(kusanya));
    expect(error).to.include({ retryAfterMs: 300_000, requestId: 'req_of_the_service', outcome: 'none' });
    expect(sent).to.have.length(1);
  });

  it('forget no attempt: what the first may have done is unknown after the refusal of the second', async () => {
    const refused = () => errorAnswer(401, 'api_key_invalid', 'authentication_error');
    const { kusanya } = script([unavailable, refused]);
    expect(await errorOf(KusanyaError, create(kusanya))).to.include({ status: 401, outcome: 'unknown' });
    const read = script([unavailable, refused]);
    expect(await errorOf(KusanyaError, read.kusanya.balance())).to.include({ status: 401, outcome: 'none' });
  });

  it('do not follow a redirect, which would make a GET of a POST', async () => {
    const moved = () => new Response(null, { status: 301, headers: { Location: 'http://elsewhere.test' } });
    const { kusanya, sent } = script([moved]);
    const error = await errorOf(KusanyaError, create(kusanya));
    expect(error).to.include({ code: 'answer_unreadable', status: 301, outcome: 'unknown' });
    expect(sent).to.have.length(1);
  });

  it('end when they are used up, with the last error', async () => {
    const answers = [unavailable, unavailable];
    const sent: string[] = [];
    const kusanya = new Kusanya('kusanya_test_sk_secret', {
      baseUrl: 'http://service.test',
      maxRetries: 1,
      fetch: async (url) => {
        sent.push(url);
        return answers.shift()!();
      },
    });
    expect(await errorOf(KusanyaError, create(kusanya))).to.include({ status: 503, outcome: 'unknown' });
    expect(sent).to.have.length(2);
  });
});

describe('what can never be sent is refused before it is', () => {
  const never = () => Promise.reject(new Error('was sent'));
  const kusanya = new Kusanya('kusanya_test_sk_secret', { baseUrl: 'https://service.test', fetch: never });

  it('a missing key or address', () => {
    const unset = process.env.KUSANYA_NO_SUCH_KEY as string;
    for (const key of [unset, '', 'kusanya test', 'clé'])
      expect(() => new Kusanya(key, { baseUrl: 'https://service.test' }), key).to.throw(TypeError, 'API key');
    for (const baseUrl of [unset, '', 'service.test', 'ftp://service.test', 'https://a:b@service.test'])
      expect(() => new Kusanya('k', { baseUrl }), baseUrl).to.throw(TypeError, 'baseUrl');
  });

  it('a creation without an idempotency key, which the compiler refuses too', async () => {
    for (const idempotencyKey of ['', ' a', 'clé', 'x'.repeat(256)])
      await errorOf(TypeError, kusanya.collections.create(params, { idempotencyKey }));
    // @ts-expect-error: a key is required
    const without = (): unknown => kusanya.collections.create(params);
    expect(without).to.be.a('function');
    // @ts-expect-error: a key is required
    await errorOf(TypeError, kusanya.collections.create(params, {}));
  });

  it('an id that would be another path', async () => {
    for (const id of ['', '..', 'a/b', 'a?b', 'a b'])
      await errorOf(TypeError, kusanya.collections.retrieve(id));
  });

  it('and what is shown of a client holds no key', async () => {
    const { inspect } = await import('node:util');
    expect(inspect(kusanya, { depth: 9, showHidden: true })).to.not.include('secret');
    expect(JSON.stringify(kusanya)).to.not.include('secret');
  });
});
