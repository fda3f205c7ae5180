import { expect } from 'chai';
import { freshDatabase, stores } from '../../../test/support/stores.ts';
import { until } from '../../../test/support/until.ts';
import { Queues } from '../src/index.ts';
import { silent } from '../src/log.ts';
import { rejection } from './support/engine.ts';

/** An open socket says nothing: Redis is there when it answers, to those who add and to those who take. */
describe('a Redis that is connected', () => {
  let queues: Queues;

  beforeEach(async () => {
    queues = new Queues((await stores()).redisUrl, freshDatabase('answers'), silent);
    queues.work('quiet', 1, async () => {});
    expect(await queues.connected(10_000)).equal(true);
  });
  afterEach(() => queues.close());

  it('is not ready while it refuses what is written, and again when it does not', async () => {
    const set = queues.redis.set;
    queues.redis.set = (() => Promise.reject(new Error('MOVED 866 127.0.0.1:7001'))) as never;
    expect(await until(async () => !queues.ready)).equal(true);
    queues.redis.set = set;
    expect(await until(async () => queues.ready)).equal(true);
  });

  it('is not ready while the workers’ line is silent, and that line is made anew', async () => {
    const { ofWorkers } = queues;
    const set = ofWorkers.set;
    let isCut = false;
    ofWorkers.once('close', () => {
      isCut = true;
    });
    ofWorkers.set = (() => new Promise(() => {})) as never;
    expect(await until(async () => !queues.ready)).equal(true);
    expect(await until(async () => isCut)).equal(true);
    ofWorkers.set = set;
    expect(await until(async () => queues.ready)).equal(true);
  });

  it('is dialled anew where it has become a replica, for another is the master now', async () => {
    const { redis } = queues;
    const set = redis.set;
    let isCut = false;
    redis.once('close', () => {
      isCut = true;
    });
    redis.set = (() =>
      Promise.reject(new Error("READONLY You can't write against a read only replica."))) as never;
    expect(await until(async () => isCut)).equal(true);
    redis.set = set;
    expect(await until(async () => queues.ready)).equal(true);
  });

  it('is refused where it is a node of a cluster, with what to do instead', async () => {
    await queues.refuseCluster();
    queues.redis.info = (async () => '# Cluster\r\ncluster_enabled:1\r\n') as never;
    expect((await rejection(queues.refuseCluster())).message).match(/Redis Cluster.*cluster-enabled no/);
  });
});
