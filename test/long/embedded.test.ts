import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import {
  type Embedded,
  keepFirstMerchant,
  loadOrCreateSecrets,
  readFirstMerchant,
  startEmbedded,
  stopLeftovers,
} from '../../tools/embedded/embedded.ts';
import { isAlive } from '../../tools/embedded/processes.ts';
import { until } from '../support/until.ts';

const said: string[] = [];
const say = (line: string) => said.push(line);

describe('embedded servers', function () {
  const folder = ownFolder();
  this.timeout(180_000);
  let dataDir: string;
  let running: Embedded | undefined;

  const start = async (needs = { needMongo: true, needRedis: true }) => {
    running = await startEmbedded({ dataDir, say, ...needs });
    return running;
  };

  before(() => {
    dataDir = folder();
  });
  beforeEach(() => said.splice(0));
  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  it('are a replica set that knows transactions and a Redis that never evicts', async () => {
    const { mongodbUri, redisUrl, children } = await start();
    expect(children.map((child) => child.name)).deep.equal(['mongod', 'redis']);
    await withMongo(mongodbUri!, async (client) => {
      const things = client.db('kept').collection('things');
      await client.withSession((session) =>
        session.withTransaction(() => things.insertOne({ name: 'first' }, { session })),
      );
      expect(await things.countDocuments()).equal(1);
    });
    await withRedis(redisUrl!, async (redis) => {
      const answers = await redis.config('GET', 'maxmemory-policy', 'appendonly', 'appendfsync', 'save');
      expect(pairs(answers as string[])).deep.equal({
        'maxmemory-policy': 'noeviction',
        appendonly: 'yes',
        appendfsync: 'everysec',
        save: '',
      });
      await redis.set('kept', 'first');
    });
  });

  it('keep their data and their ports over a stop, after which nothing runs', async () => {
    const first = await start();
    const pids = first.children.map((child) => child.pid);
    await first.stop();
    expect(pids.filter(isAlive)).deep.equal([]);
    const second = await start();
    expect(second).include({ mongodbUri: first.mongodbUri, redisUrl: first.redisUrl });
    await expectKept(second);
  });

  it('are apart from our process group, so that Ctrl-C does not reach them', async () => {
    const { children } = await start();
    for (const { pid } of children) expect(processGroup(pid)).equal(pid).not.equal(processGroup(process.pid));
  });

  it('are refused to a second service, here or in another process, while one is alive', async () => {
    const { children } = await start();
    const again = startEmbedded({ dataDir, needMongo: true, needRedis: true, say });
    expect(await reasonOf(again)).match(/is in use by a running service .*another DATA_DIR and PORT/s);
    const other = startOwner(dataDir);
    const [code] = await once(other);
    expect(code).not.equal(0);
    expect(children.map((child) => child.pid).every(isAlive)).true;
  });

  it('outlive a service killed with -9, and the next one goes on with them', async () => {
    const owner = startOwner(dataDir);
    const pids = await pidsOf(owner);
    owner.kill('SIGKILL');
    await once(owner);
    expect(pids.every(isAlive)).true;
    const next = await start();
    expect(next.children.map((child) => child.pid)).deep.equal(pids);
    expect(said.filter((line) => line.includes('goes on with the server of the last run'))).length(2);
    await expectKept(next);
    await next.stop();
    expect(pids.filter(isAlive)).deep.equal([]);
  });

  it('end soon after their service, however that ended, when nobody goes on with them', async () => {
    for (const end of ['SIGKILL', 'SIGTERM', 'SIGINT'] as const) {
      const owner = startOwner(dataDir, 200);
      const pids = await pidsOf(owner);
      expect(pids.length).to.equal(2);
      owner.kill(end);
      await once(owner);
      expect(await until(async () => !pids.some(isAlive)), end).to.equal(true);
    }
    await expectKept(await start());
  });

  it('stay with whoever took them over in time', async () => {
    const owner = startOwner(dataDir, 1_000);
    const guard = (await toldBy(owner))[2]!;
    owner.kill('SIGKILL');
    await once(owner);
    const next = await start();
    expect(await until(async () => !isAlive(guard))).to.equal(true);
    expect(next.children.every(({ pid }) => isAlive(pid))).to.equal(true);
    await expectKept(next);
    const { guardPid } = next;
    await next.stop();
    expect(await until(async () => !isAlive(guardPid!))).to.equal(true);
  });

  it('that no longer answer after a kill -9 are replaced', async () => {
    const owner = startOwner(dataDir);
    const pids = await pidsOf(owner);
    owner.kill('SIGKILL');
    await once(owner);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const next = await start();
    expect(pids.filter(isAlive)).deep.equal([]);
    expect(said.join('\n')).match(/which does not answer/);
    await expectKept(next);
  });

  it('left behind are stopped when they are configured elsewhere by now, and by stopLeftovers', async () => {
    const owner = startOwner(dataDir);
    const [mongod, redis] = await pidsOf(owner);
    expect(await stopLeftovers(dataDir)).false; // their service lives
    owner.kill('SIGKILL');
    await once(owner);
    const next = await start({ needMongo: true, needRedis: false });
    expect(next.redisUrl).undefined;
    expect(isAlive(redis!)).false;
    expect(next.children).deep.equal([{ name: 'mongod', pid: mongod }]);
  });

  it('move to another port, with their data, when a stranger holds theirs', async () => {
    const first = await start();
    await first.stop();
    const strangers = await Promise.all([first.mongodbUri!, first.redisUrl!].map(listenOnPortOf));
    const moved = await start();
    expect(moved.mongodbUri).not.equal(first.mongodbUri);
    expect(moved.redisUrl).not.equal(first.redisUrl);
    await expectKept(moved);
    for (const stranger of strangers) stranger.close();
  });

  it('that die are started again on the same ports', async () => {
    const { children, mongodbUri, redisUrl } = await start();
    for (const { pid } of children) process.kill(pid, 'SIGKILL');
    const before = new Set(children.map((child) => child.pid));
    while (running!.children.some((child) => before.has(child.pid))) await sleep(50);
    await expectKept({ mongodbUri, redisUrl });
  });

  it('keep working when Redis cannot read its file: it is set aside', async () => {
    await (await start()).stop();
    const appended = join(dataDir, 'redis', 'appendonlydir');
    for (const name of await readdir(appended))
      await writeFile(join(appended, name), 'not an append-only file');
    const { redisUrl } = await start();
    expect(said.join('\n')).match(/Redis: refuses its data, which is set aside as .*refused/);
    await withRedis(redisUrl!, async (redis) => expect(await redis.dbsize()).equal(0));
  });

  it('that cannot start say why, with the end of their log, and leave the directory free', async () => {
    dataDir = join(folder(), 'broken');
    await (await start({ needMongo: true, needRedis: false })).stop();
    await writeFile(join(dataDir, 'mongod', 'WiredTiger.turtle'), 'broken');
    const reason = await reasonOf(start());
    expect(reason).match(/MongoDB .* did not start: it ended with .*mongo\.log:\n.*WiredTiger/s);
    expect(await readdir(dataDir)).not.include('service.lock');
  });
});

