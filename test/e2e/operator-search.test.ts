import { expect } from 'chai';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

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

  it('says what it can find, above all when it found nothing', async () => {
    const { data, findable } = await search('nothing is called so');
    expect(data).to.deep.equal([]);
    expect(findable.join('; ')).to.match(/col_.*phone.*reference.*receipt.*request id/);
  });
});
