import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ConfigError, completeConfig, loadConfig, readMachine } from '../../src/config.ts';
import { durationMs, durationText } from '../../src/formats.ts';
import { limits } from '../../src/limits.ts';
import { renderEnvExample, renderSettingsTable, settingEntries } from '../../src/settings.ts';
import { Bearers } from '../../tools/simulator/keys.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';

const configured = {
  MONGODB_URI: 'mongodb://db.example:27017/?replicaSet=rs0',
  REDIS_URL: 'redis://cache.example:6379',
  OPERATOR_TOKEN: 'a-long-operator-token',
  KEY_HASH_SECRET: 'a-long-hashing-secret',
  SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
};

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    expect(error).instanceOf(ConfigError);
    return (error as ConfigError).faults;
  }
  return [];
}

describe('the configuration of an empty environment', () => {
  const config = loadConfig({});

  it('has the contract’s numbers', () => {
    expect(config.webhooks.retryDelaysMs).deep.equal(
      [60, 300, 1_800, 7_200, 21_600, 43_200].map((seconds) => seconds * 1_000),
    );
    expect(config.webhooks).include({
      timeoutMs: 10_000,
      disableAfterMs: 259_200_000,
      autoProbe: true,
      retryJitter: 0.05,
    });
    expect(config.simulator).deep.equal({ delayMinMs: 10_000, delayMaxMs: 20_000, speed: 1 });
    expect(config).include({
      role: 'all',
      port: 3000,
      host: '0.0.0.0',
      adminPort: 3001,
      adminHost: '127.0.0.1',
      dataDir: '.data',
      amountMinTzs: 100,
      amountMaxTzs: 5_000_000,
      feeBps: 200,
      feeFixedTzs: 0,
      rateLimitPerSecond: 100,
      rateLimitBurst: 200,
      settlementDelayDays: 1,
      sweepIntervalMs: 5_000,
      redisPrefix: 'kusanya',
      mongodbDatabase: 'kusanya',
    });
  });

  it('leaves to the embedded servers what they provide', () => {
    expect(config).include({ mongodbUri: undefined, redisUrl: undefined, operatorToken: '', secretsKey: '' });
    const part = { mongodbUri: 'mongodb://x', operatorToken: 'made', keyHashSecret: 'b', secretsKey: 'c' };
    expect(completeConfig(config, part)).include(part);
  });

  it('is frozen to the last list', () => {
    expect(() => Object.assign(config, { port: 1 })).throw(TypeError);
    expect(() => Object.assign(config.webhooks, { timeoutMs: 1 })).throw(TypeError);
    expect(() => (config.webhooks.retryDelaysMs as number[]).push(1)).throw(TypeError);
    expect(completeConfig(config, {})).frozen;
  });
});

describe('a setting', () => {
  it('is read in readable units', () => {
    const config = loadConfig({
      ...configured,
      WEBHOOK_RETRY_DELAYS: '250ms, 1s,1.5m',
      WEBHOOK_DISABLE_AFTER: '2d',
      SIMULATOR_DELAY: '0.5s..2s',
      SIMULATOR_SPEED: '50',
      WEBHOOK_AUTO_PROBE: 'false',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8, ::1/128',
      WEBHOOK_DNS_SERVERS: '127.0.0.1:5353,[::1]:53',
      PUBLIC_BASE_URL: 'https://pay.example/',
    });
    expect(config.webhooks).deep.include({
      retryDelaysMs: [250, 1_000, 90_000],
      disableAfterMs: 172_800_000,
      autoProbe: false,
      allowCidrs: ['127.0.0.0/8', '::1/128'],
      dnsServers: ['127.0.0.1:5353', '[::1]:53'],
    });
    expect(config.simulator).deep.equal({ delayMinMs: 500, delayMaxMs: 2_000, speed: 50 });
    expect(config.publicBaseUrl).equal('https://pay.example');
  });

  it('is absent when empty', () => {
    expect(loadConfig({ PORT: '', MONGODB_URI: '  ', WEBHOOK_ALLOW_CIDRS: '' })).deep.equal(loadConfig({}));
  });

  it('wins over the embedded part', () => {
    const part = { mongodbUri: 'mongodb://other', operatorToken: 'other' };
    const config = completeConfig(loadConfig(configured), part);
    expect(config).include({ mongodbUri: configured.MONGODB_URI, operatorToken: configured.OPERATOR_TOKEN });
  });

  it('lets no sweep come too late for a push that was lost', () => {
    expect(faultsOf({ SWEEP_INTERVAL: '18s' })).deep.equal([]);
    expect(limits.pickupMs + 3 * 18_000).below(limits.pushWindowMs);
    expect(faultsOf({ SWEEP_INTERVAL: '19s' })).deep.equal([
      'SWEEP_INTERVAL: must be at most 18s, not "19s".',
    ]);
  });

  it('has a default that satisfies its own rule', () => {
    for (const [name, setting] of settingEntries) {
      if (setting.default !== undefined) expect(faultsOf({ [name]: String(setting.default) })).deep.equal([]);
    }
  });
});

