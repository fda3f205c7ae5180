import { setTimeout as wait } from 'node:timers/promises';
import {
  connectMongo,
  MovableClock,
  prepareDatabase,
  StepReplayed,
  type Write,
} from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { Db, MongoClient } from 'mongodb';
import { AppError, IdempotencyStore, idempotencySpec } from '../../src/http/http.ts';
import type { IdempotencyRecord, Produce } from '../../src/http/idempotency.ts';
import { limits } from '../../src/limits.ts';
import { signal } from '../support/signal.ts';
import { freshDatabase, stores } from '../support/stores.ts';

describe('idempotency', () => {
  let mongo: MongoClient;
  let db: Db;
  const clock = new MovableClock();
  const secretsKey = Buffer.alloc(32, 7).toString('base64');
  let made = 0;
  let nextId = 0;

  before(async () => {
    mongo = await connectMongo((await stores()).mongodbUri);
    db = mongo.db(freshDatabase('idempotency'));
    await prepareDatabase(db, [idempotencySpec]);
  });
  after(() => mongo.close());
  beforeEach(() => {
    made = 0;
  });

  /** Each store stands for a process. */
  const store = (waitMs = 30_000) => new IdempotencyStore({ db, clock, secretsKey, waitMs });
  const request = (body = 'same', id = `id-${nextId++}`) => ({ id, fingerprint: body, requestId: 'req_1' });
  const records = () => db.collection<IdempotencyRecord>('idempotency');

  let queries = 0;
  /** The database, counting what it is asked. */
  const counting = {
    collection: (name: string) => ({
      find: (filter: object) => {
        queries += 1;
        return db.collection(name).find(filter);
      },
    }),
  } as unknown as Db;

  async function commit(write: Write): Promise<void> {
    if (write.op === 'insert') {
      await records()
        .insertOne(write.doc as unknown as IdempotencyRecord)
        .catch((error) => {
          throw error.code === 11000 ? new StepReplayed('idempotency') : error;
        });
    } else if (write.op === 'update') {
      const { matchedCount } = await records().updateOne(write.filter as object, write.update as object);
      if (matchedCount === 0) throw new StepReplayed('idempotency');
    }
    made += 1;
  }

  /** A request that takes `ms` before it commits. */
  const produce =
    (ms = 0, text = `{"n":${Math.random()}}`): Produce =>
    async (recordWrite) => {
      await wait(ms);
      await commit(recordWrite(202, text));
      return { status: 202, body: text };
    };
  const codeOf = (work: Promise<unknown>) => work.catch((error: AppError) => error.code ?? error.message);

  it('the first request is answered, the second replays its bytes', async () => {
    const one = request();
    const first = await store().run(one, produce());
    const second = await store().run(one, produce());
    expect(second).to.deep.equal({ ...first, replayed: true });
    expect([first.replayed, made]).to.deep.equal([false, 1]);
  });

  it('the same key with another body is refused', async () => {
    const one = request();
    await store().run(one, produce());
    expect(await codeOf(store().run({ ...one, fingerprint: 'other' }, produce()))).to.equal(
      'idempotency_key_reused',
    );
    expect(made).to.equal(1);
  });

  it('an answer that holds a secret is stored sealed, and replayed as it was, also by another process', async () => {
    const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';
    const one = { ...request(), isSealed: true };
    const process = store();
    const text = `{"secret":"${secret}"}`;
    const both = [process.run(one, produce(20, text)), process.run(one, produce(20, text))];
    const answers = [
      ...(await Promise.all(both)),
      await process.run(one, produce()),
      await store().run(one, produce()),
    ];
    expect(answers.map(({ body }) => body)).to.deep.equal([text, text, text, text]);
    expect([answers.map(({ replayed }) => replayed), made]).to.deep.equal([[false, true, true, true], 1]);
    const stored = await records().findOne({ _id: one.id });
    expect(stored).to.include({ status: 202, isSealed: true });
    expect(JSON.stringify(stored)).to.not.include(secret.slice(6, 20));
    // Bound to its record: under another key it opens nothing.
    await records().insertOne({ ...stored!, _id: 'another' });
    const elsewhere = store().run({ ...one, id: 'another' }, async () => {
      throw new StepReplayed('idempotency');
    });
    expect(await codeOf(elsewhere)).to.match(/does not open/);
  });

  it('a second request in the same process waits for the first, whatever its body', async () => {
    const one = request();
    const process = store();
    const first = process.run(one, produce(100));
    const same = process.run(one, produce());
    const other = codeOf(process.run({ ...one, fingerprint: 'other' }, produce()));
    expect((await same).body).to.equal((await first).body);
    expect([(await same).replayed, await other, made]).to.deep.equal([true, 'idempotency_key_reused', 1]);
  });

  it('when the first ends in an error the second goes on by itself', async () => {
    const one = request();
    const process = store();
    const failing: Produce = async () => {
      await wait(50);
      throw new AppError('channel_unavailable');
    };
    const first = codeOf(process.run(one, failing));
    const others = Array.from({ length: 5 }, () => process.run(one, produce(10)));
    const answers = await Promise.all(others);
    expect([await first, made]).to.deep.equal(['channel_unavailable', 1]);
    expect(answers.filter(({ replayed }) => !replayed).length).to.equal(1);
  });

  it('of fifty requests in two processes one is made and all are answered alike', async () => {
    const one = request();
    const processes = [store(), store()];
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => processes[n % 2]!.run(one, produce(20))),
    );
    expect(made).to.equal(1);
    expect(new Set(answers.map(({ body }) => body)).size).to.equal(1);
  });

  it('the loser of a race between processes replays the winner, or is refused for its body', async () => {
    const one = request();
    const allLooked = signal();
    let looked = 0;
    /** Comes to its commit when all three are on their way, and after the one before it. */
    const racing =
      (before?: Promise<unknown>): Produce =>
      async (recordWrite) => {
        looked += 1;
        if (looked === 3) allLooked.happen();
        await allLooked.happened;
        await before;
        return produce()(recordWrite);
      };
    const winner = store().run(one, racing());
    const loser = store().run(one, racing(winner));
    const stranger = codeOf(store().run({ ...one, fingerprint: 'other' }, racing(winner)));
    expect((await loser).body).to.equal((await winner).body);
    expect([await stranger, made]).to.deep.equal(['idempotency_key_reused', 1]);
  });

  it('a loser that cannot read a winner gives up after its time', async () => {
    const begun = performance.now();
    const lost: Produce = async () => {
      throw new StepReplayed('idempotency');
    };
    queries = 0;
    const process = new IdempotencyStore({ db: counting, clock, secretsKey, waitMs: 100 });
    expect(await codeOf(process.run(request(), lost))).to.equal('idempotency_key_in_use');
    expect(performance.now() - begun).to.be.at.least(95);
    // The pauses double from 5 ms on: on a slow machine it looks less often, and never after its time.
    expect(queries).to.be.at.most(8);
  });

  it('a winner that becomes readable late is still replayed', async () => {
    const one = request();
    const lost: Produce = async (recordWrite) => {
      const write = recordWrite(202, '{"late":true}');
      setTimeout(() => void commit(write), 80);
      throw new StepReplayed('idempotency');
    };
    expect(await store().run(one, lost)).to.deep.equal({
      status: 202,
      body: '{"late":true}',
      replayed: true,
    });
  });

  it('a record is kept for 24 hours, and then taken over although it is still there', async () => {
    const one = request();
    const first = await store().run(one, produce());
    clock.advance(limits.idempotencyTtlMs - limits.minuteMs);
    expect((await store().run(one, produce())).body).to.equal(first.body);
    clock.advance(limits.minuteMs);
    const again = await store().run({ ...one, fingerprint: 'a new body' }, produce());
    expect([again.replayed, made]).to.deep.equal([false, 2]);
    expect((await records().findOne({ _id: one.id }))?.body).to.equal(again.body);
  });

  it('of two processes that take an expired record over one wins', async () => {
    const one = request();
    await store().run(one, produce());
    clock.advance(limits.idempotencyTtlMs);
    const answers = await Promise.all([store().run(one, produce(30)), store().run(one, produce(30))]);
    expect(answers.map(({ replayed }) => replayed).sort()).to.deep.equal([false, true]);
    expect(answers[0].body).to.equal(answers[1].body);
    expect(made).to.equal(2);
  });

  it('an expired record that the database cleans up in between is no obstacle', async () => {
    const one = request();
    await store().run(one, produce());
    clock.advance(limits.idempotencyTtlMs);
    let cleaned = false;
    const answer = await store().run(one, async (recordWrite) => {
      if (!cleaned) await records().deleteOne({ _id: one.id });
      cleaned = true;
      return produce(0, '{"clean":1}')(recordWrite);
    });
    expect(answer).to.deep.equal({ status: 202, body: '{"clean":1}', replayed: false });
    expect(made).to.equal(2);
  });

  describe('nothing is looked up', () => {
    const asked = async (work: () => Promise<unknown>) => {
      const before = queries;
      await work();
      return queries - before;
    };

    it('before a first request, which its own commit would refuse', async () => {
      const process = new IdempotencyStore({ db: counting, clock, secretsKey });
      expect(await asked(() => process.run(request(), produce()))).to.equal(0);
    });

    it('but a key that was answered here lately: its commit would be refused among those of others', async () => {
      const process = new IdempotencyStore({ db: counting, clock, secretsKey });
      const one = request();
      let produced = 0;
      const counted: Produce = (recordWrite) => {
        produced += 1;
        return produce()(recordWrite);
      };
      const first = await process.run(one, counted);
      expect(await asked(() => process.run(one, counted))).to.equal(1);
      expect((await process.run(one, counted)).body).to.equal(first.body);
      expect(produced).to.equal(1);
      // One that another process answered is found out by the commit, once.
      const other = new IdempotencyStore({ db: counting, clock, secretsKey });
      for (let n = 0; n < 3; n += 1) expect((await other.run(one, counted)).replayed).to.equal(true);
      expect([produced, made]).to.deep.equal([2, 1]);
    });
  });

  it('what refuses a repetition before its commit, be it today’s schema, is no obstacle', async () => {
    const one = request();
    const first = await store().run(one, produce());
    const refusing: Produce = async () => {
      throw new AppError('channel_unavailable');
    };
    expect(await store().run(one, refusing)).to.deep.equal({ ...first, replayed: true });
    expect(await codeOf(store().run({ ...one, fingerprint: 'other' }, refusing))).to.equal(
      'idempotency_key_reused',
    );
    clock.advance(limits.idempotencyTtlMs);
    expect(await codeOf(store().run(one, refusing))).to.equal('channel_unavailable');
  });

  it('concurrent look-ups share queries', async () => {
    const process = new IdempotencyStore({ db: counting, clock, secretsKey });
    queries = 0;
    await Promise.all(Array.from({ length: 100 }, (_, n) => process.find(`nothing-${n}`)));
    expect(queries).to.be.at.most(2);
  });

  it('the database tidies up behind it', async () => {
    const indexes = await records().indexes();
    expect(indexes.find(({ key }) => 'expiresAt' in key)?.expireAfterSeconds).to.equal(3_600);
  });
});
