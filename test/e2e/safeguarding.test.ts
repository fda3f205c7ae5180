import { expect } from 'chai';
import { closingAt, collectionSucceeded, post, statementFollowed } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { startTestService, type TestService } from '../support/service.ts';

const { dayMs } = limits;

/** OPERATING "Money held and money owed": live money at the end of each day, signed off by a person. */
describe('the safeguarding report', () => {
  let test: TestService;
  let date: string;
  let atMs: number;

  const get = async (path: string) => (await test.call('GET', `/admin/safeguarding${path}`)).json;
  const sign = (reason = 'looked at') =>
    test.call('POST', `/admin/safeguarding/${date}/sign`, { body: { reason } });

  before(async () => {
    // Nobody closes the books of itself.
    test = await startTestService({ ROLE: 'api' });
    const { actors, clock, db } = test.service.wired;
    atMs = clock.now() - dayMs;
    date = eatDate(atMs);
    const { id: merchantId } = await test.merchant();
    const payment = {
      ...({ mode: 'live', merchantId, seq: 1, collectionId: 'col_01M81WTYR21Y4VC1P5ZEYAHN77' } as const),
      ...{ currency: 'TZS', channel: 'MPESA_TZ', amountTzs: 5_000, feeTzs: 100, feePlan: null },
      ...{ providerReference: 'R1', effectiveAtMs: atMs, postedAtMs: atMs },
    };
    await actors.commit(post(collectionSucceeded(payment, { settlesOn: '2099-01-01', stripe: 1 })));
    await closingAt(db, 'live', new Date(dateDueAtMs(eatDate(clock.now()))));
  });
  after(() => test.stop());

  it('says what lies with networks and the bank, what is owed, and whether it is covered', async () => {
    const { data } = await get('');
    expect(data.map(({ id }: { id: string }) => id)).to.deep.equal([date]);
    expect(data[0]).to.include({ clearing: 5_000, bank: 0, held: 5_000, is_covered: true, cover: 100 });
    expect(data[0]).to.include({ pending: 4_900, available: 0, reserved: 0, suspense: 0, owed: 4_900 });
    expect(
      (await test.call('GET', '/admin/safeguarding/2020-01-01')).status,
      'a day that was not closed',
    ).to.equal(404);
  });

  it('is signed off by a person, once for the same figures, with a line in the audit', async () => {
    expect(await get(`/${date}`)).to.include({ is_signed: false });
    const signed = await sign();
    expect(signed.status, signed.text).to.equal(200);
    expect(signed.json.signatures).to.have.length(1);
    expect(signed.json.signatures[0]).to.include({ reason: 'looked at', held: 5_000, owed: 4_900 });
    expect(await get(`/${date}`)).to.include({ is_signed: true });
    expect((await sign()).status).to.equal(409);
    const { json } = await test.call('GET', `/admin/audit?target=${date}`);
    expect(json.data.map(({ action }: { action: string }) => action)).to.deep.equal(['safeguarding.signed']);
  });

  it('shows what was corrected about the day later beside what was signed, until it is signed again', async () => {
    const { actors, clock } = test.service.wired;
    const source = { machine: 'difference', id: 'dif_01M81WTYR21Y4VC1P5ZEYAHN77', seq: 1 };
    const fact = {
      ...{ currency: 'TZS', rail: 'MPESA_TZ', source, fact: 'followed', amountTzs: 700, receipt: 'R2' },
      ...{ effectiveAtMs: atMs, postedAtMs: clock.now() },
    };
    await actors.commit(post(statementFollowed(fact, true)));
    const day = await get(`/${date}`);
    expect(day).to.include({ held: 5_000, owed: 4_900, is_signed: false });
    expect(day.corrected).to.include({ held: 5_700, suspense: 700, owed: 5_600, cover: 100 });
    const again = await sign('corrected by the statement');
    expect(again.json.signatures.map(({ held }: { held: number }) => held)).to.deep.equal([5_000, 5_700]);
    expect(again.json.is_signed).to.equal(true);
  });

  it('is a file, one line a day', async () => {
    const { text, headers } = await test.call('GET', '/admin/safeguarding.csv');
    expect(headers.get('content-type')).to.equal('text/csv; charset=utf-8');
    const [head, line] = text.split('\r\n');
    expect(head).to.equal(
      'date,clearing,bank,held,pending,available,reserved,suspense,owed,cover,signed_by,signed_at',
    );
    expect(line).to.match(new RegExp(`^${date},5000,0,5000,4900,0,0,0,4900,100,\\w+,20`));
  });

  it('a viewer reads it and signs nothing', async () => {
    const made = await test.call('POST', '/admin/operators', {
      body: { name: 'neema', role: 'viewer', reason: 'to look' },
    });
    const { token } = made.json;
    expect((await test.call('GET', `/admin/safeguarding/${date}`, { token })).status).to.equal(200);
    const refused = await test.call('POST', `/admin/safeguarding/${date}/sign`, {
      token,
      body: { reason: 'me too' },
    });
    expect(refused.status).to.equal(403);
  });
});
