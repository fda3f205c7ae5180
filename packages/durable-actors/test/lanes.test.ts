import { expect } from 'chai';
import { signal } from '../../../test/support/signal.ts';
import { until } from '../../../test/support/until.ts';
import { callJobs, errandsOf, wakeJobs } from '../src/bundle.ts';
import { type ActorDoc, type CallEffect, type MachineDefinition, queueNames } from '../src/index.ts';
import type { Errand } from '../src/lanes.ts';
import { Lanes } from '../src/lanes.ts';
import { type Engine, give, type Machinery, openEngine, openMachinery, tell } from './support/engine.ts';
import { lull, patienceMs, sleeper } from './support/sleeper.ts';

const errand = (n: number): Errand => ({
  machine: 'sleeper',
  actor: `sleeper_${n}`,
  call: `sleeper_${n}.1.0`,
});
const leaseMs = 15_000;

describe('lanes', () => {
  /** A lane for two at once, whose errands end when they are told to. */
  const open = () => {
    const lanes = new Lanes(3);
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    lanes.open('ask', 2, ({ actor }) => {
      begun.push(actor);
      return new Promise((resolve) => ends.set(actor, () => resolve(undefined)));
    });
    const end = async (n: number) => {
      ends.get(`sleeper_${n}`)!();
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { lanes, begun, end };
  };
  const names = (count: number) => Array.from({ length: count }, (_, n) => `sleeper_${n}`);

  it('let so many through at once, the others in the order of coming, and turn away whom they have no room for', async () => {
    const { lanes, begun, end } = open();
    const taken = Array.from({ length: 7 }, (_, n) => lanes.offer('ask', errand(n)));
    expect(taken).deep.equal([true, true, true, true, true, false, false]);
    expect(begun).deep.equal(names(2));
    await end(1);
    await end(0);
    expect(begun).deep.equal(names(4));
    expect(lanes.offer('ask', errand(7)), 'there is room again').equal(true);
    expect(lanes.counts()).deep.equal([{ queue: 'ask', running: 2, waiting: 2 }]);
  });

  it('are never two of one queue: nobody’s concurrency is taken for another’s', () => {
    const { lanes } = open();
    expect(() => lanes.open('ask', 5, async () => undefined)).to.throw('the queue ask has its lane already');
    const call = { concurrency: 1, patienceMs: 1, run: async () => ({ event: { type: 'known' } }) };
    const named = (name: string) => ({ name, calls: { ask: call } }) as Partial<MachineDefinition>;
    const queues = queueNames([named('sleeper'), named('riser')] as MachineDefinition[]);
    expect(queues).deep.equal(['wake', 'sleeper.ask', 'riser.ask']);
  });

  it('have an errand in hand once, however often it comes', async () => {
    const { lanes, begun, end } = open();
    expect(lanes.offer('ask', errand(0))).equal(true);
    expect(lanes.offer('ask', errand(0))).equal(true);
    const byJob = lanes.run('ask', errand(0));
    expect(begun).deep.equal(names(1));
    await end(0);
    expect(await byJob).equal(true);
    expect(lanes.offer('ask', errand(0)), 'and again when it is done').equal(true);
    expect(begun).have.length(2);
  });

  describe('whose errands wait for something else', () => {
    /** A lane for one, whose first errand steps aside until it is told that what it waits for has come. */
    const openAside = () => {
      const lanes = new Lanes(3);
      const come = signal();
      const heard: string[] = [];
      const ends = new Map<string, () => void>();
      lanes.open('ask', 1, async ({ actor }, { aside }) => {
        heard.push(`${actor} begins`);
        if (actor === 'sleeper_0') {
          const value = await aside(come.happened.then(() => 'it came'));
          heard.push(`${actor}: ${value ?? 'not to do here'}`);
          if (value === undefined) return undefined;
        }
        await new Promise<void>((resolve) => ends.set(actor, resolve));
        heard.push(`${actor} ends`);
        return undefined;
      });
      const turn = () => new Promise((resolve) => setImmediate(resolve));
      return { lanes, come, heard, turn, end: (n: number) => ends.get(`sleeper_${n}`)!() };
    };

    it('give their place to others meanwhile, and have the next one that is free', async () => {
      const { lanes, come, heard, turn, end } = openAside();
      for (let n = 0; n < 3; n += 1) expect(lanes.offer('ask', errand(n))).equal(true);
      await turn();
      expect(heard.splice(0)).deep.equal(['sleeper_0 begins', 'sleeper_1 begins']);
      expect(lanes.counts()).deep.equal([{ queue: 'ask', running: 1, waiting: 2 }]);
      expect(lanes.offer('ask', errand(0)), 'it is still in hand').equal(true);
      come.happen();
      await turn();
      expect(heard, 'the place is taken').deep.equal([]);
      end(1);
      await turn();
      expect(heard.splice(0), 'before those who came later').deep.equal([
        'sleeper_1 ends',
        'sleeper_0: it came',
      ]);
      end(0);
      await turn();
      end(2);
      await lanes.drained();
      expect(heard).deep.equal(['sleeper_0 ends', 'sleeper_2 begins', 'sleeper_2 ends']);
      expect(lanes.counts()).deep.equal([{ queue: 'ask', running: 0, waiting: 0 }]);
    });

    it('are handed over when the lanes close, wherever they wait, and hear that it is not to be done here', async () => {
      for (const hasCome of [false, true]) {
        const { lanes, come, heard, turn, end } = openAside();
        for (let n = 0; n < 2; n += 1) lanes.offer('ask', errand(n));
        await turn();
        if (hasCome) come.happen();
        await turn();
        expect(lanes.close().get('ask')).deep.equal([errand(0)]);
        end(1);
        await lanes.drained();
        expect(heard).include('sleeper_0: not to do here').and.not.include('sleeper_0 ends');
      }
    });
  });

  it('leave their place to others when only writing is left, as many as there are places', async () => {
    const lanes = new Lanes(10);
    const begun: string[] = [];
    const written = new Map<string, () => void>();
    lanes.open('ask', 2, async ({ actor }, { leave }) => {
      begun.push(actor);
      leave();
      leave();
      await new Promise<void>((resolve) => written.set(actor, resolve));
      return undefined;
    });
    const end = async (n: number) => {
      written.get(`sleeper_${n}`)!();
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (let n = 0; n < 6; n += 1) lanes.offer('ask', errand(n));
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun, 'two write, and two keep their places').deep.equal(names(4));
    expect(lanes.counts()).deep.equal([{ queue: 'ask', running: 4, waiting: 2 }]);
    expect(lanes.offer('ask', errand(0)), 'it is still in hand').equal(true);
    expect(begun).have.length(4);
    for (const n of [0, 2, 1, 3]) await end(n);
    expect(begun, 'each of those made room for one').deep.equal(names(6));
    for (const n of [4, 5]) await end(n);
    await lanes.drained();
    expect(lanes.counts()).deep.equal([{ queue: 'ask', running: 0, waiting: 0 }]);
    expect(['a', 'b', 'c', 'd'].filter((id) => lanes.offer('ask', { ...errand(9), call: id }))).have.length(
      4,
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun, 'there are as many places as before').have.length(10);
  });

  it('take what a job brings however many wait, and once closed nothing', async () => {
    const { lanes, begun } = open();
    for (let n = 0; n < 8; n += 1) void lanes.run('ask', errand(n));
    expect(begun).have.length(2);
    expect(lanes.counts()[0]).include({ waiting: 6 });
    expect([...lanes.close().values()].flat().map(({ actor }) => actor)).deep.equal(names(8).slice(2));
    expect(lanes.offer('ask', errand(9))).equal(false);
    expect(await lanes.run('ask', errand(9))).equal(false);
  });
});

describe('jobs', () => {
  const dues = (count: number, runAt: (n: number) => number) =>
    Array.from({ length: count }, (_, n) => ({ errand: errand(n), runAt: runAt(n) }));

  it('hold up to fifty calls for now; each later one has its own', () => {
    const jobs = callJobs([...dues(120, () => 0), { errand: errand(200), runAt: 500 }], 100, 'process');
    expect(jobs.map(({ data }) => errandsOf(data).length).sort()).deep.equal([1, 20, 50, 50]);
    expect(new Set(jobs.map(({ id }) => id)).size).equal(4);
    expect(jobs.find(({ delayMs }) => delayMs)).include({ delayMs: 400 });
  });

  it('hold the calls of one moment that come again, under names that none of those in hand has', () => {
    const again = dues(120, (n) => 2_050 + n).map((due) => ({ ...due, again: true as const }));
    const jobs = callJobs([...again, { errand: errand(200), runAt: 90, again: true }], 0, 'process');
    const groups = jobs.map(({ delayMs, data }) => [delayMs, errandsOf(data).length]);
    expect(groups).deep.equal([
      [90, 1],
      [2_200, 50],
      [2_200, 50],
      [2_200, 20],
    ]);
    const names = [...jobs, ...callJobs(again, 0, 'process')].map(({ id }) => id);
    expect(new Set(names).size).equal(7);
  });

  it('hold the wake-ups of one moment, never early and at most a tenth of their wait late; near ones stand alone', () => {
    const runAts = [-7, 0, 1, 499, 500, 501, 550, 1_999, 2_000, 2_150, 2_200, 2_201, 2_399, 60_000];
    const jobs = wakeJobs(
      runAts.map((runAt, n) => ({ errand: errand(n), runAt })),
      0,
      'process',
    );
    const groups = jobs.map(({ delayMs, data }) => [delayMs, errandsOf(data).map(({ actor }) => actor)]);
    expect(groups).deep.equal([
      [1, ['sleeper_2']],
      [499, ['sleeper_3']],
      [0, ['sleeper_0', 'sleeper_1']],
      [500, ['sleeper_4']],
      [550, ['sleeper_5', 'sleeper_6']],
      [2_000, ['sleeper_7', 'sleeper_8']],
      [2_200, ['sleeper_9', 'sleeper_10']],
      [2_400, ['sleeper_11', 'sleeper_12']],
      [60_000, ['sleeper_13']],
    ]);
  });

  it('of an older version of this code are understood', () => {
    expect(errandsOf({ machine: 'sleeper', actor: 'sleeper_1' })).deep.equal([
      { machine: 'sleeper', actor: 'sleeper_1' },
    ]);
  });
});

describe('calls of this process’s own commits', () => {
  let engine: Engine;
  let machinery: Machinery;
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  const open = async (run?: CallEffect['run'], beside?: Engine) => {
    const shared = beside && { database: beside.db.databaseName, clock: beside.clock };
    engine = await openEngine([sleeper(run)], { ...shared, owner: `process-${opened.length}` });
    machinery = await openMachinery(engine, { leaseMs });
    opened.push(machinery, engine);
    await machinery.lease.live();
    return { engine, machinery };
  };
  const stored = (doc: { _id: string }) => engine.stored('sleeper', doc._id);
  const heard = async (doc: { _id: string }) => (await stored(doc)).snapshot.context.heard as string[];
  const asker = async (type = 'asking', of = engine): Promise<ActorDoc> => {
    const { _id } = await give(of, 'sleeper');
    return (await tell(of, { _id }, type)).doc;
  };
  /** How many jobs were added to these queues so far. */
  const added = (of: Machinery) => {
    const counts = new Map<string, number>();
    const add = of.queues.add.bind(of.queues);
    of.queues.add = (name, jobs) => {
      counts.set(name, (counts.get(name) ?? 0) + jobs.length);
      return add(name, jobs);
    };
    return counts;
  };

  it('are made at once and cost no job', async () => {
    await open();
    const counts = added(machinery);
    machinery.workers.start();
    const doc = await asker();
    expect(await until(async () => (await heard(doc)).length > 0)).equal(true);
    await machinery.handover.flush();
    expect(counts.get('sleeper.ask')).equal(undefined);
  });

  it('come with wake-ups that are due by the time they are handed over, which cost no job either', async () => {
    await open();
    const counts = added(machinery);
    machinery.workers.start();
    const [asleep] = await lull(engine, 1, 60_000);
    engine.clock.advance(60_000);
    await machinery.handover.flush();
    expect(await until(async () => (await stored(asleep!)).state === 'awake')).equal(true);
    expect(counts.get('wake')).equal(undefined);
  });

  it('name the process that has them in hand; where none is made they go to the queue, many in a job', async () => {
    await open();
    const counts = added(machinery);
    const docs = await Promise.all(Array.from({ length: 60 }, () => asker()));
    expect(docs.map(({ calls }) => calls[0]!.owner)).deep.equal(docs.map(() => undefined));
    await machinery.handover.flush();
    expect(counts.get('sleeper.ask')).within(2, 30);
    const answered = signal();
    const { engine: other, machinery: ofOther } = await open(async () => {
      await answered.happened;
      return { event: { type: 'answered' } };
    }, engine);
    ofOther.workers.start();
    const mine = await asker('asking', other);
    expect((await stored(mine)).calls[0]!.owner).equal(other.owner);
    answered.happen();
    expect(await until(async () => (await heard(docs.at(-1)!)).length > 0)).equal(true);
    for (const doc of [...docs, mine]) {
      expect(await until(async () => (await heard(doc)).length > 0)).equal(true);
      expect(await heard(doc)).deep.equal(['answered']);
    }
  });

  it('of a dead process are made by another as soon as its lease is over; what it had claimed is lost at once', async () => {
    const { engine: dead, machinery: ofDead } = await open(() => new Promise(() => {}));
    ofDead.workers.start();
    const [asking, pushing] = [await asker(), await asker('pushing')];
    await dead.actors.claim({ machine: 'sleeper', id: pushing._id }, pushing.calls[0]!.id);
    expect((await stored(pushing)).calls[0]).include({ owner: dead.owner });
    let losses: number | undefined;
    await open(async ({ earlierStarts }) => {
      losses = earlierStarts;
      return { event: { type: 'answered' } };
    }, dead);
    machinery.workers.start();
    await machinery.sweeper.sweep();
    expect([await heard(asking), await heard(pushing)], 'it lives').deep.equal([[], []]);
    engine.clock.advance(leaseMs);
    await machinery.lease.live();
    await machinery.sweeper.sweep();
    expect(await until(async () => (await heard(asking)).length > 0)).equal(true);
    expect([await heard(asking), await heard(pushing)]).deep.equal([['answered'], ['lost']]);
    expect(losses, 'one process died with it').equal(1);
    expect(await machinery.lease.unburied()).deep.equal([]);
    expect(engine.clock.now()).below(asking.calls[0]!.notBefore.getTime() + patienceMs);
  });

  it('that had not begun when the process ends go to the queue; what had begun is waited for', async () => {
    const [begun, answered] = [signal(), signal()];
    let isFirst = true;
    await open(async () => {
      if (!isFirst) throw new Error('it had begun');
      begun.happen();
      await answered.happened;
      return { event: { type: 'answered' } };
    });
    machinery.workers.start();
    const first = await Promise.all(Array.from({ length: 10 }, () => asker()));
    await begun.happened;
    await until(async () =>
      engine.lanes.counts().some(({ queue, running }) => queue === 'sleeper.ask' && running === 10),
    );
    isFirst = false;
    const second = await asker();
    const stopped = machinery.workers.stop(30_000);
    answered.happen();
    await stopped;
    await machinery.handover.flush();
    for (const doc of first) expect(await heard(doc)).deep.equal(['answered']);
    expect(await heard(second)).deep.equal([]);
    const jobs = await machinery.queues.queue('sleeper.ask').getJobs(['waiting', 'delayed']);
    expect(jobs.flatMap(({ data }) => errandsOf(data)).map(({ actor }) => actor)).deep.equal([second._id]);
  });
});
