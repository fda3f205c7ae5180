import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { parse } from 'yaml';
import { root } from './files.ts';
import { type Member, startMember } from './member.ts';
import { until } from './until.ts';

/** Two Redis, one of them the master, and three sentinels that judge which; all ask for a password. */
export interface Sentinels {
  /** For REDIS_URL. */
  url: string;
  redis: readonly Member[];
  sentinels: readonly Member[];
  /** How often a sentinel said that it stood still for two seconds: it then judges nobody for half a minute. */
  stoodStill(): number;
  /** Whom the sentinels call the master now. */
  master(): Promise<Member>;
  close(): Promise<void>;
}

const name = 'kusanya';
const secrets = { redis: 'of the master', sentinel: 'of the sentinels' };
/** The settings of compose.ha.yml, which are so tried as they are given to operators. */
const { configs } = parse(readFileSync(join(root, 'compose.ha.yml'), 'utf8'), {
  logLevel: 'error', // not of Compose's own tags
}) as {
  configs: Record<'redis' | 'sentinel', { content: string }>;
};
const given = (text: string) =>
  text
    .replaceAll(/\$\{REDIS_PASSWORD\}/g, `"${secrets.redis}"`)
    .replaceAll(/\$\{SENTINEL_PASSWORD\}/g, `"${secrets.sentinel}"`);

export async function openSentinels(): Promise<Sentinels> {
  const server = (port: number, dir: string) => {
    const file = join(dir, 'redis.conf');
    writeFileSync(file, given(configs.redis.content));
    return [file, ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir]];
  };
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
    stoodStill: () =>
      sentinels.reduce(
        (sum, { dir }) => sum + readFileSync(join(dir, 'log'), 'utf8').split('+tilt').length - 1,
        0,
      ),
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
  const text = given(configs.sentinel.content)
    .replace(/^port .*$/m, `port ${port}\nbind 127.0.0.1\ndir "${dir}"`)
    .replace(/ redis-1 6379 /, ` 127.0.0.1 ${masterPort} `);
  writeFileSync(file, text);
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
