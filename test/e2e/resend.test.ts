import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 13.11. */
describe('POST /v1/events/{id}/resend', () => {
  let test: TestService;
  let receiver: Receiver;

  before(async () => {
    test = await startTestService();
    receiver = await startReceiver();
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  let lastKey = 0;
  const resend = (of: TestMerchant, id: string, body: object = {}, key = `resend-${++lastKey}`) =>
    test.call('POST', `/v1/events/${id}/resend`, {
      token: of.key,
      body,
      headers: { 'idempotency-key': key },
    });
  /** A merchant with a payment whose event is there. */
  const paid = async (prepare?: (merchant: TestMerchant) => Promise<unknown>) => {
    const merchant = await test.merchant();
    await prepare?.(merchant);
    const { json } = await merchant.create({ phone: '255700000004' });
    await merchant.final(json.id);
    const { json: events } = await merchant.get('/v1/events');
    return { merchant, event: events.data[0].id as string };
  };
  const got = (path: string, event: string) =>
    receiver.received.filter((each) => each.path === path && each.event.id === event);
  const delivered = (id: string) => until(async () => (await test.actor(id)).state === 'delivered');

  it('makes one more attempt of a delivery that was delivered, with the same bytes', async () => {
    let endpoint = '';
    const { merchant, event } = await paid(async ({ id }) => {
      endpoint = (await test.endpoint(id, `${receiver.url}/again`)).id;
    });
    expect(await until(async () => got('/hook/again', event).length === 1)).to.equal(true);
    const { data } = (await test.call('GET', `/admin/deliveries?event=${event}`)).json;
    expect(await delivered(data[0].id)).to.equal(true);
    const { status, json } = await resend(merchant, event);
    expect(status).to.equal(202);
    expect(json).to.deep.equal({
      object: 'resend',
      event,
      deliveries: [{ id: data[0].id, object: 'delivery', endpoint }],
    });
    expect(await until(async () => got('/hook/again', event).length === 2)).to.equal(true);
    const [first, second] = got('/hook/again', event);
    expect(second!.body.equals(first!.body)).to.equal(true);
    expect(second!.headers['webhook-attempt']).to.equal('2');
    const steps = await test.history(data[0].id);
    const own = steps.find(({ event: { type } }) => type === 'merchant.resent');
    expect(own.cause.kind).to.equal('merchant');
  });

  it('gives an endpoint that is younger than the event a new delivery, once', async () => {
    const { merchant, event } = await paid();
    const { id: endpoint } = await test.endpoint(merchant.id, `${receiver.url}/young`);
    const { json } = await resend(merchant, event, { endpoint });
    expect(json.deliveries.map((each: { endpoint: string }) => each.endpoint)).to.deep.equal([endpoint]);
    const [{ id }] = json.deliveries;
    expect(await delivered(id)).to.equal(true);
    expect(got('/hook/young', event)).to.have.length(1);
    expect((await resend(merchant, event, { endpoint })).json.deliveries[0].id).to.equal(id);
    expect(await until(async () => got('/hook/young', event).length === 2)).to.equal(true);
    expect((await test.call('GET', `/admin/deliveries?event=${event}`)).json.data).to.have.length(1);
  });

  it('two with one Idempotency-Key are one attempt, also when the first broke off before its answer was kept', async () => {
    const { merchant, event } = await paid(({ id }) => test.endpoint(id, `${receiver.url}/once`));
    expect(await until(async () => got('/hook/once', event).length === 1)).to.equal(true);
    const { data } = (await test.call('GET', `/admin/deliveries?event=${event}`)).json;
    const { id } = data[0];
    expect(await delivered(id)).to.equal(true);
    const { committer } = test.service.wired;
    const commit = committer.commit.bind(committer);
    let isBroken = false;
    committer.commit = async (writes, isAwaited) => {
      if (!isBroken && writes.some(({ into }) => into === 'idempotency')) {
        isBroken = true;
        throw new Error('the process died here');
      }
      return commit(writes, isAwaited);
    };
    try {
      expect((await resend(merchant, event, {}, 'broken')).status).to.equal(500);
    } finally {
      committer.commit = commit;
    }
    expect(await until(async () => got('/hook/once', event).length === 2)).to.equal(true);
    expect(await delivered(id)).to.equal(true);
    const both = await Promise.all([1, 2].map(() => resend(merchant, event, {}, 'broken')));
    expect(both.map(({ status }) => status)).to.deep.equal([202, 202]);
    expect(both[0]!.text).to.equal(both[1]!.text);
    const reused = await resend(merchant, event, { endpoint: data[0].endpoint_id }, 'broken');
    expect([reused.status, reused.json.error.code]).to.deep.equal([409, 'idempotency_key_reused']);
    // A third, with a key of its own, is the third attempt, and nothing came between.
    await resend(merchant, event);
    expect(await until(async () => got('/hook/once', event).length === 3)).to.equal(true);
    expect(got('/hook/once', event).map(({ headers }) => headers['webhook-attempt'])).to.deep.equal([
      '1',
      '2',
      '3',
    ]);
  });

  it('finds no event and no endpoint of somebody else, nor one that is deleted', async () => {
    const { merchant, event } = await paid();
    const stranger = await paid();
    const { id: foreign } = await test.endpoint(stranger.merchant.id, `${receiver.url}/foreign`);
    const { id: deleted } = await test.endpoint(merchant.id, `${receiver.url}/deleted`);
    await test.call('DELETE', `/admin/endpoints/${deleted}?reason=gone`);
    const { secret: live } = await test.issueKey(merchant.id, 'live');
    const answers = await Promise.all([
      resend(merchant, stranger.event),
      resend({ ...merchant, key: live }, event),
      resend(merchant, event, { endpoint: foreign }),
      resend(merchant, event, { endpoint: deleted }),
    ]);
    for (const { status, json } of answers)
      expect([status, json.error.code]).to.deep.equal([404, 'resource_not_found']);
    expect((await resend(merchant, event)).json.deliveries).to.deep.equal([]);
    expect((await test.call('GET', `/admin/deliveries?event=${event}`)).json.data).to.deep.equal([]);
  });

  it('is limited, with the time after which the next one goes', async () => {
    const { merchant, event } = await paid();
    const answers = await Promise.all(
      // Leave for one comes back every other second; so many are not spread over a minute on any machine.
      Array.from({ length: 2 * limits.resendsPerMinute }, () => resend(merchant, event)),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).to.be.within(1, limits.resendsPerMinute);
    expect(refused[0]!.json.error.message).to.equal('At most 30 events are sent again in a minute.');
    expect(Number(refused[0]!.headers.get('retry-after'))).to.be.within(1, 60);
  });
});
