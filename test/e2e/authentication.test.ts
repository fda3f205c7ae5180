import { readFileSync } from 'node:fs';
import { MovableClock, stopwatch } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { makeSecretKey } from '../../src/merchants/keys.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

interface Operation {
  security: object[];
  parameters: { in?: string; schema?: { pattern?: string } }[];
}

/** CONTRACT 2. */
describe('authentication', () => {
  const clock = new MovableClock();
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock });
    merchant = await test.merchant();
  });

  after(() => test.stop());

  /** Every route that the document has, with an id of nothing. */
  const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
  const routes = Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(
    ([path, item]) =>
      Object.entries(item)
        .filter(([, { security }]) => security.length > 0)
        .map(([method, { parameters }]) => {
          const pattern = parameters.find((each) => each.in === 'path')?.schema?.pattern ?? '^x_';
          const id = `${/^\^(\w+)_/.exec(pattern)![1]}_01K5J8Q2R3S4T5V6W7X8Y9Z0AB`;
          return [method.toUpperCase(), path.replace('{id}', id)] as const;
        }),
  );
  const whoami = (token: string, at = test) => at.call('GET', '/v1/whoami', { token });
  const statusOf = async (token: string, at = test) => (await whoami(token, at)).status;
  /**
   * A key comes to be answered with `status`, and no question that begins in five seconds or later gets another
   * answer. When it begins is what counts: this machine may stand still at any moment.
   */
  const isWithinSeconds = async (token: string, status: number, at = test) => {
    const elapsedMs = stopwatch();
    let lastOtherMs = 0;
    const isAnswered = await until(async () => {
      const askedMs = elapsedMs();
      if ((await statusOf(token, at)) === status) return true;
      lastOtherMs = askedMs;
      return false;
    });
    expect(isAnswered, `never ${status}`).to.equal(true);
    expect(lastOtherMs).to.be.below(5_000);
  };
  const admin = (method: string, path: string, body?: object) => test.call(method, path, { body });
  const withoutRequestId = ({ text, json }: { text: string; json: { error: { request_id: string } } }) =>
    text.replace(json.error.request_id, '');

  it('every endpoint needs Authorization: Bearer <API_KEY>', async () => {
    for (const [method, path] of routes) {
      const { status, json, headers } = await test.call(method, path);
      expect([status, json.error.code], path).to.deep.equal([401, 'api_key_missing']);
      expect(headers.get('www-authenticate')).to.equal('Bearer');
    }
  });

  it('other ways to send a key are not taken', async () => {
    const { key } = merchant;
    const basic = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
    for (const authorization of [basic, key, `Token ${key}`, 'Bearer', 'Bearer ', `Bearer:${key}`]) {
      const { status, json } = await test.call('GET', '/v1/whoami', { headers: { authorization } });
      expect([status, json.error.code], authorization).to.deep.equal([401, 'api_key_missing']);
    }
    const inQuery = await test.call('GET', `/v1/whoami?api_key=${key}`);
    expect(inQuery.status).to.equal(401);
    const asHeader = await test.call('GET', '/v1/whoami', { headers: { 'x-api-key': key } });
    expect(asHeader.status).to.equal(401);
  });

  it('the scheme’s case does not matter', async () => {
    const answer = await test.call('GET', '/v1/whoami', {
      headers: { authorization: `bearer ${merchant.key}` },
    });
    expect(answer.status).to.equal(200);
  });

  it('a key that opens nothing is 401 with the same bytes, whatever is wrong with it', async () => {
    const { id: revokedId, secret: revoked } = await test.issueKey(merchant.id, 'test');
    await admin('DELETE', `/admin/keys/${revokedId}?reason=leaked`);
    const { id: rotatedId, secret: expired } = await test.issueKey(merchant.id, 'test');
    await admin('POST', `/admin/keys/${rotatedId}/rotate`, { overlap_seconds: 0, reason: 'leaked' });
    const { key } = merchant;
    const tokens = {
      malformed: 'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
      mistyped: key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a'),
      'of the other mode': key.replace('_test_', '_live_'),
      'in capitals': key.toUpperCase(),
      'with a tail': `${key}x`,
      huge: 'x'.repeat(5_000),
      'an operator’s': test.operatorToken,
      revoked,
      expired,
      // Well-formed and with a right checksum, but of another installation.
      unknown: makeSecretKey('test'),
    };
    const first = await whoami(tokens.malformed);
    expect(first.json.error.code).to.equal('api_key_invalid');
    for (const [name, token] of Object.entries(tokens)) {
      const answer = await whoami(token);
      expect(answer.status, name).to.equal(401);
      expect(withoutRequestId(answer), name).to.equal(withoutRequestId(first));
    }
  });

  it('a key acts in the mode that its prefix names, and in no other', async () => {
    const { secret } = await test.issueKey(merchant.id, 'live');
    expect(merchant.key).to.match(/^kusanya_test_sk_[0-9A-Za-z]{38}$/);
    expect(secret).to.match(/^kusanya_live_sk_[0-9A-Za-z]{38}$/);
    expect((await whoami(merchant.key)).json.mode).to.equal('test');
    expect((await whoami(secret)).json.mode).to.equal('live');
    const { json } = await merchant.create();
    const crossed = await test.call('GET', `/v1/collections/${json.id}`, { token: secret });
    expect(crossed.status).to.equal(404);
  });

  it('a revoked key is refused within 5 seconds, by every process', async () => {
    const twin = await startTestService({}, { clock, database: test.config.mongodbDatabase });
    try {
      const { id, secret } = await test.issueKey(merchant.id, 'test');
      // Both know the key, so both have something to forget.
      expect(await Promise.all([statusOf(secret), statusOf(secret, twin)])).to.deep.equal([200, 200]);
      const revoked = await admin('DELETE', `/admin/keys/${id}?reason=leaked`);
      expect([revoked.status, revoked.json.revoked_at === null]).to.deep.equal([200, false]);
      await Promise.all([isWithinSeconds(secret, 401), isWithinSeconds(secret, 401, twin)]);
      // The merchant's other keys go on.
      expect(await statusOf(merchant.key)).to.equal(200);
      const refused = await merchant.create({}, 'after revocation', undefined, secret);
      expect(refused.status).to.equal(401);
    } finally {
      await twin.stop();
    }
  });

  it('a key ends itself, here at once and elsewhere within 5 seconds, and no other key with it', async () => {
    const { id, secret } = await test.issueKey(merchant.id, 'test');
    const other = await startTestService({}, { clock, database: test.service.wired.db.databaseName });
    try {
      expect(await statusOf(secret, other)).to.equal(200);
      const ended = await test.call('DELETE', '/v1/api_keys/self', { token: secret });
      expect([ended.status, ended.json.object, ended.json.id]).to.deep.equal([200, 'api_key', id]);
      expect(await statusOf(secret)).to.equal(401);
      const elapsed = stopwatch();
      expect(await until(async () => (await statusOf(secret, other)) === 401, 5_000)).to.equal(true);
      expect(elapsed()).to.be.below(5_000);
    } finally {
      await other.stop();
    }
    const again = await test.call('DELETE', '/v1/api_keys/self', { token: secret });
    expect([again.status, again.json.error.code]).to.deep.equal([401, 'api_key_invalid']);
    const { json } = await test.call('GET', `/admin/merchants/${merchant.id}/keys`);
    const key = json.data.find((each: { id: string }) => each.id === id);
    expect(key.revoked_by).to.equal(id);
    expect(Date.parse(key.revoked_at)).to.be.within(Date.parse(key.created_at), clock.now());
    expect(await statusOf(merchant.key)).to.equal(200);
  });

  it('a rotated key lives on beside its successor for the overlap', async () => {
    const { id, secret: old } = await test.issueKey(merchant.id, 'test');
    const { status, json } = await admin('POST', `/admin/keys/${id}/rotate`, {
      overlap_seconds: 3600,
      reason: 'yearly',
    });
    expect(status).to.equal(201);
    expect([json.merchant_id, json.mode]).to.deep.equal([merchant.id, 'test']);
    expect(json.secret).to.not.equal(old);
    expect([await statusOf(old), await statusOf(json.secret)]).to.deep.equal([200, 200]);
    clock.advance(limits.hourMs - 60_000);
    expect([await statusOf(old), await statusOf(json.secret)]).to.deep.equal([200, 200]);
    clock.advance(60_000);
    // What a process remembers of a key is no older than two seconds.
    await isWithinSeconds(old, 401);
    expect(await statusOf(json.secret)).to.equal(200);
  });

  it('a suspended merchant reads on and creates nothing within 5 seconds, until it is let in again', async () => {
    const other = await test.merchant();
    const { secret: live } = await test.issueKey(other.id, 'live');
    const open = (await other.create()).json.id as string;
    const set = (suspended: boolean) =>
      admin('PATCH', `/admin/merchants/${other.id}`, { suspended, reason: 'chargebacks' });
    await set(true);
    const codeOf = async () => (await other.create({ amount: 1 })).json.error.code as string;
    expect(await until(async () => (await codeOf()) === 'merchant_suspended', 5_000)).to.equal(true);
    for (const [method, path] of routes) {
      for (const token of [other.key, live]) {
        const { status, json } = await test.call(method, path, { token });
        if (method === 'GET') expect(status, path).to.be.oneOf([200, 404]);
        else expect([status, json.error.code], path).to.deep.equal([403, 'merchant_suspended']);
      }
    }
    // What was open goes on, and its merchant learns how it ended.
    expect((await other.final(open)).status).to.equal('succeeded');
    await set(false);
    expect(await until(async () => (await codeOf()) === 'amount_too_small', 5_000)).to.equal(true);
  });

  it('too many wrong keys from one address are slowed, and the right one from there is not', async () => {
    const wrong = Array.from({ length: 150 }, (_, n) =>
      test.call('GET', '/v1/whoami', { token: `wrong-${n}` }),
    );
    const answers = await Promise.all(wrong);
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited).to.not.be.empty;
    expect(limited[0]!.json.error.code).to.equal('rate_limited');
    expect(Number(limited[0]!.headers.get('retry-after'))).to.be.greaterThan(0);
    expect(await statusOf(merchant.key)).to.equal(200);
    const guesses = Array.from({ length: 150 }, (_, n) =>
      test.call('GET', '/admin/merchants', { token: `wrong-${n}` }),
    );
    expect((await Promise.all(guesses)).filter(({ status }) => status === 429)).to.not.be.empty;
    expect((await test.call('GET', '/admin/merchants')).status).to.equal(200);
    const alerts = async () =>
      (await test.call('GET', '/admin/overview?mode=live')).json.alerts as { kind: string; about: string }[];
    const told = await until(async () => (await alerts()).find(({ kind }) => kind === 'wrong_tokens'));
    expect(told?.about).to.match(/127\.0\.0\.1$/);
    // The console counts with the API: one address, one guesser.
    const form = await fetch(`${test.adminUrl}/console/sign-in`);
    const cookie = form.headers.getSetCookie()[0]!.split(';')[0]!;
    const form_token = /name="form_token" value="([^"]+)"/.exec(await form.text())![1]!;
    const signIn = (token: string) =>
      fetch(`${test.adminUrl}/console/sign-in`, {
        method: 'POST',
        headers: { cookie },
        body: new URLSearchParams({ form_token, token }),
        redirect: 'manual',
      });
    // Tries come back one a second: whoever asks faster than that is slowed soon.
    expect(await until(async () => (await signIn('nobody’s')).status === 429)).to.equal(true);
    expect((await signIn(test.operatorToken)).status).to.equal(303);
  });
});
