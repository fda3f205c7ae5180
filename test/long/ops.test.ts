import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { MongoClient } from 'mongodb';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { loadConfig } from '../../src/config.ts';
import { root } from '../support/files.ts';
import { type Member, startMember } from '../support/member.ts';
import { needs } from '../support/programs.ts';
import { fetchedRuntime, hasRuntimes } from '../support/runtimes.ts';

/** What operators are given (compose files, manifests, unit, rules), loaded by the programs that will read it. */
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const run = promisify(execFile);

let folder: string;
/** test/support/manifests, compiled. */
let manifests: string;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'kusanya-ops-'));
  manifests = join(folder, 'manifests');
});
after(() => rmSync(folder, { recursive: true, force: true }));

function compile(test: Mocha.Context): void {
  needs(test, 'go', ['version'], 'Go 1.24 or newer');
  const words = ['build', '-o', manifests, '.'];
  execFileSync('go', words, { cwd: join(root, 'test/support/manifests'), stdio: 'pipe' });
}

interface ComposeService {
  image?: string;
  user?: string;
  read_only?: boolean;
  cap_drop?: string[];
  environment?: Record<string, string>;
  ports?: { published: string; host_ip?: string }[];
  depends_on?: Record<string, { condition: string }>;
  deploy?: { replicas?: number };
}

