import { readFileSync } from 'node:fs';
import process from 'node:process';
import type { Embedded } from '../tools/embedded/embedded.ts';
import { type Config, ConfigError, completeConfig, loadConfig } from './config.ts';
import { armFailpoint } from './failpoint.ts';
import { createLog } from './log.ts';
import type { Service } from './service.ts';

/** Start and stop: config → stores → roles → signals. */
const exitConfig = 78;

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** What runs by now; stopped in reverse, also when a signal comes in the middle of the start. */
const running: { embedded?: Promise<Embedded>; service?: Promise<Service>; stopping?: Promise<void> } = {};

async function main(): Promise<void> {
  const config = await readConfig();
  if (config.failpoint) armFailpoint(config.failpoint);
  const log = createLog(config.logLevel);
  process.on('unhandledRejection', (error) => {
    log.error({ error: String((error as Error)?.stack ?? error) }, 'unhandled rejection');
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => void stop(`${signal}: finishing what is in hand`, 0));
  }
  try {
    const stores = await startStores(config);
    if (running.stopping) return;
    // Loading the service takes a second or more; it was begun while the servers start.
    const { startService } = await serviceCode;
    const complete = completeConfig(config, stores);
    running.service = startService({
      config: { ...complete, mongodbUri: complete.mongodbUri!, redisUrl: complete.redisUrl! },
      log,
    });
    const service = await running.service;
    if (running.stopping) return;
    if (config.mongodbUri) {
      say(
        `ready: ${service.baseUrl ?? 'worker'} (operators: ${service.adminUrl}; live mode: ${liveMode(service)})`,
      );
    } else await welcome(service, complete);
  } catch (error) {
    log.debug({ error: String((error as Error).stack) }, 'start failed');
    await stop(`Kusanya did not start: ${(error as Error).message}`, 1);
  }
}

const serviceCode = import('./service.ts');

/** For who tries the service. An image has none of it: production names its stores. */
const ownServers = () => import('../tools/embedded/embedded.ts');

/** Ends what was started, in reverse, once. */
function stop(why: string, code: number): Promise<void> {
  running.stopping ??= (async () => {
    say(why);
    await running.service?.then((service) => service.stop()).catch(() => undefined);
    await running.embedded?.then((embedded) => embedded.stop()).catch(() => undefined);
    say('stopped');
    process.exit(code);
  })();
  return running.stopping;
}

/** The configuration, or the whole list of faults and exit 78. */
async function readConfig(): Promise<Config> {
  try {
    const config = loadConfig();
    if (config.mongodbUri) return config;
    const { loadOrCreateSecrets } = await ownServers();
    return completeConfig(config, await loadOrCreateSecrets(config.dataDir));
  } catch (error) {
    if (error instanceof ConfigError) {
      say('The configuration has faults:');
      for (const fault of error.faults) say(`  - ${fault}`);
    } else say((error as Error).message);
    process.exit(exitConfig);
  }
}

/** The addresses of the stores that are not configured, and started here. */
async function startStores(config: Config): Promise<{ mongodbUri?: string; redisUrl?: string }> {
  if (config.mongodbUri && config.redisUrl) return {};
  const { startEmbedded } = await ownServers();
  if (running.stopping) return {};
  running.embedded = startEmbedded({
    dataDir: config.dataDir,
    needMongo: !config.mongodbUri,
    needRedis: !config.redisUrl,
    say,
  });
  return running.embedded;
}

/** The embedded default greets with all that a newcomer needs: addresses, token, a merchant's test key, a curl. */
async function welcome(service: Service, config: Config): Promise<void> {
  const { readFirstMerchant } = await ownServers();
  const kept = (await readFirstMerchant(config.dataDir)) ?? (await makeFirstMerchant(service, config));
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  say(`
Kusanya ${version} is ready. Data is in ${config.dataDir}; Ctrl-C stops everything.

  merchants   ${service.baseUrl}/v1   (explained: ${service.baseUrl}/docs)
  console     ${service.adminUrl}/console   (API: ${service.adminUrl}/admin)
  token       ${config.operatorToken}
  test key    ${kept.testKey}   (merchant ${kept.merchantId})
  live mode   ${liveMode(service)}

Collect TZS 5,000 in test mode; it succeeds within 20 seconds:

  curl -sS ${service.baseUrl}/v1/collections \\
    -H "Authorization: Bearer ${kept.testKey}" \\
    -H "Idempotency-Key: $(date +%s%N)" -H 'Content-Type: application/json' \\
    -d '{"amount": 5000, "phone": "255700000000", "reference": "order-1"}'

Receive its webhook on this machine, on port 4242:

  npx kusanya login --base-url ${service.baseUrl}      (paste the test key)
  npx kusanya listen --forward-to 4242/hook
  npx kusanya trigger succeeded --now      (in another terminal)
`);
}

/** Which network live payments go to, and how: a sandbox must not be taken for production, nor the other way round. */
function liveMode({ wired }: Service): string {
  const { live } = wired.rails;
  if (!live?.line) return 'no network is configured';
  const { address, isSandbox, isSimulator, answers } = live.line;
  const kind = isSandbox ? 'SANDBOX' : isSimulator ? 'A SIMULATOR' : 'PRODUCTION';
  return `${live.name} ${kind} at ${address}, ${answers}`;
}

async function makeFirstMerchant(service: Service, config: Config) {
  const { keepFirstMerchant } = await ownServers();
  const { newKey, newMerchant } = await import('./merchants/merchants.ts');
  const { auditLine } = await import('./desk/desk.ts');
  const { actors, clock } = service.wired;
  const at = clock.now();
  const merchant = newMerchant({ name: 'First merchant' }, at);
  const merchantId = merchant.record._id;
  const key = newKey({
    merchantId,
    mode: 'test',
    by: 'embedded',
    hashSecret: config.keyHashSecret,
    atMs: at,
  });
  const line = { at, by: 'embedded', action: 'merchant.created', target: merchantId, merchantId };
  await actors.commit([
    ...merchant.writes,
    ...key.writes,
    auditLine({ ...line, reason: 'first start', requestId: 'start' }),
  ]);
  const kept = { merchantId, testKey: key.secret };
  await keepFirstMerchant(config.dataDir, kept);
  return kept;
}

await main();