describe('the identity kept with the data', () => {
  const folder = ownFolder();
  it('is made once, readable by its owner only, and holds the first merchant', async () => {
    const dataDir = join(folder(), 'identity');
    const made = await loadOrCreateSecrets(dataDir);
    expect(Buffer.from(made.secretsKey, 'base64')).length(32);
    expect(await readFirstMerchant(dataDir)).undefined;
    const merchant = { merchantId: 'mer_1', testKey: 'kusanya_test_sk_1' };
    await keepFirstMerchant(dataDir, merchant);
    expect(await loadOrCreateSecrets(dataDir)).deep.equal(made);
    expect(await readFirstMerchant(dataDir)).deep.equal(merchant);
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).equal(0o600);
    expect((await loadOrCreateSecrets(join(folder(), 'another'))).operatorToken).not.equal(
      made.operatorToken,
    );
  });

  it('is one and the same for services that start for the first time at once', async () => {
    const dataDir = join(folder(), 'identity-at-once');
    const made = await Promise.all(Array.from({ length: 8 }, () => loadOrCreateSecrets(dataDir)));
    expect(new Set(made.map((one) => one.secretsKey)).size).equal(1);
    expect(await readdir(dataDir)).deep.equal(['secrets.json']);
  });

  it('is never replaced when it is damaged', async () => {
    const dataDir = join(folder(), 'identity-damaged');
    await mkdir(dataDir);
    for (const text of [
      '{"operatorToken":"cut sho',
      '{}',
      '{"operatorToken":"a","keyHashSecret":"b","secretsKey":"c"}',
    ]) {
      await writeFile(join(dataDir, 'secrets.json'), text);
      expect(await reasonOf(loadOrCreateSecrets(dataDir))).match(/secrets\.json is damaged\. Restore it/);
      expect(await readFile(join(dataDir, 'secrets.json'), 'utf8')).equal(text);
    }
  });
});

