import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type Document, Long, type MongoClient } from 'mongodb';
import { signal } from '../../../test/support/signal.ts';
import {
  type ActorDoc,
  Committer,
  CommitUnknown,
  dueIn,
  dueOf,
  inQuarantine,
  isOutage,
  StepRefused,
  type Write,
} from '../src/index.ts';
import { durable } from '../src/mongo.ts';
import { add, counter, entriesOf, entry, sumsOf } from './support/counter.ts';
import {
  type Engine,
  fire,
  give,
  lostAnswer,
  openEngine,
  rejection,
  tell,
  unsteady,
} from './support/engine.ts';

type CommitOutcome = Awaited<ReturnType<Committer['commit']>>;

describe('group commit', () => {
  let engine: Engine;
  let committer: Committer;

  beforeEach(async () => {
    engine = await openEngine([counter]);
    committer = engine.committer;
  });
  afterEach(() => engine.close());

  const entries = () => entriesOf(engine.db);
  const sums = () => sumsOf(engine.db);
  const refused = (outcomes: CommitOutcome[]) => outcomes.flatMap((each) => (each.ok ? [] : [each.write]));

  it('writes many steps in few transactions', async () => {
    const all = Array.from({ length: 300 }, (_, n) =>
      committer.commit([entry(`e${n}`), add('sum', { n: 1 })]),
    );
    expect(refused(await Promise.all(all))).deep.equal([]);
    expect(committer.counts).deep.include({ batches: 3, members: 300, splits: 0, documents: 303 });
    expect(await entries().countDocuments()).equal(300);
  });

  it('lets requests overtake what workers write, of which little is written in a crowd of requests', async () => {
    const batchesOf = async (requests: number, workers: number) => {
      const batches: string[][] = [];
      const observed = new Committer({
        ...{ client: engine.db.client, db: engine.db, log: engine.log, largestBatch: 16 },
        observe: ({ members }) =>
          void batches.push(
            members.map(({ writes: [write] }) => (write as { doc: { _id: string } }).doc._id),
          ),
      });
      const commit = (kind: string, count: number) =>
        Array.from({ length: count }, (_, n) =>
          observed.commit([entry(`${kind}${n}of${count}`)], kind === 'request'),
        );
      await Promise.all([...commit('worker', workers), ...commit('request', requests)]);
      const countOf = (batch: string[], kind: string) => batch.filter((id) => id.startsWith(kind)).length;
      return batches
        .map((batch) => [countOf(batch, 'request'), countOf(batch, 'worker')] as const)
        .sort(([one, few], [other, more]) => other - one || more - few) // two are under way at once
        .map(([request, worker]) => `${request} + ${worker}`);
    };
    const [first, second, third] = await batchesOf(20, 30);
    expect([first, second]).deep.equal(['12 + 4', '8 + 4']);
    // Another wave of requests is waited for; who is slower than that has the whole batch.
    expect(third).oneOf(['0 + 6', '0 + 16']);
    expect(await batchesOf(6, 20), 'no crowd').deep.equal(['6 + 10', '0 + 10']);
    expect(await batchesOf(15, 0), 'where nobody else waits').deep.equal(['15 + 0']);
  });

  it('merges what is added to one document, exactly, and leaves the others’ amounts alone', async () => {
    const huge = 2 ** 53 - 1;
    const amounts = { 'pending.2026-11-22': huge, fee: 1 };
    const shared = add('a', amounts);
    await Promise.all(
      [shared, shared, add('a', { fee: -3 }), add('b', amounts)].map((w) => committer.commit([w])),
    );
    const [a, b] = await sums().find({}, { promoteLongs: false }).sort({ _id: 1 }).toArray();
    const twice = Long.fromNumber(huge).multiply(2);
    expect(a).deep.equal({
      _id: 'a',
      made: true,
      fee: Long.fromNumber(-1),
      pending: { '2026-11-22': twice },
    });
    expect(b).deep.include({ fee: Long.ONE });
    expect(committer.counts).deep.include({ batches: 1, documents: 2 });
    expect((shared as { amounts: Record<string, Long> }).amounts.fee!.toNumber(), 'the caller’s own').equal(
      1,
    );
  });

  const take = (id: string, seq: number): Write => ({
    op: 'update',
    into: 'sums',
    filter: { _id: id, seq },
    update: { $set: { seq: seq + 1 } },
    onMiss: 'race',
  });

  describe('when one member is guilty', () => {
    const guarded: Write = {
      op: 'update',
      into: 'sums',
      filter: { _id: 'purse', available: { $gte: 10 } },
      update: { $inc: { available: -10 } },
      onMiss: 'refuse',
    };
    const circle: Record<string, unknown> = {};
    circle.self = circle;

    beforeEach(async () => {
      await entries().insertOne({ _id: 'taken' });
      await sums().insertOne({ _id: 'purse', available: 9 });
      await engine.db.createCollection('strict', { validator: { $jsonSchema: { required: ['name'] } } });
    });

    const guilty: Record<string, { write: Write; hears: 'refusal' | 'error' }> = {
      'by a duplicate key': { write: entry('taken'), hears: 'refusal' },
      'by a missed guard': { write: guarded, hears: 'refusal' },
      'by a document that the driver cannot encode': { write: entry('circle', { circle }), hears: 'error' },
      'by a key that the driver cannot encode': { write: entry('nul', { 'a\0b': 1 }), hears: 'error' },
      'by a document that the validator refuses': {
        write: { op: 'insert', into: 'strict', doc: { _id: 's' }, onDuplicate: 'refuse' },
        hears: 'error',
      },
    };
    for (const [how, { write, hears }] of Object.entries(guilty)) {
      it(`${how}, it alone fails, whole`, async () => {
        const good = Array.from({ length: 40 }, (_, n) => [entry(`e${n}`), add('sum', { n: 1 })]);
        const members = [
          ...good.slice(0, 23),
          [entry('with it'), write, add('sum', { n: 1 })],
          ...good.slice(23),
        ];
        const ended = await Promise.allSettled(members.map((writes) => committer.commit(writes)));
        const fates = ended.map((each) =>
          each.status === 'rejected' ? 'error' : each.value.ok ? 'written' : 'refusal',
        );
        expect(fates.filter((fate) => fate !== 'written')).deep.equal([hears]);
        expect(fates[23]).equal(hears);
        const fate = ended[23]!;
        if (fate.status === 'fulfilled') expect(fate.value).deep.equal({ ok: false, write });
        else expect(isOutage(fate.reason), String(fate.reason)).equal(false);
        expect(await entries().countDocuments({ _id: /^e/ })).equal(40);
        expect(await entries().findOne({ _id: 'with it' })).equal(null);
        expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 40 });
        expect(await sums().findOne({ _id: 'purse' })).deep.include({ available: 9 });
      });
    }

    it('or half of them are, in one batch, each hears of its own write', async () => {
      const members = Array.from({ length: 20 }, (_, n) => [
        entry(n % 2 ? 'taken' : `e${n}`),
        add('sum', { n: 1 }),
      ]);
      const outcomes = await Promise.all(members.map((writes) => committer.commit(writes)));
      expect(outcomes.map((each) => each.ok)).deep.equal(members.map((_, n) => n % 2 === 0));
      expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 10 });
    });

    it('against another of the same batch, the first one is written', async () => {
      const outcomes = await Promise.all(['twin', 'twin'].map((key) => committer.commit([entry(key)])));
      expect(outcomes.map((each) => each.ok)).deep.equal([true, false]);
    });
  });

  describe('of a step that the books refuse', () => {
    it('answers a caller, who may try something else', async () => {
      const doc = await give(engine, 'counter');
      await tell(engine, doc, 'poked', { key: 'once' });
      expect(await rejection(tell(engine, doc, 'poked', { key: 'once' }))).instanceOf(StepRefused);
      expect((await engine.stored('counter', doc._id)).quarantined).equal(undefined);
      expect((await tell(engine, doc, 'poked', { key: 'twice' })).outcome).equal('stepped');
      expect(await sums().findOne({ _id: 'pokes' })).deep.include({ pokes: 2 });
    });

    it('quarantines where nobody asked: books and chart disagree', async () => {
      const doc = await give(engine, 'counter');
      await entries().insertOne({ _id: `${doc._id}.2` });
      expect(await rejection(fire(engine, doc))).instanceOf(StepRefused);
      const aside = await engine.stored('counter', doc._id);
      const { quarantined } = aside;
      expect(quarantined?.why).equal('a step was refused by entries');
      expect(dueOf(aside), 'nothing happens to it').equal(null);
      const counters = engine.db.collection<ActorDoc>('counters');
      expect(await counters.countDocuments(dueIn({})), 'no sweep meets it').equal(0);
      expect(await counters.countDocuments(inQuarantine)).equal(1);
      expect(await engine.alerts(doc._id)).have.length(1);
    });
  });

  describe('of two processes at once', () => {
    let other: Engine;
    beforeEach(async () => {
      other = await openEngine([counter], { database: engine.db.databaseName });
    });
    afterEach(() => other.close());
    const both = () => [engine, other];

    it('adds up on one counter, from its very first use', async () => {
      for (let round = 0; round < 10; round += 1) {
        const all = both().flatMap((each) =>
          Array.from({ length: 5 }, () => each.committer.commit([add(`sum${round}`, { n: 1 })])),
        );
        expect(refused(await Promise.all(all))).deep.equal([]);
        expect(await sums().findOne({ _id: `sum${round}` })).deep.include({ n: 10 });
      }
    });

    it('lets one of them take each step of an actor', async () => {
      await sums().insertOne({ _id: 'actor', seq: 0 });
      for (let seq = 0; seq < 20; seq += 1) {
        const outcomes = await Promise.all(
          both().map((each) => each.committer.commit([take('actor', seq), add('won', { n: 1 })])),
        );
        expect(refused(outcomes)).deep.equal([take('actor', seq)]);
      }
      expect(await sums().findOne({ _id: 'won' })).deep.include({ n: 20 });
    });

    it('lets one of them take each step of many actors, written together', async () => {
      const ids = Array.from({ length: 20 }, (_, n) => `actor${n}`);
      await sums().insertMany(ids.map((_id) => ({ _id, seq: 0 })));
      for (let seq = 0; seq < 10; seq += 1) {
        const ofAll = both().map((each) =>
          Promise.all(ids.map((id) => each.committer.commit([take(id, seq), add(`won.${id}`, { n: 1 })]))),
        );
        const [ours, theirs] = await Promise.all(ofAll);
        expect(ours!.map(({ ok }, n) => Number(ok) + Number(theirs![n]!.ok))).deep.equal(ids.map(() => 1));
      }
      expect(await sums().countDocuments({ _id: /^won/, n: 10 })).equal(20);
      expect(await sums().countDocuments({ _id: /^actor/, seq: 10 })).equal(20);
    });
  });

  describe('of many steps, whose sequence numbers are looked at together', () => {
    const ids = Array.from({ length: 8 }, (_, n) => `actor${n}`);
    beforeEach(() => sums().insertMany(ids.map((_id) => ({ _id, seq: 0 }))));

    it('refuses one that somebody steps between the look and the update', async () => {
      let looks = 0;
      const db = new Proxy(engine.db, {
        get: (target, name) => {
          if (name !== 'command') return Reflect.get(target, name, target) as unknown;
          return async (command: Document, options: object) => {
            const answer = await target.command(command, options);
            if (command.find === 'sums' && looks++ === 0)
              await sums().updateOne({ _id: 'actor3' }, { $set: { seq: 1, by: 'another' } });
            return answer;
          };
        },
      });
      committer = new Committer({ client: engine.client, db, log: engine.log });
      const outcomes = await Promise.all(ids.map((id) => committer.commit([take(id, 0)])));
      expect(refused(outcomes)).deep.equal([take('actor3', 0)]);
      expect(looks, 'the conflict, the look that finds it, and the rest').equal(3);
      expect(await sums().findOne({ _id: 'actor3' })).deep.equal({ _id: 'actor3', seq: 1, by: 'another' });
      expect(await sums().countDocuments({ seq: 1 })).equal(8);
    });

    it('takes one of two steps from the same place in one batch', async () => {
      const twin: Write = { ...take('actor3', 0), update: { $set: { seq: 1, by: 'the second' } } } as Write;
      const outcomes = await Promise.all(
        [...ids.map((id) => take(id, 0)), twin].map((write) => committer.commit([write])),
      );
      expect(refused(outcomes)).deep.equal([twin]);
      expect(await sums().findOne({ _id: 'actor3' })).deep.equal({ _id: 'actor3', seq: 1 });
    });

    it('refuses one of an actor that is not there', async () => {
      const outcomes = await Promise.all([...ids, 'gone'].map((id) => committer.commit([take(id, 0)])));
      expect(refused(outcomes)).deep.equal([take('gone', 0)]);
      expect(await sums().countDocuments({ seq: 1 })).equal(8);
    });
  });

  it('lets only those wait who need what somebody has locked and does not let go, as a killed process does', async () => {
    await entries().insertOne({ _id: 'known' });
    const dead = engine.client.startSession();
    dead.startTransaction();
    await entries().insertOne({ _id: 'locked' }, { session: dead });
    // It would give up by itself where the others take longer than it waits.
    const patient = new Committer({
      client: engine.client,
      db: engine.db,
      log: engine.log,
      patienceMs: 60_000,
    });
    let isWaiting = true;
    const waiting = patient.commit([entry('locked')]).finally(() => {
      isWaiting = false;
    });
    const others = Array.from({ length: 100 }, (_, n) => patient.commit([entry(`free${n}`)]));
    expect(refused(await Promise.all(others))).deep.equal([]);
    expect(refused(await Promise.all([patient.commit([entry('later')])]))).deep.equal([]);
    expect(isWaiting, 'nobody waited with it').equal(true);
    expect(patient.counts.asides).equal(1);
    await dead.abortTransaction();
    await dead.endSession();
    expect(await waiting).deep.equal({ ok: true });
    await patient.drain();
    expect(await entries().countDocuments()).equal(103);
  });

  it('answers all who lost their race after one look, however many they are', async () => {
    const isLost = (n: number) => n % 3 === 0;
    await sums().insertMany(Array.from({ length: 60 }, (_, n) => ({ _id: `a${n}`, seq: isLost(n) ? 7 : 1 })));
    const members = Array.from({ length: 60 }, (_, n): Write[] => [
      {
        op: 'update',
        into: 'sums',
        filter: { _id: `a${n}`, seq: 1 },
        update: { $set: { seq: 2 } },
        onMiss: 'race',
      },
      add('sum', { n: 1 }),
    ]);
    const outcomes = await Promise.all(members.map((writes) => committer.commit(writes)));
    expect(outcomes).deep.equal(
      members.map(([write], n) => (isLost(n) ? { ok: false, write } : { ok: true })),
    );
    expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 40 });
    expect(committer.counts).deep.include({ splits: 1, refusals: 20, batches: 1 });
  });

  it('answers all who repeat what was answered after one look, however many they are', async () => {
    await entries().insertMany(Array.from({ length: 20 }, (_, n) => ({ _id: `a${3 * n}` })));
    const members = Array.from({ length: 60 }, (_, n): Write[] => [
      entry(`new${n}`),
      { op: 'insert', into: 'entries', doc: { _id: `a${n}` }, onDuplicate: 'replay' },
    ]);
    const outcomes = await Promise.all(members.map((writes) => committer.commit(writes)));
    expect(outcomes).deep.equal(
      members.map(([, write], n) => (n % 3 === 0 ? { ok: false, write } : { ok: true })),
    );
    expect(committer.counts).deep.include({ splits: 1, refusals: 20, batches: 1 });
  });

  it('goes on beside a batch that adds to counters, which no second one joins', async () => {
    const [begun, held] = [signal(), signal()];
    let commits = 0;
    const client = unsteady(engine.client, async (commit) => {
      commits += 1;
      if (commits === 1) {
        begun.happen();
        await held.happened;
      }
      await commit();
    });
    committer = new Committer({ client, db: engine.db, log: engine.log });
    const adding = [committer.commit([entry('a1'), add('sum', { n: 1 })])];
    await begun.happened;
    adding.push(committer.commit([entry('a2'), add('sum', { n: 1 })]));
    expect(await committer.commit([entry('plain')])).deep.equal({ ok: true });
    expect(await entries().distinct('_id')).deep.equal(['plain']);
    held.happen();
    expect(refused(await Promise.all(adding))).deep.equal([]);
    expect(committer.counts).deep.include({ batches: 3 });
    expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 2 });
  });

  it('sets out beside another batch only if it is large', async () => {
    const [begun, held] = [signal(), signal()];
    let commits = 0;
    const client = unsteady(engine.client, async (commit) => {
      commits += 1;
      if (commits === 1) {
        begun.happen();
        await held.happened;
      }
      await commit();
    });
    const size = { largestBatch: 16, longMs: 60_000 };
    committer = new Committer({ client, db: engine.db, log: engine.log, ...size });
    const waiting = [committer.commit([entry('first')])];
    await begun.happened;
    waiting.push(committer.commit([entry('s1')]));
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(await entries().distinct('_id'), 'a small one waits').deep.equal([]);
    const others = Array.from({ length: 7 }, (_, n) => committer.commit([entry(`l${n}`)]));
    expect(refused(await Promise.all(others))).deep.equal([]);
    expect(await entries().countDocuments(), 'half of the largest').equal(8);
    waiting.push(committer.commit([entry('s2')]), committer.commit([entry('s3')], true));
    held.happen();
    expect(refused(await Promise.all(waiting))).deep.equal([]);
    expect(committer.counts).deep.include({ batches: 3, members: 11 });
  });

  it('of more than one command can hold is written in parts', async () => {
    const filler = 'x'.repeat(1024 * 1024);
    const members = Array.from({ length: 20 }, (_, n) => [entry(`big${n}`, { filler })]);
    for (const length of [16, 17, 20]) {
      await entries().deleteMany({});
      const some = members.slice(0, length);
      const outcomes = await Promise.all(some.map((writes) => committer.commit(writes)));
      expect(refused(outcomes)).deep.equal([]);
      expect(await entries().countDocuments()).equal(length);
    }
  });

  it('is repeated while MongoDB calls the fault transient, and counts once', async () => {
    await sums().insertOne({ _id: 'sum', n: 0 });
    const session = engine.client.startSession();
    session.startTransaction({ writeConcern: durable });
    await sums().updateOne({ _id: 'sum' }, { $inc: { n: 100 } }, { session });
    const written = committer.commit([entry('waits'), add('sum', { n: 1 })]);
    while (committer.counts.retries < 3) await sleep(2);
    expect(await entries().findOne({ _id: 'waits' })).equal(null);
    await session.commitTransaction();
    await session.endSession();
    expect(await written).deep.equal({ ok: true });
    expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 101 });
    expect(await entries().countDocuments()).equal(1);
  });

  it('is repeated where the line breaks while it is written, which the driver does not name', async () => {
    const brokenLine = () =>
      Object.assign(new Error('This socket has been ended by the other party'), { code: 'EPIPE' });
    let isWhole = false;
    const db = new Proxy(engine.db, {
      get: (target, name) => {
        if (name === 'command' && !isWhole) {
          isWhole = true;
          return async () => Promise.reject(brokenLine());
        }
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    let commits = 0;
    const client = unsteady(engine.client, async (commit) => {
      commits += 1;
      if (commits === 1) throw brokenLine();
      await commit();
    });
    committer = new Committer({ client, db, log: engine.log });
    expect(await committer.commit([entry('once'), add('sum', { n: 1 })])).deep.equal({ ok: true });
    expect(committer.counts).deep.include({ batches: 1, retries: 1, splits: 0 });
    expect(commits).equal(2);
    expect(await entries().countDocuments()).equal(1);
    expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 1 });
    expect(isOutage(brokenLine())).equal(true);
  });

  describe('whose answer is lost', () => {
    let answers: ('lost' | 'cut off')[] = [];
    let commits = 0;
    let steady: Engine;
    /** What happens elsewhere before the loss is noticed. */
    let meanwhile: () => Promise<unknown>;

    beforeEach(async () => {
      steady = engine;
      answers = [];
      commits = 0;
      meanwhile = async () => {};
      const { client, db } = steady;
      const committerClient = unsteady(client, async (commit) => {
        commits += 1;
        const fate = answers.shift();
        if (fate !== 'cut off') await commit();
        await meanwhile();
        if (fate) throw lostAnswer();
      });
      engine = await openEngine([counter], {
        ...{ client, committerClient, database: db.databaseName, patienceMs: 40 },
      });
      committer = engine.committer;
    });
    afterEach(async () => {
      await steady.close();
    });

    it('repeats the commit alone, never the writes', async () => {
      answers = ['lost', 'lost'];
      committer = new Committer({ client: unsteadyOnce(), db: engine.db, log: engine.log });
      expect(await committer.commit([entry('once'), add('sum', { n: 1 })])).deep.equal({ ok: true });
      expect(commits).equal(3);
      expect(committer.counts).deep.include({ batches: 1, documents: 2, retries: 0 });
      expect(await sums().findOne({ _id: 'sum' })).deep.include({ n: 1 });
    });

    function unsteadyOnce(): MongoClient {
      return unsteady(steady.client, async (commit) => {
        commits += 1;
        await commit();
        if (answers.shift()) throw lostAnswer();
      });
    }

    it('for good, says that nobody knows; the service answers 503', async () => {
      answers = Array(50).fill('lost') as 'lost'[];
      const error = await rejection(committer.commit([entry('once')]));
      expect(error).instanceOf(CommitUnknown);
      expect((error as CommitUnknown).hasErrorLabel('UnknownTransactionCommitResult')).equal(true);
      expect(await entries().countDocuments()).equal(1);
    });

    for (const fate of ['lost', 'cut off'] as const) {
      it(`${fate === 'lost' ? 'recognises a step that was applied' : 'takes a step again that was not'}`, async () => {
        const doc = await give(engine, 'counter');
        const heard: number[] = [];
        engine.actors.onStep((step) => void heard.push(step.doc.seq));
        answers = [...loseUntilPatienceEnds(fate)];
        const result = await tell(engine, doc, 'poked');
        expect(result).deep.include({ outcome: 'stepped', from: 'only', to: 'only', asked: ['post'] });
        expect((await engine.stored('counter', doc._id)).snapshot.context).deep.equal({ pokes: 1 });
        expect((await engine.history(doc._id)).map(({ seq }) => seq)).deep.equal([1, 2]);
        expect(await sums().findOne({ _id: 'pokes' })).deep.include({ pokes: 1 });
        expect(heard, 'calls and timers are handed over once').deep.equal([2]);
        expect((await tell(engine, doc, 'poked')).outcome).equal('stepped');
      });
    }

    /** Enough losses for the committer to give up, after which all goes well. */
    function* loseUntilPatienceEnds(fate: 'lost' | 'cut off'): Generator<'lost' | 'cut off'> {
      for (let n = 0; n < 2; n += 1) yield fate;
    }

    it('recognises the step although another process has gone on from it', async () => {
      const doc = await give(engine, 'counter');
      meanwhile = async () => {
        meanwhile = async () => {};
        await tell(steady, doc, 'poked');
      };
      answers = [...loseUntilPatienceEnds('lost')];
      await tell(engine, doc, 'poked');
      expect((await engine.stored('counter', doc._id)).snapshot.context).deep.equal({ pokes: 2 });
    });

    it('hands over the calls and the children of a step that was applied', async () => {
      const doc = await give(engine, 'counter');
      const heard: string[] = [];
      engine.actors.onStep((step) => void heard.push(`${step.doc._id} ${step.newCalls.map(({ id }) => id)}`));
      answers = [...loseUntilPatienceEnds('lost')];
      await tell(engine, doc, 'called');
      answers = [...loseUntilPatienceEnds('lost')];
      await tell(engine, doc, 'borne');
      expect(heard).deep.equal([`${doc._id} ${doc._id}.2.0`, `${doc._id} `, `${doc._id}_child `]);
    });

    it('finds the actor that was born all the same', async () => {
      answers = [...loseUntilPatienceEnds('lost')];
      const doc = await give(engine, 'counter');
      expect((await engine.stored('counter', doc._id)).seq).equal(1);
    });

    it('says so when the actor was not born', async () => {
      answers = [...loseUntilPatienceEnds('cut off')];
      expect(await rejection(give(engine, 'counter'))).instanceOf(CommitUnknown);
      expect(await engine.db.collection('counters').countDocuments()).equal(0);
    });
  });
});
