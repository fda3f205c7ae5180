import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { expect } from 'chai';
import { Long } from 'mongodb';
import { Archive, archivePoints } from '../../src/archive/archive.ts';
import { fileOf, readManifests } from '../../src/archive/file.ts';
import { asStored } from '../../src/ledger/captures.ts';
import { daysOf, journalBegins } from '../../src/ledger/days.ts';
import {
  type ArchivedJournal,
  archivedJournal,
  auditAll,
  auditRecent,
  collectionSucceeded,
  openBuckets,
  type Payment,
  post,
  readBalance,
  readCapture,
  successProvedFalse,
  trialBalance,
  verifiedUpTo,
} from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { type Books, collectionWrite, keepAsIs, nudge, openBooks, plant, success } from '../support/books.ts';
import { bundle } from '../support/bundle.ts';
import {
  changed,
  keyOf,
  type Past,
  pastOf,
  paymentOf,
  provenPast,
  stored,
  todayMs,
} from '../support/nights.ts';
import { archiverOf } from '../support/past.ts';
import { sized } from '../support/size.ts';
import { stores } from '../support/stores.ts';

const { dayMs } = limits;
const kept = { history: undefined, events: undefined, evidence: undefined };

describe('the journal in the archive', function () {
  this.timeout(300_000);
  let dir: string;
  let books: Books;
  let empty: () => Promise<void>;
  let morning: () => Promise<Past>;
  let past: Past;

  before(async () => {
    books = await openBooks('journal');
    empty = await keepAsIs(books);
    morning = await provenPast(books, 5, { understood });
  });
  after(() => books.close());

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kusanya-journal-'));
    past = await morning();
  });
  afterEach(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  /** The night that comes is of the day after `todayMs`: so the first three days of five are older than this. */
  const keptMs = { ...kept, journal: 2 * dayMs };
  const archiver = (clock = past.clock) => archiverOf(past.db, clock, dir, { keptMs });
  /** Of the folder that each test has for itself. */
  const archive = () => archivedJournal(new Archive({ db: books.db, dir }));
  const archived: ArchivedJournal = { day: (date) => archive().day(date), of: (ids) => archive().of(ids) };
  const understood = { ...asStored, archived };
  /** The same before its first night. */
  const unproven = async () => {
    await empty();
    return await pastOf(books, 5, { understood });
  };
  const journal = () => past.db.collection<{ _id: string }>('journal_entries');
  const keys = async () => (await journal().find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  const sorted = (paid: readonly Payment[][]) => paid.flat().map(keyOf).sort();
  const allKinds = async () =>
    (await auditAll(past.db, past.clock.now(), understood)).breaches.map(({ kind }) => kind);

  it('takes whole days that are proven, sealed and old enough, and leaves books that are right', async () => {
    const before = {
      verified: await verifiedUpTo(past.db),
      trial: await trialBalance(past.db, 'live'),
      balance: await readBalance(past.db, 'mer_0', 'live'),
      closings: await past.db.collection('ledger_closings').find().toArray(),
    };
    const report = await archiver().run();
    expect(report).to.deep.include({ files: 4, docs: 8, left: 0, isComplete: true });
    expect(await keys()).to.deep.equal(sorted(past.paid.slice(4)));
    const manifests = await readManifests(dir);
    expect(manifests.map(({ date, docs }) => ({ date, docs }))).to.deep.equal(
      past.paid.slice(0, 4).map(([of]) => ({ date: eatDate(of!.postedAtMs), docs: 2 })),
    );
    expect(await journalBegins(past.db)).to.deep.equal(startOf(past.paid[4]![0]!));
    expect({
      verified: await verifiedUpTo(past.db),
      trial: await trialBalance(past.db, 'live'),
      balance: await readBalance(past.db, 'mer_0', 'live'),
      closings: await past.db.collection('ledger_closings').find().toArray(),
    }).to.deep.equal(before);
    expect(await allKinds()).to.deep.equal([]);
    expect((await auditAll(past.db, past.clock.now())).breaches, 'without the archive').to.deep.equal([]);
    await past.written([past.watch.wholeAsked('Neema', past.clock.now())]);
    expect(await past.night()).to.deep.equal([]);
    await past.pay();
    expect(await past.night()).to.deep.equal([]);
    expect((await verifiedUpTo(past.db))! > before.verified!).to.equal(true);
    const again = await archiver().run();
    expect(again.docs, 'the last of them is old enough by now').to.equal(2);
  });

  it('takes nothing that is not proven, nor anything after it', async () => {
    past = await unproven();
    expect(await archiver().run()).to.deep.include({ files: 0, docs: 0, isComplete: true });
    await changed(past.db, 'journal_entries', keyOf(past.paid[1]![0]!), { providerReference: 'before' });
    await changed(past.db, 'collections', past.paid[1]![0]!.collectionId, { 'data.feeTzs': Long.ONE });
    expect(await past.night()).to.deep.equal(['capture.differs']);
    await archiver().run();
    expect(await keys(), 'the day before it').to.deep.equal(sorted(past.paid.slice(1)));
  });

  it('removes nothing of a day that is not as it was sealed', async () => {
    await changed(past.db, 'journal_entries', keyOf(past.paid[1]![0]!), { providerReference: 'other' });
    const fault = await archiver()
      .run()
      .catch((error) => String(error));
    expect(fault).to.match(/was sealed with 2 entries/);
    expect(await keys()).to.deep.equal(sorted(past.paid.slice(1)));
    const day = (await daysOf(past.db))[1]!;
    expect(day.removedAt).to.equal(undefined);
    expect((await past.db.collection('archive_runs').findOne({}))!.fault).to.match(/was sealed/);
  });

  it('is read for a payment, and nothing of its neighbours', async () => {
    await archiver().run();
    const [of] = past.paid[2]!;
    const found = await archived.of([of!.collectionId]);
    expect(found.map(({ _id }) => _id)).to.deep.equal([keyOf(of!)]);
    const capture = await readCapture(past.db, 'live', of!.collectionId, archived);
    expect(capture).to.deep.include({ from: null });
    expect(capture!.entry.lines.map(({ debit, credit }) => debit - credit)).to.deep.equal([
      10_000, -9_750, -250,
    ]);
  });

  it('lets an archived payment be proved false, whose day is then right', async () => {
    past = await unproven();
    const merchantId = 'mer_2';
    const atMs = todayMs - 3 * dayMs;
    const waiting = paymentOf(atMs, { merchantId });
    await past.written(success(waiting, eatDate(todayMs + 300 * dayMs)));
    await past.night();
    await archiver().run();
    const capture = await readCapture(past.db, 'live', waiting.collectionId, archived);
    expect(capture!.from, 'it is pending still').to.not.equal(null);
    const now = { effectiveAtMs: past.clock.now(), postedAtMs: past.clock.now() };
    const entry = successProvedFalse({ ...waiting, ...now }, capture!.entry._id, capture!.from);
    await past.written(post(entry));
    await changed(past.db, 'collections', waiting.collectionId, { state: 'succeeded.reversed' });
    expect(await past.night()).to.deep.equal([]);
    expect(await allKinds()).to.deep.equal([]);
    expect([...(await bucketsOf(merchantId))].map(({ amountTzs }) => amountTzs)).to.deep.equal([0]);
  });

  async function bucketsOf(merchantId: string) {
    const all = [];
    for await (const bucket of openBuckets(past.db, { merchantId })) all.push(bucket);
    return all;
  }

  type Planted = {
    fault: string;
    finds: string[];
    later?: string[];
    plant(): Promise<void>;
    mend?(): Promise<void>;
  };
  const file = async (nth: number) => fileOf(dir, (await readManifests(dir))[nth]!.name);
  const planted: Planted[] = [
    {
      fault: 'a file that is missing',
      finds: ['archive.unreadable'],
      plant: async () => rename(await file(1), join(dir, 'elsewhere')),
      mend: async () => rename(join(dir, 'elsewhere'), await file(1)),
    },
    {
      fault: 'a file whose entries were changed, and that can be read all the same',
      finds: ['day.differs'],
      // A day that is not as it was sealed is proven again, by what its file says now.
      later: ['capture.differs', 'day.differs'],
      plant: () => rewrite(1, '"10000"', '"10001"'),
      mend: () => rewrite(1, '"10001"', '"10000"'),
    },
    {
      fault: 'an archived payment that says it failed',
      finds: ['capture.unfounded', 'event.missing', 'event.unfounded'],
      plant: () => status('failed', 'failed.resting'),
      mend: () => status('succeeded', 'succeeded.standing'),
    },
    {
      fault: 'an archived payment that is credited once more',
      finds: ['capture.doubled'],
      plant: async () => {
        const again = { ...past.paid[1]![0]!, postedAtMs: past.clock.now(), providerReference: null };
        await past.written(post(collectionSucceeded(again, { settlesOn: null, stripe: 1 })));
      },
    },
    {
      fault: 'an entry that is gone from what remains',
      finds: ['capture.missing', 'closing.differs', 'day.differs'],
      plant: async () => {
        await journal().deleteOne({ _id: keyOf(past.paid[4]![0]!) });
      },
    },
    {
      fault: 'a counter that moved without an entry',
      finds: ['counter.differs'],
      plant: () => nudge(past.db, 'live:TZS:mer_0:1', 'available', 7),
    },
  ];
  async function status(public_: string, state: string): Promise<void> {
    await changed(past.db, 'collections', past.paid[1]![0]!.collectionId, { status: public_, state });
  }
  /** Writes a file with other lines, and the index of its blocks to fit. */
  async function rewrite(nth: number, from: string, to: string): Promise<void> {
    const path = await file(nth);
    const text = (await promisify(gunzip)(await readFile(path))).toString();
    expect(text).to.include(from);
    const packed = await promisify(gzip)(Buffer.from(text.replaceAll(from, to)));
    await writeFile(path, packed);
    const { name } = (await readManifests(dir))[nth]!;
    // It may happen to be as long as it was.
    await stored(past.db, 'archive_files').updateOne(
      { _id: name },
      { $set: { 'blocks.0.bytes': packed.length } },
    );
  }
  for (const { fault, finds, later = finds, plant: plantFault, mend } of planted) {
    it(`is looked at within thirty nights: ${fault}`, async () => {
      await archiver().run();
      const verified = await verifiedUpTo(past.db);
      await plantFault();
      let found: string[] = [];
      for (let nights = 0; found.length === 0 && nights < 30; nights += 1) found = await past.night();
      expect(found).to.deep.equal(finds);
      expect(await past.night(), 'and every night from then on').to.deep.equal(later);
      if (!mend) return;
      expect((await verifiedUpTo(past.db))! < verified!, 'no longer verified').to.equal(true);
      await mend();
      expect(await past.night()).to.deep.equal([]);
      expect((await verifiedUpTo(past.db))! > verified!, 'verified again').to.equal(true);
    });
  }

  it('is found by both other audits too, where an archived payment is credited once more', async () => {
    await archiver().run();
    const again = { ...past.paid[0]![0]!, postedAtMs: past.clock.now(), providerReference: null };
    await past.written(post(collectionSucceeded(again, { settlesOn: null, stripe: 1 })));
    expect(await allKinds()).to.deep.equal(['capture.doubled']);
    const nowMs = past.clock.now() + limits.hourMs;
    const cursor = { untilMs: past.clock.now() - limits.minuteMs, snapshotAt: null };
    const recent = await auditRecent(past.db, nowMs, cursor, understood);
    expect(recent.breaches.map(({ kind }) => kind)).to.deep.equal(['capture.doubled']);
  });

  it('is put back by the command, for whoever has to look, and goes again the next night', async () => {
    const before = await journal().find({}, { promoteValues: false }).sort({ _id: 1 }).toArray();
    await archiver().run();
    const { mongodbUri } = await stores();
    const into = new URL(mongodbUri);
    into.pathname = `/${past.db.databaseName}`;
    const program = await bundle('src/archive/command.ts');
    for (const { name } of await readManifests(dir))
      await promisify(execFile)(process.execPath, [
        program,
        'restore',
        name,
        '--into',
        into.href,
        '--dir',
        dir,
      ]);
    expect(await journal().find({}, { promoteValues: false }).sort({ _id: 1 }).toArray()).to.deep.equal(
      before,
    );
    expect(await past.night()).to.deep.equal([]);
    expect(await allKinds()).to.deep.equal([]);
    await archiver().run();
    expect(await journal().countDocuments({ postedAt: { $lt: startOf(past.paid[4]![0]!) } })).to.equal(0);
    const [of] = past.paid[0]!;
    expect(await archived.of([of!.collectionId]), 'read once').to.have.length(1);
  });

  it('leaves a payment that is new alone, whatever the archive says', async () => {
    await archiver().run();
    const fresh = paymentOf(past.clock.now());
    await past.written([collectionWrite(fresh, 'succeeded')]);
    await plant(past.db, collectionSucceeded(fresh, { settlesOn: null, stripe: 1 }));
    expect(await archived.of([fresh.collectionId])).to.deep.equal([]);
  });

  // The others come in `npm test` too, where archive.test.ts is killed at them.
  for (const point of sized<readonly string[]>(['archiveReleased', 'archiveHalfRemoved'], archivePoints))
    for (const passes of sized([2], [1, 2]))
      it(`loses nothing and doubles nothing after kill -9 at ${point}, the ${passes}. time`, async () => {
        const signal = await killed(point, passes);
        expect(signal).to.equal('SIGKILL');
        const found = new Set(await keys());
        for (const { _id } of await inFiles()) found.add(_id);
        expect([...found].sort(), 'in one place at the least').to.deep.equal(sorted(past.paid));
        expect(await allKinds(), 'in the middle').to.deep.equal([]);
        past.clock.advance(2 * limits.minuteMs);
        await archiver().run();
        expect(await keys()).to.deep.equal(sorted(past.paid.slice(4)));
        expect((await inFiles()).map(({ _id }) => _id).sort()).to.deep.equal(sorted(past.paid.slice(0, 4)));
        expect(await past.night()).to.deep.equal([]);
      });

  const inFiles = () => archived.of(past.paid.flat().map(({ collectionId }) => collectionId));

  async function killed(point: string, passes: number): Promise<string | null> {
    const { mongodbUri } = await stores();
    const program = await bundle('test/support/archiving.ts');
    const given = [mongodbUri, past.db.databaseName, dir, String(past.clock.now()), point, String(passes)];
    const child = spawn(process.execPath, [program, ...given, JSON.stringify(keptMs)], { stdio: 'inherit' });
    const [, signal] = await once(child, 'exit');
    return signal;
  }

  const startOf = (of: Payment) => new Date(dateDueAtMs(eatDate(of.postedAtMs)));
});
