import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { limits } from '../../src/limits.ts';
import { choosePort } from '../../tools/embedded/processes.ts';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Received, type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { verdictOf } from '../support/verdict.ts';

/** CONTRACT 13. When failures are repeated: webhook-retries.test.ts. */
describe('webhooks', () => {
  const clock = new MovableClock();
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock });
    receiver = await startReceiver();
  });

  beforeEach(async () => {
    receiver.answer = 200;
    merchant = await test.merchant();
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  /** A collection that fails at once: the quickest way to an event. */
  const quick = async () => (await merchant.create({ phone: '255700000004' })).json.id as string;
  const about = (id: string) => (received: Received) => received.event.data.id === id;
  const deliveries = async (endpoint: string) =>
    (await test.call('GET', `/admin/deliveries?endpoint=${endpoint}`)).json.data;
  const signatureOf = ({ headers }: Received) => String(headers['service-signature']);

  describe('the request', () => {
    it('is a POST of the event as JSON: id, type, created_at, mode and the full collection', async () => {
      await test.endpoint(merchant.id, receiver.url);
      const { json } = await merchant.create({ metadata: { order: 'A-1' }, description: 'é ☕' });
      const { event, headers } = await receiver.next(about(json.id));
      expect(Object.keys(event)).to.deep.equal(['id', 'type', 'created_at', 'mode', 'data']);
      expect(event.type).to.equal('collection.succeeded');
      expect(event.data).to.deep.equal((await merchant.get(`/v1/collections/${json.id}`)).json);
      expect(headers['content-type']).to.equal('application/json');
      expect(headers['user-agent']).to.equal('Kusanya-Webhooks/1');
      expect(headers['webhook-attempt']).to.equal('1');
      expect(headers).to.not.have.any.keys('authorization', 'cookie', 'accept-encoding');
    });

    it('carries Service-Signature over the exact bytes, with the whole secret as its key', async () => {
      const { secret } = await test.endpoint(merchant.id, receiver.url);
      expect(secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
      const received = await receiver.next(about(await quick()));
      const header = signatureOf(received);
      expect(header).to.match(/^t=\d+,v1=[0-9a-f]{64}$/);
      const nowSeconds = clock.now() / 1000;
      const verify = (body: Buffer, signature = header, key = secret) =>
        verdictOf(body, signature, key, { nowSeconds });
      expect(await verify(received.body)).to.deep.equal({ ok: true });
      // What the contract calls a reason to reject is one.
      const reserialised = Buffer.from(JSON.stringify(received.event, null, 1));
      expect(await verify(reserialised)).to.deep.equal({ ok: false, reason: 'signature_mismatch' });
      const other = await test.endpoint(merchant.id, `${receiver.url}/other`);
      expect(await verify(received.body, header, other.secret)).to.include({ ok: false });
      expect(await verify(received.body, header, secret.slice('whsec_'.length))).to.include({ ok: false });
    });

    it('is signed anew for now: a copy is refused after five minutes', async () => {
      const { secret } = await test.endpoint(merchant.id, receiver.url);
      const received = await receiver.next(about(await quick()));
      const t = Number(/^t=(\d+)/.exec(signatureOf(received))![1]);
      expect(Math.abs(clock.now() / 1000 - t)).to.be.below(60);
      const late = { nowSeconds: t + 301 };
      expect(await verdictOf(received.body, signatureOf(received), secret, late)).to.deep.equal({
        ok: false,
        reason: 'timestamp_out_of_tolerance',
      });
    });

    it('is verified by the unmodified packages of Stripe and of Standard Webhooks', async () => {
      const { secret } = await test.endpoint(merchant.id, receiver.url);
      const { body, event, headers } = await receiver.next(about(await quick()));
      // Both judge by the machine's time, so the clock must not have been moved yet.
      expect(Math.abs(clock.now() - Date.now())).to.be.below(1_000);
      const signature = String(headers['service-signature']);
      expect(Stripe.webhooks.constructEvent(body, signature, secret)).to.deep.equal(event);
      const standard = new Webhook(secret).verify(body, headers as Record<string, string>);
      expect(standard).to.deep.equal(event);
      expect(headers['webhook-id']).to.equal(event.id);
      expect(`t=${headers['webhook-timestamp']}`).to.equal(signature.split(',')[0]);
    });
  });

  describe('goes to', () => {
    it('every endpoint of the merchant, each with a signature of its own', async () => {
      const endpoints = await Promise.all(
        ['a', 'b', 'c'].map((name) => test.endpoint(merchant.id, `${receiver.url}/${name}`)),
      );
      const id = await quick();
      for (const [index, name] of ['a', 'b', 'c'].entries()) {
        const received = await receiver.next((each) => about(id)(each) && each.path === `/hook/${name}`);
        const { secret } = endpoints[index]!;
        const verified = await verdictOf(received.body, signatureOf(received), secret, {
          nowSeconds: clock.now() / 1000,
        });
        expect(verified, name).to.deep.equal({ ok: true });
      }
      const bodies = receiver.received.filter(about(id)).map(({ body }) => body.toString());
      expect([bodies.length, new Set(bodies).size]).to.deep.equal([3, 1]);
    });

    it('nobody else: other merchants hear nothing', async () => {
      const other = await test.merchant();
      await test.endpoint(other.id, `${receiver.url}/theirs`);
      await test.endpoint(merchant.id, `${receiver.url}/ours`);
      const id = await quick();
      await receiver.next(about(id));
      const paths = receiver.received.filter(about(id)).map(({ path }) => path);
      expect(paths).to.deep.equal(['/hook/ours']);
    });

    it('endpoints that asked for this type of event, where they asked for any', async () => {
      const url = `${receiver.url}/failures`;
      const { id: failures } = await test.endpoint(merchant.id, url, {
        event_types: ['collection.failed', 'collection.expired'],
      });
      await test.endpoint(merchant.id, `${receiver.url}/all`);
      const { json: paid } = await merchant.create();
      const failed = await quick();
      await receiver.next((each) => about(paid.id)(each) && each.path === '/hook/all');
      await receiver.next((each) => about(failed)(each) && each.path === '/hook/all');
      await receiver.next((each) => about(failed)(each) && each.path === '/hook/failures');
      const types = (await deliveries(failures)).map(({ event_type }: { event_type: string }) => event_type);
      expect(types).to.deep.equal(['collection.failed']);
    });

    it('no endpoint that was deleted', async () => {
      const { id: gone } = await test.endpoint(merchant.id, `${receiver.url}/gone`);
      await test.endpoint(merchant.id, `${receiver.url}/stays`);
      expect((await test.call('DELETE', `/admin/endpoints/${gone}?reason=closed`)).status).to.equal(200);
      const id = await quick();
      await receiver.next(about(id));
      expect(receiver.received.filter(about(id)).map(({ path }) => path)).to.deep.equal(['/hook/stays']);
      expect(await deliveries(gone)).to.deep.equal([]);
    });
  });

  describe('the outcome', () => {
    /** What becomes of the deliveries of one event to endpoints at these addresses. */
    const outcomesOf = async (at: TestService, payee: TestMerchant, urls: Record<string, string>) => {
      const ids = new Map<string, string>();
      for (const [wanted, url] of Object.entries(urls))
        ids.set(wanted, (await at.endpoint(payee.id, url)).id);
      await payee.create({ phone: '255700000004' });
      const found: Record<string, string> = {};
      for (const [wanted, id] of ids) {
        const delivery = await until(async () => {
          const [first] = (await at.call('GET', `/admin/deliveries?endpoint=${id}`)).json.data;
          return first && first.state !== 'pending.scheduled' && first;
        });
        found[wanted] = delivery.status === 'delivered' ? 'delivered' : delivery.last_reason;
        if (delivery.status !== 'delivered') expect(delivery.state, wanted).to.equal('waiting');
      }
      return found;
    };

    it('any 2xx is a success; everything else is a failure with its reason', async () => {
      const target = await startReceiver();
      // No port of those that connections and servers are given by the system: somebody else might get it.
      const nobody = await choosePort();
      const outcomes: Record<string, string> = {
        200: 'delivered',
        201: 'delivered',
        202: 'delivered',
        204: 'delivered',
        299: 'delivered',
        301: 'redirect',
        307: 'redirect',
        304: 'redirect',
        400: 'http_status',
        404: 'http_status',
        410: 'http_status',
        500: 'http_status',
        503: 'http_status',
        refused: 'connect_error',
      };
      receiver.answer = ({ path }, response) => {
        const wanted = path.split('/').at(-1)!;
        if (wanted.startsWith('3')) response.setHeader('Location', target.url);
        return Number(wanted);
      };
      const urls = Object.keys(outcomes).map((wanted) => [wanted, `${receiver.url}/${wanted}`]);
      const refused = `http://127.0.0.1:${nobody}/hook`;
      const found = await outcomesOf(test, merchant, { ...Object.fromEntries(urls), refused });
      expect(found).to.deep.equal(outcomes);
      expect(target.received, 'a redirect was followed').to.have.length(0);
      await target.close();
    });

    it('a status line that is not there within the deadline is a failure', async () => {
      receiver.answer = ({ path }, response) => {
        // Bytes that trickle are no answer: the line has to be complete in time.
        if (path.endsWith('slow')) response.socket!.write('HTTP/1.1 2');
        return undefined;
      };
      // A service of its own: all others are to be patient with a machine that stands still.
      const impatient = await startTestService({ WEBHOOK_TIMEOUT: '1s' });
      try {
        const urls = { hang: `${receiver.url}/hang`, slow: `${receiver.url}/slow` };
        const found = await outcomesOf(impatient, await impatient.merchant(), urls);
        expect(found).to.deep.equal({ hang: 'timeout', slow: 'timeout' });
      } finally {
        await impatient.stop();
      }
    });

    it('a failure of one endpoint is not the others’', async () => {
      receiver.answer = ({ path }) => (path.endsWith('bad') ? 500 : 200);
      const { id: bad } = await test.endpoint(merchant.id, `${receiver.url}/bad`);
      const { id: good } = await test.endpoint(merchant.id, `${receiver.url}/good`);
      await quick();
      await until(async () => (await deliveries(good))[0]?.status === 'delivered');
      await until(async () => (await deliveries(bad))[0]?.state === 'waiting');
      expect((await test.call('GET', `/admin/endpoints/${good}`)).json.status).to.equal('active');
      await until(async () => (await test.call('GET', `/admin/endpoints/${bad}`)).json.status === 'failing');
    });
  });

  describe('as time goes by', () => {
    it('events may arrive out of order: each says how it was, the collection how it is', async () => {
      // The first event fails, so that the second one overtakes it.
      receiver.answer = ({ event }) => (event.type === 'collection.expired' ? 500 : 200);
      const late = await test.latePayment((payee) => test.endpoint(payee.id, receiver.url));
      const first = await receiver.next(about(late.id));
      await test.call('POST', `/admin/actors/${late.id}/events`, {
        body: { type: 'operator.acceptedLate', reason: 'paid after all' },
      });
      const isSuccess = ({ event }: Received) =>
        event.data.id === late.id && event.data.status === 'succeeded';
      const success = await receiver.next(isSuccess);
      receiver.answer = 200;
      clock.advance(limits.minuteMs + 2_000);
      await test.sweep();
      const isSecondTry = (received: Received) =>
        about(late.id)(received) && received.headers['webhook-attempt'] === '2';
      const expired = await receiver.next(isSecondTry);
      expect(expired.body.equals(first.body), 'not the same bytes').to.equal(true);
      expect(expired.event.data).to.not.have.property('late');
      expect(expired.event.data.status).to.equal('expired');
      expect(receiver.received.indexOf(expired)).to.be.above(receiver.received.indexOf(success));
      const { json: now } = await late.merchant.get(`/v1/collections/${late.id}`);
      expect(now).to.deep.equal(success.event.data);
    });

    it('while a secret is being rotated both sign, the new one first; then only the new one', async () => {
      const { id, secret: old } = await test.endpoint(merchant.id, receiver.url);
      const rotated = await test.call('POST', `/admin/endpoints/${id}/rotate-secret`, {
        body: { reason: 'yearly' },
      });
      expect(rotated.status).to.equal(201);
      const fresh = rotated.json.secret as string;
      const verdicts = async () => {
        const received = await receiver.next(about(await quick()));
        const header = signatureOf(received);
        const nowSeconds = clock.now() / 1000;
        const verdicts = [fresh, old].map((key) => verdictOf(received.body, header, key, { nowSeconds }));
        const oks = (await Promise.all(verdicts)).map(({ ok }) => ok);
        const standard = String(received.headers['webhook-signature']).split(' ').length;
        return { oks, standard, first: `${header.split(',').slice(0, 2).join()}`, received, nowSeconds };
      };
      const during = await verdicts();
      expect([during.oks, during.standard]).to.deep.equal([[true, true], 2]);
      const { received, first, nowSeconds } = during;
      expect(await verdictOf(received.body, first, fresh, { nowSeconds })).to.deep.equal({ ok: true });
      clock.advance(limits.dayMs + 1_000);
      const after = await verdicts();
      expect([after.oks, after.standard]).to.deep.equal([[true, false], 1]);
    });
  });
});
