import { expect } from 'chai';
import { idTime, newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** OPERATING: collections by their dates, on the page and as a file. */
describe('collections by date, for operators', () => {
  let test: TestService;
  let merchant: TestMerchant;
  const phone = '255700000004';
  /** More than what is read at once. */
  const copies = 620;
  const noon = Date.parse('2026-10-15T09:00:00Z');
  let ids: string[];

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant({ name: 'Duka' });
    const { id } = (await merchant.create({ phone, reference: '=HYPERLINK("http://evil","x")' })).json;
    await merchant.final(id);
    const stored = test.service.wired.db.collection<{ _id: string; data: object }>('collections');
    const doc = (await stored.findOne({ _id: id }))!;
    // One each minute of the hours before noon, and one at each end of a day in Dar es Salaam.
    const moments = Array.from({ length: copies }, (_, n) => noon - n * limits.minuteMs);
    const midnight = Date.parse('2026-10-19T21:00:00Z');
    const planted = [...moments, midnight, midnight + limits.dayMs - 1, midnight + limits.dayMs].map(
      (at) => ({
        ...doc,
        _id: newId('col', at),
        data: {
          ...doc.data,
          createdAt: new Date(at),
          reference: at === midnight ? 'first, of "the" day' : '-1+2',
        },
      }),
    );
    await stored.insertMany(planted);
    ids = planted.map(({ _id }) => _id);
  });
  after(() => test.stop());

  const file = async (query: string) => {
    const answer = await test.call('GET', `/admin/collections.csv?mode=test&${query}`);
    const [head = '', ...lines] = answer.text.trimEnd().split('\r\n');
    return { ...answer, head, lines, names: lines.map((line) => line.split(',', 1)[0]!) };
  };

  it('come as a file, whole and in order, whatever their number', async () => {
    const { status, headers, head, names } = await file('from=2026-10-01&to=2026-10-17');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.match(/^text\/csv/);
    expect(headers.get('content-disposition')).to.equal(
      'attachment; filename="collections-test-2026-10-01-2026-10-17.csv"',
    );
    expect(head).to.match(/^id,created_at,merchant_id,.*,created_eat$/);
    const wanted = ids
      .filter((id) => idTime(id) <= noon)
      .sort()
      .reverse();
    expect(names).to.deep.equal(wanted);
  });

  it('are those of a day in Dar es Salaam, its first moment included and the next day’s not', async () => {
    const { names, lines } = await file('from=2026-10-20&to=2026-10-21');
    const [first, last] = ids.slice(copies);
    expect(names).to.deep.equal([last, first]);
    expect(lines[1])
      .to.include(',"first, of ""the"" day",')
      .and.to.match(/,2026-10-20T00:00:00\.000\+03:00$/);
    const listed = await test.call('GET', '/admin/collections?mode=test&from=2026-10-20&to=2026-10-21');
    expect(listed.json.data.map(({ id }: { id: string }) => id)).to.deep.equal(names);
  });

  it('hold no formula and no customer’s number', async () => {
    const { text } = await file(`merchant=${merchant.id}`);
    expect(text).to.include(`"'=HYPERLINK(""http://evil"",""x"")"`).and.to.include(",'-1+2,");
    expect(text).to.include('2557****0004').and.to.not.include(phone);
  });

  it('are narrowed by the filters of the list, and refused as it refuses', async () => {
    expect((await file('state=succeeded&from=2026-10-01&to=2026-10-17')).lines).to.deep.equal([]);
    for (const query of ['from=2026-02-30', 'from=yesterday', 'phone=12', 'limit=5'])
      expect((await test.call('GET', `/admin/collections.csv?${query}`)).status, query).to.equal(400);
  });
});
