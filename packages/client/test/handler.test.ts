import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { startTestService, type TestMerchant, type TestService } from '../../../test/support/service.ts';
import { until } from '../../../test/support/until.ts';
import { type Webhook, webhooks } from '../src/index.ts';

const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';
const body = JSON.stringify({ id: 'evt_1', type: 'collection.succeeded', data: { id: 'col_1' } });

async function genuine(): Promise<RequestInit> {
  return { method: 'POST', body, headers: await webhooks.sign(body, secret) };
}

describe('webhooks.handler', () => {
  const request = async (change: RequestInit = {}) =>
    new Request('https://shop.test/hooks', { ...(await genuine()), ...change });

  it('hands each genuine event over and answers 200 when its work is done', async () => {
    const got: Webhook[] = [];
    let isDone = false;
    const handle = webhooks.handler({
      secret,
      onEvent: async (event) => {
        await new Promise((resolve) => setTimeout(resolve, 10));
        got.push(event);
        isDone = true;
      },
    });
    const answer = await handle(await request());
    expect([answer.status, isDone, got]).to.deep.equal([200, true, [JSON.parse(body)]]);
  });

  it('answers 400 with the reason to what is not of the service, and hands nothing over', async () => {
    const handle = webhooks.handler({ secret, onEvent: () => expect.fail('handed over') });
    const altered = await handle(await request({ body: body.replace('col_1', 'col_2') }));
    expect([altered.status, await altered.text()]).to.deep.equal([400, 'signature_mismatch']);
    const bare = await handle(new Request('https://shop.test/hooks', { method: 'POST', body }));
    expect([bare.status, await bare.text()]).to.deep.equal([400, 'header_missing']);
    const looked = await handle(new Request('https://shop.test/hooks'));
    expect([looked.status, looked.headers.get('allow')]).to.deep.equal([405, 'POST']);
  });

  it('answers 500 when the work fails, so that the event comes again; without onError the framework hears it', async () => {
    const broken = new Error('no database');
    const onEvent = () => Promise.reject(broken);
    const errors: unknown[] = [];
    const told = webhooks.handler({ secret, onEvent, onError: (error) => errors.push(error) });
    expect((await told(await request())).status).to.equal(500);
    expect(errors).to.deep.equal([broken]);
    const untold = webhooks.handler({ secret, onEvent });
    expect(await untold(await request()).catch((error) => error)).to.equal(broken);
  });

  it('does not begin without a secret', () => {
    const unset = process.env.KUSANYA_NO_SUCH_SECRET as string;
    for (const wrong of [unset, '', [], [secret, unset]])
      expect(() => webhooks.handler({ secret: wrong, onEvent: () => {} })).to.throw(TypeError, 'secret');
  });
});

describe('webhooks.toNode', () => {
  const got: Webhook[] = [];
  const node = webhooks.toNode(
    webhooks.handler({
      secret,
      onEvent: (event) => {
        if (event.id === 'evt_broken') throw new Error('no database');
        got.push(event);
      },
    }),
  );

  async function post(listener: RequestListener, init: RequestInit): Promise<Response> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const response = await fetch(`http://127.0.0.1:${port}/hooks?x=1`, init);
      return new Response(await response.text(), response);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it('serves node:http', async () => {
    const answer = await post((request, response) => void node(request, response), await genuine());
    expect([answer.status, got.at(-1)]).to.deep.equal([200, JSON.parse(body)]);
    const refused = await post((request, response) => void node(request, response), { method: 'POST', body });
    expect(refused.status).to.equal(400);
    const read = await post((request, response) => void node(request, response), {});
    expect(read.status).to.equal(405);
  });

  it('takes the bytes that express.raw() leaves, and gives what fails to next', async () => {
    const raw: RequestListener = (request, response) => {
      void bytes(request).then((body) => node(Object.assign(request, { body }), response));
    };
    expect((await post(raw, await genuine())).status).to.equal(200);
    const broken = JSON.stringify({ id: 'evt_broken' });
    const failing: RequestListener = (request, response) =>
      void node(request, response, (error) => {
        response.statusCode = 500;
        response.end(`next: ${String(error)}`);
      });
    const headers = await webhooks.sign(broken, secret);
    const answer = await post(failing, { method: 'POST', body: broken, headers });
    expect(await answer.text()).to.equal('next: Error: no database');
    const parsed: RequestListener = (request, response) => {
      void bytes(request).then((text) =>
        node(Object.assign(request, { body: JSON.parse(text.toString()) }), response, (error) =>
          response.end(String(error)),
        ),
      );
    };
    expect(await (await post(parsed, await genuine())).text()).to.include('before express.json()');
  });

  it('answers 500 and warns where there is no next, and 413 to what no event can be', async () => {
    const broken = JSON.stringify({ id: 'evt_broken' });
    const headers = await webhooks.sign(broken, secret);
    const warned = once(process, 'warning');
    const init = { method: 'POST', body: broken, headers };
    expect((await post((request, response) => void node(request, response), init)).status).to.equal(500);
    expect(String((await warned)[0])).to.include('no database');
    const huge = { method: 'POST', body: 'x'.repeat(2 ** 20 + 1) };
    expect((await post((request, response) => void node(request, response), huge)).status).to.equal(413);
  });
});

describe('a merchant’s server with the handler', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(() => test.stop());

  it('takes the service’s own webhooks, through a rotation of the secret', async () => {
    const events: Webhook[] = [];
    const secrets: string[] = ['whsec_not_known_yet'];
    const node = webhooks.toNode((request) =>
      webhooks.handler({ secret: secrets, onEvent: (event) => events.push(event) })(request),
    );
    const server = createServer((request, response) => void node(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
    const endpoint = await test.endpoint(merchant.id, url);
    secrets[0] = endpoint.secret;
    const first = await merchant.create();
    const ended = await merchant.final(first.json.id);
    const event = await until(async () => events.find(({ data }) => data.id === ended.id));
    expect(event).to.deep.include({ type: 'collection.succeeded', data: ended });
    await test.call('POST', `/admin/endpoints/${endpoint.id}/rotate-secret`, { body: { reason: 'yearly' } });
    const second = await merchant.create();
    expect(await until(async () => events.find(({ data }) => data.id === second.json.id))).to.be.an('object');
    server.closeAllConnections();
    server.close();
  });
});

async function bytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
