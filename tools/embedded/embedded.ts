import { join, resolve } from 'node:path';
import { readMachine } from '../../src/config.ts';
import type { Search } from './find.ts';
import { startGuard } from './guard.ts';
import { lockDataDir, lockState } from './lock.ts';
import { mongodPlan, mongodUri } from './mongod.ts';
import { redisPlan, redisUrl } from './redis.ts';
import { type RunningServer, runServer, stopLeftover } from './server.ts';

export { keepFirstMerchant, loadOrCreateSecrets, readFirstMerchant } from './identity.ts';

export interface Embedded {
  /** Present when asked for by `needMongo`. Names no database. */
  mongodbUri?: string;
  /** Present when asked for by `needRedis`. */
  redisUrl?: string;
  /** The servers as they run now; a pid changes when a server died and was started again. */
  readonly children: { name: string; pid: number }[];
  /** The process that ends the servers should this one be gone without having done so. */
  readonly guardPid: number | undefined;
  /** Stops the servers cleanly and gives DATA_DIR free. Call it after everything that uses them. */
  stop(): Promise<void>;
}

/**
 * Runs real servers for this process where none are configured (CONTRACT 20.6). Their
 * data lies in `dataDir`, which no other service can then use; servers that a killed run left behind are adopted. They
 * end `guardGraceMs` (2 seconds) after this process, however it ends, unless another one has taken them over by then.
 *
 * @throws Error in words for the operator: DATA_DIR is in use, no server can be found, a server does not start
 */
export async function startEmbedded(options: {
  dataDir: string;
  needMongo: boolean;
  needRedis: boolean;
  say: (line: string) => void;
  guardGraceMs?: number;
}): Promise<Embedded> {
  const dataDir = resolve(options.dataDir);
  const unlock = await lockDataDir(dataDir);
  const guard = await startGuard(dataDir, options.guardGraceMs);
  const search: Omit<Search, 'lastProgram'> = {
    machine: readMachine(),
    spareCacheDir: join(dataDir, 'programs'),
    say: options.say,
  };
  const started = await Promise.allSettled([
    // a server that is configured by now may still run here, left by a run without configuration
    options.needMongo ? runServer(mongodPlan(dataDir, search)) : stopLeftover({ name: 'mongod', dataDir }),
    options.needRedis ? runServer(redisPlan(dataDir, search)) : stopLeftover({ name: 'redis', dataDir }),
  ]);
  const [mongod, redis] = started.map((one) => (one.status === 'fulfilled' && one.value) || undefined);
  const servers = [mongod, redis].filter((server) => server !== undefined);
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
    guard.stop();
    await unlock();
  };
  const faults = started.flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []));
  if (faults.length > 0) {
    await stop();
    throw new Error(faults.join('\n'));
  }
  return {
    ...(mongod ? { mongodbUri: mongodUri(mongod.port) } : {}),
    ...(redis ? { redisUrl: redisUrl(redis.port) } : {}),
    get children() {
      return servers.map(({ name, pid }: RunningServer) => ({ name, pid }));
    },
    guardPid: guard.pid,
    stop,
  };
}

/**
 * Stops servers that a killed service left on `dataDir`, without starting any.
 *
 * @returns true when a killed service had been there
 */
export async function stopLeftovers(dataDir: string): Promise<boolean> {
  if ((await lockState(dataDir)) !== 'stale') return false;
  await stopLeftover({ name: 'mongod', dataDir: resolve(dataDir) });
  await stopLeftover({ name: 'redis', dataDir: resolve(dataDir) });
  return true;
}
