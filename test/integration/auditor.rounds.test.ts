import type { Doc, Write } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Timestamp } from 'mongodb';
import { checkActors } from '../../src/ledger/auditor.ts';
import { collectionRules } from '../../src/ledger/captures.ts';
import { currentSnapshot, unevenlyMoved } from '../../src/ledger/counters.ts';
import {
  auditAll,
  auditRecent,
  type Breach,
  bucketSettled,
  openBuckets,
  post,
} from '../../src/ledger/ledger.ts';
import { int64 } from '../../src/mongo.ts';
import { dateDueAtMs } from '../../src/time.ts';
import { keepAsIs, nudge, otherCommitter, success } from '../support/books.ts';
import {
  auditMs,
  entry,
  type Histories,
  kinds,
  openHistories,
  payment,
  startMs,
  today,
  tomorrow,
  touch,
} from '../support/histories.ts';
import { sized } from '../support/size.ts';

const dayMs = 86_400_000;

describe('auditor’s rounds on MongoDB', function () {
  this.timeout(300_000);
  let histories: Histories;
  let putBack: () => Promise<void>;

  before(async () => {
    histories = await openHistories();
    putBack = await keepAsIs(histories);
  });
  afterEach(() => putBack());
  after(() => histories.close());

  describe('overdue buckets', () => {
    /** Of the latest ones: a run that begins before midnight in Dar es Salaam may end after it. */
    const dueMs = () => dateDueAtMs(tomorrow);
    const overdue = async (histories: Histories, nowMs: number) =>
      (await auditRecent(histories.db, nowMs, { untilMs: nowMs, snapshotAt: null })).breaches;

    it('are late by more than ten minutes after midnight in Dar es Salaam, to the millisecond', async () => {
      expect(await overdue(histories, dueMs() + 600_000)).to.deep.equal([]);
      const late = await overdue(histories, dueMs() + 600_001);
      expect(late.map((breach) => breach.kind)).to.deep.equal(Array(3).fill('bucket.overdue'));
      const stripes = late.map((each) => [
        each.mode,
        'stripe' in each && each.stripe,
        'amountTzs' in each && each.amountTzs,
      ]);
      expect(stripes).to.have.deep.members([
        ['live', 1, 9_750],
        ['live', 2, 2 * 9_750],
        ['test', 1, 9_750],
      ]);
    });

    it('count without what was posted in the last ten minutes', async () => {
      const justNow = { postedAtMs: dueMs() + 700_000, mode: 'live' as const, merchantId: 'mer_late' };
      await histories.written(success(payment(justNow), tomorrow));
      const ofLate = async (nowMs: number) =>
        (await overdue(histories, nowMs)).filter(
          (breach) => 'merchantId' in breach && breach.merchantId === 'mer_late',
        );
      expect(await ofLate(dueMs() + 1_300_000)).to.have.length(0);
      expect(await ofLate(dueMs() + 1_300_001)).to.have.length(1);
    });

    it('are not late while an operator holds their settlement', async () => {
      const held = { _id: 'stl_x', merchantId: 'mer_a', mode: 'live', state: 'held' };
      const actor = { ...held, snapshot: { value: 'held', context: { dueAtMs: dueMs() } } };
      await histories.db.collection<Doc>('settlements').insertOne(actor);
      const late = await overdue(histories, dueMs() + dayMs / 2);
      expect(late.map((breach) => breach.mode)).to.deep.equal(['test']);
    });
  });

  it('looks 30 seconds behind, and again from where it stopped', async () => {
    const stray = payment({ postedAtMs: startMs + 40_000 });
    await histories.written(post(entry(stray)));
    const first = await auditRecent(histories.db, auditMs, histories.start);
    expect(kinds(first)).to.deep.equal([]);
    const second = await auditRecent(histories.db, auditMs + 60_000, first.next);
    expect(kinds(second)).to.deep.equal(['capture.unfounded']);
    const third = await auditRecent(histories.db, auditMs + 120_000, second.next);
    expect(kinds(third)).to.deep.equal([]);
  });

  it('sums the touched merchants from the beginning where MongoDB has forgotten the last snapshot', async () => {
    await nudge(histories.db, 'live:TZS:mer_a:1', 'available', 5);
    const long = new Timestamp({ t: Math.floor(startMs / 1_000) - 3_600, i: 1 });
    for (const snapshotAt of [null, long]) {
      const report = await auditRecent(histories.db, auditMs, { ...histories.start, snapshotAt });
      expect(kinds(report)).to.deep.equal(['counter.differs']);
      expect(report.checked.merchants).to.equal(3);
    }
  });

  it('compares movements between two snapshots without summing the past', async () => {
    const settledBefore = new Date(startMs + 1); // they are the past
    const later = { postedAtMs: startMs + 2 };
    const since = await currentSnapshot(histories.db);
    await histories.written(success(payment(later), tomorrow));
    const between = await currentSnapshot(histories.db);
    expect(await unevenlyMoved(histories.db, { since, until: between, settledBefore })).to.deep.equal([]);

    await histories.written(success(payment(later), tomorrow));
    await nudge(histories.db, 'live:TZS:mer_a:1', `pending.${tomorrow}`, -9_750);
    const until = await currentSnapshot(histories.db);
    const suspects = [{ merchantId: 'mer_a', mode: 'live' }];
    const spans = [
      { since, until, settledBefore },
      { since: between, until, settledBefore },
    ];
    for (const span of spans) expect(await unevenlyMoved(histories.db, span)).to.deep.equal(suspects);
  });

  it('walks all collections in chunks of any size, and meets what lies between them', async () => {
    const stray = payment(); // an entry of no collection, with ids before and after it
    await histories.written(post(entry(stray)));
    await touch(histories);
    for (const size of [1, 2, 5, 13, 1_000]) {
      const checked = { collections: 0, merchants: 0 };
      const found: Breach[] = [];
      for await (const breach of checkActors(histories.db, collectionRules, checked, undefined, { size }))
        found.push(breach);
      expect(found, `chunks of ${size}`).to.have.length(1);
      expect(found[0]).to.include({ kind: 'capture.unfounded', collectionId: stray.collectionId });
      expect(checked.collections).to.equal(15);
    }
  });

  it('lists at most a hundred breaches of one check, and still makes the others', async () => {
    const strays = Array.from({ length: 120 }, () => payment());
    await histories.written(...strays.map((stray) => post(entry(stray))));
    await nudge(histories.db, 'live:TZS:mer_a:1', 'available', 5);
    const report = await auditAll(histories.db, auditMs);
    expect(report.isTruncated).to.equal(true);
    expect(report.breaches.filter((breach) => breach.kind === 'capture.unfounded')).to.have.length(100);
    expect(kinds(report)).to.deep.equal(['capture.unfounded', 'counter.differs']);
  });

  it('raises no false alarm while payments and settlements go on', async () => {
    let isOpen = true;
    let part = 1;
    const paying = [histories.commit, otherCommitter(histories)].map(async (commit, stripe) => {
      while (isOpen) {
        const paid = Array.from({ length: 8 }, () => payment({ postedAtMs: Date.now() }));
        await Promise.all(paid.map((each) => commit(success(each, today, stripe + 1))));
      }
    });
    const settling = (async () => {
      while (isOpen) {
        for await (const bucket of openBuckets(histories.db, { date: today })) {
          const source = { machine: 'settlement', id: 'stl_b', seq: ++part };
          const times = { effectiveAtMs: startMs, postedAtMs: Date.now() };
          const { mode, merchantId, amountTzs } = bucket;
          const counted: Write = {
            ...{
              op: 'update',
              into: 'settlements',
              filter: { _id: source.id },
              isUpsert: true,
              onMiss: 'race',
            },
            update: {
              $inc: { 'snapshot.context.settledTzs': int64(amountTzs) },
              $setOnInsert: { mode, merchantId, state: 'settled' },
            },
          };
          await histories.commit([...post(bucketSettled(bucket, part, source, times)), counted]);
        }
      }
    })();
    let cursor = histories.start;
    for (let round = 0; round < sized(4, 8); round++) {
      const recent = await auditRecent(histories.db, Date.now() + 31_000, cursor);
      expect(recent.breaches).to.deep.equal([]);
      cursor = recent.next;
      const all = await auditAll(histories.db, Date.now());
      expect(all.breaches).to.deep.equal([]);
    }
    isOpen = false;
    await Promise.all([...paying, settling]);
    expect((await auditAll(histories.db, Date.now() + 31_000)).breaches).to.deep.equal([]);
  });
});
