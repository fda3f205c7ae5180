import { expect } from 'chai';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 20.1: /livez, /readyz and /version on both. */
describe('health', () => {
  const listeners = ['merchants', 'operators'] as const;
  let test: TestService;

  before(async () => {
    test = await startTestService();
  });

  after(() => test.stop());

  for (const at of listeners) {
    describe(`on the ${at}’ listener`, () => {
      it('/livez says that the process runs', async () => {
        const { status, json } = await test.call('GET', '/livez', { at });
        expect([status, json]).to.deep.equal([200, { status: 'ok' }]);
      });

      it('/readyz says that requests can be served, and that the stores answer', async () => {
        // A store is given two seconds to answer: a machine that stands still so long is not ready in between.
        const ready = await until(async () => {
          const { status, json } = await test.call('GET', '/readyz', { at });
          return status === 200 && json.status === 'ok' && json;
        });
        expect(ready).to.deep.include({ status: 'ok', mongo: true, redis: true, wrong: [] });
      });

      it('/readyz says when the sweeper went its last round', async () => {
        const swept = await until(async () => (await test.call('GET', '/readyz', { at })).json.swept_at);
        expect(Math.abs(swept - Date.now())).to.be.below(60_000);
      });

      it('/version says which version runs', async () => {
        const { status, json } = await test.call('GET', '/version', { at });
        expect(status).to.equal(200);
        expect(json.name).to.equal('kusanya');
        expect(json.version).to.match(/^\d+\.\d+\.\d+/);
      });

      it('none of them asks for credentials or minds wrong ones', async () => {
        for (const path of ['/livez', '/readyz', '/version']) {
          expect((await test.call('GET', path, { at, token: 'wrong' })).status).to.equal(200);
        }
      });

      it('other methods are 405, and other paths 404', async () => {
        const posted = await test.call('POST', '/livez', { at });
        expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
        expect((await test.call('GET', '/healthz', { at })).status).to.equal(404);
      });
    });
  }

  it('without MongoDB the service is not ready, on either listener, and says why', async () => {
    const { db } = test.service.wired;
    const { command } = db;
    db.command = () => Promise.reject(new Error('as if MongoDB did not answer'));
    try {
      for (const at of listeners) {
        const { status, headers, json } = await test.call('GET', '/readyz', { at });
        expect([status, headers.get('retry-after')]).to.deep.equal([503, '2']);
        const wrong = ['mongo does not answer'];
        expect(json).to.deep.include({ status: 'unavailable', mongo: false, wrong });
        expect((await test.call('GET', '/livez', { at })).status).to.equal(200);
      }
    } finally {
      db.command = command;
    }
    const isReady = await until(async () => (await test.call('GET', '/readyz')).status === 200);
    expect(isReady).to.equal(true);
  });

  it('without Redis the service is degraded, but ready: payments are taken and reads answered', async () => {
    const { redis } = test.service.wired.queues;
    const merchant = await test.merchant();
    redis.disconnect();
    await until(async () => redis.status !== 'ready');
    try {
      for (const at of listeners) {
        const { status, json } = await test.call('GET', '/readyz', { at });
        expect(status).to.equal(200);
        expect(json).to.deep.include({ status: 'degraded', mongo: true, redis: false });
        expect(json.wrong).to.have.length(1);
      }
      const made = await merchant.create();
      expect(made.status, made.text).to.equal(202);
      expect((await merchant.get(`/v1/collections/${made.json.id}`)).status).to.equal(200);
    } finally {
      await redis.connect();
    }
    await until(async () => (await test.call('GET', '/readyz')).json.status === 'ok');
    const { json } = await merchant.get('/v1/collections');
    expect((await merchant.final(json.data[0].id)).status).to.be.oneOf(['succeeded', 'failed']);
  });
});
