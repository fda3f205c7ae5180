import { expect } from 'chai';
import { operatorRoutes } from '../../src/app.ts';
import { closingAt } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { type Receiver, startReceiver, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** OPERATING "Who may do what": a viewer reads everything, and no customer's number. */
describe('a viewer', () => {
  const phone = '255700000004';
  /** Whose payment succeeds, and is settled. */
  const payer = '255712345678';
  const quoted = `no customer +${phone} here`;
  let test: TestService;
  let receiver: Receiver;
  let viewer: string;
  let operator: string;
  const ids: Record<string, string[]> = {};

  before(async () => {
    test = await startTestService();
    receiver = await startReceiver((_received, response) => {
      response.statusCode = 500;
      response.end(quoted);
      return undefined;
    });
    const letIn = async (role: string) =>
      (await test.call('POST', '/admin/operators', { body: { name: role, role, reason: 'to look' } })).json
        .token;
    [viewer, operator] = [await letIn('viewer'), await letIn('operator')];
    const merchant = await test.merchant();
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const { json } = await merchant.create({ phone, metadata: { phone } });
    await merchant.final(json.id);
    const tried = async () =>
      (await test.call('GET', `/admin/deliveries?endpoint=${endpoint.id}`)).json.data[0];
    const delivery = await until(async () => (await tried())?.attempts > 0 && (await tried()));
    await plantEvidence(json.id);
    const paid = (await merchant.create({ phone: payer })).json;
    await merchant.final(paid.id);
    const made = async (path: string, body: object) =>
      (await test.call('POST', path, { body: { ...body, reason: 'to look' }, at: 'operators' })).json;
    const since = new Date(Date.now() - limits.hourMs).toISOString();
    const replay = await made(`/admin/endpoints/${endpoint.id}/recover`, { since });
    await made('/admin/settlements/run', {});
    const [settlement] = (await test.call('GET', '/admin/settlements')).json.data;
    const destination = await made(`/admin/merchants/${merchant.id}/destinations`, {
      ...{ mode: 'test', kind: 'wallet', name: 'Acme', number: payer },
    });
    const confirmed = { type: 'operator.confirmed', reason: 'to look' };
    await test.call('POST', `/admin/actors/${destination.id}/events`, { body: confirmed });
    const isAvailable = await until(async () => {
      await merchant.settle();
      return (await merchant.get('/v1/balance')).json.available > 1_500;
    });
    expect(isAvailable, 'settled').to.equal(true);
    const asked = { mode: 'test', amount: 1_000, destination: destination.id };
    const payout = await made(`/admin/merchants/${merchant.id}/payouts`, asked);
    const refused = await merchant.create({ amount: 1, reference: phone, description: [phone] });
    const key = (await test.issueKey(merchant.id, 'test')).secret;
    const refund = await test.call('POST', '/v1/refunds', {
      token: key,
      headers: { 'idempotency-key': 'to-look' },
      body: { collection: paid.id, amount: 500 },
    });
    expect(refund.status, refund.text).to.equal(202);
    await test.service.wired.refusals.flush();
    const { date, difference, day } = await plantStatement();
    Object.assign(ids, {
      merchants: [merchant.id],
      endpoints: [endpoint.id],
      deliveries: [delivery.id],
      events: [delivery.event_id],
      replays: [replay.id],
      collections: [json.id],
      payouts: [payout.id],
      refunds: [refund.json.id],
      settlements: [settlement.id],
      'fee-plans': ['default'],
      reconciliations: [`rec.MPESA_TZ.${date}`],
      safeguarding: [day],
      actors: [
        ...[json.id, endpoint.id, delivery.id, replay.id, settlement.id],
        ...[`rec.MPESA_TZ.${date}`, difference, destination.id, payout.id],
      ],
      requests: [refused.headers.get('request-id')!],
    });
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  /** What a network said and sent; the test rail is in this process and says nothing in writing. */
  const plantEvidence = async (collectionId: string) => {
    const at = new Date();
    const { db } = test.service.wired;
    const about = { collectionId, rail: 'MPESA_TZ', at };
    await db.collection<{ _id: string }>('railAnswers').insertOne({
      ...{ _id: 'planted', ...about, askedAt: at, operation: 'push', kind: 'unknown' },
      ...{ why: null, code: null, httpStatus: 200, text: quoted },
    } as never);
    const hint = { code: 'INS-0', text: quoted };
    await db
      .collection<{ _id: string }>('railCallbacks')
      .insertOne({ _id: 'planted', ...about, hint, body: quoted } as never);
  };

  /** A network's statement of the day before yesterday, which names customers; and a closing of that day. */
  const plantStatement = async () => {
    const { clock, db } = test.service.wired;
    const date = eatDate(clock.now() - 2 * limits.dayMs);
    const header =
      'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance,Other Party Info';
    const line = `QKABCDE123,${date} 12:00:00,Pay Bill from ${payer},Completed,5000,,5000,${payer} - ASHA`;
    const brought = await test.call(
      'POST',
      `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=today`,
      {
        body: `${header}\n${line}\n`,
        headers: { 'content-type': 'text/csv' },
      },
    );
    expect(brought.status, brought.text).to.equal(202);
    const found = async () => (await test.call('GET', '/admin/differences')).json.data[0];
    const difference = await until(found);
    await closingAt(db, 'live', new Date(dateDueAtMs(eatDate(clock.now()))));
    const [day] = (await test.call('GET', '/admin/safeguarding')).json.data;
    return { date, difference: difference.id as string, day: day.id as string };
  };

  /** Every route that a viewer may read, of what there is here. */
  const paths = () =>
    operatorRoutes(new Proxy(() => undefined, { get: () => ({}) }) as never)
      .filter(({ method, auth }) => method === 'GET' && auth === 'viewer')
      .map(({ path }) => path)
      .flatMap((path) => {
        const [, name] = /^\/admin\/([a-z-]+)\/:id/.exec(path) ?? [];
        const whole = path.replace(':machine', 'collection');
        if (name === undefined) return [whole];
        if (!ids[name]) throw new Error(`${path}: give this test an id of these, so that it is read too`);
        return ids[name].map((id) => whole.replace(':id', id));
      });

  it('sees no customer’s number on any route', async () => {
    const all = paths();
    expect(all.filter((path) => path.includes(':'))).to.deep.equal([]);
    expect(all.length).to.be.above(30);
    for (const path of all) {
      const needsMode =
        /overview|tallies|calendar|waiting|trial-balance|entries|statement|account|proposals|payout-files/.test(
          path,
        );
      const query = needsMode ? '?mode=test' : path === '/admin/search' ? `?q=${phone}` : '';
      const { status, text } = await test.call('GET', `${path}${query}`, { token: viewer, at: 'operators' });
      expect(status, `${path} ${text}`).to.equal(200);
      for (const number of [phone, payer]) expect(text, path).to.not.include(number.slice(3));
    }
  });

  it('is told that the bytes are masked; an operator sees them as they went out', async () => {
    const [delivery] = ids.deliveries!;
    const [collection] = ids.collections!;
    const shown = async (token: string) => {
      const sent = (await test.call('GET', `/admin/deliveries/${delivery}`, { token })).json;
      const said = (await test.call('GET', `/admin/collections/${collection}/evidence`, { token })).json;
      return {
        isMasked: sent.is_masked,
        phone: JSON.parse(sent.body).data.phone,
        texts: [
          sent.attempt_log[0].excerpt,
          said.answers[0].text,
          said.callbacks[0].text,
          said.callbacks[0].hint.text,
        ],
      };
    };
    const exact = { isMasked: false, phone, texts: Array(4).fill(quoted) };
    expect(await shown(operator)).to.deep.equal(exact);
    const masked = {
      isMasked: true,
      phone: '2557****0004',
      texts: Array(4).fill('no customer +255****0004 here'),
    };
    expect(await shown(viewer)).to.deep.equal(masked);
    expect(receiver.received[0]!.body.toString()).to.include(phone);
  });
});
