import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort, type ServiceProcess, startProcess } from '../support/processes.ts';
import { freshDatabase, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** OPERATING "Start and stop": what a SIGTERM does, seen from outside, with real processes. */
describe('a process that is told to stop', () => {
  let running: ServiceProcess | undefined;

  const start = async (more: Record<string, string>, command?: readonly string[]) => {
    const { mongodbUri, redisUrl } = await stores();
    const database = freshDatabase('shutdown');
    const env = {
      MONGODB_URI: mongodbUri,
      MONGODB_DATABASE: database,
      REDIS_URL: redisUrl,
      REDIS_PREFIX: database,
      OPERATOR_TOKEN: 'operator-token-of-the-tests',
      KEY_HASH_SECRET: 'key-hash-secret-of-the-tests',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      LOG_LEVEL: 'warn',
      ...more,
    };
    running = await startProcess(env, { port: await freePort(), adminPort: await freePort() }, command);
    await running.ready;
    return running;
  };

  afterEach(() => running?.kill());

  it('says so at /readyz first, answers all that it is asked until it closes, and ends well', async function () {
    this.timeout(60_000);
    // Long enough for a machine that stands still in the middle of it.
    const service = await start({ SHUTDOWN_DELAY: '4s' });
    const closed = once(service.child, 'close');
    const said: number[] = [];
    const refused: string[] = [];
    let isAsking = true;
    // As a load balancer does: new connections, until readiness is down.
    const ask = async () => {
      while (isAsking) {
        const status = await statusOf(`${service.baseUrl}/readyz`).catch((error) => String(error));
        if (status === 503) return;
        const answer = await statusOf(`${service.baseUrl}/v1/openapi.json`).catch((error) => String(error));
        if (typeof answer === 'number') said.push(answer);
        else refused.push(answer);
        await sleep(10);
      }
    };
    const asking = Promise.all(Array.from({ length: 4 }, ask));
    await until(async () => said.length > 20);
    process.kill(service.child.pid!, 'SIGTERM');
    expect(await until(async () => (await statusOf(`${service.adminUrl}/readyz`)) === 503)).to.equal(true);
    // Down already, and still serving: for whoever has not noticed yet.
    expect(await statusOf(`${service.baseUrl}/v1/openapi.json`)).to.equal(200);
    isAsking = false;
    await asking;
    // Its output may be read to the end a moment after its exit.
    await closed;
    expect([service.child.exitCode, service.output().trim().split('\n').at(-1)]).to.deep.equal([
      0,
      'stopped',
    ]);
    expect(refused, 'requests that were not answered').to.deep.equal([]);
    expect([...new Set(said)]).to.deep.equal([200]);
  });

  it('hears of it through npm start', async function () {
    this.timeout(60_000);
    const npm = await start({}, ['npm', 'start']);
    process.kill(npm.child.pid!, 'SIGTERM');
    const ended = await until(async () => npm.output().trim().endsWith('stopped'), 30_000);
    expect(ended, npm.output()).to.equal(true);
  });
});

/** The status of a request on a connection of its own. */
function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: new Agent({ keepAlive: false }) }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode!));
    });
    request.once('error', reject);
  });
}