async function expectKept(stores: { mongodbUri?: string; redisUrl?: string }): Promise<void> {
  await withMongo(stores.mongodbUri!, async (client) => {
    const things = client.db('kept').collection('things');
    expect(await things.countDocuments()).equal(1);
    await things.updateOne({ name: 'first' }, { $inc: { seen: 1 } }, { writeConcern: { w: 'majority' } });
  });
  await withRedis(stores.redisUrl!, async (redis) => expect(await redis.get('kept')).equal('first'));
}

async function withMongo(uri: string, use: (client: MongoClient) => Promise<unknown>): Promise<void> {
  const client = await new MongoClient(uri).connect();
  try {
    await use(client);
  } finally {
    await client.close();
  }
}

async function withRedis(url: string, use: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(url);
  try {
    await use(redis);
  } finally {
    redis.disconnect();
  }
}

/** A service in a process of its own: starts both servers, tells their pids, then waits. */
function startOwner(dataDir: string, guardGraceMs = 60_000): ChildProcess {
  const door = pathToFileURL('tools/embedded/embedded.ts').href;
  const options = JSON.stringify({ dataDir, needMongo: true, needRedis: true, guardGraceMs });
  const code = `import { startEmbedded } from '${door}';
    const { children, guardPid } = await startEmbedded({ ...${options}, say: () => {} });
    process.stdout.write([...children.map((child) => child.pid), guardPid].join() + '\\n');
    setInterval(() => {}, 1_000);`;
  const words = ['--import=tsx', '--input-type=module', '-e', code];
  return spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
}

/** The servers of an owner. */
async function pidsOf(owner: ChildProcess): Promise<number[]> {
  return (await toldBy(owner)).slice(0, 2);
}

/** The two servers and their guard. */
async function toldBy(owner: ChildProcess): Promise<number[]> {
  for await (const line of owner.stdout!) return String(line).trim().split(',').map(Number);
  throw new Error('the service ended before it began');
}

function once(child: ChildProcess): Promise<[code: number | null]> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve([child.exitCode]);
  return new Promise((resolve) => child.once('exit', (code) => resolve([code])));
}

function processGroup(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'pgid=', '-p', String(pid)], { encoding: 'utf8' }));
}

/** The port of a server that has just ended can be taken for a moment longer. */
async function listenOnPortOf(address: string) {
  const port = Number(/:(\d+)/.exec(address)![1]);
  for (let attempt = 1; ; attempt += 1) {
    const server = createServer((socket) => socket.destroy());
    const listening = new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    try {
      await listening;
      return server;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt === 100) throw error;
      await sleep(50);
    }
  }
}

async function reasonOf(refused: Promise<unknown>): Promise<string> {
  try {
    await refused;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

function pairs(list: string[]): Record<string, string> {
  const names = list.filter((_, i) => i % 2 === 0);
  return Object.fromEntries(names.map((name, i) => [name, list[2 * i + 1]!]));
}

/**
 * A folder of the suite that is being described, removed after it; by its name stores.ts removes it in the
 * end when the run is killed. With blanks, as in "My Documents".
 */
function ownFolder(): () => string {
  let path = '';
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'kusanya-embedded-a service '));
  });
  after(() => rm(path, { recursive: true, force: true }));
  return () => path;
}
