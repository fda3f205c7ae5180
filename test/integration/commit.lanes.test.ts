import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { Committer } from '../../src/actors/actors.ts';
import { type Corridor, openCorridor, unsteady } from '../support/corridor.ts';
import { add, counter, entriesOf, entry, sumsOf } from '../support/counter.ts';
import { until } from '../support/service.ts';

/** Two batches may be on their way at once, but only one that adds to counters. */
describe('group commit in two lanes', () => {
  let corridor: Corridor;
  let committer: Committer;
  /** Commits that have begun, and the ends of those that are held. */
  let begun = 0;
  let held: (() => void)[] = [];
  let holds = false;

  beforeEach(async () => {
    corridor = await openCorridor([counter]);
    // MongoDB makes a collection with its first document, and whoever meets that begins again.
    await corridor.committer.commit([entry('seed'), add('seed', { n: 1 })]);
    begun = 0;
    held = [];
    const client = unsteady(corridor.client, async (commit) => {
      begun += 1;
      const isHeld = holds;
      await commit();
      if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
    });
    committer = new Committer({ client, db: corridor.db, log: corridor.log });
  });
  afterEach(() => corridor.close());

  /** Commits, and returns when MongoDB has answered; the answer is kept back until `release`. */
  const hold = async (writes: Parameters<Committer['commit']>[0]) => {
    const before = held.length;
    holds = true;
    const ended = committer.commit(writes);
    expect(await until(async () => held.length > before)).to.equal(true);
    holds = false;
    return { ended };
  };
  const release = () => {
    for (const end of held.splice(0)) end();
  };

  it('one is made while the other waits for its answer', async () => {
    const first = await hold([entry('first')]);
    expect(await committer.commit([entry('second')])).to.deep.equal({ ok: true });
    expect(await entriesOf(corridor.db).countDocuments()).to.equal(3);
    expect(committer.counts.batches, 'that ended').to.equal(1);
    release();
    expect(await first.ended).to.deep.equal({ ok: true });
  });

  it('what adds to counters waits for what adds to counters, and nothing else waits with it', async () => {
    const first = await hold([entry('first'), add('sum', { n: 1 })]);
    const second = committer.commit([entry('second'), add('sum', { n: 1 })]);
    for (const name of ['third', 'fourth', 'fifth']) await committer.commit([entry(name)]);
    expect(begun, 'of the first and the three').to.equal(4);
    release();
    expect(await Promise.all([first.ended, second])).to.deep.equal([{ ok: true }, { ok: true }]);
    expect(await sumsOf(corridor.db).findOne({ _id: 'sum' })).to.deep.include({ n: 2 });
    expect(committer.counts).to.include({ batches: 5, retries: 0, splits: 0 });
  });

  it('nobody is left behind who comes in the moment in which both lanes end', async () => {
    // The turns between the answer to a member and the end of its lane: each is tried.
    for (let turns = 0; turns < 24; turns += 1) {
      const one = await hold([entry(`${turns}.one`)]);
      const other = await hold([entry(`${turns}.other`)]);
      release();
      await one.ended;
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const late = committer.commit([entry(`${turns}.late`)]);
      const tooLong = wait(5_000, undefined, { ref: false }).then(() => `left behind after ${turns} turns`);
      expect(await Promise.race([late, tooLong])).to.deep.equal({ ok: true });
      await other.ended;
    }
  });
});
