import { expect } from 'chai';
import { eventId, recordEvent } from '../../src/events/events.ts';
import { newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 12.6 to 12.8. */
describe('GET /v1/events', () => {
  let test: TestService;

  before(async () => {
    test = await startTestService({}, { isUnused: true });
  });

  after(() => test.stop());

  const list = (of: TestMerchant, query = '', at = test) =>
    at.call('GET', `/v1/events${query}`, { token: of.key });
  const idsOf = ({ json }: { json: { data: { id: string }[] } }) => json.data.map(({ id }) => id);

  /** Stores events as a commit does, one a second before now, the oldest first. Gives their ids, the newest first. */
  const store = async (
    of: TestMerchant,
    count: number,
    more: { collectionId?: string; atMs?: number } = {},
  ) => {
    const nowMs = more.atMs ?? Date.now();
    const made = Array.from({ length: count }, (_none, n) => {
      const atMs = nowMs - (count - n) * 1_000;
      const collectionId = more.collectionId ?? newId('col', atMs);
      const type = n % 2 === 0 ? ('collection.succeeded' as const) : ('collection.failed' as const);
      const data = { id: collectionId };
      const id = eventId(collectionId, n + 1, atMs);
      return { id, type, collectionId, merchantId: of.id, mode: 'test' as const, atMs, data };
    });
    await test.service.wired.actors.commit(made.map(recordEvent));
    return made.reverse();
  };
  /** The answers of a list are checked against the document; events made by hand have no whole collection in them. */
  const raw = async (of: TestMerchant, query = '') => {
    const response = await fetch(`${test.baseUrl}/v1/events${query}`, {
      headers: { authorization: `Bearer ${of.key}` },
    });
    return { json: (await response.json()) as { data: { id: string }[]; has_more: boolean } };
  };

  it('gives what a webhook carries, newest first, byte for byte as GET /v1/events/{id}', async () => {
    const merchant = await test.merchant();
    const ids: string[] = [];
    for (const phone of ['255700000004', '255700000000']) {
      const { json } = await merchant.create({ phone });
      await merchant.final(json.id);
      ids.push(json.id);
    }
    const { status, json, text } = await list(merchant);
    expect(status).to.equal(200);
    expect(json).to.include({ object: 'list', has_more: false });
    expect(json.data.map(({ data }: { data: { id: string } }) => data.id)).to.deep.equal(ids.reverse());
    for (const { id } of json.data) {
      const one = await merchant.get(`/v1/events/${id}`);
      expect(text).to.include(one.text);
    }
  });

  it('filters by type, collection and time, and each filter narrows the others', async () => {
    const merchant = await test.merchant();
    const made = await store(merchant, 6);
    const collection = made[1]!.collectionId;
    const ids = made.map(({ id }) => id);
    const failed = made.filter(({ type }) => type === 'collection.failed').map(({ id }) => id);
    const at = (n: number) => new Date(made[n]!.atMs).toISOString();
    for (const [query, expected] of [
      ['?type=collection.failed', failed],
      ['?type=collection.expired', []],
      ['?type=endpoint.test', []],
      [`?collection=${collection}`, [ids[1]]],
      [`?collection=${collection}&type=${made[0]!.type}`, made[1]!.type === made[0]!.type ? [ids[1]] : []],
      [`?created_at[gte]=${at(2)}`, ids.slice(0, 3)],
      [`?created_at[gt]=${at(2)}&created_at[lte]=${at(1)}`, [ids[1]]],
      [`?created_at[lt]=${at(4)}`, [ids[5]]],
    ] as const) {
      expect(idsOf(await raw(merchant, query)), query).to.deep.equal(expected);
    }
    const stranger = await test.merchant();
    expect(idsOf(await raw(stranger, `?collection=${collection}`))).to.deep.equal([]);
  });

  it('pages both ways: each cursor gives the nearest, newest first, and both what lies between', async () => {
    const merchant = await test.merchant();
    const ids = (await store(merchant, 7)).map(({ id }) => id);
    const walk = async (cursor: string, from: string, onward: (page: string[]) => string) => {
      const pages: string[][] = [];
      for (let at = from, hasMore = true; hasMore; ) {
        const { json } = await raw(merchant, `?limit=2&${cursor}=${at}`);
        pages.push(idsOf({ json }));
        at = onward(pages.at(-1)!);
        hasMore = json.has_more;
      }
      return pages;
    };
    expect(await walk('starting_after', ids[0]!, (page) => page.at(-1)!)).to.deep.equal([
      [ids[1], ids[2]],
      [ids[3], ids[4]],
      [ids[5], ids[6]],
    ]);
    expect(await walk('ending_before', ids[6]!, (page) => page[0]!)).to.deep.equal([
      [ids[4], ids[5]],
      [ids[2], ids[3]],
      [ids[0], ids[1]],
    ]);
    const between = await raw(merchant, `?starting_after=${ids[1]}&ending_before=${ids[4]}`);
    expect(idsOf(between)).to.deep.equal([ids[2], ids[3]]);
  });

  it('every page is answered by an index alone', async () => {
    const merchant = await test.merchant();
    const { id, collectionId } = (await store(merchant, 30))[0]!;
    const { db } = test.service.wired;
    await db.command({ profile: 2 });
    for (const query of [
      '',
      '?type=collection.failed',
      `?ending_before=${id}`,
      `?collection=${collectionId}`,
    ])
      await raw(merchant, `${query}${query ? '&' : '?'}limit=3`);
    await db.command({ profile: 0 });
    const seen = await db
      .collection('system.profile')
      .find({
        ns: `${db.databaseName}.events`,
        'command.find': 'events',
        'command.filter.merchantId.$eq': merchant.id,
      })
      .toArray();
    expect(seen).to.have.length(4);
    for (const { planSummary, docsExamined } of seen) {
      expect(planSummary).to.match(/IXSCAN/);
      expect(docsExamined).to.be.at.most(5);
    }
    await db.collection('system.profile').drop();
  });

  it('refuses a wait beyond ten seconds and cursors of other things', async () => {
    const merchant = await test.merchant();
    for (const [query, param] of [
      ['?wait=11', 'wait'],
      ['?wait=-1', 'wait'],
      ['?wait=soon', 'wait'],
      ['?ending_before=col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', 'ending_before'],
      ['?collection=evt_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', 'collection'],
      ['?type=collection.created', 'type'],
    ]) {
      const { status, json } = await list(merchant, query);
      expect([status, json.error.param], query).to.deep.equal([400, param]);
    }
  });

  it('wait answers as soon as there is something, also what another process has committed', async () => {
    const merchant = await test.merchant();
    const twin = await startTestService({ ROLE: 'api' }, { database: test.config.mongodbDatabase });
    try {
      const begun = performance.now();
      const here = list(merchant, '?wait=10');
      const there = list(merchant, '?wait=10', twin);
      const other = list(merchant, '?wait=1&type=collection.failed');
      const { json } = await merchant.create({ phone: '255700000000' });
      const answers = await Promise.all([here, there]);
      for (const answer of answers) expect(answer.json.data[0].data.id).to.equal(json.id);
      expect(performance.now() - begun).to.be.below(8_000);
      // What it does not ask for does not wake it.
      expect((await other).json.data).to.deep.equal([]);
    } finally {
      await twin.stop();
    }
  });

  it('an event whose commit is late sorts behind a cursor that has passed it; a look at the last 120 seconds finds it', async () => {
    const merchant = await test.merchant();
    const { committer } = test.service.wired;
    const commit = committer.commit.bind(committer);
    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const { json: first } = await merchant.create({ phone: '255700000000', reference: 'late' });
    let isHeld = false;
    committer.commit = async (writes, isAwaited) => {
      const isLate = writes.some((write) => write.op === 'insert' && write.doc.collectionId === first.id);
      if (isLate && !isHeld) {
        isHeld = true;
        await held;
      }
      return commit(writes, isAwaited);
    };
    try {
      expect(await until(async () => isHeld)).to.equal(true);
      const { json: second } = await merchant.create({ phone: '255700000000', reference: 'in time' });
      await merchant.final(second.id);
      const page = await list(merchant);
      const [known] = page.json.data;
      expect([idsOf(page).length, known.data.id]).to.deep.equal([1, second.id]);
      const tail = list(merchant, `?ending_before=${known.id}&wait=10`);
      letGo();
      await merchant.final(first.id);
      // Its news ends the wait, and it is not there: it lies behind the cursor.
      expect((await tail).json.data).to.deep.equal([]);
      const since = new Date(Date.parse(known.created_at) - 120_000).toISOString();
      const again = await list(merchant, `?created_at[gte]=${since}`);
      const unknown = again.json.data.filter(({ id }: { id: string }) => id !== known.id);
      expect(unknown.map(({ data }: { data: { id: string } }) => data.id)).to.deep.equal([first.id]);
      expect(unknown[0].id < known.id).to.equal(true);
    } finally {
      letGo();
      committer.commit = commit;
    }
  });

  it('two hundred that wait ask MongoDB nothing', async function () {
    this.timeout(120_000);
    const merchant = await test.merchant();
    const perKey = limits.eventTailsPerKeyMax;
    const keys = await Promise.all(Array.from({ length: 10 }, () => test.issueKey(merchant.id, 'test')));
    const gone = new AbortController();
    const { db } = test.service.wired;
    const ofThem = { ns: `${db.databaseName}.events`, 'command.filter.merchantId.$eq': merchant.id };
    // By default the profile has a megabyte: of two hundred queries that is too little.
    await db.createCollection('system.profile', { capped: true, size: 16 * 2 ** 20 });
    await db.command({ profile: 1, filter: { ns: ofThem.ns } });
    const tails = keys.flatMap(({ secret }) =>
      Array.from({ length: perKey }, () =>
        fetch(`${test.baseUrl}/v1/events?wait=10`, {
          headers: { authorization: `Bearer ${secret}` },
          signal: gone.signal,
        }).then((answer) => answer.json()),
      ),
    );
    const ended = Promise.allSettled(tails);
    const asked = () => db.collection('system.profile').countDocuments(ofThem);
    expect(await until(async () => (await asked()) === tails.length)).to.equal(true);
    const more = keys.at(-1); // whose tails have waited the least
    const refused = await test.call('GET', '/v1/events?wait=1', { token: more!.secret });
    expect([refused.status, refused.json.error.code]).to.deep.equal([429, 'rate_limited']);
    expect(refused.json.error.message).to.match(/^20 requests of this key wait/);
    expect(Number(refused.headers.get('retry-after'))).to.be.at.least(1);
    // Without a wait it is answered, and another key of the merchant has its own places.
    expect((await test.call('GET', '/v1/events', { token: more!.secret })).status).to.equal(200);
    const before = await asked();
    const { json } = await (await test.merchant()).create({ phone: '255700000004' });
    await until(async () => (await db.collection('events').countDocuments({ collectionId: json.id })) > 0);
    expect(await asked(), 'others’ events wake nobody').to.equal(before);
    gone.abort();
    expect((await ended).every(({ status }) => status === 'rejected')).to.equal(true);
    // Who went away has left the places.
    const isFree = async () =>
      (await test.call('GET', '/v1/events?wait=0', { token: more!.secret })).status === 200 &&
      (await test.call('GET', '/v1/events?wait=1', { token: more!.secret })).status === 200;
    expect(await until(isFree)).to.equal(true);
    await db.command({ profile: 0, filter: 'unset' });
    await db.collection('system.profile').drop();
  });

  it('a service that stops lets them go at once', async () => {
    const twin = await startTestService({ ROLE: 'api' }, { database: test.config.mongodbDatabase });
    const merchant = await test.merchant();
    const tail = list(merchant, '?wait=10', twin);
    // It has passed all checks once MongoDB was asked for its key.
    await until(async () => (await list(merchant, '', twin)).status === 200);
    const begun = performance.now();
    const [answer] = await Promise.all([tail, twin.stop()]);
    expect(answer.json.data).to.deep.equal([]);
    expect(performance.now() - begun).to.be.below(8_000);
  });
});