describe('a secret', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'kusanya-config-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  it('is read from the file that NAME_FILE names, without its last newline', () => {
    const file = join(folder, 'token');
    writeFileSync(file, 'token-from-a-file\n');
    expect(loadConfig({ OPERATOR_TOKEN_FILE: file }).operatorToken).equal('token-from-a-file');
  });

  it('given twice is a fault', () => {
    const file = join(folder, 'twice');
    writeFileSync(file, 'token-from-a-file');
    const [fault] = faultsOf({ OPERATOR_TOKEN: 'token-from-the-env', OPERATOR_TOKEN_FILE: file });
    expect(fault).match(/^OPERATOR_TOKEN: is set twice\. Keep/);
  });

  it('in a missing or empty file is a fault', () => {
    const file = join(folder, 'empty');
    writeFileSync(file, '\n');
    expect(faultsOf({ SECRETS_KEY_FILE: file })[0]).match(/^SECRETS_KEY: is empty in .*empty\. Write/);
    expect(faultsOf({ SECRETS_KEY_FILE: join(folder, 'none') })[0]).match(/cannot be read .*ENOENT.*Correct/);
  });

  it('never appears in a fault', () => {
    const faults = faultsOf({
      MONGODB_URI: 'mysql://root:hunter2@db',
      REDIS_URL: 'hunter2',
      OPERATOR_TOKEN: 'hunter2',
      SECRETS_KEY: 'hunter2',
      KEY_HASH_SECRET: 'hunter2',
    });
    expect(faults).length(5);
    expect(faults.join()).not.contain('hunter2');
  });
});

