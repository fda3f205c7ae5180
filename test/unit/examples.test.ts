import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../support/files.ts';
import { isOnPath } from '../support/storefront.ts';

const run = promisify(execFile);

const folder = join(root, 'examples');
const linesMax = 150;
const codeEndings = ['.js', '.jsx', '.py', '.php', '.html'];
/** What the framework's starter makes, or nearly so; and what is a copy of the guide. */
const notCounted = [/\/manage\.py$/, /\/settings\.py$/, /\/public\/index\.php$/, /\/signature\.(py|php)$/];

const shops = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** A shop's own files, not what it installed. */
function filesOf(shop: string): string[] {
  return readdirSync(join(folder, shop), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/\/(node_modules|vendor|\.next|\.venv|__pycache__)\//.test(path));
}

const read = (path: string): string => readFileSync(path, 'utf8');

/** The shops that are shown to merchants; test/long/examples.test.ts runs them. */
describe('the examples', () => {
  for (const shop of shops) {
    it(`${shop} has at most ${linesMax} lines with words in them, and a README of three commands`, () => {
      const counted = filesOf(shop).filter(
        (path) => codeEndings.includes(extname(path)) && !notCounted.some((kind) => kind.test(path)),
      );
      const lines = counted.flatMap((path) => read(path).split('\n')).filter((line) => /\w/.test(line));
      expect(lines.length).to.be.within(1, linesMax);
      const [, commands] = /```sh\n([\s\S]*?)```/.exec(read(join(folder, shop, 'README.md')))!;
      expect(commands!.trim().split('\n')).to.have.length(3);
    });

    it(`${shop} names exact versions`, () => {
      const versions = filesOf(shop).flatMap((path) => versionsIn(basename(path), read(path)));
      expect(versions).to.not.be.empty;
      for (const version of versions) expect(version).to.match(/^(\d+(\.\d+)+|file:.*-\d+\.\d+\.\d+\.tgz)$/);
    });

    it(`${shop} is run by test/long/examples.test.ts, and is in the README`, () => {
      expect(read(join(root, 'test/long/examples.test.ts'))).to.include(`name: '${shop}'`);
      expect(read(join(folder, 'README.md'))).to.include(`](${shop}/README.md)`);
    });
  }

  for (const [path, language, head] of [
    ['django/shop/signature.py', 'python', ''],
    ['laravel/app/signature.php', 'php', '<?php\n\n'],
  ] as const)
    it(`${path} is the verification of the guide`, () => {
      const [, sample] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(
        read(join(root, 'docs/API.md')),
      )!;
      expect(read(join(folder, path))).to.equal(head + sample);
    });

  it('have the same orders in Express as in Next', () => {
    expect(read(join(folder, 'next/orders.js'))).to.equal(read(join(folder, 'express/orders.js')));
  });

  it('are PHP where they say so, and verify what the vectors say', async function () {
    if (!isOnPath('php')) {
      if (process.env.CI) throw new Error('no php: .ci/run installs it');
      process.stdout.write('    no php: skipped\n');
      this.skip();
    }
    const php = filesOf('laravel').filter((path) => extname(path) === '.php' || basename(path) === 'artisan');
    expect(php.length).to.be.above(8);
    for (const path of php) await run('php', ['-l', path]);
    const file = join(root, 'test/unit/signature.vectors.json');
    const { verify } = JSON.parse(read(file)) as {
      verify: { tolerance_seconds?: number; verdict: string }[];
    };
    const isUsual = (seconds = 300) => seconds === 300;
    const vectors = verify.filter(({ tolerance_seconds }) => isUsual(tolerance_seconds));
    const program = `require $argv[1];
      foreach (json_decode(stream_get_contents(STDIN), true) as $v) echo is_genuine(
        base64_decode($v['body_base64']), $v['header'], $v['secret'], $v['now_seconds']) ? 'accept ' : 'refuse ';`;
    const running = run('php', ['-r', program, '--', join(folder, 'laravel/app/signature.php')]);
    running.child.stdin!.end(JSON.stringify(vectors));
    const { stdout } = await running;
    expect(stdout.trim().split(' ')).to.deep.equal(vectors.map(({ verdict }) => verdict));
  });

  it('do not grow what npm ci installs', () => {
    const { workspaces } = JSON.parse(read(join(root, 'package.json')));
    expect(workspaces).to.deep.equal(['packages/*']);
  });
});

/** The versions of what a shop depends on. */
function versionsIn(name: string, text: string): string[] {
  if (name === 'package.json') return Object.values(JSON.parse(text).dependencies as Record<string, string>);
  if (name === 'requirements.txt')
    return text
      .trim()
      .split('\n')
      .map((line) => line.split('==')[1] ?? line);
  if (name !== 'composer.json') return [];
  const { require: needs } = JSON.parse(text) as { require: Record<string, string> };
  return Object.entries(needs)
    .filter(([dependency]) => dependency !== 'php')
    .map(([, version]) => version);
}
