import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type Member, startMember } from './member.ts';
import { until } from './until.ts';

/** Two Redis, one of them the master, and three sentinels that judge which; all ask for a password. */
export interface Sentinels {
  /** For REDIS_URL. */
  url: string;
  redis: readonly Member[];
  sentinels: readonly Member[];
  /** Whom the sentinels call the master now. */
  master(): Promise<Member>;
  close(): Promise<void>;
}

const name = 'kusanya';
const secrets = { redis: 'of the master', sentinel: 'of the sentinels' };
/** As in compose.ha.yml: a master that is silent for so long is given up. */
const downAfterMs = 2_000;

export async function openSentinels(): Promise<Sentinels> {
  const password = ['--requirepass', secrets.redis, '--masterauth', secrets.redis];
  const server = (port: number, dir: string) => [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, ...password],
    ...['--save', '', '--appendonly', 'yes', '--maxmemory-policy', 'noeviction'],
    ...['--repl-diskless-sync-delay', '0'],
  ];
  const first = await startMember('redis', server);
  const following = ['--replicaof', `127.0.0.1 ${first.port}`];
  const second = await startMember('redis', (port, dir) => [...server(port, dir), ...following]);
  const redis = [first, second];
  const sentinels = await Promise.all([1, 2, 3].map(() => startMember('redis', sentinel(first.port))));
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join();
  const words = [secrets.redis, secrets.sentinel].map(encodeURIComponent);
  const all: Sentinels = {
    url: `redis+sentinel://:${words[0]}@${hosts}/${name}?sentinel_password=${words[1]}`,
    ...{ redis, sentinels },
    master: async () => {
      const [, port] = await ask(sentinels, ['get-master-addr-by-name', name]);
      return redis.find((each) => each.port === Number(port))!;
    },
    close: async () => void (await Promise.all([...redis, ...sentinels].map((each) => each.close()))),
  };
  const isWatched = await until(async () => {
    const about = await ask(sentinels, ['master', name]);
    const fact = (key: string) => about[about.indexOf(key) + 1];
    return fact('num-slaves') === '1' && fact('num-other-sentinels') === '2';
  }, 30_000);
  if (!isWatched) throw new Error('the sentinels did not find each other');
  return all;
}

/** Sentinels keep what they learn in their file of settings. */
const sentinel = (masterPort: number) => (port: number, dir: string) => {
  const file = join(dir, 'sentinel.conf');
  writeFileSync(
    file,
    [
      ...[`port ${port}`, 'bind 127.0.0.1', `dir "${dir}"`],
      ...[`requirepass "${secrets.sentinel}"`, `sentinel sentinel-pass "${secrets.sentinel}"`],
      `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
      `sentinel auth-pass ${name} "${secrets.redis}"`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 10000`,
    ].join('\n'),
  );
  return [file, '--sentinel'];
};

async function ask(sentinels: readonly Member[], words: [string, string]): Promise<string[]> {
  const client = new Redis(sentinels[0]!.port, '127.0.0.1', { password: secrets.sentinel });
  client.on('error', () => {});
  try {
    return ((await client.call('SENTINEL', ...words)) ?? []) as string[];
  } finally {
    client.disconnect();
  }
}
