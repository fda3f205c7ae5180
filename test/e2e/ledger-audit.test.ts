import { expect } from 'chai';
import { Long } from 'mongodb';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const { dayMs, hourMs, minuteMs } = limits;

/** The auditor (CONTRACT 18.6) in the running worker; what it finds is in test/long/auditor.test.ts. */
describe('the auditor in the worker', function () {
  this.timeout(60_000);
  let test: TestService;
  // Far from midnight and from the quiet hour.
  const clock = clockAtNoon();

  before(async () => {
    test = await startTestService({}, { clock });
  });
  after(async () => {
    await test.stop();
  });
  const audit = async () => (await test.call('GET', '/admin/ledger/audit')).json;
  const alerts = () => test.service.wired.db.collection('alerts').find({ kind: 'ledger_breach' }).toArray();
  const round = async () => {
    clock.advance(minuteMs);
    await test.sweep();
    await test.service.wired.auditWatch.idle();
  };

  it('looks at what is new each minute and keeps its place in MongoDB', async () => {
    const first = await until(async () => (await audit()).recent ?? undefined);
    const merchant = await test.merchant();
    const { json } = await merchant.create();
    await merchant.final(json.id);
    await round();
    await round();
    const { recent, is_clean, open_breaches } = await audit();
    expect(recent.at > first.at).to.equal(true);
    expect({ is_clean, open_breaches }).to.deep.equal({ is_clean: true, open_breaches: [] });
    const place = await test.service.wired.db
      .collection<{ _id: string; untilMs: number }>('ledger_audits')
      .findOne({ _id: 'recent' });
    expect(place!.untilMs).to.be.within(clock.now() - 2 * minuteMs, clock.now() - 29 * limits.secondMs);
  });

  it('looks at everything once a night, at three in Dar es Salaam', async () => {
    const fullAt = async () => (await audit()).full.at as string;
    const first = await fullAt();
    clock.advance(11 * hourMs); // 23:00
    await round();
    expect(await fullAt()).to.equal(first);
    clock.advance(4 * hourMs + minuteMs);
    await round();
    const night = await fullAt();
    expect(new Date(Date.parse(night) + limits.eatOffsetMs).getUTCHours()).to.equal(3);
    clock.advance(hourMs);
    await round();
    expect(await fullAt()).to.equal(night);
  });

  it('says which days are proven, and proves all of them again for an operator, once', async () => {
    const merchant = await test.merchant();
    const { json } = await merchant.create();
    await merchant.final(json.id);
    clock.advance(dayMs);
    await round();
    const days = async () => (await test.call('GET', '/admin/ledger/days?limit=2')).json;
    const before = await days();
    expect(before.has_more).to.equal(true);
    const [latest] = before.data;
    expect(latest).to.include({ object: 'ledger_day', breaches: 0, removed_at: null });
    expect(latest.entries.map(({ mode }: { mode: string }) => mode)).to.deep.equal(['live', 'test']);
    expect(latest.seal).to.match(/^[0-9a-f]{64}$/);
    const older = (await test.call('GET', `/admin/ledger/days?limit=1&starting_after=${latest.id}`)).json;
    expect(older.data).to.deep.equal([before.data[1]]);
    const { days: proof } = await audit();
    expect(proof).to.include({ not_proven: 0, left: 0, verified_up_to: latest.until });
    expect((await test.call('POST', '/admin/ledger/audit', { body: {} })).status).to.equal(400);
    const reason = 'the quarter’s report';
    const asked = await test.call('POST', '/admin/ledger/audit', { body: { reason } });
    expect(asked.status, asked.text).to.equal(202);
    expect(asked.json).to.include({ object: 'whole_audit' });
    expect((await audit()).whole.ended_at).to.equal(null);
    clock.advance(minuteMs);
    await round();
    const { night, whole } = await audit();
    expect(whole.ended_at).to.not.equal(null);
    expect(night).to.include({ is_whole: true, days_done: proof.proven, days_due: proof.proven });
    for (const day of (await days()).data) expect(day.proven_at > asked.json.asked_at).to.equal(true);
    const lines = (await test.call('GET', '/admin/audit?action=ledger.audited')).json.data;
    expect(lines.map((line: { reason: string }) => line.reason)).to.deep.equal([reason]);
  });

  it('goes on past a collection that nobody can read, and so do its merchant’s list and statement', async () => {
    const { db } = test.service.wired;
    const merchant = await test.merchant();
    const { json: broken } = await merchant.create();
    const { json: sound } = await merchant.create();
    for (const { id } of [broken, sound]) await merchant.final(id);
    const collections = db.collection<{ _id: string }>('collections');
    const before = await collections.findOne({ _id: broken.id });
    await collections.updateOne({ _id: broken.id }, { $set: { data: null, snapshot: null } });
    const placeMs = async () =>
      (await db.collection<{ _id: string; untilMs: number }>('ledger_audits').findOne({ _id: 'recent' }))!
        .untilMs;
    const earlier = await placeMs();
    await round();
    await round();
    expect(await placeMs(), 'the auditor goes on').to.be.above(earlier);
    const { is_clean, open_breaches } = await audit();
    expect(is_clean).to.equal(false);
    const told = open_breaches.map(({ kind, collectionId }: Record<string, string>) => [kind, collectionId]);
    expect(told).to.deep.equal([['collection.malformed', broken.id]]);
    const list = await merchant.get('/v1/collections');
    expect(list.status, list.text).to.equal(200);
    expect(list.json.data.map(({ id }: { id: string }) => id)).to.deep.equal([sound.id]);
    expect((await merchant.get('/v1/collections?limit=1')).json).to.include({ has_more: true });
    const csv = (await test.call('GET', `/admin/merchants/${merchant.id}/statement.csv?mode=test`)).text;
    expect(csv).to.match(/\r\nclosing,/);
    await collections.replaceOne({ _id: broken.id }, before!);
    await db.collection('ledger_breaches').deleteMany({});
  });

  it('is a tile, and not clean, while no audit comes to its end', async () => {
    const tiles = async () =>
      (await test.call('GET', '/admin/overview?mode=test')).json.needs_you.map(
        ({ kind }: { kind: string }) => kind,
      );
    expect(await tiles()).to.not.include('audit_stale');
    clock.advance(5 * minuteMs + 1);
    expect(await tiles()).to.include('audit_stale');
    const { is_clean, stale_since, recent } = await audit();
    expect({ is_clean, stale_since }).to.deep.equal({ is_clean: false, stale_since: recent.at });
    await round();
    expect(await tiles()).to.not.include('audit_stale');
    expect(await audit()).to.include({ is_clean: true, stale_since: null });
  });

  it('raises one alert for a counter that moved without an entry, shows it, and leaves it as it is', async () => {
    const merchant = await test.merchant();
    const { json } = await merchant.create();
    await merchant.final(json.id);
    const balances = test.service.wired.db.collection<{ _id: string }>('balances');
    const planted = await balances.updateOne(
      { merchantId: merchant.id },
      { $inc: { available: Long.fromNumber(7) } },
      { bypassDocumentValidation: true },
    );
    expect(planted.modifiedCount).to.equal(1);
    clock.advance(dayMs);
    for (let i = 0; i < 3; i += 1) await round();
    // A day that passes at once may also show a bucket before it is settled: another breach, soon gone.
    const raised = (await alerts()).filter(({ detail }) => detail.kind === 'counter.differs');
    expect(raised).to.have.length(1);
    expect(raised[0]).to.include({ about: merchant.id, merchantId: merchant.id, mode: 'test' });
    const { is_clean, open_breaches, full } = await audit();
    expect(is_clean).to.equal(false);
    expect(full.breaches).to.be.above(0);
    const [differs] = open_breaches.filter(({ kind }: { kind: string }) => kind === 'counter.differs');
    expect(differs).to.include({ merchantId: merchant.id, counter: 'available' });
    expect(differs.counterTzs - differs.linesTzs).to.equal(7);
    const { available } = (await merchant.get('/v1/balance')).json;
    expect(available).to.equal(4_900 + 7);
  });
});
