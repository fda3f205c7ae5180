import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { openProxy, type TcpProxy, wordsOf } from '../support/proxy.ts';
import { isLong } from '../support/size.ts';
import { openWorld, seed, type World } from '../support/world.ts';

/**
 * One line to MongoDB after the other takes bytes and answers nothing, each under a command of its kind, while the
 * heartbeats on other lines go on. Half of these commands are carried out all the same.
 */
const commands = [
  ['commitTransaction'],
  ['insert', 'collections'],
  ['update', 'collections'],
  ['update', 'balances'],
  ['find', 'collections'],
  ['find', 'idempotency'],
  ['find', 'api_keys'],
  ['find', 'deliveries'],
  ['abortTransaction'],
] as const;
const rounds = isLong ? 40 : 6;

describe(`lines to MongoDB fall silent under load (SEED=${seed})`, () => {
  let world: World;
  let proxy: TcpProxy;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld();
    const { port } = new URL(world.env.MONGODB_URI!.replace(/^mongodb:/, 'http:'));
    proxy = await openProxy({ port: Number(port) });
    await world.process.kill('SIGTERM');
    await world.restart(0, { MONGODB_URI: `mongodb://127.0.0.1:${proxy.port}/?directConnection=true` });
  });

  after(async () => {
    await world?.close();
    await proxy?.close();
  });

  it(`${rounds} of them: creates go on, each answered 202 or 503 within its limit`, async function () {
    this.timeout(120_000 + rounds * 60_000);
    const load = startLoad(world);
    try {
      for (let round = 0; round < rounds; round += 1) {
        const [command, collection] = commands[Math.floor(world.random() * commands.length)]!;
        const silence = proxy.silence(wordsOf(command, collection), world.random() < 0.5);
        // Some commands are rare, and two lines may be silent at once.
        await Promise.race([silence, wait(2_000)]);
        const key = `silence-${round}`;
        const body = { amount: 1_000, phone: '255700000000', reference: key };
        const answer = await world.ask('POST', '/v1/collections', { key, body });
        expect(answer?.status, `${command}: ${JSON.stringify(answer)}`).to.be.oneOf([202, 503]);
        if (answer?.status === 202) world.outside.accepted.set(key, new Set([answer.json.id]));
        await world.create();
      }
    } finally {
      await load.stop();
    }
  });

  it('and after all that nothing is lost and nothing doubled', async function () {
    this.timeout(600_000);
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