describe('the compose files', function () {
  this.timeout(600_000);
  before(function () {
    compile(this);
  });

  const secrets = () =>
    Object.fromEntries(
      execFileSync('sh', [join(root, 'ops/secrets.sh')], { encoding: 'utf8', cwd: folder })
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
  const load = (file: string, env: Record<string, string>) =>
    JSON.parse(
      execFileSync(manifests, ['compose', join(root, file)], {
        ...{ encoding: 'utf8', stdio: 'pipe' },
        env: { PATH: process.env.PATH!, ...env },
      }),
    ) as { services: Record<string, ComposeService> };

  for (const file of ['docker-compose.yml', 'compose.ha.yml']) {
    it(`${file} is understood by Compose, and gives each process settings that it takes`, () => {
      const { services } = load(file, secrets());
      for (const role of ['api', 'worker'] as const) {
        const { environment = {}, read_only, cap_drop } = services[role]!;
        const config = loadConfig({ ...environment, NODE_ENV: 'production' });
        expect(config).include({ role, adminHost: '0.0.0.0' });
        expect(config.mongodbUri).match(/^mongodb:\/\/kusanya:[0-9a-f]{48}@mongo.*authSource=admin$/);
        expect(config.redisUrl).match(/^redis(\+sentinel)?:\/\/:[0-9a-f]{48}@/);
        expect({ read_only, cap_drop }).deep.equal({ read_only: true, cap_drop: ['ALL'] });
        expect(environment, 'what is not its business').include({
          MONGODB_ADMIN_PASSWORD: '',
          MONGODB_KEY: '',
        });
      }
    });

    it(`${file} opens nothing to the network but the merchants’ port, and waits for nothing that it lacks`, () => {
      const { services } = load(file, secrets());
      const open = Object.values(services).flatMap(({ ports = [] }) =>
        ports.filter(({ host_ip }) => host_ip !== '127.0.0.1'),
      );
      expect(open.map(({ published }) => published)).deep.equal(['3000']);
      for (const [name, { depends_on = {} }] of Object.entries(services))
        for (const other of Object.keys(depends_on))
          expect(services, `${name} waits for ${other}`).property(other);
    });

    it(`${file} without secrets says how they are made`, () => {
      expect(() => load(file, {})).throw(/make \.env with ops\/secrets\.sh/);
    });
  }

  it('get only the secrets that .env does not have', () => {
    const all = Object.keys(secrets());
    writeFileSync(join(folder, '.env'), 'KEY_HASH_SECRET=kept\nSECRETS_KEY=\n');
    expect(Object.keys(secrets())).deep.equal(all.filter((name) => name !== 'KEY_HASH_SECRET'));
    rmSync(join(folder, '.env'));
  });

  it('survive, in compose.ha.yml, the loss of any one: two of each role and of Redis, three of MongoDB and of sentinels', () => {
    const { services } = load('compose.ha.yml', secrets());
    const count = (name: RegExp) => Object.keys(services).filter((each) => name.test(each)).length;
    expect([/^mongo-\d$/, /^redis-\d$/, /^sentinel-\d$/].map(count)).deep.equal([3, 2, 3]);
    for (const role of ['api', 'worker']) expect(services[role]!.deploy?.replicas, role).equal(2);
  });
});

describe('the script that founds the replica set', function () {
  this.timeout(300_000);
  const members: Member[] = [];
  let mongosh: string;

  before(async function () {
    if (!hasRuntimes) {
      process.stderr.write('    skipped: mongosh is taken from npm on Linux on x64 only\n');
      this.skip();
    }
    const wanted = { name: 'mongosh', package: 'mongosh', version: '2.12.0', file: 'bin/mongosh.js' };
    mongosh = await fetchedRuntime(wanted);
  });
  afterEach(async () => {
    await Promise.all(members.splice(0).map((member) => member.close()));
  });

  /** Members go by a file, which can be another one when they start again. */
  const startMongod = async (isLocked: boolean) => {
    const member = await startMember('mongod', (port, dir) => {
      mkdirSync(join(dir, 'db'));
      writeFileSync(join(dir, 'key'), 'a key that members know each other by', { mode: 0o600 });
      configure(dir, port, isLocked);
      return ['--config', join(dir, 'mongod.conf')];
    });
    members.push(member);
    return member;
  };
  const configure = (dir: string, port: number, isLocked: boolean) =>
    writeFileSync(
      join(dir, 'mongod.conf'),
      stringify({
        net: { port, bindIp: '127.0.0.1', unixDomainSocket: { enabled: false } },
        storage: { dbPath: join(dir, 'db'), wiredTiger: { engineConfig: { cacheSizeGB: 0.25 } } },
        replication: { replSetName: 'rs0' },
        ...(isLocked ? { security: { keyFile: join(dir, 'key') } } : {}),
      }),
    );
  const hostOf = ({ port }: Member) => `127.0.0.1:${port}`;
  /** As mongo-setup of the compose files runs it. */
  const setUp = () => {
    const env = { MONGODB_ADMIN_PASSWORD: 'of the admin', MONGODB_PASSWORD: 'ofTheService' };
    const words = ['--quiet', '--norc', `mongodb://${hostOf(members[0]!)}/?directConnection=true`];
    return run(process.execPath, [mongosh, ...words, join(root, 'ops/mongo-setup.js')], {
      env: { PATH: process.env.PATH!, HOME: folder, MEMBERS: members.map(hostOf).join(), ...env },
    });
  };
  /** What the service may do then, and what it may not. */
  const expectUsable = async () => {
    const uri = `mongodb://kusanya:ofTheService@${members.map(hostOf).join()}/kusanya?replicaSet=rs0&authSource=admin`;
    const client = new MongoClient(uri);
    try {
      const things = client.db('kusanya').collection('things');
      await client.withSession((session) =>
        session.withTransaction(() => things.insertOne({ name: 'first' }, { session })),
      );
      const others = client.db('other').collection('things');
      const refused = await others.insertOne({}).catch((error: Error) => error.message);
      expect(refused).match(/not authorized/);
    } finally {
      await client.close();
    }
    const stranger = new MongoClient(`mongodb://${hostOf(members[0]!)}/?directConnection=true`);
    try {
      const refused = await stranger
        .db('kusanya')
        .collection('things')
        .findOne()
        .catch((error: Error) => error.message);
      expect(refused).match(/requires authentication/);
    } finally {
      await stranger.close();
    }
  };

  it('makes a set of three and its users by mongosh, any number of times', async () => {
    await Promise.all([1, 2, 3].map(() => startMongod(true)));
    await setUp();
    await setUp();
    await expectUsable();
  });

  it('gives users to a set that has none, as earlier versions of docker-compose.yml made it', async () => {
    const old = await startMongod(false);
    const client = new MongoClient(`mongodb://${hostOf(old)}/?directConnection=true`);
    await client
      .db('admin')
      .command({ replSetInitiate: { _id: 'rs0', members: [{ _id: 0, host: hostOf(old) }] } });
    await client.close();
    await old.kill();
    configure(old.dir, old.port, true);
    await old.start();
    await setUp();
    await expectUsable();
  });
});

interface Manifest {
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  data?: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: of every kind
  spec: any;
}

describe('the manifests for Kubernetes', function () {
  this.timeout(600_000);
  let text: string;
  let all: Manifest[];

  before(function () {
    needs(this, 'kubectl', ['version', '--client'], 'it renders them');
    compile(this);
    text = execFileSync('kubectl', ['kustomize', join(root, 'ops/kubernetes')], { encoding: 'utf8' });
    all = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  });

  const faultsOf = (manifest: string) => {
    const { status, stdout, stderr } = spawnSync(manifests, ['kubernetes'], {
      input: manifest,
      encoding: 'utf8',
    });
    return `${stdout}${status === 0 ? '' : stderr}`;
  };
  const of = (kind: string) => all.filter((each) => each.kind === kind);

  it('have no field that their kind does not know, and pods of the level restricted', () => {
    expect(faultsOf(text)).equal('');
    // And it would be said.
    expect(faultsOf(text.replace('readOnlyRootFilesystem', 'readonlyRootFilesystem'))).match(/unknown field/);
    expect(faultsOf(text.replace('runAsNonRoot: true', 'runAsNonRoot: false'))).match(/runAsNonRoot/);
    expect(faultsOf(text.replace('allowPrivilegeEscalation: false', 'privileged: true'))).match(/privileged/);
  });

  it('run both roles on roots that cannot be written, with probes, spread, kept up and scaled', () => {
    expect(of('Deployment').map(({ metadata }) => metadata.name)).deep.equal(['api', 'worker']);
    for (const { metadata, spec } of of('Deployment')) {
      const [container] = spec.template.spec.containers;
      expect(container.securityContext.readOnlyRootFilesystem).equal(true);
      expect(container).include.keys('startupProbe', 'readinessProbe', 'livenessProbe', 'resources');
      expect(
        container.startupProbe.failureThreshold * container.startupProbe.periodSeconds,
        'for indexes',
      ).least(1_800);
      expect(spec.template.spec.terminationGracePeriodSeconds).least(40);
      for (const kind of ['PodDisruptionBudget', 'HorizontalPodAutoscaler'])
        expect(
          of(kind).map((each) => each.metadata.name),
          kind,
        ).contain(metadata.name);
      for (const { spec: other } of of('PodDisruptionBudget'))
        expect(other.selector.matchLabels['app.kubernetes.io/name']).equal('kusanya');
    }
    expect(
      of('NetworkPolicy').some(({ spec }) => Object.keys(spec.podSelector.matchLabels ?? {}).length <= 1),
    ).equal(true);
  });

  it('give each process settings that it takes', () => {
    const [{ data = {} } = { data: {} }] = of('ConfigMap');
    const secret = {
      ...{
        MONGODB_URI: 'mongodb://m',
        REDIS_URL: 'redis+sentinel://s/kusanya',
        OPERATOR_TOKEN: 'x'.repeat(16),
      },
      ...{ KEY_HASH_SECRET: 'x'.repeat(16), SECRETS_KEY: Buffer.alloc(32).toString('base64') },
    };
    for (const { metadata, spec } of of('Deployment')) {
      const [{ env }] = spec.template.spec.containers as [{ env: { name: string; value: string }[] }];
      const own = Object.fromEntries(env.map(({ name, value }) => [name, value]));
      expect(loadConfig({ ...data, ...secret, ...own }).role).equal(metadata.name);
    }
  });
});

describe('the systemd unit', () => {
  const unit = read('ops/systemd/kusanya@.service');

  it('is one that systemd takes, and leaves the process little to do harm with', function () {
    needs(this, 'systemd-analyze', ['--version'], 'a system without systemd');
    const file = join(folder, 'kusanya@.service');
    writeFileSync(
      file,
      unit
        .replace('/usr/bin/node', process.execPath)
        .replace('WorkingDirectory=/opt/kusanya', `WorkingDirectory=${root}`),
    );
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    expect(verified.stderr.split('\n').filter((line) => line.includes('kusanya'))).deep.equal([]);
    const words = ['security', '--offline=yes', '--threshold=20', file];
    const judged = spawnSync('systemd-analyze', words, { encoding: 'utf8' });
    expect(judged.status, judged.stdout.trim().split('\n').at(-1)).equal(0);
  });

  it('gives the process settings that it takes, each secret in a file that systemd made', () => {
    const credentials = new Set([...unit.matchAll(/^LoadCredential=([\w-]+):/gm)].map(([, name]) => name!));
    const given = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, words]) => words!.split(' '));
    for (const role of ['api', 'worker'] as const) {
      const env: Record<string, string> = {};
      for (const word of given) {
        const [, name, value] = /^(\w+)=(.*)$/.exec(word)!;
        const [, credential] = /^%d\/(.+)$/.exec(value!) ?? [];
        if (!credential) env[name!] = value!.replace('%i', role);
        else {
          expect(credentials.delete(credential) || role === 'worker', credential).equal(true);
          env[name!] = join(folder, credential);
          writeFileSync(env[name!]!, secretOf(credential));
        }
      }
      expect(loadConfig(env).role).equal(role);
    }
    expect([...credentials], 'credentials that nobody reads').deep.equal([]);
  });

  const secretOf = (name: string) =>
    ({
      'mongodb-uri': 'mongodb://m',
      'redis-url': 'redis://r',
      'secrets-key': Buffer.alloc(32).toString('base64'),
    })[name] ?? 'x'.repeat(16);
});

describe('the alert rules', () => {
  it('fire when they should and not in good health, by Prometheus itself', function () {
    needs(this, 'promtool', ['--version'], 'of Debian’s package prometheus');
    const judged = spawnSync('promtool', ['test', 'rules', 'alerts.test.yml'], {
      cwd: join(root, 'ops'),
      encoding: 'utf8',
    });
    expect(judged.status, judged.stdout + judged.stderr).equal(0);
  });

  it('are all tried, each both ways', () => {
    const { groups } = parse(read('ops/alerts.yml')) as { groups: { rules: { alert: string }[] }[] };
    const { tests } = parse(read('ops/alerts.test.yml')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const tried = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
    for (const { alert } of groups.flatMap(({ rules }) => rules)) {
      const of = tried.filter(({ alertname }) => alertname === alert);
      expect(
        of.some(({ exp_alerts }) => exp_alerts.length > 0),
        `${alert} fires`,
      ).equal(true);
      expect(
        of.some(({ exp_alerts }) => exp_alerts.length === 0),
        `${alert} is silent`,
      ).equal(true);
    }
  });
});
