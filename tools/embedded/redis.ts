import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { findRedis, type Search } from './find.ts';
import { dataFolder, logFile, pidFile, type ServerPlan } from './server.ts';

/** One redis-server or valkey-server with an append-only file. It never evicts: BullMQ's jobs are not a cache. */
export function redisPlan(dataDir: string, search: Omit<Search, 'lastProgram'>): ServerPlan {
  const named = { name: 'redis', dataDir } as const;
  return {
    ...named,
    title: 'Redis',
    find: (lastProgram) => findRedis({ ...search, lastProgram }),
    args: (port) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dataFolder(named)],
      ...['--pidfile', pidFile(named), '--logfile', logFile(named), '--daemonize', 'no'],
      ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''],
      ...['--maxmemory-policy', 'noeviction', '--set-proc-title', 'no'],
    ],
    ready: untilAnswering,
    stopGraceMs: 10_000,
    // Redis only wakes us up: the sweep arms again from MongoDB whatever it lost
    isDataExpendable: true,
    say: search.say,
  };
}

export function redisUrl(port: number): string {
  return `redis://127.0.0.1:${port}`;
}

/** Waits until server `pid` has loaded its data and answers on `port`. */
async function untilAnswering(port: number, pid: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const info = await askInfo(port).catch(() => '');
    if (info.includes(`process_id:${pid}\r`) && info.includes('loading:0')) return;
    await sleep(10, undefined, { signal });
  }
}

/** The server's INFO, over a bare socket: a client library would reconnect and complain by itself. */
function askInfo(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('INFO\r\nQUIT\r\n'));
    let answer = '';
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer')));
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(answer));
  });
}
