import { expect } from 'chai';
import { isRedisUrl } from '../src/index.ts';
import { openRedis } from '../src/redis.ts';

function optionsAt(url: string) {
  const client = openRedis(url, { lazyConnect: true });
  try {
    return client.options;
  } finally {
    client.disconnect();
  }
}

describe('the address of Redis', () => {
  it('names one server, as ever', () => {
    for (const url of ['redis://cache:6379', 'rediss://:a%2Fb@cache/3', 'redis://[::1]'])
      expect(isRedisUrl(url), url).equal(true);
    expect(optionsAt('rediss://:a%2Fb@cache:7000/3')).include({
      host: 'cache',
      port: 7000,
      password: 'a/b',
      db: 3,
    });
  });

  it('names sentinels and what they call the master, with what each asks for', () => {
    const url =
      'redis+sentinel://app:p%40ss@one:26379,two,[::1]:7/pay/2?sentinel_username=s&sentinel_password=x%26y';
    const options = optionsAt(url);
    expect(options.sentinels).deep.equal([
      { host: 'one', port: 26379 },
      { host: 'two', port: 26379 },
      { host: '::1', port: 7 },
    ]);
    expect(options).include({ name: 'pay', db: 2, username: 'app', password: 'p@ss' });
    expect(options).include({ sentinelUsername: 's', sentinelPassword: 'x&y' });
    expect(options.sentinelTLS).equal(undefined);
  });

  it('goes to sentinels and master by TLS with rediss', () => {
    const { tls, sentinelTLS, enableTLSForSentinelMode } = optionsAt('rediss+sentinel://one,two/pay');
    expect({ tls, sentinelTLS, enableTLSForSentinelMode }).deep.equal({
      ...{ tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true },
    });
  });

  it('is refused where it says something else', () => {
    const wrong = [
      ...[
        'redis://',
        'http://cache',
        'redis+sentinel://one',
        'redis+sentinel://one/',
        'redis+sentinel:///pay',
      ],
      ...['redis+sentinel://one,/pay', 'redis+sentinel://one:x/pay', 'redis+sentinel://:%@one/pay'],
      ...['redis+sentinel://one/pay?password=x', 'redis+sentinel://one/pay/two'],
    ];
    for (const url of wrong) {
      expect(isRedisUrl(url), url).equal(false);
      expect(() => openRedis(url, { lazyConnect: true }), url).throw();
    }
  });
});