describe('a faulty environment', () => {
  it('is refused with all its faults at once, each saying what to do', () => {
    expect(
      faultsOf({
        ROLE: 'boss',
        PORT: '3.5',
        ADMIN_PORT: '70000',
        FEE_BPS: '-1',
        WEBHOOK_TIMEOUT: '10',
        WEBHOOK_AUTO_PROBE: 'yes',
        SWEEP_INTERVAL: '1ms',
        SIMULATOR_SPEED: '0',
        SECRETS_KEY: 'short',
      }),
    ).deep.equal([
      'ROLE: must be one of all, api, worker, not "boss".',
      'PORT: must be a whole number, not "3.5".',
      'ADMIN_PORT: must be at most 65535, not 70000.',
      'SECRETS_KEY: must be 32 random bytes in base64; make them with: openssl rand -base64 32.',
      'FEE_BPS: must be at least 0, not -1.',
      'SWEEP_INTERVAL: must be at least 10ms, not "1ms".',
      'WEBHOOK_TIMEOUT: must be a duration such as 500ms, 10s, 1m or 72h, not "10".',
      'WEBHOOK_AUTO_PROBE: must be true or false, not "yes".',
      'SIMULATOR_SPEED: must be more than 0, not 0.',
    ]);
  });

  const single: [why: string, env: Record<string, string>, fault: RegExp][] = [
    [
      'an empty retry delay',
      { WEBHOOK_RETRY_DELAYS: '1m,2x' },
      /^WEBHOOK_RETRY_DELAYS: must be durations sep/,
    ],
    ['a range without its end', { SIMULATOR_DELAY: '10s' }, /^SIMULATOR_DELAY: must be two durations/],
    ['a range written backwards', { SIMULATOR_DELAY: '20s..10s' }, /^SIMULATOR_DELAY: begins above its end/],
    [
      'a range that is no CIDR',
      { WEBHOOK_ALLOW_CIDRS: '10.0.0.1' },
      /^WEBHOOK_ALLOW_CIDRS: must be address ranges/,
    ],
    ['a name as DNS server', { WEBHOOK_DNS_SERVERS: 'dns:53' }, /^WEBHOOK_DNS_SERVERS: must be addresses/],
    ['a bare host as address', { PUBLIC_BASE_URL: 'pay.example' }, /^PUBLIC_BASE_URL: must be an address/],
    [
      'sentinels without a master',
      { REDIS_URL: 'redis+sentinel://one,two' },
      /^REDIS_URL: must be an address/,
    ],
    ['an unfit database name', { MONGODB_DATABASE: 'a.b' }, /^MONGODB_DATABASE: must be at most 38/],
    [
      'amounts the wrong way round',
      { AMOUNT_MIN: '20', AMOUNT_MAX: '10' },
      /^AMOUNT_MIN: is 20, above AMOUNT_MAX/,
    ],
    ['one port for both listeners', { PORT: '4000', ADMIN_PORT: '4000' }, /^ADMIN_PORT: is the same as PORT/],
    [
      'a failpoint outside of tests',
      { NODE_ENV: 'development', FAILPOINT: 'afterCommit' },
      /^FAILPOINT: is for tests/,
    ],
    [
      'a failpoint that is none',
      { NODE_ENV: 'test', FAILPOINT: 'afterComit' },
      /^FAILPOINT: must be one of beforeAnswer, .*, not "afterComit"/,
    ],
    [
      'a failpoint that is never passed',
      { NODE_ENV: 'test', FAILPOINT: 'afterCommit:0' },
      /^FAILPOINT: must be one of/,
    ],
    [
      'callbacks without a secret',
      { MPESA_SYNCHRONOUS: 'false' },
      /^MPESA_CALLBACK_SECRET: is required with/,
    ],
  ];
  for (const [why, env, fault] of single) {
    it(`is refused for ${why}`, () => {
      const faults = faultsOf(env);
      expect(faults).length(1);
      expect(faults[0]).match(fault);
    });
  }

  it('with a database of its own names the secrets it must bring', () => {
    expect(faultsOf({ MONGODB_URI: configured.MONGODB_URI }).map((fault) => fault.split(':')[0])).deep.equal([
      'OPERATOR_TOKEN',
      'KEY_HASH_SECRET',
      'SECRETS_KEY',
    ]);
    expect(faultsOf(configured)).deep.equal([]);
  });

  it('with a role that shares the work names the stores it must share', () => {
    expect(faultsOf({ ROLE: 'worker' }).map((fault) => fault.split(':')[0])).deep.equal([
      'MONGODB_URI',
      'REDIS_URL',
    ]);
    expect(loadConfig({ ...configured, ROLE: 'worker' }).role).equal('worker');
  });

  it('in production names the stores that it would run for itself otherwise', () => {
    const { MONGODB_URI, REDIS_URL, ...secrets } = configured;
    expect(faultsOf({ ...secrets, NODE_ENV: 'production' }).map((fault) => fault.split(':')[0])).deep.equal([
      'MONGODB_URI',
      'REDIS_URL',
    ]);
    expect(faultsOf({ ...secrets, MONGODB_URI, REDIS_URL, NODE_ENV: 'production' })).deep.equal([]);
  });

  it('opens private addresses in production only when that is confirmed', () => {
    const open = { ...configured, NODE_ENV: 'production', WEBHOOK_ALLOW_CIDRS: '10.0.0.0/8' };
    expect(faultsOf(open)[0]).match(
      /^WEBHOOK_ALLOW_CIDRS: opens private .*WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION=true/,
    );
    expect(faultsOf({ ...open, WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION: 'true' })).deep.equal([]);
    expect(faultsOf({ ...open, NODE_ENV: 'development' })).deep.equal([]);
  });

  it('has M-Pesa’s settings all or not at all', () => {
    const all = {
      MPESA_BASE_URL: 'https://openapi.example/',
      MPESA_API_KEY: 'k',
      MPESA_PUBLIC_KEY: new Bearers(simulatorKeys).publicKey,
      MPESA_SERVICE_PROVIDER_CODE: '000000',
    };
    expect(loadConfig(all).mpesa).deep.include({ baseUrl: 'https://openapi.example', isSynchronous: true });
    expect(loadConfig({ ...all, MPESA_SESSION_LIFE: '2h' }).mpesa).deep.include({ sessionLifeMs: 7_200_000 });
    const { MPESA_API_KEY: _left, ...three } = all;
    expect(faultsOf(three)).deep.equal([
      'MPESA_API_KEY: is missing beside the other settings of M-Pesa. Set it, or none of them.',
    ]);
    expect(faultsOf({ ...all, MPESA_PUBLIC_KEY: 'MIIBIjANBg' })[0]).match(
      /^MPESA_PUBLIC_KEY: .*whole: base64 of/,
    );
    const secret = 'a-secret/with-a-slash';
    const [fault] = faultsOf({ ...all, MPESA_CALLBACK_SECRET: secret });
    expect(fault).match(/^MPESA_CALLBACK_SECRET: .*letters, digits/);
    expect(fault).not.include(secret);
    expect(loadConfig({ ...all, MPESA_ASK_DELAYS: '15s, 1m' }).mpesa?.askDelaysMs).deep.equal([
      15_000, 60_000,
    ]);
  });
});

