import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { failpoints } from '../../src/failpoint.ts';
import { check } from '../support/checker.ts';
import { type Live, openLive } from '../support/live.ts';
import { startLoad } from '../support/load.ts';
import type { ServiceProcess } from '../support/processes.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

/** How often each point is tried: the first time it is passed, or a later one by the seed. */
const rounds = Number(process.env.ROUNDS ?? (isLong ? 5 : 1));
/** Only a live rail calls back. */
const ofTestMode = failpoints.filter((name) => name !== 'afterCallback');

/** What was written and not committed stays locked until MongoDB gives it up, and so do the keys that merchants repeat. */
const ended = ({ child }: ServiceProcess) =>
  until(async () => child.signalCode !== null || child.exitCode !== null, 120_000);

/** What may keep a process from its point, for whoever reads a failed test: it said why, or nothing was asked of it. */
async function toldBy({ process: { child, output }, db }: World): Promise<string> {
  const waiting = { state: 'created.pushing.sending', 'calls.startedAt': { $exists: false } };
  const pushes = await db.collection('collections').countDocuments(waiting);
  const steps = await db.collection('steps').countDocuments({ at: { $gt: new Date(Date.now() - 10_000) } });
  const how = child.exitCode === null ? 'runs' : `ended by itself (${child.exitCode})`;
  return `it ${how}; ${pushes} pushes wait, ${steps} steps in 10 s; it said:\n${output()}`;
}

describe(`killed at a named point (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld();
  });

  after(() => world.close());

  it('loses nothing and doubles nothing, whichever point it is', async function () {
    this.timeout(600_000 + rounds * ofTestMode.length * 120_000);
    const load = startLoad(world);
    for (let round = 0; round < rounds; round += 1) {
      for (const name of ofTestMode) {
        await world.process.kill('SIGKILL');
        const passing = 1 + Math.floor(world.random() * 20);
        // In the middle of its start, if need be: then it never becomes ready.
        await world.restart(0, { FAILPOINT: `${name}:${passing}` }).catch(() => undefined);
        await ended(world.process);
        const isKilled = world.process.child.signalCode === 'SIGKILL';
        const why = isKilled ? '' : `${name}:${passing} is never passed: ${await toldBy(world)}`;
        expect(isKilled, why).to.equal(true);
      }
    }
    await world.restart();
    await wait(300);
    await load.stop();
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});

describe('killed after a callback was stored and before anybody heard of it', () => {
  let live: Live;

  before(async () => {
    live = await openLive();
  });

  after(() => live.close());

  it('the payment is found by asking, with one debit and one push', async function () {
    this.timeout(600_000);
    const doomed = await live.startProcess({ NODE_ENV: 'test', FAILPOINT: 'afterCallback' });
    const created = await fetch(`${doomed.baseUrl}/v1/collections`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${live.liveKey}`, 'idempotency-key': 'called-back' },
        'content-type': 'application/json',
      },
      body: JSON.stringify({ amount: 1_000, phone: '255740000013', reference: 'called-back' }),
    });
    const { id } = (await created.json()) as { id: string };
    await ended(doomed);
    expect(doomed.child.signalCode, `no callback came: ${doomed.output()}`).to.equal('SIGKILL');
    live.clock.advance(200_000);
    await live.restart();
    const stored = live.service.service.wired.db.collection('railCallbacks');
    expect(await stored.countDocuments({ collectionId: id })).to.be.at.least(1);
    const succeeded = await until(async () => {
      await live.service.sweep();
      return (await live.read(id)).status === 'succeeded';
    }, 120_000);
    expect(succeeded, JSON.stringify(await live.service.actor(id))).to.equal(true);
    expect(live.debits(id)).to.equal(1);
    expect(live.simulator.counts.push).to.equal(1);
    const heard = await until(async () => {
      live.clock.advance(61_000);
      await live.service.sweep();
      return (await stored.countDocuments({ collectionId: id, rungAt: null })) === 0;
    }, 120_000);
    expect(heard, 'a callback that was answered is heard').to.equal(true);
  });
});
