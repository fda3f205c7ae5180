import { mkdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const root = join(import.meta.dirname, '..', '..');
/** In the checkout, for what is not bundled is looked for from here; out of git's sight. */
const folder = join(root, 'node_modules', '.cache', 'kusanya-tests');

/** Files that a source finds beside itself are still beside that source, not beside the bundle. */
const ownPlaces: Plugin = {
  name: 'own places',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/(src|machines|simulator)\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: source.replaceAll('import.meta.url', place), loader: 'ts' };
    });
  },
};

/** Packages of this repository are bundled too: Node 20 reads no TypeScript. */
const ownPackages: Plugin = {
  name: 'own packages',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^@kusanya\// }, ({ path }) => ({
      path: join(root, 'packages', basename(path), 'src', 'index.ts'),
    }));
  },
};

type Program =
  | 'packages/durable-actors/examples/order.ts'
  | 'src/archive/command.ts'
  | 'src/main.ts'
  | 'test/support/archiving.ts'
  | 'test/support/out-of-handles.ts'
  | 'test/support/tally.ts'
  | 'tools/reconcile/main.ts'
  | 'tools/simulator/main.ts';

const made = new Map<Program, Promise<string>>();

/** Tests load code into a service that changes a package: it has to be the one that the service has. */
const shared = { packages: 'external' } as const;

/** For all others: packages of CommonJS ask for what is Node's own, and for what need not be there, by `require`. */
const js = `import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);`;
/** These look for files beside themselves. */
const whole = { banner: { js }, external: ['mongodb-memory-server*', 'esbuild'] };

/**
 * A program of this repository as one JavaScript file, its packages in it but for the service's, for processes that tests
 * start by the dozen: Node loads it in a sixth of the time that tsx takes for its two hundred files, the service in a
 * third. Of this run alone, made once; the path is absolute.
 */
export function bundle(program: Program): Promise<string> {
  const file = made.get(program) ?? make(program);
  made.set(program, file);
  return file;
}

async function make(program: Program): Promise<string> {
  const outfile = join(folder, `${program.replace(/\W/g, '-')}.${process.pid}.mjs`);
  mkdirSync(dirname(outfile), { recursive: true });
  process.once('exit', () => rmSync(outfile, { force: true }));
  await build({
    ...{ entryPoints: [join(root, program)], outfile, absWorkingDir: root },
    ...{ bundle: true, platform: 'node', format: 'esm', target: 'node20' },
    ...(program === 'src/main.ts' ? shared : whole),
    ...{ plugins: [ownPackages, ownPlaces], logLevel: 'warning' },
  });
  return outfile;
}
