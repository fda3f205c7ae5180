import { readFileSync } from 'node:fs';
import process from 'node:process';
import { type Config, ConfigError, loadConfig } from './config.ts';
import {
  type Embedded,
  keepFirstMerchant,
  loadOrCreateSecrets,
  readFirstMerchant,
  startEmbedded,
} from './embedded/embedded.ts';
import { createLog, type Log } from './log.ts';
import { newKey, newMerchant } from './merchants/merchants.ts';
import { auditLine } from './operators/operators.ts';
import { type Service, startService } from './service.ts';

/** Start and stop: config → stores → roles → signals. */
const exitConfig = 78;

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

async function main(): Promise<void> {
  const config = await readConfig();
  const log = createLog(config.logLevel);
  let embedded: Embedded | undefined;
  let service: Service | undefined;
  let stopping: Promise<void> | undefined;
  const stop = (signal: string): Promise<void> => {
    stopping ??= (async () => {
      say(`${signal}: finishing what is in hand`);
      await service?.stop();
      await embedded?.stop();
      say('stopped');
      process.exit(0);
    })();
    return stopping;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop(signal));
  try {
    if (!config.mongodbUri || !config.redisUrl) {
      embedded = await startEmbedded({
        dataDir: config.dataDir,
        needMongo: !config.mongodbUri,
        needRedis: !config.redisUrl,
        say,
      });
    }
    const mongodbUri = config.mongodbUri ?? embedded!.mongodbUri!;
    const redisUrl = config.redisUrl ?? embedded!.redisUrl!;
    service = await startService({ config: { ...config, mongodbUri, redisUrl }, log });
    if (!config.mongodbUri) await welcome(service, config);
    else say(`ready: ${service.baseUrl ?? 'worker'} (operators: ${service.adminUrl})`);
  } catch (error) {
    say((error as Error).message);
    log.debug({ error: String((error as Error).stack) }, 'start failed');
    await service?.stop();
    await embedded?.stop();
    process.exit(1);
  }
}

/** The configuration, or the whole list of faults and exit 78. */
async function readConfig(): Promise<Config> {
  try {
    const config = loadConfig(process.env);
    return config.mongodbUri ? config : { ...config, ...(await loadOrCreateSecrets(config.dataDir)) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    say('The configuration has faults:');
    for (const fault of error.faults) say(`  - ${fault}`);
    process.exit(exitConfig);
  }
}

/** The embedded default greets with all that a newcomer needs: addresses, token, a merchant's test key, a curl. */
async function welcome(service: Service, config: Config): Promise<void> {
  const kept = (await readFirstMerchant(config.dataDir)) ?? (await makeFirstMerchant(service, config));
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  say(`
Kusanya ${version} is ready. Data is in ${config.dataDir}; Ctrl-C stops everything.

  merchants   ${service.baseUrl}/v1   (OpenAPI: ${service.baseUrl}/v1/openapi.json)
  operators   ${service.adminUrl}/admin
  token       ${config.operatorToken}
  test key    ${kept.testKey}   (merchant ${kept.merchantId})

Collect TZS 5,000 in test mode; it succeeds within 20 seconds:

  curl -sS ${service.baseUrl}/v1/collections \\
    -H "Authorization: Bearer ${kept.testKey}" \\
    -H "Idempotency-Key: $(date +%s%N)" -H 'Content-Type: application/json' \\
    -d '{"amount": 5000, "phone": "255700000000", "reference": "order-1"}'
`);
}

async function makeFirstMerchant(service: Service, config: Config) {
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
  await actors.commit([
    ...merchant.writes,
    ...key.writes,
    auditLine({
      at,
      by: 'embedded',
      action: 'merchant.created',
      target: merchantId,
      merchantId,
      reason: 'first start',
      requestId: 'start',
    }),
  ]);
  const kept = { merchantId, testKey: key.secret };
  await keepFirstMerchant(config.dataDir, kept);
  return kept;
}

process.on('unhandledRejection', (error) => {
  const log: Log = createLog('error');
  log.fatal({ error: String((error as Error)?.stack ?? error) }, 'unhandled rejection');
});

await main();
