import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from 'mongodb';
import { findMongod, type Search } from './find.ts';
import { untilListening } from './processes.ts';
import { dataFolder, logFile, pidFile, type ServerPlan } from './server.ts';

const replicaSet = 'rs0';

/** One mongod as a replica set of one: transactions need a replica set. */
export function mongodPlan(dataDir: string, search: Omit<Search, 'lastProgram'>): ServerPlan {
  const named = { name: 'mongod', dataDir } as const;
  return {
    ...named,
    title: 'MongoDB',
    find: (lastProgram) => findMongod({ ...search, lastProgram }),
    args: (port) => [
      ...['--port', String(port), '--bind_ip', '127.0.0.1', '--nounixsocket'],
      ...['--dbpath', dataFolder(named), '--pidfilepath', pidFile(named)],
      ...['--replSet', replicaSet, '--oplogSize', '256', '--wiredTigerCacheSizeGB', '0.5'],
      ...['--logpath', logFile(named), '--logappend', '--quiet'],
      // A test run's suites have databases of a hundred files each; by default idle ones stay open for ten minutes, and a
      // MongoDB that has as many open as it may ends itself.
      ...['--wiredTigerEngineConfigString', 'file_manager=(close_idle_time=30,close_scan_interval=10)'],
      // without these it writes a metrics file each second, and takes 15 s to say goodbye to nobody
      ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
      ...['--setParameter', 'shutdownTimeoutMillisForSignaledShutdown=100'],
      // A process killed between its writes and its commit leaves them locked, by default for a minute.
      ...['--setParameter', 'transactionLifetimeLimitSeconds=10'],
    ],
    ready: untilPrimary,
    stopGraceMs: 30_000,
    isDataExpendable: false,
    say: search.say,
  };
}

export function mongodUri(port: number): string {
  return `mongodb://127.0.0.1:${port}/?replicaSet=${replicaSet}`;
}

/** Waits until mongod `pid` is the primary of its set on `port`; founds the set, or moves it to a new port. */
async function untilPrimary(port: number, pid: number, signal: AbortSignal): Promise<void> {
  const { MongoClient } = await import('mongodb'); // loads while mongod starts
  const waits = { serverSelectionTimeoutMS: 1_000, connectTimeoutMS: 1_000, socketTimeoutMS: 5_000 };
  for (;;) {
    await untilListening(port, signal);
    const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, waits);
    try {
      await client.connect();
      const admin = client.db('admin');
      const status = await admin.command({ serverStatus: 1, metrics: 0, wiredTiger: 0, repl: 0, locks: 0 });
      if (Number(status.pid) !== pid) throw new Error(`port ${port} is answered by another server`);
      await becomePrimary(admin, `127.0.0.1:${port}`, signal);
      return;
    } catch {
      await sleep(25, undefined, { signal }); // not listening yet, or still recovering
    } finally {
      await client.close();
    }
  }
}

async function becomePrimary(admin: Db, host: string, signal: AbortSignal): Promise<void> {
  while (!(await admin.command({ hello: 1 })).isWritablePrimary) {
    signal.throwIfAborted();
    const config = await admin.command({ replSetGetConfig: 1 }).then(
      (answer) => answer.config,
      (error: { code?: number }) => (error.code === notYetInitialized ? undefined : Promise.reject(error)),
    );
    if (!config) {
      const members = [{ _id: 0, host }];
      await admin.command({ replSetInitiate: { _id: replicaSet, members } });
    } else if (config.members[0].host !== host) {
      const members = [{ ...config.members[0], host }];
      const moved = { ...config, version: config.version + 1, members };
      await admin.command({ replSetReconfig: moved, force: true });
    }
    await sleep(10, undefined, { signal });
  }
}

const notYetInitialized = 94;
