import { execFile } from 'node:child_process';
import { copyFile, mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const home = fileURLToPath(new URL('../..', import.meta.url));

/** Puts the compiled package where a program in this folder finds it, as `npm install` would. */
export async function installBuilt(folder: string): Promise<void> {
  const place = join(folder, 'node_modules', '@kusanya', 'client');
  await mkdir(place, { recursive: true });
  await copyFile(join(home, 'package.json'), join(place, 'package.json'));
  await tsc(['-p', join(home, 'tsconfig.build.json'), '--outDir', join(place, 'dist')]);
}

/** @throws with what the compiler said. */
export async function tsc(options: readonly string[]): Promise<void> {
  const compiler = createRequire(import.meta.url).resolve('typescript/package.json');
  await run(process.execPath, [join(compiler, '..', 'bin', 'tsc'), ...options]).catch(({ stdout }) => {
    throw new Error(String(stdout));
  });
}
