import { execFile, execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../support/files.ts';
import { type Image, makeImage } from '../support/image.ts';
import { hasRuntimes } from '../support/runtimes.ts';
import { until } from '../support/until.ts';
import { openWorld, type World } from '../support/world.ts';

/** Not the image's own user: nothing may depend on who it is. */
const nobody = 65_534;

/** The tree of the image, on the Node of its base, as nobody on a root that cannot be written. */
describe('the image', () => {
  let image: Image;
  let world: World | undefined;

  before(async function () {
    this.timeout(300_000);
    if (!hasRuntimes) {
      process.stderr.write('    skipped: npm serves the base’s Node for Linux on x64 only\n');
      this.skip();
    }
    image = await makeImage();
  });
  after(async () => {
    await world?.close();
    image?.remove();
  });

  it('holds what the service needs, and no tool, no test, nothing that only development needs', () => {
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: true; optional?: true; devOptional?: true }>;
    };
    const wanted = Object.entries(packages).filter(([path]) => path.startsWith('node_modules/'));
    const has = ([path]: [string, unknown]) => existsSync(join(image.dir, path));
    const isNeeded = ([, { dev, optional, devOptional }]: (typeof wanted)[number]) =>
      !dev && !optional && !devOptional;
    expect(wanted.filter(isNeeded).filter((each) => !has(each))).deep.equal([]);
    expect(wanted.filter(([, { dev }]) => dev).filter(has)).deep.equal([]);
    for (const name of ['tsx', 'mongodb-memory-server', 'mocha'])
      expect(has([`node_modules/${name}`, 0]), name).equal(false);
    expect(readdirSync(image.dir).toSorted()).deep.equal([
      ...[
        'docs',
        'examples',
        'machines',
        'node_modules',
        'openapi.json',
        'package-lock.json',
        'package.json',
      ],
      ...['packages', 'sbom.cdx.json', 'src'],
    ]);
    expect(
      filesIn(image.dir).filter((path) => /(^|\/)(test|tools|\.env|\.data)(\/|$)|\.test\.ts$/.test(path)),
    ).deep.equal([]);
    expect(filesIn(join(image.dir, 'packages'))).not.deep.equal([]);
    expect(filesIn(join(image.dir, 'src')).length).equal(filesIn(join(root, 'src')).length);
  });

  it('says what it is made of: every package that is installed, with its version', () => {
    const bill = JSON.parse(readFileSync(join(image.dir, 'sbom.cdx.json'), 'utf8')) as {
      bomFormat: string;
      components: { name: string; group?: string; version: string }[];
    };
    expect(bill.bomFormat).equal('CycloneDX');
    const listed = new Set(
      bill.components.map(({ name, group, version }) => `${group ? `${group}/` : ''}${name}@${version}`),
    );
    const modules = join(image.dir, 'node_modules');
    const installed = readdirSync(modules)
      .flatMap((name) =>
        name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
      )
      .filter((name) => !name.startsWith('.') && !lstatSync(join(modules, name)).isSymbolicLink())
      .map(
        (name) =>
          `${name}@${(JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')) as { version: string }).version}`,
      );
    expect(installed.length).greaterThan(20);
    expect(installed.filter((name) => !listed.has(name))).deep.equal([]);
  });

  it('is not root’s, and says its title, licence, version and revision', () => {
    expect(image.user).match(/^[1-9]\d*:[1-9]\d*$/);
    for (const label of ['title', 'description', 'licenses', 'version', 'revision'])
      expect(image.labels).contain(`org.opencontainers.image.${label}=`);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect(readFileSync(join(root, 'Dockerfile'), 'utf8')).contain(`ARG VERSION=${version}\n`);
  });

  it('without settings says which it needs, and runs no servers of its own', async () => {
    const env = { PATH: '', NODE_ENV: 'production' };
    const [node, ...words] = image.command;
    const ended = await promisify(execFile)(node!, words, { cwd: image.dir, env }).catch(
      (error: { code: number; stderr: string }) => error,
    );
    expect(ended).include({ code: 78 });
    expect(ended.stderr).match(/MONGODB_URI: is required with NODE_ENV=production/);
    expect(ended.stderr).match(/REDIS_URL: is required/);
  });

  it('takes a payment, draws a chart and explains itself as nobody, on a root that cannot be written', async function () {
    this.timeout(180_000);
    if (!canUnshare()) {
      process.stderr.write('    skipped: only root can mount a root that cannot be written\n');
      this.skip();
    }
    world = await openWorld();
    const beganAt = performance.now();
    const served = await world.start({ NODE_ENV: 'production', WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION: 'true' }, [
      'unshare',
      ...['--mount', 'sh', '-c', readOnly, 'sh', image.dir, ...image.command],
    ]);
    const readyMs = performance.now() - beganAt;
    expect(await isHealthy(served.adminUrl), 'its health check').equal(true);
    await world.process.kill();
    const key = 'in the image';
    const body = { amount: 1_000, phone: '255700000000', reference: key };
    const answer = await world.ask('POST', '/v1/collections', { key, body, at: served });
    expect(answer?.status, served.output()).equal(202);
    const { id } = answer!.json as { id: string };
    const succeeded = async () =>
      (await world!.ask('GET', `/v1/collections/${id}`, { at: served }))?.json.status === 'succeeded';
    expect(await until(succeeded, 60_000), served.output()).equal(true);
    for (const path of ['/docs', '/docs/examples', '/docs.md', '/v1/openapi.json'])
      expect((await fetch(`${served.baseUrl}${path}`)).status, path).equal(200);
    const headers = { authorization: `Bearer ${world.env.OPERATOR_TOKEN}` };
    const drawn = await fetch(`${served.adminUrl}/admin/actors/${id}/diagram.svg`, { headers });
    expect(await drawn.text()).match(/^<svg/);
    const { status } = readStatus(served.child.pid!);
    expect(status.Uid).match(new RegExp(`^${nobody}\\b`));
    // A thread that cannot begin would be replaced with a warning.
    expect(served.output()).not.match(/Warning|EROFS|EACCES/);
    process.stderr.write(
      `    ready in ${Math.round(readyMs)} ms, ${Math.round(Number.parseInt(status.VmRSS!, 10) / 1024)} MiB resident, ` +
        `${Math.round(Number(execFileSync('du', ['-sk', image.dir]).toString().split('\t')[0]) / 1024)} MiB of files\n`,
    );
    await served.kill('SIGTERM');
    expect(await isHealthy(served.adminUrl), 'its health check, after its end').equal(false);
  });

  /** What the engine that runs the image would find out. */
  async function isHealthy(adminUrl: string): Promise<boolean> {
    const [node, ...words] = image.healthcheck;
    const env = { ADMIN_PORT: new URL(adminUrl).port };
    return promisify(execFile)(node!, words, { env }).then(
      () => true,
      () => false,
    );
  }
});

/** Nothing on this machine's root can be written by what runs here, and it proves it before it begins. */
const readOnly = `mount --make-rprivate / && mount -o remount,bind,ro / || exit 1
cd "$1" && shift
touch ./written 2>/dev/null && { echo 'the root can be written'; exit 1; }
exec setpriv --reuid ${nobody} --regid ${nobody} --clear-groups --no-new-privs "$@"`;

function canUnshare(): boolean {
  try {
    execFileSync(
      'unshare',
      ['--mount', 'sh', '-c', 'mount --make-rprivate / && mount -o remount,bind,ro / && setpriv true'],
      {
        stdio: 'ignore',
      },
    );
    return true;
  } catch {
    return false;
  }
}

function readStatus(pid: number): { status: Record<string, string> } {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').trim().split('\n');
  return { status: Object.fromEntries(lines.map((line) => line.split(/:\s+/) as [string, string])) };
}

function filesIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
    .filter((path) => !path.startsWith('node_modules/'));
}
