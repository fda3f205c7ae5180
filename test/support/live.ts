import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { type Simulator, startSimulator } from '../../tools/simulator/simulator.ts';
import { freePort, type ServiceProcess, startProcess } from './processes.ts';
import { type Answer, startTestService, type TestService } from './service.ts';
import { simulatorKeys } from './simulator-keys.ts';
import { freshDatabase, stores } from './stores.ts';
import { until } from './until.ts';

/** A simulated network on loopback and a service in live mode beside it. */
export interface Live {
  simulator: Simulator;
  clock: MovableClock;
  database: string;
  /** The service's settings; a second one with the same goes on where the first one stopped. */
  env: Record<string, string>;
  service: TestService;
  merchantId: string;
  liveKey: string;
  testKey: string;
  /** POST /v1/collections with the live key. */
  create(phone: string, more?: { key?: string }): Promise<Answer>;
  // biome-ignore lint/suspicious/noExplicitAny: a collection as the API answers it
  read(id: string): Promise<any>;
  /** Polls while it is `created`. @throws when it stays so */
  // biome-ignore lint/suspicious/noExplicitAny: a collection as the API answers it
  final(id: string, withinMs?: number): Promise<any>;
  /** Debits of a collection, as the network's own books have them. */
  debits(id: string): number;
  /** Ends the network, or takes it up again on the same port with the same books. */
  stopNetwork(): Promise<void>;
  startNetwork(): Promise<void>;
  /** Stops the service and starts another one in this process on the same stores. */
  restart(env?: Record<string, string>): Promise<void>;
  /** Stops the service, and starts a process on the same stores and port, which goes by the real time. */
  startProcess(env?: Record<string, string>): Promise<ServiceProcess>;
  close(): Promise<void>;
}

export const callbackSecret = 'callback-secret-of-the-tests';

interface LiveOptions {
  mode?: 'sync' | 'async';
  speed?: number;
  env?: Record<string, string>;
}

let lastKey = 0;

export async function openLive({ mode = 'sync', speed = 50, env = {} }: LiveOptions = {}): Promise<Live> {
  const clock = new MovableClock();
  const dataDir = await mkdtemp(join(tmpdir(), 'kusanya-live-'));
  const [port, networkPort] = [await freePort(), await freePort()];
  const callbackUrl = `http://127.0.0.1:${port}/rails/MPESA_TZ/${callbackSecret}`;
  const network = () =>
    startSimulator({
      ...{ keys: simulatorKeys, dataDir, mode, clock, speed, activationMs: 0, callbackUrl },
      port: networkPort,
    });
  const simulator = await network();
  const database = freshDatabase('live');
  const settings = {
    PORT: String(port),
    MPESA_BASE_URL: simulator.baseUrl,
    MPESA_API_KEY: simulator.apiKey,
    MPESA_PUBLIC_KEY: simulator.publicKey,
    MPESA_SERVICE_PROVIDER_CODE: '000000',
    MPESA_SYNCHRONOUS: String(mode === 'sync'),
    MPESA_CALLBACK_SECRET: callbackSecret,
  };
  const service = await startTestService({ ...settings, ...env }, { clock, database });
  const merchant = await service.merchant();
  const { secret: liveKey } = await service.issueKey(merchant.id, 'live');
  const live: Live = {
    ...{ simulator, clock, database, env: settings, service, liveKey, testKey: merchant.key },
    merchantId: merchant.id,
    create: (phone, { key = liveKey } = {}) => {
      lastKey += 1;
      return live.service.call('POST', '/v1/collections', {
        token: key,
        headers: { 'idempotency-key': `live-${process.pid}-${lastKey}` },
        body: { amount: 5000, phone, reference: `order-${lastKey}` },
      });
    },
    read: async (id) => (await live.service.call('GET', `/v1/collections/${id}`, { token: liveKey })).json,
    final: async (id, withinMs) => {
      const found = await until(async () => {
        const json = await live.read(id);
        return json.status === 'created' ? undefined : json;
      }, withinMs);
      if (!found) throw new Error(`${id} is still ${(await live.service.actor(id)).state}`);
      return found;
    },
    debits: (id) => live.simulator.network.debits.filter(({ reference }) => `col_${reference}` === id).length,
    stopNetwork: () => live.simulator.close(),
    startNetwork: async () => {
      live.simulator = await network();
    },
    restart: async (changed = {}) => {
      await live.service.stop();
      live.service = await startTestService({ ...settings, ...changed }, { clock, database });
    },
    startProcess: async (more = {}) => {
      await live.service.stop();
      const { mongodbUri, redisUrl } = await stores();
      const { operatorToken, keyHashSecret, secretsKey } = live.service.config;
      const same = {
        ...{
          MONGODB_URI: mongodbUri,
          MONGODB_DATABASE: database,
          REDIS_URL: redisUrl,
          REDIS_PREFIX: database,
        },
        ...{ OPERATOR_TOKEN: operatorToken, KEY_HASH_SECRET: keyHashSecret, SECRETS_KEY: secretsKey },
        ...{ RATE_LIMIT_PER_SECOND: '0', LOG_LEVEL: 'warn' },
      };
      const started = await startProcess(
        { ...settings, ...same, ...more },
        { port, adminPort: await freePort() },
      );
      await started.ready;
      return started;
    },
    close: async () => {
      await live.service.stop();
      await live.simulator.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return live;
}