describe('an unknown name with one of our prefixes', () => {
  it('is a fault that names the nearest setting', () => {
    expect(faultsOf({ WEBHOOK_TIMOUT: '10s', RATE_LIMIT_PER_SEC: '5', FEE_BPS_FILE: '/x' })).deep.equal([
      'WEBHOOK_TIMOUT: is no setting. Did you mean WEBHOOK_TIMEOUT?',
      'RATE_LIMIT_PER_SEC: is no setting. Did you mean RATE_LIMIT_PER_SECOND?',
      'FEE_BPS_FILE: is no setting. Did you mean FEE_BPS?',
    ]);
    expect(faultsOf({ KUSANYA_FLAVOUR: 'mint' })[0]).match(/^KUSANYA_FLAVOUR: is no setting\. Take it out/);
  });

  it('is let be when a platform sets it for a service of that name', () => {
    const kubernetes = {
      KUSANYA_SERVICE_HOST: '10.0.0.1',
      KUSANYA_SERVICE_PORT_HTTP: '3000',
      KUSANYA_PORT: 'tcp://10.0.0.1:3000',
      KUSANYA_PORT_3000_TCP_ADDR: '10.0.0.1',
    };
    expect(faultsOf(kubernetes)).deep.equal([]);
  });
});

describe('durations', () => {
  it('survive being written and read', () => {
    for (const ms of [1, 250, 1_000, 90_000, 60_000, 3_600_000, 259_200_000]) {
      expect(durationMs(durationText(ms))).equal(ms);
    }
    expect(durationText(259_200_000)).equal('3d');
    for (const text of ['', '10', 's', '-1s', '1 s', '1w', '1e3s', '10S']) expect(durationMs(text)).undefined;
  });
});

describe('what is printed from the settings', () => {
  it('is .env.example (refresh it with: UPDATE=1 npx mocha test/unit/config.test.ts)', () => {
    const file = new URL('../../.env.example', import.meta.url);
    if (process.env.UPDATE) writeFileSync(file, renderEnvExample());
    expect(readFileSync(file, 'utf8')).equal(renderEnvExample());
  });

  it('has every setting in .env.example and in the table', () => {
    for (const [name, setting] of settingEntries) {
      expect(setting.description).match(/\.$/);
      expect(renderEnvExample()).contain(`\n# ${name}=`);
      expect(renderSettingsTable()).contain(`| \`${name}\` |`);
    }
  });
});

describe('the machine', () => {
  it('is described by variables that are not ours', () => {
    const machine = readMachine({
      PATH: '/a:/b',
      XDG_CACHE_HOME: '/c',
      MONGOMS_SYSTEM_BINARY: '/m',
      https_proxy: 'p',
    });
    expect(machine).deep.equal({
      path: ['/a', '/b'],
      mongodBinary: '/m',
      cacheDir: '/c/kusanya',
      hasProxy: true,
    });
  });
});
