import { connectMongo } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { MongoClient } from 'mongodb';
import {
  add,
  counter,
  entriesOf,
  entry,
  sumsOf,
} from '../../packages/durable-actors/test/support/counter.ts';
import { type Engine, give, tell } from '../../packages/durable-actors/test/support/engine.ts';
import { LineWatch } from '../../src/mongo.ts';
import { openListed } from '../support/engine.ts';
import { openProxy, type TcpProxy, wordsOf } from '../support/proxy.ts';
import { stores } from '../support/stores.ts';

/** A line to MongoDB that takes bytes and answers nothing, while all others go on: nobody waits for it for ever. */
describe('a silent line', function () {
  this.timeout(120_000);
  let proxy: TcpProxy;
  let client: MongoClient;
  let lines: LineWatch;
  let engine: Engine;

  before(async () => {
    const { port } = new URL((await stores()).mongodbUri.replace(/^mongodb:/, 'http:'));
    proxy = await openProxy({ port: Number(port) });
  });
  after(() => proxy.close());

  beforeEach(async () => {
    const uri = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`;
    client = await connectMongo(uri, { silenceMs: 2_000 });
    lines = new LineWatch(client);
    engine = await openListed([counter], { client });
  });
  afterEach(async () => {
    await engine.close();
    await client.close();
  });

  for (const [command, collection] of [
    ['insert', 'entries'],
    ['commitTransaction', undefined],
  ] as const) {
    for (const arrives of [false, true]) {
      it(`under ${command} (which ${arrives ? 'arrives' : 'is lost'}): the commit is made once, and the next ones are`, async () => {
        const { committer } = engine;
        const happened = proxy.silence(wordsOf(command, collection), arrives);
        const first = committer.commit([entry('first'), add('sum', { n: 1 })]);
        await happened;
        const others = Array.from({ length: 20 }, (_, n) =>
          committer.commit([entry(`e${n}`), add('sum', { n: 1 })]),
        );
        expect(await Promise.all([first, ...others])).deep.equal(Array(21).fill({ ok: true }));
        expect(await entriesOf(engine.db).countDocuments()).equal(21);
        expect(await sumsOf(engine.db).findOne({ _id: 'sum' })).deep.include({ n: 21 });
      });
    }
  }

  it('under a step, and under every repetition of its commit: it is taken once', async () => {
    const doc = await give(engine, 'counter');
    // Also under the driver's own second try.
    const silences = Array.from({ length: 2 }, () => proxy.silence(wordsOf('commitTransaction'), true));
    const told = tell(engine, doc, 'poked');
    await Promise.all(silences);
    expect((await told).outcome).equal('stepped');
    expect((await engine.stored('counter', doc._id)).snapshot.context).deep.equal({ pokes: 1 });
    expect((await engine.history(doc._id)).map(({ seq }) => seq)).deep.equal([1, 2]);
    expect(await sumsOf(engine.db).findOne({ _id: 'pokes' })).deep.include({ pokes: 1 });
  });

  it('under a look-up that others share: all are answered, and so are those who ask later', async () => {
    const doc = await give(engine, 'counter');
    const happened = proxy.silence(wordsOf('find', 'counters'), false);
    const read = () => engine.actors.read({ machine: 'counter', id: doc._id });
    const first = [read(), read()];
    await happened;
    const all = await Promise.all([...first, read(), read()]);
    expect(all.map((found) => found?._id)).deep.equal(Array(4).fill(doc._id));
  });

  it('is seen while somebody waits for it', async () => {
    const { committer } = engine;
    expect([committer.oldestMs(), lines.oldestMs()]).deep.equal([0, 0]);
    const happened = proxy.silence(wordsOf('insert', 'entries'), false);
    const written = committer.commit([entry('waits')]);
    await happened;
    expect(committer.oldestMs()).above(0);
    expect(lines.oldestMs()).above(0);
    await written;
    await committer.drain();
    expect([committer.oldestMs(), lines.oldestMs()]).deep.equal([0, 0]);
  });

  it('does not cut short what may rightly take long, on a client that is patient', async () => {
    const patient = await connectMongo((await stores()).mongodbUri, { silenceMs: 0 });
    const hasty = await connectMongo((await stores()).mongodbUri, { silenceMs: 300 });
    try {
      await entriesOf(engine.db).insertOne({ _id: 'one' });
      const long = (of: MongoClient) =>
        of.db(engine.db.databaseName).collection('entries').find({ $where: 'sleep(1500) || true' }).toArray();
      expect(await long(patient)).have.length(1);
      const fault = await long(hasty).catch((error: Error) => error.name);
      expect(fault).equal('MongoNetworkTimeoutError');
    } finally {
      await patient.close();
      await hasty.close();
    }
  });
});
