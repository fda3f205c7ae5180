import { expect } from 'chai';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Whatever a person on the telephone can read out leads to the payment; ids, phones and references: operator-lists. */
describe('operators’ search', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });
  after(() => test.stop());

  const search = async (q: string) =>
    (await test.call('GET', `/admin/search?q=${encodeURIComponent(q)}`)).json;
  const hits = async (q: string) =>
    (await search(q)).data.map(({ id, matched, link }: Record<string, string>) => ({ id, matched, link }));

  it('finds a payment by the network’s receipt, however it is typed', async () => {
    const { id } = (await merchant.create()).json;
    const { provider_reference: receipt } = await merchant.final(id);
    const hit = { id, matched: 'receipt', link: `/admin/actors/${id}` };
    expect(await hits(receipt)).to.deep.equal([hit]);
    expect(await hits(receipt.toLowerCase())).to.deep.equal([hit]);
  });

  it('finds what a request made: a payment, or an operator’s change', async () => {
    const created = await merchant.create();
    const { id } = created.json;
    const requestId = created.headers.get('request-id')!;
    expect(requestId).to.match(/^req_/);
    expect(await hits(requestId)).to.deep.equal([{ id, matched: 'request', link: `/admin/actors/${id}` }]);
    const changed = await test.call('PATCH', `/admin/merchants/${merchant.id}`, {
      body: { late_payments: 'accept', reason: 'as agreed' },
    });
    const [line] = await hits(changed.headers.get('request-id')!);
    expect(line).to.include({ matched: 'request', link: `/admin/audit?target=${merchant.id}` });
    const read = await test.call('GET', '/admin/merchants');
    expect(await hits(read.headers.get('request-id')!)).to.deep.equal([]);
  });

  it('finds why a request was refused, for whoever is told its id', async () => {
    const phone = '255700000004';
    const refused = await merchant.create({ amount: 5, phone: `${phone}9` });
    const requestId = refused.headers.get('request-id')!;
    const [hit] = await until(async () => {
      const found = (await search(requestId)).data;
      return found.length > 0 && found;
    });
    expect(hit).to.include({ id: requestId, object: 'refused_request', mode: 'test', matched: 'request' });
    const { json } = await test.call('GET', hit.link);
    const [told] = json.data;
    expect(told).to.include({
      method: 'POST',
      route: '/v1/collections',
      status: 400,
      merchant_id: merchant.id,
    });
    expect(told.code).to.equal(refused.json.error.code);
    expect(told.errors.map(({ param }: { param: string }) => param)).to.include.members(['amount', 'phone']);
    // A client may bring an id of its own, and send it again.
    for (let n = 0; n < 2; n += 1)
      await test.call('GET', '/v1/collections/col_none', {
        token: merchant.key,
        headers: { 'X-Request-Id': 'order-77-again' },
      });
    const own = await until(async () => {
      const answer = await test.call('GET', '/admin/requests/order-77-again');
      return answer.json.data?.length === 2 && answer.json.data;
    });
    expect(own.map(({ status }: { status: number }) => status)).to.deep.equal([404, 404]);
    expect((await test.call('GET', '/admin/requests/req_nobody')).status).to.equal(404);
  });

  it('keeps little of what strangers send', async () => {
    const ids = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const answer = await test.call('GET', '/v1/whoami', { token: `wrong-${n}` });
        return answer.headers.get('request-id')!;
      }),
    );
    await test.service.wired.refusals.flush();
    const stored = test.service.wired.db.collection('refusals');
    const kept = await stored.countDocuments({ requestId: { $in: ids } });
    expect(kept).to.be.within(1, 20);
  });

  it('finds a settlement by the id that its merchant knows', async () => {
    await merchant.final((await merchant.create()).json.id);
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is there' } });
    const [day] = (await test.call('GET', `/admin/settlements?merchant=${merchant.id}`)).json.data;
    expect(await hits(day.public_id)).to.deep.equal([
      { id: day.public_id, matched: 'id', link: `/admin/actors/${day.id}` },
    ]);
    const other = `${day.public_id.slice(0, -1)}${day.public_id.endsWith('0') ? '1' : '0'}`;
    expect(await hits(other)).to.deep.equal([]);
  });

  it('finds an entry of the books by the id that its merchant knows', async () => {
    const { id } = (await merchant.create()).json;
    await merchant.final(id);
    const { json } = await merchant.get('/v1/balance_transactions');
    const [entry] = json.data;
    const [hit] = await hits(entry.id);
    expect(hit).to.include({ id: entry.id, matched: 'id' });
    const listed = await test.call('GET', hit!.link!);
    expect(listed.json.data.map(({ id }: { id: string }) => id)).to.include(entry.id);
  });

  it('finds a merchant by a part of its name, whatever signs are in it', async () => {
    const { id } = await test.merchant({ name: 'Duka (la) Asha & Sons' });
    const hit = { id, matched: 'name', link: `/admin/merchants/${id}` };
    for (const q of ['duka (la)', 'ASHA', '& s']) expect(await hits(q), q).to.deep.include(hit);
    expect(await hits('duk. .la')).to.deep.equal([]);
  });

  it('says what it can find, above all when it found nothing', async () => {
    const { data, findable } = await search('nothing is called so');
    expect(data).to.deep.equal([]);
    expect(findable.join('; ')).to.match(/col_.*phone.*reference.*receipt.*request id/);
  });
});
