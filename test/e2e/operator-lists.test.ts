import { MovableClock, stopwatch } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Int32, Long } from 'mongodb';
import { newId } from '../../src/ids.ts';
import { insertAll, type Planted, plantCollections, plantDeliveries } from '../support/many.ts';
import { startTestService, type TestService } from '../support/service.ts';

/**
 * Operators' lists over many documents. What MongoDB did for each answer is read from its profiler:
 * an index gives the order, and hardly more is read than is answered. `STORED=1000000` plants as many, and says how
 * long each answer took.
 */
describe('operators’ lists', function () {
  const many = Number(process.env.STORED ?? 20_000);
  // One that is given up while it still asks would be counted among what the next one reads.
  this.timeout(60_000 + many);
  let test: TestService;
  let merchants: string[];
  let endpoints: string[];
  let collections: Planted[];
  let deliveries: Planted[];
  const took: { path: string; ms: number; read: number }[] = [];
  const day = 86_400;

  before(async function () {
    this.timeout(many * 6);
    // No worker: nothing but these requests reads. The clock stands still, as one document a minute grows old.
    test = await startTestService({ ROLE: 'api' }, { clock: new MovableClock(Date.now()), isUnused: true });
    const { db } = test.service.wired;
    merchants = Array.from({ length: 11 }, (_, n) => newId('mer', 1_700_000_000_000 + n));
    endpoints = Array.from({ length: 7 }, (_, n) => newId('we', 1_700_000_000_000 + n));
    collections = await plantCollections(db, many, merchants);
    deliveries = await plantDeliveries(db, many, endpoints);
    await insertAll(db, 'endpoints', [
      ...endpoints.map((_id, n) => ({ _id, merchantId: merchants[n % 2], mode: 'test' })),
      ...Array.from({ length: 40 }, (_none, n) => ({
        ...{ _id: newId('we', 1_600_000_000_000 + n), merchantId: merchants[10], mode: 'test' },
      })),
    ]);
    await insertAll(db, 'audit', auditLines());
    await insertAll(db, 'settlements', settlements());
    await insertAll(db, 'journal_entries', entries());
    await db.command({ profile: 2 });
  });

  after(async () => {
    await test.service.wired.db.command({ profile: 0 });
    await test.stop();
    if (!process.env.STORED) return;
    const lines = took.map(
      ({ path, ms, read }) => `${ms.toFixed(1).padStart(8)} ms ${String(read).padStart(6)} read ${path}`,
    );
    process.stdout.write(`${lines.join('\n')}\n`);
  });

  const auditLines = () =>
    Array.from({ length: many / 4 }, (_, n) => ({
      _id: newId('aud', 1_700_000_000_000 + n * 60_000),
      at: new Date(1_700_000_000_000 + n * 60_000),
      by: n % 900 === 7 ? 'Neema' : 'admin',
      action: n % 800 === 9 ? 'key.revoked' : 'merchant.updated',
      target: n % 700 === 5 ? 'col_1' : `mer_${n}`,
      merchantId: merchants[n % 11],
      reason: 'planted',
      requestId: `req_${n}`,
    }));
  const settlements = () =>
    Array.from({ length: many / 4 }, (_, n) => {
      const date = new Date(1_500_000_000_000 + Math.floor(n / 11) * day * 1_000).toISOString().slice(0, 10);
      const mode = n % 97 === 0 ? 'live' : 'test';
      const merchantId = merchants[n % 11]!;
      const state = n % 450 === 3 ? 'held' : n % 1_200 === 5 ? 'due' : 'settled';
      const context = { dueAtMs: Date.parse(date), settledTzs: 1, parts: { 1: 1 }, settledAt: null };
      return {
        ...{ _id: `stl.${mode}.${merchantId}.${date}`, mode, merchantId, state, machineVersion: 1, seq: 1 },
        ...{ timers: [], calls: [], dueAt: null, updatedAt: new Date(), data: { date, currency: 'TZS' } },
        snapshot: { value: state, context },
      };
    });

  /** Few are live, and few are anything but captures. */
  const entries = () =>
    Array.from({ length: many / 4 }, (_, n) => {
      const mode = n % 97 === 0 ? 'live' : 'test';
      const merchantId = merchants[n % 11]!;
      const account = (name: string) => `${mode}:TZS:${name}`;
      const [none, net] = [Long.fromNumber(0), Long.fromNumber(4_900)];
      const stripe = new Int32(1);
      const at = new Date(1_700_000_000_000 + n * 60_000);
      const money = { account: account(`merchant_pending:${merchantId}`), bucket: '2026-11-22', stripe };
      return {
        ...{
          _id: `${mode}:col_${n}:succeeded`,
          mode,
          currency: 'TZS',
          merchantId,
          effectiveAt: at,
          postedAt: at,
        },
        type: n % 300 === 7 ? 'success.reversed' : 'collection.succeeded',
        lines: [
          { account: account('provider_clearing:MPESA_TZ'), debit: net, credit: none },
          { ...money, debit: none, credit: net },
        ],
        source: { machine: 'collection', id: `col_${n}`, seq: new Int32(1) },
        ...{ providerReference: null, feePlan: null },
      };
    });

  interface Work {
    op: string;
    ns: string;
    planSummary?: string;
    docsExamined?: number;
    keysExamined?: number;
    hasSortStage?: boolean;
    nreturned?: number;
    command: Record<string, unknown>;
  }

  /** An answer, and all that MongoDB was asked for it. */
  const watched = async (path: string) => {
    const { db } = test.service.wired;
    const since = new Date();
    const elapsedMs = stopwatch();
    const { status, text, json } = await test.call('GET', `/admin${path}`);
    const ms = elapsedMs();
    expect(status, `${path} ${text}`).to.equal(200);
    const all = await db
      .collection<Work & { _id: never }>('system.profile')
      .find({
        ts: { $gte: since },
        op: { $in: ['query', 'command', 'getmore'] },
        planSummary: { $exists: true },
      })
      .toArray();
    const work = all.filter(
      ({ ns }) => !/system|leases$|ledger_audits$|console_sessions$|operators$/.test(ns),
    );
    took.push({ path, ms, read: work.reduce((sum, { docsExamined }) => sum + (docsExamined ?? 0), 0) });
    return { json, work };
  };

  /** At most so many documents are read beyond those that are answered. */
  const frugal = (
    path: string,
    work: Work[],
    { answered, beyond, maySort }: { answered: number; beyond: number; maySort?: boolean },
  ) => {
    expect(work, path).to.not.be.empty;
    for (const each of work) {
      const what = `${path} ${each.ns} ${each.planSummary} ${JSON.stringify(each.command).slice(0, 400)}`;
      expect(each.planSummary, what).to.not.match(/COLLSCAN/);
      if (!maySort) expect(each.hasSortStage ?? false, what).to.equal(false);
    }
    const read = work.reduce((sum, { docsExamined }) => sum + (docsExamined ?? 0), 0);
    expect(read, `${path}: documents read`).to.be.at.most(answered + beyond);
    // One for each document, and a seek for each state and mode.
    const keys = work.reduce((sum, { keysExamined }) => sum + (keysExamined ?? 0), 0);
    expect(keys, `${path}: keys read`).to.be.at.most(2 * answered + 2 * beyond + 150);
  };

  const newest = (all: readonly Planted[], is: (one: Planted) => boolean, limit = 20) =>
    all
      .filter(is)
      .map(({ _id }) => _id)
      .reverse()
      .slice(0, limit);

  const agoMs = (seconds: number) => test.service.wired.clock.now() - seconds * 1_000;

  type Case = [query: string, is: (one: Planted) => boolean];
  const byState = (start: string) => (one: Planted) => one.state.startsWith(start);

  const collectionCases = (): Case[] => [
    ['', () => true],
    ['mode=live', ({ mode }) => mode === 'live'],
    ['mode=test', ({ mode }) => mode === 'test'],
    ['state=created', byState('created')],
    ['state=failed', byState('failed')],
    ['state=succeeded.standing', byState('succeeded')],
    ['mode=test&state=succeeded,failed', ({ mode, state }) => mode === 'test' && /^(succ|fail)/.test(state)],
    ['state=created.pushing,created.awaitingApproval,created.confirming&older_than=60', () => false],
    [
      'state=created.underReview&mode=live',
      ({ state, mode }) => mode === 'live' && state.startsWith('created'),
    ],
    ['state=created.underReview', byState('created')],
    ['state=failed.latePaid,expired.latePaid.held', byState('expired.latePaid')],
    [
      'mode=live&state=failed,expired',
      ({ mode, state }) => mode === 'live' && /^(failed|expired)/.test(state),
    ],
    [`merchant=${merchants[0]}`, ({ merchantId }) => merchantId === merchants[0]],
    [
      `merchant=${merchants[3]}&state=expired`,
      ({ merchantId, state }) => merchantId === merchants[3] && state.startsWith('expired'),
    ],
    [
      `merchant=${merchants[3]}&mode=live`,
      ({ merchantId, mode }) => merchantId === merchants[3] && mode === 'live',
    ],
    ['phone=0700000077', ({ msisdn }) => msisdn === '255700000077'],
    ['phone=255700000077&mode=test', ({ msisdn, mode }) => msisdn === '255700000077' && mode === 'test'],
    [
      `merchant=${merchants[2]}&reference=order-31`,
      ({ merchantId, reference }) => merchantId === merchants[2] && reference === 'order-31',
    ],
    ['failure_code=payer_blocked', ({ failureCode }) => failureCode === 'payer_blocked'],
    [
      'failure_code=payer_blocked&mode=test',
      ({ failureCode, mode }) => failureCode === 'payer_blocked' && mode === 'test',
    ],
    [`older_than=${10 * day}`, ({ at }) => at < agoMs(10 * day)],
    [`mode=live&older_than=${10 * day}`, ({ at, mode }) => mode === 'live' && at < agoMs(10 * day)],
    ['newer_than=600', ({ at }) => at >= agoMs(600)],
    [
      `state=created&older_than=${3 * day}`,
      ({ state, at }) => state.startsWith('created') && at < agoMs(3 * day),
    ],
  ];

  it('of collections: every filter over an index, newest first', async () => {
    for (const [query, is] of collectionCases()) {
      const { json, work } = await watched(`/collections?${query}`);
      expect(
        json.data.map(({ id }: { id: string }) => id),
        query,
      ).to.deep.equal(newest(collections, is));
      frugal(query, work, { answered: json.data.length, beyond: 30 });
    }
  });

  it('a page goes on where the last one ended, as far in as one likes', async () => {
    const wanted = newest(collections, ({ mode }) => mode === 'live', many);
    const found: string[] = [];
    for (let next = ''; ; ) {
      const after = next ? `&starting_after=${next}` : '';
      const { json, work } = await watched(`/collections?mode=live&limit=40${after}`);
      frugal(`page ${found.length}`, work, { answered: json.data.length, beyond: 30 });
      found.push(...json.data.map(({ id }: { id: string }) => id));
      expect(json.has_more).to.equal(json.next !== null);
      if (!json.has_more) break;
      next = json.next;
    }
    expect(found).to.deep.equal(wanted);
  });

  it('a page from the middle and the last one cost no more than the first', async () => {
    for (const [path, all] of [
      ['/collections', collections],
      ['/deliveries', deliveries],
    ] as const) {
      for (const at of [many / 2, 20]) {
        const { json, work } = await watched(`${path}?starting_after=${all[at]!._id}`);
        const ids = json.data.map(({ id }: { id: string }) => id);
        expect(ids).to.deep.equal(
          all
            .slice(at - 20, at)
            .map(({ _id }) => _id)
            .reverse(),
        );
        frugal(path, work, { answered: 20, beyond: 5 });
      }
    }
  });

  it('filters that no index holds together look at a bounded stretch, and say where to go on', async () => {
    const query = `/collections?merchant=${merchants[0]}&failure_code=payer_blocked`;
    const { json, work } = await watched(query);
    expect([json.data, json.has_more]).to.deep.equal([[], false]);
    frugal(query, work, { answered: 0, beyond: 50 });
    // A merchant with this many endpoints: what is looked at is a stretch, and the page says where it ended.
    const none = `/machines/delivery/actors?merchant=${merchants[10]}`;
    const ends: (string | null)[] = [];
    const wanted = deliveries.filter((_one, n) => n % 10_000 === 0).map(({ _id }) => _id);
    for (let after = ''; ; ) {
      const page = await watched(`${none}${after}`);
      expect(page.json.data).to.deep.equal([]);
      const read = page.work.reduce((sum, { docsExamined }) => sum + (docsExamined ?? 0), 0);
      // The short look that comes first, of a page and thirty, is read again.
      expect(read).to.be.at.most(10_000 + 20 + 30);
      ends.push(page.json.next);
      if (!page.json.has_more) break;
      after = `&starting_after=${page.json.next}`;
    }
    expect(ends).to.deep.equal([...wanted.reverse(), null]);
  });

  it('a reference is found whosever it is', async () => {
    const { json, work } = await watched('/collections?reference=order-31&limit=10');
    const ids = json.data.map(({ id }: { id: string }) => id);
    expect(ids).to.deep.equal(newest(collections, ({ reference }) => reference === 'order-31', 10));
    frugal('reference', work, { answered: 0, beyond: many / 700 + 1, maySort: true });
  });

  it('of deliveries: by endpoint, event, status, mode and age', async () => {
    const [endpoint] = endpoints;
    const cases: Case[] = [
      ['', () => true],
      [`endpoint=${endpoint}`, ({ msisdn }) => msisdn === endpoint],
      [
        `endpoint=${endpoint}&status=failed`,
        ({ msisdn, state }) => msisdn === endpoint && state === 'failed',
      ],
      [
        `endpoint=${endpoint}&status=delivered`,
        ({ msisdn, state }) => msisdn === endpoint && state === 'delivered',
      ],
      [
        `endpoint=${endpoint}&status=pending&older_than=600`,
        ({ msisdn, state, at }) => msisdn === endpoint && state === 'waiting' && at < agoMs(600),
      ],
      [`merchant=${merchants[1]}`, ({ msisdn }) => endpoints.indexOf(msisdn) % 2 === 1],
      [
        `merchant=${merchants[0]}&status=failed`,
        ({ msisdn, state }) => endpoints.indexOf(msisdn) % 2 === 0 && state === 'failed',
      ],
      [`merchant=${merchants[0]}&mode=live`, () => false],
      [`merchant=${merchants[5]}`, () => false],
      ['status=failed', ({ state }) => state === 'failed'],
      ['status=pending', ({ state }) => state === 'waiting'],
      ['mode=live', ({ mode }) => mode === 'live'],
      ['mode=live&status=failed', ({ mode, state }) => mode === 'live' && state === 'failed'],
      [
        `mode=test&status=failed&newer_than=${7 * day}`,
        ({ at, state, mode }) => at >= agoMs(7 * day) && state === 'failed' && mode === 'test',
      ],
    ];
    for (const [query, is] of cases) {
      const { json, work } = await watched(`/deliveries?${query}`);
      expect(
        json.data.map(({ id }: { id: string }) => id),
        query,
      ).to.deep.equal(newest(deliveries, is));
      // Of no endpoint there is nothing to put in order.
      frugal(query, work, { answered: json.data.length, beyond: 30, maySort: json.data.length === 0 });
    }
    const event = deliveries[100]!.reference;
    const { json, work } = await watched(`/deliveries?event=${event}`);
    expect(json.data.map(({ id }: { id: string }) => id)).to.deep.equal(
      newest(deliveries, ({ reference }) => reference === event),
    );
    frugal('event', work, { answered: json.data.length, beyond: 5, maySort: true });
  });

  it('of actors: by machine, state, merchant and mode; overdue and quarantined ones', async () => {
    const cases: Case[] = [
      ['', () => true],
      ['mode=live', ({ mode }) => mode === 'live'],
      ['state=expired', byState('expired')],
      [`merchant=${merchants[0]}`, ({ merchantId }) => merchantId === merchants[0]],
      ['overdue=true', ({ isOverdue }) => isOverdue],
      ['quarantined=true', ({ isQuarantined }) => isQuarantined],
      ['quarantined=true&mode=live', ({ isQuarantined, mode }) => isQuarantined && mode === 'live'],
      ['overdue=true&state=succeeded', ({ isOverdue, state }) => isOverdue && state.startsWith('succeeded')],
    ];
    for (const [query, is] of cases) {
      const { json, work } = await watched(`/machines/collection/actors?${query}`);
      expect(
        json.data.map(({ id }: { id: string }) => id),
        query,
      ).to.deep.equal(newest(collections, is));
      // The rare ones are put in order after they were found, a thousand at most.
      frugal(query, work, {
        answered: json.data.length,
        beyond: 30,
        maySort: /overdue|quarantined/.test(query),
      });
    }
  });

  it('of reviews', async () => {
    const { json, work } = await watched('/reviews');
    const waits = ({ state }: Planted) => /underReview|latePaid/.test(state);
    expect(json.data.map(({ id }: { id: string }) => id)).to.deep.equal(newest(collections, waits));
    frugal('reviews', work, { answered: json.data.length, beyond: 30 });
  });

  it('of the audit: by target, merchant, person, action and time', async () => {
    const lines = auditLines();
    const ms = (n: number) => 1_700_000_000_000 + n * 60_000;
    const [from, to] = [new Date(ms(1_000)).toISOString(), new Date(ms(1_200)).toISOString()];
    type Line = (typeof lines)[number];
    const cases: [string, (line: Line) => boolean][] = [
      ['', () => true],
      ['target=col_1', ({ target }) => target === 'col_1'],
      [`merchant=${merchants[4]}`, ({ merchantId }) => merchantId === merchants[4]],
      ['by=Neema', ({ by }) => by === 'Neema'],
      ['action=key.revoked', ({ action }) => action === 'key.revoked'],
      [`from=${from}&to=${to}`, ({ at }) => at >= new Date(from) && at < new Date(to)],
      [`by=Neema&to=${to}`, ({ by, at }) => by === 'Neema' && at < new Date(to)],
    ];
    for (const [query, is] of cases) {
      const { json, work } = await watched(`/audit?${query}`);
      const wanted = lines
        .filter(is)
        .reverse()
        .slice(0, 20)
        .map(({ requestId }) => requestId);
      expect(
        json.data.map((line: { request_id: string }) => line.request_id),
        query,
      ).to.deep.equal(wanted);
      frugal(query, work, { answered: json.data.length, beyond: 5 });
    }
    const { json: first } = await watched('/audit?by=admin&limit=3');
    const { json: second } = await watched(`/audit?by=admin&limit=3&starting_after=${first.next}`);
    expect(second.data[0].id < first.data[2].id).to.equal(true);
  });

  it('of settlements: by state, mode, merchant and date', async () => {
    const all = settlements().sort((a, b) =>
      a.data.date === b.data.date ? (a._id < b._id ? 1 : -1) : a.data.date < b.data.date ? 1 : -1,
    );
    type One = (typeof all)[number];
    const cases: [string, (one: One) => boolean][] = [
      ['', () => true],
      ['state=held', ({ state }) => state === 'held'],
      ['mode=live', ({ mode }) => mode === 'live'],
      ['mode=test&state=due', ({ mode, state }) => mode === 'test' && state === 'due'],
      [
        'mode=test&state=due&due_by=2018-01-01',
        ({ mode, state, data }) => mode === 'test' && state === 'due' && data.date <= '2018-01-01',
      ],
      [`merchant=${merchants[5]}`, ({ merchantId }) => merchantId === merchants[5]],
      ['date=2018-01-01', ({ data }) => data.date === '2018-01-01'],
    ];
    for (const [query, is] of cases) {
      const { json, work } = await watched(`/settlements?${query}`);
      expect(
        json.data.map(({ id }: { id: string }) => id),
        query,
      ).to.deep.equal(
        all
          .filter(is)
          .slice(0, 20)
          .map(({ _id }) => _id),
      );
      frugal(query, work, { answered: json.data.length, beyond: 30 });
    }
  });

  it('of journal entries: by mode, type, merchant, account, source and time', async () => {
    const all = entries().reverse();
    type Entry = (typeof all)[number];
    const to = all[Math.floor(all.length / 2)]!.postedAt.toISOString();
    const cases: [string, (entry: Entry) => boolean][] = [
      ['mode=test', ({ mode }) => mode === 'test'],
      ['mode=live', ({ mode }) => mode === 'live'],
      ['mode=test&type=success.reversed', ({ mode, type }) => mode === 'test' && type === 'success.reversed'],
      [
        `mode=live&merchant=${merchants[3]}`,
        ({ mode, merchantId }) => mode === 'live' && merchantId === merchants[3],
      ],
      ['mode=test&source=col_77', ({ source }) => source.id === 'col_77'],
      [
        `mode=test&account=test:TZS:merchant_pending:${merchants[3]}`,
        ({ mode, merchantId }) => mode === 'test' && merchantId === merchants[3],
      ],
      [`mode=live&to=${to}`, ({ mode, postedAt }) => mode === 'live' && postedAt < new Date(to)],
    ];
    for (const [query, is] of cases) {
      const { json, work } = await watched(`/ledger/entries?${query}`);
      const wanted = all
        .filter(is)
        .slice(0, 20)
        .map(({ _id }) => _id);
      const keys = json.data.map((entry: { posting_key: string }) => entry.posting_key);
      expect(keys, query).to.deep.equal(wanted);
      frugal(query, work, { answered: json.data.length, beyond: 30 });
    }
  });

  it('search finds by the beginning of an id, a phone and a reference', async () => {
    const [, , third] = collections;
    const search = async (q: string) => {
      const { json, work } = await watched(`/search?q=${encodeURIComponent(q)}`);
      frugal(q, work, { answered: json.data.length, beyond: 60 + many / 700, maySort: true });
      return json.data.map(({ id, matched, link }: Record<string, string>) => ({ id, matched, link }));
    };
    const link = `/admin/actors/${third!._id}`;
    expect(await search(third!._id)).to.deep.equal([{ id: third!._id, matched: 'id', link }]);
    const beginning = third!._id.slice(0, 13);
    const alike = newest(collections, ({ _id }) => _id.startsWith(beginning));
    expect((await search(beginning)).map(({ id }: { id: string }) => id)).to.deep.equal(alike);
    expect(await search(third!.msisdn)).to.deep.include({ id: third!._id, matched: 'phone', link });
    const byReference = await search('order-31');
    expect(byReference.every(({ matched }: { matched: string }) => matched === 'reference')).to.equal(true);
    expect(byReference.map(({ id }: { id: string }) => id)).to.deep.equal(
      newest(collections, ({ reference }) => reference === 'order-31'),
    );
    expect(await search('nothing is called so')).to.deep.equal([]);
    const { text } = await test.call('GET', `/admin/search?q=${third!.msisdn}`);
    expect(text).to.not.include(`"${third!.msisdn}"`);
  });

  it('the overview and the machines count over indexes, and no further than a thousand', async () => {
    for (const path of ['/overview?mode=test', '/overview?mode=live', '/machines', '/machines/collection']) {
      const { json, work } = await watched(path);
      for (const each of work) {
        const what = `${path} ${each.ns} ${each.planSummary} ${JSON.stringify(each.command).slice(0, 400)}`;
        expect(each.planSummary, what).to.not.match(/COLLSCAN/);
        expect(each.docsExamined ?? 0, what).to.be.at.most(1_002);
        expect(each.keysExamined ?? 0, what).to.be.at.most(1_100);
      }
      if (path === '/overview?mode=test') {
        const tile = json.needs_you.find(({ kind }: { kind: string }) => kind === 'late_payment');
        expect(tile.count).to.equal(
          newest(collections, ({ state, mode }) => /latePaid/.test(state) && mode === 'test', many).length,
        );
      }
      if (path === '/machines') {
        const standing = json.data[0].actors.find(
          ({ mode, state }: Record<string, string>) => mode === 'test' && state === 'succeeded.standing',
        );
        expect(standing).to.include({ count: 1_000, is_more: true });
      }
    }
  });

  it('of a merchant’s own: every filter of the merchants’ list', async () => {
    const { id, get } = await test.merchant();
    const { db } = test.service.wired;
    const first = Date.now() - 400 * 60_000;
    const own = Array.from({ length: 400 }, (_, n) => ({
      ...{ _id: newId('col', first + n * 60_000), at: first + n * 60_000, n },
      status: n % 100 === 7 ? 'created' : n % 40 === 8 ? 'expired' : n % 20 === 9 ? 'failed' : 'succeeded',
    }));
    const docs = own.map(({ _id, at, n, status }) => ({
      ...{ _id, merchantId: id, mode: 'test', state: `${status}.some`, status, seq: 1, machineVersion: 1 },
      ...{ timers: [], calls: [], dueAt: null, updatedAt: new Date(at) },
      snapshot: {
        value: {},
        context: { createdAt: at, completedAt: at, expiresAt: at, failureCode: 'declined' },
      },
      data: {
        ...{ amountTzs: 5_000, feeTzs: 100, currency: 'TZS', channel: 'MPESA_TZ', metadata: {} },
        ...{
          phone: '255700000000',
          msisdn: '255700000000',
          reference: `own-${n % 7}`,
          createdAt: new Date(at),
        },
      },
    }));
    await db.collection('collections').insertMany(docs as never[], { writeConcern: { w: 'majority' } });
    const before = new Date(own[300]!.at).toISOString();
    const cases: [string, (one: (typeof own)[number]) => boolean][] = [
      ['', () => true],
      ...['created', 'succeeded', 'failed', 'expired'].map((status): (typeof cases)[number] => [
        `status=${status}`,
        (one) => one.status === status,
      ]),
      ['reference=own-3', ({ n }) => n % 7 === 3],
      ['reference=own-3&status=failed', ({ n, status }) => n % 7 === 3 && status === 'failed'],
      [`created_at[lt]=${before}`, ({ n }) => n < 300],
      [`status=failed&starting_after=${own[100]!._id}`, ({ n, status }) => n < 100 && status === 'failed'],
    ];
    for (const [query, is] of cases) {
      const since = new Date();
      const { json, text } = await get(`/v1/collections?limit=20&${query}`);
      const wanted = own.filter(is).reverse().slice(0, 20);
      expect(
        json.data?.map((each: { id: string }) => each.id),
        `${query} ${text}`,
      ).to.deep.equal(wanted.map(({ _id }) => _id));
      const work = await db
        .collection<Work & { _id: never }>('system.profile')
        .find({ ts: { $gte: since }, ns: /\.collections$/, planSummary: { $exists: true } })
        .toArray();
      frugal(query, work, { answered: json.data.length, beyond: 60 });
    }
  });
});
