import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

const { dayMs, minuteMs } = limits;

/** Issue 5, points 5 to 7: what merchants and operators read of the money, and fee plans. */
describe('money', function () {
  this.timeout(60_000);
  let test: TestService;
  const clock = clockAtNoon();

  before(async () => {
    test = await startTestService({}, { clock });
  });
  after(async () => {
    await test.stop();
  });

  const paid = async (merchant: TestMerchant, changes: object = {}): Promise<string> => {
    const { json } = await merchant.create(changes);
    expect((await merchant.final(json.id)).status).to.equal('succeeded');
    return json.id;
  };
  const admin = async (method: string, path: string, body?: object, status = 200) => {
    const answer = await test.call(method, `/admin${path}`, body ? { body } : {});
    expect(answer.status, answer.text).to.equal(status);
    return answer.json;
  };
  const read = async (merchant: TestMerchant, path: string, status = 200) => {
    const answer = await merchant.get(path);
    expect(answer.status, answer.text).to.equal(status);
    return answer.json;
  };
  const settle = async () => {
    clock.advance(dayMs);
    return admin('POST', '/settlements/run', { reason: 'now' });
  };

  describe('a merchant’s balance transactions', () => {
    it('tell each change with gross, fee, net and settlement date; the nets add up to the balance', async () => {
      const merchant = await test.merchant();
      const first = await paid(merchant, { amount: 5_000 });
      const second = await paid(merchant, { amount: 3_000 });
      await settle();
      const third = await paid(merchant, { amount: 1_000 });
      const { data, has_more } = await read(merchant, '/v1/balance_transactions');
      expect(has_more).to.equal(false);
      const told = data.map((each: Record<string, unknown>) => [each.type, each.gross, each.fee, each.net]);
      expect(told).to.deep.equal([
        ['collection', 1_000, 20, 980],
        ['settlement', 0, 0, 0],
        ['collection', 3_000, 60, 2_940],
        ['collection', 5_000, 100, 4_900],
      ]);
      const sources = data.map((each: { source: { id: string } }) => each.source.id);
      expect([sources[0], sources[2], sources[3]]).to.deep.equal([third, second, first]);
      expect(data[1].changes).to.deep.equal({ pending: -7_840, available: 7_840, reserved: 0 });
      const settlement = await read(merchant, `/v1/settlements/${sources[1]}`);
      expect(settlement).to.include({ status: 'settled', amount: 7_840, pending: 0 });
      expect(settlement.settlement_date).to.equal(data[1].settlement_date);
      expect(data[2].settlement_date).to.equal(settlement.settlement_date);
      const { pending, available, reserved } = await read(merchant, '/v1/balance');
      const net = data.reduce((sum: number, each: { net: number }) => sum + each.net, 0);
      expect(net).to.equal(pending + available + reserved);
    });

    it('page without gap or repetition, and are filtered by type and period', async () => {
      const merchant = await test.merchant();
      for (let i = 0; i < 5; i += 1) await paid(merchant, { amount: 1_000 + i });
      await settle();
      const all = (await read(merchant, '/v1/balance_transactions?limit=100')).data;
      const ids = all.map(({ id }: { id: string }) => id);
      expect(ids).to.have.length(6);
      expect(ids).to.deep.equal([...ids].sort().reverse());
      const paged: string[] = [];
      for (let query = 'limit=2'; query; ) {
        const page = await read(merchant, `/v1/balance_transactions?${query}`);
        paged.push(...page.data.map(({ id }: { id: string }) => id));
        query = page.has_more ? `limit=2&starting_after=${paged.at(-1)}` : '';
      }
      expect(paged).to.deep.equal(ids);
      const count = async (query: string) =>
        (await read(merchant, `/v1/balance_transactions?${query}`)).data.length;
      expect(await count('type=settlement')).to.equal(1);
      expect(await count('type=collection')).to.equal(5);
      const third = encodeURIComponent(all[3].created_at);
      expect(await count(`created_at[gte]=${third}`)).to.equal(4);
      expect(await count(`created_at[lt]=${third}`)).to.equal(2);
      expect((await merchant.get('/v1/balance_transactions?type=gift')).status).to.equal(400);
      expect((await merchant.get('/v1/balance_transactions?starting_after=txn_x')).status).to.equal(400);
    });
  });

  it('settlements are their merchant’s alone, with their collections', async () => {
    const [merchant, other] = [await test.merchant(), await test.merchant()];
    const ids: string[] = [];
    for (let i = 0; i < 3; i += 1) ids.unshift(await paid(merchant));
    await paid(other);
    await admin('POST', '/settlements/run', { reason: 'now' });
    const [due] = (await read(merchant, '/v1/settlements')).data;
    expect(due).to.include({ status: 'due', amount: 0, pending: 3 * 4_900 });
    await settle();
    const settlement = await read(merchant, `/v1/settlements/${due.id}`);
    expect(settlement).to.include({ status: 'settled', amount: 3 * 4_900, pending: 0, id: due.id });
    const path = `/v1/settlements/${due.id}/collections`;
    const listed = await read(merchant, `${path}?limit=2`);
    expect(listed.has_more).to.equal(true);
    const rest = await read(merchant, `${path}?limit=2&starting_after=${listed.data[1].id}`);
    expect([...listed.data, ...rest.data].map(({ id }) => id)).to.deep.equal(ids);

    const live = (await test.issueKey(merchant.id, 'live')).secret;
    const lost = [
      await other.get(`/v1/settlements/${due.id}`),
      await other.get(path),
      await merchant.get(`/v1/settlements/stl_${'0'.repeat(26)}`),
      await test.call('GET', `/v1/settlements/${due.id}`, { token: live }),
    ];
    for (const { status, json } of lost) {
      expect([status, json.error.code]).to.deep.equal([404, 'resource_not_found']);
    }
    for (const list of ['settlements', 'balance_transactions']) {
      expect((await test.call('GET', `/v1/${list}`, { token: live })).json.data).to.deep.equal([]);
      expect((await test.call('GET', `/v1/${list}`)).status).to.equal(401);
    }
    const pages = await read(merchant, `/v1/settlements?limit=1&starting_after=${due.id}`);
    expect(pages).to.deep.equal({ object: 'list', data: [], has_more: false });
  });

  it('a collection whose success proved false before its date is not in the settlement', async () => {
    const merchant = await test.merchant();
    const [kept, gone] = [await paid(merchant), await paid(merchant)];
    const event = { type: 'operator.reversed', reason: 'the network took it back' };
    await admin('POST', `/actors/${gone}/events`, event);
    await settle();
    const [settlement] = (await read(merchant, '/v1/settlements')).data;
    expect(settlement).to.include({ amount: 4_900 });
    const { data } = await read(merchant, `/v1/settlements/${settlement.id}/collections?limit=1`);
    expect(data.map(({ id }: { id: string }) => id)).to.deep.equal([kept]);
  });

  describe('operators', () => {
    it('hold a settlement and release it; what is held does not settle', async () => {
      const merchant = await test.merchant();
      await paid(merchant);
      await admin('POST', '/settlements/run', { reason: 'now' });
      const list = await admin('GET', `/settlements?merchant=${merchant.id}`);
      const [{ id }] = list.data;
      const held = await admin('POST', `/settlements/${id}/hold`, { reason: 'a question' });
      expect(held).to.include({ state: 'held', pending: 4_900 });
      expect((await test.call('POST', `/admin/settlements/${id}/hold`, { body: {} })).status).to.equal(400);
      await admin('POST', `/settlements/${id}/hold`, { reason: 'again' }, 409);
      await settle();
      expect(await read(merchant, '/v1/balance')).to.include({ pending: 4_900, available: 0 });
      expect((await admin('GET', `/settlements?state=held&merchant=${merchant.id}`)).data).to.have.length(1);
      await admin('POST', `/settlements/${id}/release`, { reason: 'answered' });
      await admin('POST', '/settlements/run', { reason: 'now' });
      expect(await read(merchant, '/v1/balance')).to.include({ pending: 0, available: 4_900 });
      expect(await admin('GET', `/settlements/${id}`)).to.include({ state: 'settled', parts: 1 });
      await admin('POST', `/settlements/${id}/release`, { reason: 'late' }, 409);
      const audit = test.service.wired.db.collection('audit').find({ target: id });
      const actions = (await audit.sort({ _id: 1 }).toArray()).map(({ action, by }) => `${action} ${by}`);
      expect(actions).to.deep.equal(['settlement.held admin', 'settlement.released admin']);
    });

    it('cannot settle before the date, and entries carry the clock’s time, not as_of', async () => {
      const merchant = await test.merchant();
      const id = await paid(merchant);
      const asOf = new Date(clock.now() + dayMs).toISOString();
      const early = await test.call('POST', '/admin/settlements/run', {
        body: { as_of: asOf, reason: 'now' },
      });
      expect([early.status, early.json.error.param]).to.deep.equal([400, 'as_of']);
      expect(await read(merchant, '/v1/balance')).to.include({ pending: 4_900, available: 0 });
      clock.advance(3 * dayMs);
      const before = clock.now();
      const past = new Date(before - minuteMs).toISOString();
      await admin('POST', '/settlements/run', { as_of: past, reason: 'now' });
      const query = `mode=test&merchant=${merchant.id}&type=bucket.settled`;
      const [entry] = (await admin('GET', `/ledger/entries?${query}`)).data;
      expect(Date.parse(entry.posted_at)).to.be.within(before, clock.now());
      expect(Date.parse(entry.effective_at)).to.be.below(before);
      const [capture] = (await admin('GET', `/ledger/entries?mode=test&source=${id}`)).data;
      expect(capture).to.include({ gross: 5_000, fee: 100, net: 4_900 });
      expect(capture.lines).to.have.length(3);
      expect(capture.fee_plan).to.deep.equal({ id: 'default', version: 1 });
    });

    it('read a trial balance that balances, per mode', async () => {
      const trial = await admin('GET', '/ledger/trial-balance?mode=test');
      expect(trial).to.include({ mode: 'test', difference: 0, is_balanced: true });
      expect(trial.debit).to.be.above(0).and.to.equal(trial.credit);
      expect(trial.accounts.map(({ account }: { account: string }) => account)).to.include.members([
        'test:TZS:fee_revenue',
        'test:TZS:provider_clearing:MPESA_TZ',
      ]);
      expect(await admin('GET', '/ledger/trial-balance?mode=live')).to.include({ debit: 0, difference: 0 });
    });

    it('page through entries without gap or repetition', async () => {
      const seen: string[] = [];
      for (let query = ''; ; ) {
        const page = await admin('GET', `/ledger/entries?mode=test&limit=7${query}`);
        seen.push(...page.data.map(({ id }: { id: string }) => id));
        if (!page.has_more) break;
        query = `&starting_after=${seen.at(-1)}`;
      }
      expect(new Set(seen).size).to.equal(seen.length);
      const count = await test.service.wired.db
        .collection('journal_entries')
        .countDocuments({ mode: 'test' });
      expect(seen).to.have.length(count);
    });
  });

  describe('fee plans', () => {
    const terms = { name: 'Market', bps: 150, fixed: 50, min: 100, max: 1_000 };
    /** A changed plan or merchant holds everywhere within two seconds. */
    const known = () => new Promise((resolve) => setTimeout(resolve, limits.keyCacheMs + 50));

    it('are the merchant’s or the default, fixed at creation with their version', async () => {
      const plan = await admin('POST', '/fee-plans', { ...terms, reason: 'agreed' }, 201);
      expect(plan).to.include({ version: 1, bps: 150, fixed: 50, min: 100, max: 1_000 });
      const [merchant, other] = [await test.merchant(), await test.merchant()];
      const assigned = { fee_plan: plan.id, reason: 'signed' };
      await admin('POST', `/merchants/${merchant.id}/fee-plan`, assigned);
      await known();
      const fee = async (of: TestMerchant, amount: number) => (await of.create({ amount })).json;
      expect(await fee(other, 10_000)).to.include({ fee: 200 });
      const first = await fee(merchant, 10_000);
      expect(first).to.include({ fee: 200 }); // 1.5 % + 50
      expect(await fee(merchant, 1_000)).to.include({ fee: 100 }); // 65, at least 100
      expect(await fee(merchant, 1_000_000)).to.include({ fee: 1_000 });

      await admin('POST', `/fee-plans/${plan.id}/versions`, { bps: 300, reason: 'dearer' }, 201);
      await known();
      expect(await fee(merchant, 10_000)).to.include({ fee: 300 });
      expect((await read(merchant, `/v1/collections/${first.id}`)).fee).to.equal(200);
      const kept = await test.service.wired.db
        .collection<{ _id: string; data: { feePlan: object } }>('collections')
        .findOne({ _id: first.id });
      expect(kept!.data.feePlan).to.deep.equal({ id: plan.id, version: 1 });
      const shown = await admin('GET', `/fee-plans/${plan.id}`);
      expect(shown.versions.map(({ version }: { version: number }) => version)).to.deep.equal([2, 1]);
      const plans = (await admin('GET', '/fee-plans')).data.map(({ id }: { id: string }) => id);
      expect(plans).to.include.members(['default', plan.id]);

      const back = { fee_plan: null, reason: 'over' };
      await admin('POST', `/merchants/${merchant.id}/fee-plan`, back);
      await known();
      expect(await fee(merchant, 10_000)).to.include({ fee: 200 });
      const audit = await test.service.wired.db.collection('audit').find({}).toArray();
      const actions = audit.map(({ action }) => action);
      expect(actions).to.include.members([
        'fee_plan.created',
        'fee_plan.changed',
        'merchant.fee_plan_assigned',
      ]);
    });

    it('refuse an amount that the fee would reach', async () => {
      const dear = { name: 'Dear', bps: 0, fixed: 500, reason: 'test' };
      const plan = await admin('POST', '/fee-plans', dear, 201);
      const merchant = await test.merchant();
      await admin('POST', `/merchants/${merchant.id}/fee-plan`, { fee_plan: plan.id, reason: 'test' });
      await known();
      const refused = await merchant.create({ amount: 500 });
      expect([refused.status, refused.json.error.code]).to.deep.equal([400, 'amount_too_small']);
      expect((await merchant.create({ amount: 501 })).json).to.include({ fee: 500 });
    });

    it('that do not exist or make no sense are refused', async () => {
      const merchant = await test.merchant();
      const path = `/merchants/${merchant.id}/fee-plan`;
      await admin('POST', path, { fee_plan: `fee_${'0'.repeat(26)}`, reason: 'x' }, 404);
      await admin('POST', '/fee-plans', { ...terms, min: 2_000, reason: 'x' }, 400);
      await admin('POST', '/fee-plans', { ...terms, bps: 0.5, reason: 'x' }, 400);
      await admin('POST', '/fee-plans', terms, 400); // no reason
      const twins = [1, 2].map(() =>
        test.call('POST', '/admin/fee-plans/default/versions', { body: { bps: 200, reason: 'twice' } }),
      );
      const statuses = (await Promise.all(twins)).map(({ status }) => status).sort();
      expect(statuses[0]).to.equal(201);
      expect(statuses[1]).to.be.oneOf([201, 409]);
    });
  });

  describe('a statement', () => {
    const download = async (merchant: TestMerchant, query: string) => {
      const response = await fetch(`${test.adminUrl}/admin/merchants/${merchant.id}/statement.csv?${query}`, {
        headers: { authorization: `Bearer ${test.operatorToken}` },
      });
      return { response, lines: (await response.text()).split('\r\n').slice(0, -1) };
    };

    it('has an opening, each entry with a running balance, and a closing that is their sum', async () => {
      const merchant = await test.merchant();
      await paid(merchant, { amount: 1_000, reference: 'before' });
      clock.advance(minuteMs);
      const from = new Date(clock.now()).toISOString();
      await paid(merchant, { reference: '=HYPERLINK("http://evil")' });
      await paid(merchant, { reference: '@sum, "two"' });
      await settle();
      clock.advance(minuteMs);
      const { response, lines } = await download(merchant, `mode=test&from=${from}`);
      expect(response.status).to.equal(200);
      expect(response.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
      const [header, opening, ...rest] = lines;
      const closing = rest.pop();
      expect(header).to.match(/^row,time_utc,time_eat,type,/);
      expect(opening).to.match(/^opening,.*,from \(included\),.*,980$/);
      expect(closing).to.match(/^closing,.*,to \(not included\),.*,10000,200,9800,,10780$/);
      expect(rest).to.have.length(3);
      expect(rest[0])
        .to.include(`"'=HYPERLINK(""http://evil"")"`)
        .and.to.match(/,5000,100,4900,[\d-]+,5880$/);
      expect(rest[1])
        .to.include(`"'@sum, ""two"""`)
        .and.to.match(/,5000,100,4900,[\d-]+,10780$/);
      expect(rest[2]).to.match(/,bucket\.settled,.*,0,0,0,[\d-]+,10780$/);
      const [, utc, eat] = rest[0]!.split(',');
      expect(utc).to.match(/Z$/);
      expect(eat).to.match(/\+03:00$/);
      expect(Date.parse(utc!)).to.equal(Date.parse(eat!));

      const until = await download(merchant, `mode=test&to=${from}`);
      expect(until.lines.at(-1)).to.match(/^closing,.*,1000,20,980,,980$/);
      const none = await download(merchant, 'mode=live');
      expect(none.lines).to.have.length(3);
    });

    it('breaks off without a closing, with an alert, when the lines do not add up', async () => {
      const merchant = await test.merchant();
      const id = await paid(merchant);
      clock.advance(minuteMs);
      const { db } = test.service.wired;
      // A line for another merchant: the merchant's own sum and its lines are no longer the same.
      const stored = db.collection<{ _id: string }>('journal_entries');
      const account = 'test:TZS:unheard_of:nobody';
      const spoil = { $set: { 'lines.1.account': account } };
      await stored.updateOne({ _id: `test:${id}:succeeded` }, spoil, { bypassDocumentValidation: true });
      const failure = await download(merchant, 'mode=test').then(
        () => undefined,
        (error: Error) => error,
      );
      expect(failure).to.be.instanceOf(Error);
      const [alert] = await db.collection('alerts').find({ about: merchant.id }).toArray();
      expect(alert).to.include({ kind: 'statement_differs', merchantId: merchant.id });
      const mend = { $set: { 'lines.1.account': `test:TZS:merchant_pending:${merchant.id}` } };
      await stored.updateOne({ _id: `test:${id}:succeeded` }, mend, { bypassDocumentValidation: true });
    });

    it('is refused for a period that ends before it begins, a date that is none, and an unknown merchant', async () => {
      const merchant = await test.merchant();
      const path = (id: string, query: string) => `/merchants/${id}/statement.csv?mode=test${query}`;
      await admin('GET', path(merchant.id, '&from=2026-02-02&to=2026-02-01'), undefined, 400);
      const { error } = await admin(
        'GET',
        path(merchant.id, '&from=2026-02-02&to=2026-02-02'),
        undefined,
        400,
      );
      expect([error.param, /day after/.test(error.message)]).to.deep.equal(['to', true]);
      await admin('GET', path(merchant.id, '&from=2026-02-31'), undefined, 400);
      await admin('GET', path(merchant.id, '&from=yesterday'), undefined, 400);
      await admin('GET', path(`mer_${'0'.repeat(26)}`, ''), undefined, 404);
    });
  });

  it('and all of it leaves books in which the auditor finds nothing', async () => {
    clock.advance(minuteMs);
    await admin('POST', '/settlements/run', { reason: 'now' });
    expect((await auditAll(test.service.wired.db, clock.now())).breaches).to.deep.equal([]);
  });
});
