import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { MongoClient } from 'mongodb';
import { type Embedded, startEmbedded } from '../../../tools/embedded/embedded.ts';
import { isOutage } from '../src/index.ts';
import { durable } from '../src/mongo.ts';
import { counter, entriesOf, sumsOf } from './support/counter.ts';
import { type Engine, give, openEngine, tell } from './support/engine.ts';

describe('group commit without MongoDB', function () {
  this.timeout(180_000);
  let dataDir: string;
  let running: Embedded | undefined;
  let client: MongoClient;
  let engine: Engine;

  const start = async () => {
    const needs = { needMongo: true, needRedis: false };
    running = await startEmbedded({ dataDir, ...needs, say: () => {} });
    return running;
  };

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'kusanya-commit-'));
    const { mongodbUri } = await start();
    // A server that is there and slow is not gone: only one that refuses is.
    const waits = { serverSelectionTimeoutMS: 400, connectTimeoutMS: 20_000, heartbeatFrequencyMS: 500 };
    client = await new MongoClient(mongodbUri!, {
      writeConcern: durable,
      ignoreUndefined: true,
      ...waits,
    }).connect();
    engine = await openEngine([counter], { client, patienceMs: 1_500, largestBatch: 8 });
  });
  after(async () => {
    await engine?.close();
    await client?.close();
    await running?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('tells everybody at once, also those who wait, and goes on by itself afterwards', async () => {
    const docs = await Promise.all(Array.from({ length: 200 }, () => give(engine, 'counter')));
    await running!.stop();
    const begun = performance.now();
    const ended = await Promise.allSettled(docs.map((doc) => tell(engine, doc, 'poked')));
    // One patience after the other, for so many batches, would be more than half a minute.
    expect(performance.now() - begun).below(20_000);
    for (const each of ended) {
      expect(each.status).equal('rejected');
      if (each.status === 'rejected') expect(isOutage(each.reason), String(each.reason)).equal(true);
    }
    expect(engine.committer.counts.splits).equal(0);
    await start();
    while (
      !(await client
        .db()
        .command({ ping: 1 })
        .catch(() => undefined))
    )
      await sleep(50);
    await Promise.all(docs.map((doc) => tell(engine, doc, 'poked')));
    expect(await entriesOf(engine.db).countDocuments()).equal(200);
  });

  it('killed under load: what was answered is there once, what was not is there whole or not at all', async () => {
    const docs = await Promise.all(Array.from({ length: 20 }, () => give(engine, 'counter')));
    const answered = new Map(docs.map(({ _id }) => [_id, 0]));
    let unanswered = 0;
    let isOver = false;
    const load = docs.map(async (doc) => {
      while (!isOver) {
        const result = await tell(engine, doc, 'poked').catch(() => undefined);
        if (result?.outcome === 'stepped') answered.set(doc._id, answered.get(doc._id)! + 1);
        else unanswered += 1;
      }
    });
    await sleep(300);
    process.kill(running!.children[0]!.pid, 'SIGKILL'); // the embedded server is started again by its keeper
    const before = [...answered.values()].reduce((sum, n) => sum + n);
    while ([...answered.values()].reduce((sum, n) => sum + n) < before + 200) await sleep(20);
    isOver = true;
    await Promise.all(load);
    expect(unanswered).above(0);
    for (const [id, times] of answered) {
      const { snapshot, seq } = await engine.stored('counter', id);
      const lines = (await engine.history(id)).map((line) => line.seq);
      expect(lines, 'one line for each step, none missing').deep.equal(
        Array.from({ length: seq }, (_, n) => n + 1),
      );
      const pokes = snapshot.context.pokes as number;
      expect(pokes)
        .equal(seq - 1)
        .least(times);
      const posted = { _id: { $gt: `${id}.`, $lt: `${id}/` } };
      expect(await entriesOf(engine.db).countDocuments(posted)).equal(pokes);
    }
    const total = await entriesOf(engine.db).countDocuments();
    const sum = await sumsOf(engine.db).findOne({ _id: 'pokes' });
    expect(sum).deep.include({ pokes: total });
  });
});
