import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A runtime as npm serves it, of an exact version. */
export interface Runtime {
  name: string;
  package: string;
  version: string;
  /** In the package. */
  file: string;
}

/** Where npm's packages of runtimes are for: Linux on x64, where CI runs. */
export const hasRuntimes = process.platform === 'linux' && process.arch === 'x64';

/** The path of a runtime, kept in the user's cache; fetched where it is not there yet. */
export async function fetchedRuntime({ name, package: source, version, file }: Runtime): Promise<string> {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const home = join(cache, 'kusanya', `${name.toLowerCase()}-${version}`);
  const binary = join(home, 'node_modules', source, file);
  if (!existsSync(binary)) {
    await mkdir(home, { recursive: true });
    const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-save'];
    await promisify(execFile)('npm', ['install', '--prefix', home, ...quiet, `${source}@${version}`]);
  }
  return binary;
}
