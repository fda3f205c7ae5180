import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const stops = isLong ? 10 : 1;

describe(`SIGTERM under load (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    // So long that a test that stands still for seconds still sees it.
    world = await openWorld({ SHUTDOWN_DELAY: '4s' });
    await world.start();
  });

  after(() => world.close());

  it('readiness goes down first, requests under way are answered, and another process goes on', async function () {
    this.timeout(600_000 + stops * 60_000);
    const load = startLoad(world);
    for (let stop = 0; stop < stops; stop += 1) {
      await wait(500 + world.random() * 1_000);
      const leaving = world.process;
      const cut: string[] = [];
      let isOver = false;
      /** Each on a connection of its own, as a load balancer sends them: none any more once readiness is down. */
      const knock = async () => {
        while (!isOver) {
          const error = await createAt(world, leaving.baseUrl);
          if (error) cut.push(error);
        }
      };
      const knocking = Promise.all(Array.from({ length: 4 }, knock));
      await wait(200);
      process.kill(leaving.child.pid!, 'SIGTERM');
      const isDown = async () => (await world.operate('GET', '/readyz', undefined, leaving))?.status === 503;
      expect(await until(isDown, 60_000), 'readiness is down').to.equal(true);
      expect(leaving.child.exitCode, 'while it still runs').to.equal(null);
      isOver = true;
      await knocking;
      expect(await until(async () => leaving.child.exitCode !== null, 60_000)).to.equal(true);
      expect(leaving.child.exitCode).to.equal(0);
      expect(cut, 'requests that were taken and not answered').to.deep.equal([]);
      await world.restart();
    }
    await load.stop();
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});

let lastKnock = 0;

/** What went wrong, if it did. */
function createAt(world: World, baseUrl: string): Promise<string | undefined> {
  lastKnock += 1;
  const key = `knock-${lastKnock}`;
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${world.testKey}`, 'idempotency-key': key };
    const sending = request(
      `${baseUrl}/v1/collections`,
      {
        ...{ method: 'POST', agent: new Agent({ keepAlive: false }) },
        headers: { ...headers, 'content-type': 'application/json' },
      },
      (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('error', (error) => resolve(error.message));
        response.on('end', () => {
          if (response.statusCode !== 202) return resolve(`${response.statusCode}: ${text}`);
          world.outside.accepted.set(key, new Set([JSON.parse(text).id]));
          resolve(undefined);
        });
      },
    );
    sending.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message));
    sending.end(JSON.stringify({ amount: 1_000, phone: '255700000000', reference: key }));
  });
}
