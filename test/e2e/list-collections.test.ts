import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** CONTRACT 8.6 and 3.5. */
describe('GET /v1/collections', () => {
  const clock = new MovableClock();
  const total = 45;
  /** The times around each third of the collections, in ISO 8601. */
  const marks: string[] = [];
  let test: TestService;
  let merchant: TestMerchant;
  /** Newest first. */
  let ids: string[];

  before(async () => {
    // The clock jumps: what was not pushed yet must not look late.
    test = await startTestService({}, { clock, pushWindowMs: limits.hourMs });
    merchant = await test.merchant();
    const made: string[] = [];
    for (let third = 0; third < 3; third += 1) {
      marks.push(new Date(clock.now()).toISOString());
      clock.advance(limits.minuteMs);
      for (let n = 0; n < total / 3; n += 1) {
        const { json } = await merchant.create({ reference: `third-${third}`, metadata: { n } });
        made.push(json.id);
      }
      clock.advance(limits.minuteMs);
    }
    ids = made.reverse();
  });

  after(() => test.stop());

  /** The answer to a query given as `?…`, or as its parts. */
  const list = async (query: string | Record<string, string | number> = '') => {
    const text =
      typeof query === 'string' ? query : `?${new URLSearchParams(query as Record<string, string>)}`;
    const { status, json } = await merchant.get(`/v1/collections${text}`);
    return { status, json, ids: json.data?.map(({ id }: { id: string }) => id) as string[] };
  };

  it('answers a list of collections, newest first, twenty unless asked otherwise', async () => {
    const page = await list();
    expect(page.status).to.equal(200);
    expect(Object.keys(page.json)).to.have.members(['object', 'data', 'has_more']);
    expect([page.json.object, page.json.has_more]).to.deep.equal(['list', true]);
    expect(page.ids).to.deep.equal(ids.slice(0, 20));
    const times = page.json.data.map(({ created_at }: { created_at: string }) => created_at);
    expect(times).to.deep.equal([...times].sort().reverse());
  });

  it('lists each collection just as GET /v1/collections/{id} answers it', async () => {
    const last = ids.at(-1)!;
    await merchant.final(last);
    const { json } = await list({ limit: 100 });
    expect(json.data.at(-1)).to.deep.equal((await merchant.get(`/v1/collections/${last}`)).json);
  });

  it('pages through all of them, each once, while has_more is true', async () => {
    for (const limit of [1, 7, 15, 44, 45, 100]) {
      const seen: string[] = [];
      for (let page = await list({ limit }); ; page = await list({ limit, starting_after: seen.at(-1)! })) {
        seen.push(...page.ids);
        if (!page.json.has_more || seen.length > total) break;
        expect(page.ids).to.have.length(limit);
      }
      expect(seen, `in pages of ${limit}`).to.deep.equal(ids);
    }
  });

  it('goes on where it was although newer ones were made between two pages', async () => {
    const other = await test.merchant();
    const made = [];
    for (let n = 0; n < 4; n += 1) made.unshift((await other.create()).json.id);
    const { json: first } = await other.get('/v1/collections?limit=2');
    await other.create();
    const { json: second } = await other.get(`/v1/collections?limit=2&starting_after=${first.data[1].id}`);
    expect(second.data.map(({ id }: { id: string }) => id)).to.deep.equal(made.slice(2));
    expect(second.has_more).to.equal(false);
  });

  it('is an empty list for a merchant that has none, and after the last one', async () => {
    const { json } = await (await test.merchant()).get('/v1/collections');
    expect(json).to.deep.equal({ object: 'list', data: [], has_more: false });
    expect((await list({ starting_after: ids.at(-1)! })).json.data).to.deep.equal([]);
  });

  it('takes a limit from 1 to 100', async () => {
    for (const limit of ['0', '101', '-1', '1.5', 'ten', '', '1e2x', '٥']) {
      const { status, json } = await list({ limit });
      expect([status, json.error?.code, json.error?.param], limit).to.deep.equal([
        400,
        'parameter_invalid',
        'limit',
      ]);
    }
    expect((await list({ limit: 1 })).ids).to.deep.equal(ids.slice(0, 1));
    expect((await list({ limit: 100 })).ids).to.have.length(total);
  });

  it('takes only a cursor that is a collection id', async () => {
    for (const cursor of [
      'col_x',
      ids[0]!.toLowerCase(),
      `${ids[0]}0`,
      ids[0]!.replace('col_', 'evt_'),
      '',
    ]) {
      const { status, json } = await list({ starting_after: cursor });
      expect([status, json.error.param], cursor).to.deep.equal([400, 'starting_after']);
    }
  });

  it('a cursor of another merchant reveals nothing: it only names a moment', async () => {
    const other = await test.merchant();
    const { json: theirs } = await other.create();
    const cursor = theirs.id as string;
    expect((await list({ starting_after: cursor, limit: 100 })).ids).to.deep.equal(ids);
    // An id that nobody has is answered in the same way as one that is somebody's.
    const nobodys = `${cursor.slice(0, -4)}0000`;
    expect((await list({ starting_after: nobodys, limit: 100 })).ids).to.deep.equal(ids);
    const { json } = await other.get(`/v1/collections?starting_after=${ids[0]}`);
    expect(json.data).to.deep.equal([]);
  });

  describe('filters', () => {
    it('by reference, exactly', async () => {
      expect((await list({ reference: 'third-1', limit: 100 })).ids).to.deep.equal(ids.slice(15, 30));
      expect((await list({ reference: 'third' })).ids).to.deep.equal([]);
      expect((await list({ reference: 'THIRD-1' })).ids).to.deep.equal([]);
    });

    it('by reference, which is never taken for a query', async () => {
      for (const query of ['?reference[$ne]=x', '?reference[$gt]=', '?reference.$ne=x']) {
        const { status, json } = await list(query);
        expect([status, json.error.code], query).to.deep.equal([400, 'parameter_unknown']);
      }
      expect((await list({ reference: '{"$ne":null}' })).ids).to.deep.equal([]);
    });

    it('by phone, in any spelling, and only one’s own', async () => {
      const [one, other] = await Promise.all([test.merchant(), test.merchant()]);
      for (const phone of ['255700000004', '255754000001']) {
        const { json } = await one.create({ phone });
        await other.create({ phone });
        const found = async (query: string) =>
          (await one.get(`/v1/collections?phone=${query}`)).json.data.map(({ id }: { id: string }) => id);
        for (const spelt of [
          phone,
          `%2B${phone}`,
          `+${phone}`,
          `0${phone.slice(3)}`,
          `0${phone.slice(3, 6)}-${phone.slice(6)}`,
        ])
          expect(await found(spelt), spelt).to.deep.equal([json.id]);
        expect(await found(`${phone}&status=expired`)).to.deep.equal([]);
        expect(await found(`${phone}&reference=another`)).to.deep.equal([]);
      }
      const { status, json } = await one.get('/v1/collections?phone=25575400000');
      expect([status, json.error.param]).to.deep.equal([400, 'phone']);
    });

    it('by the network’s receipt, and only one’s own', async () => {
      const [one, other] = await Promise.all([test.merchant(), test.merchant()]);
      const { json } = await one.create();
      const { provider_reference: receipt } = await one.final(json.id);
      const found = async (of: typeof one, query: string) =>
        (await of.get(`/v1/collections?provider_reference=${query}`)).json.data.map(
          ({ id }: { id: string }) => id,
        );
      expect(await found(one, receipt)).to.deep.equal([json.id]);
      expect(await found(other, receipt)).to.deep.equal([]);
      expect(await found(one, 'SIM0000000000')).to.deep.equal([]);
    });

    it('by status', async () => {
      const other = await test.merchant();
      const { json: paid } = await other.create();
      const { json: refused } = await other.create({ phone: '255700000004' });
      await Promise.all([other.final(paid.id), other.final(refused.id)]);
      const { json: open } = await other.create({ phone: '255700000021' });
      for (const [status, id] of [
        ['succeeded', paid.id],
        ['failed', refused.id],
        ['created', open.id],
      ]) {
        const { json } = await other.get(`/v1/collections?status=${status}`);
        expect(
          json.data.map((each: { id: string }) => each.id),
          status,
        ).to.deep.equal([id]);
      }
      expect((await other.get('/v1/collections?status=expired')).json.data).to.deep.equal([]);
      const { status, json } = await other.get('/v1/collections?status=underReview');
      expect([status, json.error.param]).to.deep.equal([400, 'status']);
    });

    it('by the time of creation, alone and between two', async () => {
      const all = { limit: 100 };
      expect((await list({ ...all, 'created_at[gte]': marks[1]! })).ids).to.deep.equal(ids.slice(0, 30));
      expect((await list({ ...all, 'created_at[lt]': marks[1]! })).ids).to.deep.equal(ids.slice(30));
      const between = { ...all, 'created_at[gt]': marks[1]!, 'created_at[lte]': marks[2]! };
      expect((await list(between)).ids).to.deep.equal(ids.slice(15, 30));
      const never = { ...all, 'created_at[gte]': marks[2]!, 'created_at[lt]': marks[1]! };
      expect((await list(never)).ids).to.deep.equal([]);
    });

    it('by the time of creation, to the millisecond: gte and lte include it, gt and lt do not', async () => {
      const { json } = await merchant.get(`/v1/collections/${ids[20]}`);
      const at = json.created_at;
      const has = async (relation: string) =>
        (await list({ limit: 100, [`created_at[${relation}]`]: at })).ids.includes(ids[20]!);
      expect([await has('gte'), await has('lte')]).to.deep.equal([true, true]);
      expect([await has('gt'), await has('lt')]).to.deep.equal([false, false]);
    });

    it('by the time of creation in any zone', async () => {
      const eat = new Date(Date.parse(marks[1]!) + 3 * limits.hourMs).toISOString().replace('Z', '+03:00');
      expect((await list({ limit: 100, 'created_at[gte]': eat })).ids).to.deep.equal(ids.slice(0, 30));
    });

    it('that are no time are refused', async () => {
      for (const time of [
        'yesterday',
        '2026-02-30T00:00:00Z',
        '2026-11-21',
        '1795251600',
        '2026-11-21T09:00:00',
      ]) {
        const { status, json } = await list({ 'created_at[gte]': time });
        expect([status, json.error.param], time).to.deep.equal([400, 'created_at[gte]']);
      }
    });

    it('together, and while paging', async () => {
      const query = { reference: 'third-1', 'created_at[gte]': marks[1]!, limit: 10 };
      const first = await list(query);
      expect([first.ids.length, first.json.has_more]).to.deep.equal([10, true]);
      const second = await list({ ...query, starting_after: first.ids.at(-1)! });
      expect(second.json.has_more).to.equal(false);
      expect([...first.ids, ...second.ids]).to.deep.equal(ids.slice(15, 30));
    });
  });

  it('refuses parameters that it does not know, all at once', async () => {
    const { status, json } = await list('?limt=5&page=2');
    expect([status, json.error.code]).to.deep.equal([400, 'parameter_unknown']);
    expect(json.error.errors.map(({ param }: { param: string }) => param)).to.have.members(['limt', 'page']);
    expect(json.error.errors[0].message).to.include('Did you mean limit?');
    expect((await list('?created_at[eq]=2026-11-21T09:00:00Z')).json.error.code).to.equal(
      'parameter_unknown',
    );
    expect((await list('?__proto__=1')).status).to.equal(400);
  });

  it('refuses a parameter that is given twice', async () => {
    for (const query of ['?limit=5&limit=5', '?status=created&status=failed', `?limit=1&limit=x`]) {
      const { status, json } = await list(query);
      expect([status, json.error.code], query).to.deep.equal([400, 'parameter_invalid']);
    }
  });
});
