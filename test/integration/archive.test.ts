import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import {
  connectMongo,
  type Doc,
  type MachineDefinition,
  MovableClock,
  prepareDatabase,
} from '@kusanya/durable-actors';
import { expect } from 'chai';
import { BSON, type Db, type Document, type MongoClient } from 'mongodb';
import type { AnyStateNode } from 'xstate';
import { Archive, archivePoints } from '../../src/archive/archive.ts';
import { readBlocks, readManifests, verifyFile } from '../../src/archive/file.ts';
import { archiveSources } from '../../src/archive/sources.ts';
import { derivedId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import { leavesOf } from '../../src/standing.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { bundle } from '../support/bundle.ts';
import { archiverOf, type Past, pastCharts, pastOf, pastPayment, plant } from '../support/past.ts';
import { sized } from '../support/size.ts';
import { freshDatabase, stores } from '../support/stores.ts';
import { openTill } from '../support/till.ts';

const { dayMs, hourMs, minuteMs } = limits;
/** 04:30 in Dar es Salaam. */
const nowMs = Date.parse('2026-11-21T01:30:00.000Z');
const longAgoMs = nowMs - 420 * dayMs;
const goes = ['steps', 'events', 'deliveries', 'attempts', 'railAnswers', 'railCallbacks'] as const;

describe('what has ended', function () {
  this.timeout(60_000);
  let definitions: readonly MachineDefinition[];

  before(async () => {
    const till = await openTill('ended', new MovableClock(nowMs));
    ({ definitions } = (await till.process()).actors);
    await till.close();
  });

  it('is said of each chart: a new one says in which states its actors have ended, or that they never do', () => {
    expect(definitions.filter(({ ended }) => ended === undefined).map(({ name }) => name)).to.deep.equal([]);
  });

  it('rests: it is a state of the chart, and no timer runs in it or around it', () => {
    for (const { name, machine, ended = [] } of definitions) {
      const leaves = leavesOf(machine.root);
      for (const state of ended) {
        expect(leaves, name).to.include(state);
        for (let node: AnyStateNode | undefined = nodeAt(machine.root, state); node; node = node.parent)
          expect(node.after, `${name} ${state}`).to.deep.equal([]);
      }
    }
  });

  it('is what the other tests here take for it', () => {
    for (const { name, plural, ended } of pastCharts) {
      const real = definitions.find((each) => each.name === name)!;
      expect({ plural, ended: [...ended] }).to.deep.equal({ plural: real.plural, ended: [...real.ended!] });
    }
  });

  function nodeAt(root: AnyStateNode, state: string): AnyStateNode {
    return state.split('.').reduce((node, name) => node.states[name]!, root);
  }
});

describe('the archive', function () {
  this.timeout(120_000);
  let client: MongoClient;
  let db: Db;
  let dir: string;
  let clock: MovableClock;

  before(async () => {
    client = await connectMongo((await stores()).mongodbUri);
  });
  after(() => client.close());

  beforeEach(async () => {
    clock = new MovableClock(nowMs);
    db = client.db(freshDatabase('archive'));
    await prepareDatabase(
      db,
      mongoCollectionSpecs.filter(({ name }) => [...goes, 'collections', 'archive_files'].includes(name)),
    );
    dir = await mkdtemp(join(tmpdir(), 'kusanya-archive-'));
  });
  afterEach(async () => {
    await db.dropDatabase();
    await rm(dir, { recursive: true, force: true });
  });

  const archiver = (more?: Parameters<typeof archiverOf>[3]) => archiverOf(db, clock, dir, more);
  const stored = async (name: string) =>
    db.collection<{ _id: string }>(name).find({}, { promoteLongs: false }).sort({ _id: 1 }).toArray();
  const byId = (docs: readonly Document[]) => docs.toSorted((a, b) => (a._id < b._id ? -1 : 1));
  /** Type for type, as text. */
  const text = (docs: readonly Document[]) =>
    byId(docs).map((doc) => BSON.EJSON.stringify(doc, { relaxed: false }));

  /** All that the files hold, by MongoDB collection, each document as often as it is there. */
  async function archived(): Promise<Past> {
    const all: Past = Object.fromEntries(goes.map((name) => [name, []]));
    for (const manifest of await readManifests(dir)) {
      await verifyFile(dir, manifest);
      for await (const docs of readBlocks(dir, manifest, 'exact'))
        for (const each of docs) all[each.in]!.push(each.doc);
    }
    return all;
  }

  /** Everything that was planted is in MongoDB or in the archive, in one of them, once, and as it was. */
  async function expectMoved(past: Past): Promise<void> {
    const files = await archived();
    for (const name of goes) {
      expect(await stored(name), `${name} left`).to.deep.equal([]);
      expect(text(files[name]!), name).to.deep.equal(text(past[name]!));
    }
    expect(await stored('collections')).to.have.length(past.collections!.length);
  }

  it('takes what has ended, keeps the payment itself, and holds each document as it was', async () => {
    const past = pastOf(300, longAgoMs, minuteMs);
    await plant(db, past);
    const report = await archiver().run();
    expect(report).to.deep.include({ files: 3, left: 0, isComplete: true });
    expect(report.docs).to.equal(goes.reduce((sum, name) => sum + past[name]!.length, 0));
    await expectMoved(past);
  });

  it('is read by zcat, a line for each document', async () => {
    await plant(db, pastOf(3, longAgoMs, minuteMs));
    await archiver().run();
    const [name] = (await readdir(dir)).filter((each) => /^history.*\.gz$/.test(each));
    const lines = (await promisify(gunzip)(await readFile(join(dir, name!))))
      .toString()
      .trimEnd()
      .split('\n');
    expect(lines).to.have.length(21);
    expect(JSON.parse(lines[0]!)).to.have.keys('of', 'in', 'doc');
  });

  it('gives a payment back what it had, and nothing of its neighbours', async () => {
    const past = pastOf(200, longAgoMs, minuteMs);
    await plant(db, past);
    await archiver({ docsPerFile: 500 }).run();
    const archive = new Archive({ db, dir });
    for (const { _id } of [past.collections![0]!, past.collections![117]!, past.collections![199]!]) {
      const history = await archive.of('history', _id);
      expect(history.docs.map(({ doc }) => doc._id)).to.deep.equal(
        past.steps!.filter(({ actor }) => actor === _id).map((line) => line._id),
      );
      const { docs } = await archive.of('events', _id);
      const counts = docs.map((each) => each.in).sort();
      expect(counts).to.deep.equal([
        'attempts',
        'attempts',
        'deliveries',
        'events',
        ...Array(4).fill('steps'),
      ]);
      expect((await archive.of('evidence', _id)).docs).to.have.length(3);
    }
    const elsewhere = new Archive({ db, dir: join(dir, 'elsewhere') });
    const { docs, missing } = await elsewhere.of('history', past.collections![0]!._id);
    expect(docs).to.deep.equal([]);
    expect(missing[0]!.why).to.match(/ENOENT/);
  });

  it('leaves what has not ended, what is younger, and what waits to be heard', async () => {
    const states = ['created.underReview.resting', 'failed.latePaid.held', 'succeeded.standing'];
    const past = pastOf(30, longAgoMs, minuteMs, (n) => ({
      state: states[n % 3]!,
      delivery: n % 6 === 5 ? 'held' : 'delivered',
    }));
    await plant(db, past);
    await db.collection('railCallbacks').updateMany({}, { $unset: { rungAt: '' } });
    const young = pastOf(10, nowMs - 399 * dayMs, minuteMs);
    await plant(db, young);
    const touched = pastPayment(1_000, longAgoMs);
    await plant(db, touched);
    const touchedId = touched.collections![0]!._id as string;
    await db
      .collection<{ _id: string }>('collections')
      .updateOne({ _id: touchedId }, { $set: { updatedAt: new Date(nowMs - dayMs) } });
    const report = await archiver().run();
    const files = await archived();
    const ended = past
      .collections!.filter(({ state }) => state === 'succeeded.standing')
      .map(({ _id }) => _id);
    expect(
      [...new Set(files.steps!.map(({ actor }) => actor))].filter((id) => id.startsWith('col_')).sort(),
    ).to.deep.equal(ended.sort());
    expect(files.events).to.have.length(5);
    expect(files.deliveries!.every(({ state }) => state === 'delivered')).to.equal(true);
    expect(files.railCallbacks).to.deep.equal([]);
    for (const name of goes) {
      const all = [...past[name]!, ...young[name]!, ...touched[name]!];
      const kept = await stored(name);
      expect(kept.length + files[name]!.length, name).to.equal(all.length);
      const ids = new Set(kept.map(({ _id }) => _id));
      for (const doc of [...young[name]!, ...touched[name]!])
        expect(ids.has(doc._id), doc._id).to.equal(true);
    }
    expect(report.isComplete).to.equal(true);
    // What ends later is met again, although younger ones have gone.
    await db
      .collection('collections')
      .updateMany({ state: 'created.underReview.resting' }, { $set: { state: 'failed.resting' } });
    await archiver().run();
    const again = await archived();
    expect(again.steps!.length - files.steps!.length).to.equal(7 * 10 + 4 * 10);
    expect(new Set(again.steps!.map(({ _id }) => _id)).size).to.equal(again.steps!.length);
  });

  it('keeps an event with a delivery that is sent once more just then, and takes it later', async () => {
    const past = pastOf(5, longAgoMs, minuteMs);
    await plant(db, past);
    const meant = past.deliveries![2]!;
    const deliveries = db.collection<{ _id: string }>('deliveries');
    const source = archiveSources(db, pastCharts).find(({ kind }) => kind === 'events')!;
    const { value: docs } = await source.pages(nowMs - 400 * dayMs).next();
    expect(docs).to.have.length(40);
    // They are in a file by now.
    await deliveries.updateOne({ _id: meant._id }, { $set: { state: 'pending', seq: 5 } });
    expect(await source.remove(docs!)).to.equal(8);
    expect((await stored('events')).map(({ _id }) => _id)).to.deep.equal([meant.data.eventId]);
    expect(await stored('attempts')).to.have.length(2);
    await deliveries.updateOne({ _id: meant._id }, { $set: { state: 'delivered', seq: 6 } });
    await archiver().run();
    const { docs: found } = await new Archive({ db, dir }).of('events', past.collections![2]!._id);
    expect(found.filter((each) => each.in === 'deliveries').map(({ doc }) => doc.seq)).to.deep.equal([6]);
    expect(await stored('events')).to.deep.equal([]);
  });

  it('takes events of payouts too, once those have ended', async () => {
    const owners = [0, 1].map((n) => derivedId('po', longAgoMs + n, `payout ${n}`));
    const resting = { dueAt: null, updatedAt: new Date(longAgoMs) };
    await db.collection<Doc>('payouts').insertMany([
      { _id: owners[0]!, state: 'paid.resting', ...resting },
      { _id: owners[1]!, state: 'created.underReview.resting', ...resting },
    ]);
    const createdAt = new Date(longAgoMs);
    const told = owners.map((of, n) => ({
      ...{ _id: derivedId('evt', longAgoMs, `${n}`), collectionId: of, createdAt },
    }));
    await db.collection<Doc>('events').insertMany(told);
    await archiver().run();
    const left = await db.collection('events').find({}).toArray();
    expect(left.map(({ collectionId }) => collectionId)).to.deep.equal([owners[1]]);
  });

  it('is listed, read, verified and put back into an empty database by a command that needs no service', async () => {
    const past = pastOf(12, longAgoMs, minuteMs);
    await plant(db, past);
    await archiver().run();
    const [id] = past.collections!.map(({ _id }) => _id as string);
    const list = await command('list');
    expect(list.match(/ documents/g)).to.have.length(3);
    const read = (await command('read', id!))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(read.map((each) => each.in).filter((name) => name === 'steps')).to.have.length(11);
    const { mongodbUri } = await stores();
    const into = new URL(mongodbUri);
    const empty = client.db(freshDatabase('restored'));
    into.pathname = `/${empty.databaseName}`;
    for (const { name } of await readManifests(dir)) {
      expect(await command('restore', name, '--into', into.href)).to.match(/ 0 were there/);
    }
    const [first] = await readManifests(dir);
    expect(await command('restore', first!.name, '--into', into.href)).to.match(/^0 documents /);
    for (const name of goes) {
      const found = await empty.collection<Doc>(name).find({}, { promoteValues: false }).toArray();
      expect(text(found), name).to.deep.equal(text(past[name]!));
    }
    await empty.dropDatabase();
  });

  /** What `npm run archive` says; throws what it complains of. */
  async function command(...given: string[]): Promise<string> {
    const program = await bundle('src/archive/command.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...given, '--dir', dir]);
    return stdout;
  }

  it('says what it would take, and takes nothing', async () => {
    await plant(db, pastOf(20, longAgoMs, minuteMs));
    const plan = await archiver().plan();
    expect(Object.fromEntries(plan.map(({ kind, counts }) => [kind, counts]))).to.deep.equal({
      history: { steps: 140 },
      events: { events: 20, deliveries: 20, attempts: 40, steps: 80 },
      evidence: { railAnswers: 40, railCallbacks: 20 },
      journal: {},
    });
    expect(plan[0]!.before).to.equal('2025-10-16T21:00:00.000Z');
    expect(await readdir(dir)).to.deep.equal([]);
    expect(await stored('steps')).to.have.length(220);
  });

  it('takes nothing of a kind that is to be kept, or that is not counted yet', async () => {
    await plant(db, pastOf(4, longAgoMs, minuteMs));
    const some = { history: undefined, events: 400 * dayMs, evidence: 400 * dayMs, journal: undefined };
    const mayGo = async (kind: string) => kind !== 'events';
    await archiver({ keptMs: some, mayGo }).run();
    expect((await readManifests(dir)).map(({ kind }) => kind)).to.deep.equal(['evidence']);
    await archiver({ keptMs: { ...some, events: undefined, evidence: undefined } }).run();
    expect(await stored('events')).to.have.length(4);
  });

  it('removes nothing when a file is not read back as it was written', async () => {
    await plant(db, pastOf(10, longAgoMs, minuteMs));
    await archiver().run();
    const [manifest] = await readManifests(dir);
    const path = join(dir, `${manifest!.name}.ndjson.gz`);
    const bytes = await readFile(path);
    bytes[bytes.length - 20]! ^= 1;
    await writeFile(path, bytes);
    const fault = await verifyFile(dir, manifest!).then(
      () => 'none',
      (error) => String(error),
    );
    expect(fault).to.match(/not as it was written|incorrect|invalid|unexpected/);
  });

  it('works at night, once, and goes on the next night where it had to stop', async () => {
    await plant(db, pastOf(40, longAgoMs, minuteMs));
    const runs = db.collection('archive_runs');
    clock.advance(-hourMs); // 03:30
    const worker = archiver({ docsPerFile: 50 });
    await worker.nightly();
    await worker.idle();
    expect(await runs.findOne({})).to.equal(null);
    clock.advance(hourMs);
    await worker.nightly();
    await worker.idle();
    const first = await runs.findOne({});
    expect(first).to.include({ isComplete: true });
    await worker.nightly();
    await worker.idle();
    expect(await runs.findOne({})).to.deep.equal(first);
    clock.advance(12 * hourMs);
    await worker.nightly();
    await worker.idle();
    expect(await runs.findOne({})).to.deep.equal(first);
  });

  for (const point of sized<readonly string[]>([], archivePoints))
    for (const passes of [1, 2, 3, 4])
      it(`loses nothing and doubles nothing after kill -9 at ${point}, the ${passes}. time`, async () => {
        const past = pastOf(1_500, longAgoMs, minuteMs);
        await plant(db, past);
        const signal = await killed(point, passes);
        // There are three files; a point that is passed fewer times is not reached.
        if (signal === null) return expectMoved(past);
        expect(signal).to.equal('SIGKILL');
        await expectNothingLost(past);
        await leasesLapse();
        await archiver().run();
        await expectMoved(past);
      });

  /** Nothing that was planted is in neither place, whatever the moment. */
  async function expectNothingLost(past: Past): Promise<void> {
    const finished = (
      await db
        .collection<{ _id: string }>('archive_files')
        .find({ state: { $ne: 'writing' } })
        .toArray()
    ).map(({ _id }) => _id);
    const there = new Set<string>();
    for (const manifest of (await readManifests(dir)).filter(({ name }) => finished.includes(name)))
      for await (const docs of readBlocks(dir, manifest, 'exact'))
        for (const each of docs) there.add(`${each.in}/${each.doc._id}`);
    for (const name of goes) {
      for (const { _id } of await stored(name)) there.add(`${name}/${_id}`);
      for (const { _id } of past[name]!) expect(there.has(`${name}/${_id}`), `${name}/${_id}`).to.equal(true);
    }
  }

  async function killed(point: string, passes: number): Promise<string | null> {
    const { mongodbUri } = await stores();
    const program = await bundle('test/support/archiving.ts');
    const given = [mongodbUri, db.databaseName, dir, String(nowMs), point, String(passes)];
    const child = spawn(process.execPath, [program, ...given], { stdio: 'inherit' });
    const [, signal] = await once(child, 'exit');
    return signal;
  }

  /** Who died holds its leases for a while. */
  async function leasesLapse(): Promise<void> {
    clock.advance(2 * minuteMs);
  }
});
