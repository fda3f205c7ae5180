import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import process from 'node:process';
import { loadConfig } from '../../src/config.ts';
import { eventId, recordEvent } from '../../src/events/events.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import { newKey, newMerchant } from '../../src/merchants/merchants.ts';
import { startService } from '../../src/service.ts';

/**
 * The real service as a process of the bench. env: BENCH_DB for the database and prefix, BENCH_ROLE, BENCH_MERCHANTS
 * (how many are made, each with a key; 1), BENCH_NO_MERCHANT, BENCH_SIMULATOR_DELAY, BENCH_LOG, BENCH_PROFILE.
 */
const config = loadConfig({
  MONGODB_URI: process.env.MONGODB_URI,
  REDIS_URL: process.env.REDIS_URL,
  MONGODB_DATABASE: process.env.BENCH_DB,
  REDIS_PREFIX: process.env.BENCH_DB,
  ROLE: process.env.BENCH_ROLE ?? 'all',
  OPERATOR_TOKEN: 'operator-token-of-the-bench',
  KEY_HASH_SECRET: 'key-hash-secret-of-the-bench',
  SECRETS_KEY: Buffer.alloc(32, 9).toString('base64'),
  HOST: '127.0.0.1',
  PORT: '0',
  ADMIN_PORT: '0',
  LOG_LEVEL: process.env.BENCH_LOG ?? 'warn',
  RATE_LIMIT_PER_SECOND: '0',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  SIMULATOR_DELAY: process.env.BENCH_SIMULATOR_DELAY ?? '500ms..501ms',
});
const service = await startService({
  config: { ...config, mongodbUri: config.mongodbUri!, redisUrl: config.redisUrl! },
  log: createLog(config.logLevel),
});
const { actors, clock, committer, rails } = service.wired;
// Beside an api alone nobody pushes, and no payment is taken any more once a push waits for half of its window.
if (config.role === 'api') {
  const pushWindowMs = limits.hourMs;
  Object.assign(rails.test.terms, { pushWindowMs, answerTimeoutMs: pushWindowMs });
}
const keys: string[] = [];
const merchantIds: string[] = [];
const merchants = process.env.BENCH_NO_MERCHANT ? 0 : Number(process.env.BENCH_MERCHANTS ?? 1);
const newcomers: Parameters<typeof actors.commit>[0] = [];
for (let n = 0; n < merchants; n += 1) {
  const atMs = clock.now();
  const merchant = newMerchant({ name: 'Bench' }, atMs);
  const merchantId = merchant.record._id;
  const made = newKey({ merchantId, mode: 'test', by: 'bench', hashSecret: config.keyHashSecret, atMs });
  newcomers.push(...merchant.writes, ...made.writes);
  merchantIds.push(merchantId);
  keys.push(made.secret);
}
if (newcomers.length > 0) await actors.commit(newcomers);
const [merchantId = ''] = merchantIds;
const port = service.baseUrl ? Number(new URL(service.baseUrl).port) : 0;
const profiler = new Session();
/** Profiles just the load (BENCH_PROFILE names the file), not the start. */
async function profile(file: string): Promise<void> {
  profiler.connect();
  await profiler.post('Profiler.enable');
  await profiler.post('Profiler.start');
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const { profile } = await profiler.post('Profiler.stop');
  writeFileSync(file, JSON.stringify(profile));
}
if (process.env.BENCH_PROFILE) setTimeout(() => void profile(process.env.BENCH_PROFILE!), 2_500);

/** Puts deliveries to one endpoint into the stores and their jobs into the queue, without sending them. */
async function prepareDeliveries(url: string, total: number): Promise<void> {
  const { webhooks, handover } = service.wired;
  const endpoint = webhooks.newEndpoint({ merchantId, mode: 'test', url, by: 'bench' });
  await actors.create(endpoint.actor, { stepId: `bench.${url}`, cause: { kind: 'operator', id: 'bench' } });
  const one = async (n: number) => {
    const atMs = clock.now();
    const id = eventId(`${url}.${n}`, 1, atMs);
    const data = { id: `col_${n}`, amount: 5000, fee: 0, metadata: { filler: 'x'.repeat(300) } };
    const event = { id, type: 'collection.succeeded' as const, merchantId, mode: 'test' as const, atMs };
    const delivery = webhooks.newDelivery({ ...event, eventId: id, endpointId: endpoint.actor.id });
    await actors.create(delivery, {
      stepId: id,
      cause: { kind: 'operator', id: 'bench' },
      writes: [recordEvent({ ...event, collectionId: 'sample.bench', data })],
    });
  };
  for (let from = 0; from < total; from += 200) {
    await Promise.all(Array.from({ length: Math.min(200, total - from) }, (_, n) => one(from + n)));
  }
  await handover.flush();
}

process.on('message', (message) => {
  const asked = message as { prepare?: { url: string; total: number } };
  if (asked.prepare) {
    void prepareDeliveries(asked.prepare.url, asked.prepare.total).then(() =>
      process.send?.({ prepared: true }),
    );
  }
  if (message === 'counts') {
    const { rss } = process.memoryUsage();
    process.send?.({ counts: { ...committer.counts }, rss, cpu: process.cpuUsage() });
  }
});
process.on('disconnect', () => process.exit(1)); // the bench was killed
process.on('SIGTERM', () => void service.stop().then(() => process.exit(0)));
process.send?.({ port, key: keys[0] ?? '', keys, merchantId, merchantIds, adminUrl: service.adminUrl });
