import { Queues } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { steadyMs } from '../../packages/durable-actors/src/clock.ts';
import { createLog } from '../../src/log.ts';
import { Bells } from '../../src/rails/rails.ts';
import { eventually } from '../support/posting.ts';
import { freshDatabase, stores } from '../support/stores.ts';

describe('bells of the test rail', () => {
  const log = createLog('silent');
  const clock = { now: steadyMs };
  let queues: Queues;
  let jobs: { bells: number; delayMs: number }[];
  let heard: { id: string; at: number }[];
  let bells: Bells;

  beforeEach(async () => {
    queues = new Queues((await stores()).redisUrl, freshDatabase('bells'), log);
    await queues.connected(20_000);
    [jobs, heard] = [[], []];
    bells = new Bells({
      actors: {
        send: async ({ id }, _event, { stepId }) => {
          expect(stepId).equal(`${id}.bell.0`);
          heard.push({ id, at: clock.now() });
          throw new Error('no such payment: nobody minds');
        },
      },
      queues: {
        add: (name, some) => {
          for (const { data, delayMs } of some)
            jobs.push({ bells: (data.bells as unknown[]).length, delayMs: delayMs! });
          return queues.add(name, some);
        },
        work: (...some) => queues.work(...some),
      },
      clock,
      log,
    });
  });
  afterEach(() => queues.close());

  it('of one moment share a job, each rings once and none before its time', async () => {
    bells.start();
    const from = clock.now();
    for (let n = 0; n < 40; n += 1) bells.ringLater(`col_${n}`, 500 + n, 0);
    await eventually(() => expect(heard).length(40));
    expect(new Set(heard.map(({ id }) => id)).size).equal(40);
    for (const { id, at } of heard) expect(at, id).at.least(from + 500 + Number(id.slice(4)));
    expect(jobs.length).within(1, 2);
  });

  it('stand alone where they ring soon', async () => {
    bells.start();
    for (const afterMs of [0, 20, 40]) bells.ringLater(`col_${afterMs}`, afterMs, 0);
    await eventually(() => expect(heard).length(3));
    expect(jobs.map(({ bells }) => bells)).deep.equal([1, 1, 1]);
  });

  it('that are held when the process ends go to the queue, and one of an earlier version rings', async () => {
    bells.ringLater('col_1', 60_000, 0);
    await bells.flush();
    expect(jobs).length(1);
    expect(jobs[0]!.delayMs).within(30_000, 60_100);
    expect(await queues.queue('bells').getDelayedCount()).equal(1);
    await queues.add('bells', [{ id: 'col_2.bell.0', data: { actor: 'col_2' } }]);
    bells.start();
    await eventually(() => expect(heard.map(({ id }) => id)).deep.equal(['col_2']));
  });
});
