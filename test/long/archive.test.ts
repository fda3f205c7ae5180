import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Archiver } from '../../src/archive/archive.ts';
import { readTrail } from '../../src/desk/desk.ts';
import { Events } from '../../src/events/events.ts';
import { journalSource } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** What people still see of a payment whose past went to the archive (CONTRACT 12.10). */
describe('a payment whose past is in the archive', function () {
  this.timeout(120_000);
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;
  let dir: string;
  let payment: string;
  let endpoint: string;
  let event: string;
  /** What was answered before anything went. */
  const answered = new Map<string, unknown>();
  const keys = { history: '90d', events: '90d', evidence: '90d' } as const;

  const own = [
    () => `/v1/collections/${payment}`,
    () => '/v1/collections',
    () => '/v1/balance',
    () => '/v1/balance_transactions',
    () => '/v1/settlements',
  ];
  const read = async (path: string) => (await merchant.get(path)).json;
  const history = async () => (await test.call('GET', `/admin/actors/${payment}/history`)).json;
  const deliveries = () => `/v1/webhook_endpoints/${endpoint}/deliveries`;

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kusanya-archive-'));
    test = await startTestService({
      ...{
        RETENTION_HISTORY: keys.history,
        RETENTION_EVENTS: keys.events,
        RETENTION_EVIDENCE: keys.evidence,
      },
      ARCHIVE_DIR: dir,
    });
    receiver = await startReceiver();
    merchant = await test.merchant();
    endpoint = (await test.endpoint(merchant.id, receiver.url)).id;
    payment = (await merchant.create()).json.id;
    await merchant.final(payment);
    await merchant.settle();
    ({
      event: { id: event },
    } = await receiver.next());
    const sent = await until(async () => (await read(deliveries())).data[0]?.status === 'delivered');
    expect(sent, 'it is delivered').to.equal(true);
    for (const path of own) answered.set(path(), await read(path()));
    answered.set('history', await history());
    await test.service.wired.tallier.run(Date.now() + limits.minuteMs);
    await archive();
  });
  after(async () => {
    await test.stop();
    await receiver.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** As a worker does it in a night of half a year later. */
  async function archive(docsMin = 10): Promise<void> {
    const { wired } = test.service;
    const clock = new MovableClock(Date.now() + 180 * limits.dayMs);
    const report = await new Archiver({
      ...{ ...wired, ...wired.config.archive, charts: wired.actors.definitions },
      ...{ clock, books: journalSource(wired.db, clock) },
      restShare: 0,
    }).run();
    expect(report.isComplete).to.equal(true);
    expect(report.docs).to.be.at.least(docsMin);
    for (const name of ['events', 'deliveries', 'attempts'])
      expect(await wired.db.collection(name).countDocuments(), name).to.equal(0);
    expect(await wired.db.collection('steps').countDocuments({ actor: payment })).to.equal(0);
  }

  it('is read, listed, settled and in the balance for its merchant as ever', async () => {
    for (const path of own) expect(await read(path()), path()).to.deep.equal(answered.get(path()));
  });

  it('says in lists of events and deliveries from when on they are whole', async () => {
    for (const path of ['/v1/events', deliveries()]) {
      const list = await read(path);
      expect(list, `${path} ${JSON.stringify(list)}`).to.deep.include({
        object: 'list',
        data: [],
        has_more: false,
      });
      expect(Date.parse(list.archived_before), path).to.be.greaterThan(Date.now());
    }
    // Another process: the one that committed an event remembers it for a while.
    expect(await new Events(test.service.wired.db).find(event)).to.equal(undefined);
  });

  it('has its steps for operators, who are told where they come from', async () => {
    const { data, has_more, archive: from } = await history();
    expect({ data, has_more }).to.deep.equal({
      data: (answered.get('history') as { data: unknown }).data,
      has_more: false,
    });
    expect(from).to.deep.include({ documents: data.length, missing: [] });
    const { wired } = test.service;
    const trail = await readTrail(wired, (await wired.actors.read({ machine: 'collection', id: payment }))!);
    expect(trail!.visited).to.include.members(['created.pushing.sending', 'succeeded.standing']);
    const half = await test.call('GET', `/admin/actors/${payment}/history?limit=2&after_seq=1`);
    expect(half.json.data.map(({ seq }: { seq: number }) => seq)).to.deep.equal(
      data.slice(1, 3).map(({ seq }: { seq: number }) => seq),
    );
    const evidence = await test.call('GET', `/admin/collections/${payment}/evidence`);
    expect(evidence.json.answers).to.have.length.greaterThan(0);
  });

  it('is in books that are right', async () => {
    const { breaches } = await test.service.wired.auditWatch.full();
    expect(breaches).to.deep.equal([]);
  });

  it('stays counted in pictures that are counted anew', async () => {
    const { wired } = test.service;
    const day = async () => {
      const { json } = await test.call('GET', '/admin/tallies?mode=test&by=day');
      return json.data.at(-1);
    };
    const counted = await day();
    await test.call('POST', '/admin/tallies/recount', { body: { reason: 'for a test' } });
    await wired.tallier.run(Date.now() + limits.minuteMs);
    expect(await day()).to.deep.equal(counted);
  });

  it('is told of by the route of the archive: what went, when, how much, and what is kept', async () => {
    const { json } = await test.call('GET', '/admin/archive');
    expect(json.folder).to.equal(dir);
    const events = json.kinds.find(({ kind }: { kind: string }) => kind === 'events');
    expect(events).to.include({ retention_ms: 90 * limits.dayMs, files: 1 });
    expect(events.bytes).to.be.within(1, events.raw_bytes);
    expect(json.latest_run).to.include({ complete: true, fault: null });
    expect(json.files[0]).to.include({ state: 'done' });
    const journal = json.kinds.find(({ kind }: { kind: string }) => kind === 'journal');
    expect(journal).to.deep.include({ stored_in: ['journal_entries'], retention_ms: null, begins_at: null });
    const plan = await test.call('GET', '/admin/archive/plan');
    expect(
      plan.json.data.every(({ documents }: { documents: object }) => Object.keys(documents).length === 0),
    ).to.equal(true);
  });

  it('goes on when it is told something, and its history is whole over both places and two files', async () => {
    const body = { type: 'operator.reversed', reason: 'the network took it back' };
    const told = await test.call('POST', `/admin/actors/${payment}/events`, { body });
    expect(told.status, told.text).to.equal(200);
    const { data: old } = answered.get('history') as { data: unknown[] };
    const { data } = await history();
    expect(data.slice(0, old.length)).to.deep.equal(old);
    expect(data.at(-1)).to.include({ to: 'succeeded.reversed' });
    await archive(1);
    const again = await history();
    expect(again.data).to.deep.equal(data);
    expect(again.archive.files).to.have.length(2);
    const { breaches } = await test.service.wired.auditWatch.full();
    expect(breaches).to.deep.equal([]);
  });
});
