import { stopwatch } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { merchantRoutes, operatorRoutes } from '../../src/app.ts';
import { checksum } from '../../src/merchants/merchants.ts';
import type { Answer, TestMerchant, TestService } from '../support/service.ts';
import { startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 20.2: operators are named tokens with a role, hashed at rest, gone when revoked. */
describe('named operators', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const codeOf = ({ status, json }: Answer) => `${status} ${json.error?.code}`;
  const post = (body: object, token?: string) =>
    test.call('POST', '/admin/operators', { body, ...(token ? { token } : {}) });
  let counted = 0;
  const letIn = async (role: string) => {
    counted += 1;
    const { json, status, text } = await post({ name: `${role} ${counted}`, role, reason: 'new here' });
    expect(status, text).to.equal(201);
    return json as { id: string; name: string; role: string; token: string };
  };
  const revoke = (id: string, reason = 'left') =>
    test.call('DELETE', `/admin/operators/${id}?reason=${reason}`);
  const tries = (token: string) => test.call('GET', '/admin/merchants', { token });

  it('get a token that is shown once and stored nowhere', async () => {
    const made = await letIn('viewer');
    expect(made.token).to.match(/^kusanya_op_/);
    expect(await tries(made.token)).to.include({ status: 200 });
    const { db } = test.service.wired;
    const stored = JSON.stringify([
      await db.collection('operators').find().toArray(),
      await db.collection('audit').find().toArray(),
    ]);
    expect(stored).to.include(made.name).and.to.not.include(made.token);
    const list = await test.call('GET', '/admin/operators');
    expect(list.json.data[0]).to.deep.include({
      id: made.id,
      name: made.name,
      role: 'viewer',
      revoked_at: null,
    });
    expect(list.text).to.not.include(made.token).and.to.not.include('hash');
    const line = await db.collection('audit').findOne({ target: made.id });
    expect(line).to.deep.include({ action: 'operator.created', by: 'admin', reason: 'new here' });
  });

  it('are in the audit by their names', async () => {
    const { token, name } = await letIn('operator');
    const body = { name: 'Duka', reason: 'signed today' };
    const { json } = await test.call('POST', '/admin/merchants', { body, token });
    const line = await test.service.wired.db.collection('audit').findOne({ target: json.id });
    expect(line).to.include({ by: name, reason: 'signed today' });
  });

  it('never share a name, not even with somebody who left', async () => {
    const { id, name } = await letIn('viewer');
    await revoke(id);
    for (const taken of [name, 'admin']) {
      const answer = await post({ name: taken, role: 'viewer', reason: 'again' });
      expect([codeOf(answer), answer.json.error.param]).to.deep.equal(['400 parameter_invalid', 'name']);
    }
    const both = ['viewer', 'admin'].map((role) => post({ name: 'At once', role, reason: 'twice' }));
    expect((await Promise.all(both)).map(({ status }) => status).sort()).to.deep.equal([201, 400]);
  });

  it('are refused with any token but theirs: changed, cut, or of another id', async () => {
    const { token } = await letIn('admin');
    const other = await letIn('admin');
    const [, id = '', secret = ''] = /^kusanya_op_(.{26})_(.{48})/.exec(token)!;
    const whole = (start: string) => start + checksum(start);
    const swapped = whole(`kusanya_op_${other.id.slice('opr_'.length)}_${secret}`);
    const guessed = whole(`kusanya_op_${id}_${'0'.repeat(48)}`);
    const nobodys = whole(`kusanya_op_${'0'.repeat(26)}_${secret}`);
    expect(whole(`kusanya_op_${id}_${secret}`)).to.equal(token);
    for (const wrong of [swapped, guessed, nobodys, token.slice(0, -1), `${token}0`, id, merchant.key])
      expect(codeOf(await tries(wrong)), wrong).to.equal('401 api_key_invalid');
    expect((await tries(token)).status).to.equal(200);
  });

  it('are out once revoked: at once where it was done, within seconds in another process', async () => {
    const other = await startTestService({}, { database: test.config.mongodbDatabase });
    const { id, token } = await letIn('operator');
    expect((await tries(token)).status).to.equal(200);
    expect((await other.call('GET', '/admin/merchants', { token })).status).to.equal(200);
    const revoked = await revoke(id);
    expect(revoked.json).to.include({ id, revoked_by: 'admin' });
    expect(codeOf(await tries(token))).to.equal('401 api_key_invalid');
    const elapsedMs = stopwatch();
    let lastLetInMs = 0;
    const isRefused = await until(async () => {
      const askedMs = elapsedMs();
      if ((await other.call('GET', '/admin/merchants', { token })).status === 401) return true;
      lastLetInMs = askedMs;
      return false;
    });
    // When a question begins is what counts: this machine may stand still between two.
    expect([isRefused, lastLetInMs < 6_000]).to.deep.equal([true, true]);
    expect((await revoke(id, 'again')).json).to.deep.equal(revoked.json);
    await other.stop();
  });

  it('are let in and out by admins only, with a reason', async () => {
    const { token, id } = await letIn('operator');
    expect(codeOf(await post({ name: 'x', role: 'admin', reason: 'mine' }, token))).to.equal(
      '403 permission_denied',
    );
    const out = await test.call('DELETE', `/admin/operators/${id}?reason=x`, { token });
    expect(codeOf(out)).to.equal('403 permission_denied');
    expect((await post({ name: 'nobody', role: 'viewer' })).json.error.param).to.equal('reason');
    expect((await test.call('DELETE', `/admin/operators/${id}`)).json.error.param).to.equal('reason');
    expect((await tries(token)).status).to.equal(200);
  });

  it('may do what their role says, on every route, with a reason for every change, and nobody else anything', async () => {
    const ranks = ['viewer', 'operator', 'admin'];
    const tokens = new Map<string, string>();
    for (const role of ranks) tokens.set(role, (await letIn(role)).token);
    // Routes are only listed here, never called: whatever they need may be anything.
    const nothing: object = new Proxy(() => nothing, {
      get: (_, key) => (key === Symbol.toPrimitive ? () => 'https://nothing.example' : nothing),
    });
    const routes = operatorRoutes(nothing as Parameters<typeof operatorRoutes>[0]);
    expect(routes.length).to.be.above(50);
    for (const { method, path, auth, operation } of routes) {
      // A parameter that nothing matches: whoever is let through does no harm.
      const address = path.replace(/:\w+/g, 'nothing');
      const ask = (token: string) =>
        test.call(method, address, { token, at: 'operators', ...(method === 'GET' ? {} : { body: {} }) });
      for (const [role, token] of tokens) {
        const { status, text } = await ask(token);
        const isAllowed = ranks.indexOf(role) >= ranks.indexOf(auth);
        const what = `${role}: ${method} ${path} ${text.slice(0, 200)}`;
        if (isAllowed) expect(status, what).to.not.be.oneOf([401, 403, 500]);
        else expect(status, what).to.equal(403);
      }
      // So many wrong tokens in a row are told to wait.
      for (const token of [merchant.key, 'nonsense'])
        expect((await ask(token)).status, path).to.be.oneOf([401, 429]);
      if (method === 'GET') continue;
      expect(auth, path).to.not.equal('viewer');
      const { body, query } = operation as {
        body?: { required?: string[] };
        query?: { required?: string[] };
      };
      expect((body ?? query)?.required, `${method} ${path}`).to.include('reason');
    }
  });

  it('open nothing on the merchants’ listener', async () => {
    const { token } = await letIn('admin');
    const nothing: object = new Proxy(() => nothing, {
      get: (_, key) => (key === Symbol.toPrimitive ? () => 'https://nothing.example' : nothing),
    });
    const routes = merchantRoutes(nothing as Parameters<typeof merchantRoutes>[0]);
    for (const { method, path, auth } of routes) {
      if (auth === 'none') continue;
      for (const each of [token, test.operatorToken]) {
        const headers = { 'idempotency-key': 'of an operator' };
        const body = method === 'GET' ? {} : { body: {} };
        const answer = await test.call(method, path.replace(':id', 'nothing'), {
          token: each,
          headers,
          ...body,
        });
        expect(codeOf(answer), `${method} ${path}`).to.equal('401 api_key_invalid');
      }
    }
  });
});
