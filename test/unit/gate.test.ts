import { expect } from 'chai';
import fc from 'fast-check';
import type { Mode } from '../../src/mode.ts';
import { checkUrl, isPermittedAddress, isPublicAddress, resolvePublic } from '../../src/webhooks/gate.ts';
import {
  blockedHosts,
  insideNames,
  notAddresses,
  publicIPv4,
  publicIPv6,
  refusedIPv4,
  refusedIPv6,
  spellings,
  toBits,
  toIPv4,
} from '../support/addresses.ts';

describe('gate: addresses', () => {
  for (const ip of [...refusedIPv4, ...refusedIPv6])
    it(`${ip} is not public`, () => expect(isPublicAddress(ip)).to.be.false);
  for (const ip of [...publicIPv4, ...publicIPv6])
    it(`${ip} is public`, () => expect(isPublicAddress(ip)).to.be.true);

  it('what is not an address in its plain form is not public', () => {
    for (const text of [...notAddresses, '8.8.8.8 ', '8.8.8.8/32', '08.8.8.8'])
      expect(isPublicAddress(text), text).to.be.false;
  });

  it('every refused IPv4 address is refused in every IPv6 spelling', () => {
    const bits = fc.integer({ min: 0, max: 0xffffffff });
    const refused = fc
      .oneof(bits, fc.constantFrom(...refusedIPv4.map(toBits)))
      .filter((n) => !isPublicAddress(toIPv4(n)));
    fc.assert(
      fc.property(refused, fc.integer({ min: 0, max: 0xffff }), (n, any) => {
        for (const spelling of spellings(n, any)) {
          if (isPublicAddress(spelling)) throw new Error(`${toIPv4(n)} passes as ${spelling}`);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('nothing outside 2000::/3 is public, whatever it is', () => {
    const part = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(fc.array(part, { minLength: 8, maxLength: 8 }), (parts) => {
        const isGlobal = parts[0]! >>> 13 === 1;
        return isGlobal || !isPublicAddress(parts.map((one) => one.toString(16)).join(':'));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('gate: permitted addresses', () => {
  const nobody = () => [];

  it('a range that is let through lets through its addresses, and only those', () => {
    const rules = { allowCidrs: ['127.0.0.0/8', 'fd00::/8'], ownAddresses: nobody };
    for (const ip of ['127.0.0.1', '127.255.255.255', 'fd12::1', '8.8.8.8']) {
      expect(isPermittedAddress(ip, rules), ip).to.be.true;
    }
    for (const ip of ['10.0.0.1', '128.0.0.0.1', 'fc00::1', '::1', '::ffff:127.0.0.1', '::7f00:1', '127.1']) {
      expect(isPermittedAddress(ip, rules), ip).to.be.false;
    }
  });

  it('an address of our own interfaces is refused although it is public, in every form of it', () => {
    const rules = { ownAddresses: () => ['8.8.8.8', '2606:4700:4700::1111'] };
    expect(isPermittedAddress('8.8.8.8', rules)).to.be.false;
    expect(isPermittedAddress('2606:4700:4700:0:0:0:0:1111', rules)).to.be.false;
    expect(isPermittedAddress('8.8.4.4', rules)).to.be.true;
    expect(isPermittedAddress('8.8.8.8', { ...rules, allowCidrs: ['8.8.8.8/32'] })).to.be.true;
  });

  it('a range that cannot be read is an error, not an open or a closed gate', () => {
    for (const cidr of ['', '127.0.0.1', '127.0.0.0/33', '0x7f.1/8', 'everything', '::1/129', '10/8']) {
      expect(() => isPermittedAddress('8.8.8.8', { allowCidrs: [cidr] }), cidr).to.throw(RangeError);
    }
  });
});

function reasonOf(url: string, mode: Mode = 'test', allowCidrs: string[] = []): string {
  const checked = checkUrl(url, { mode, allowCidrs });
  return checked.ok ? 'ok' : checked.reason;
}

describe('gate: URLs', () => {
  for (const host of blockedHosts) {
    it(`${host} is a blocked address`, () => {
      expect(reasonOf(`https://${host}/hook`, 'live')).to.equal('blocked_address');
      expect(reasonOf(`https://${host}/hook`, 'test')).to.equal('blocked_address');
      expect(reasonOf(`http://${host}:8080/hook`, 'test')).to.equal('blocked_address');
    });
  }

  for (const host of insideNames) {
    it(`${host.length > 60 ? `${host.slice(0, 20)}… (${host.length} characters)` : host} is not a public host`, () => {
      expect(reasonOf(`https://${host}/hook`, 'live')).to.equal('host_not_public');
      expect(reasonOf(`https://${host}/hook`, 'test')).to.equal('host_not_public');
    });
  }

  const table: [string, string, string][] = [
    // url, in live mode, in test mode
    ['https://example.com/hook', 'ok', 'ok'],
    ['HTTPS://EXAMPLE.COM', 'ok', 'ok'],
    ['https://example.com:443/hook?a=1&b=%20', 'ok', 'ok'],
    ['https://hooks.example.co.tz:8443/a/b', 'ok', 'ok'],
    ['https://münchen.example/hook', 'ok', 'ok'],
    ['https://my_app.example.com/hook', 'ok', 'ok'],
    ['https://8.8.8.8/hook', 'ok', 'ok'],
    ['https://0x8.0x8.0x8.0x8/hook', 'ok', 'ok'],
    ['https://[2606:4700:4700::1111]:8443/hook', 'ok', 'ok'],
    ['http://example.com/hook', 'scheme_not_allowed', 'ok'],
    ['http://example.com:80/hook', 'scheme_not_allowed', 'ok'],
    ['http://example.com:443/hook', 'scheme_not_allowed', 'ok'],
    ['http://example.com:8080/hook', 'scheme_not_allowed', 'ok'],
    ['https://example.com:65535/hook', 'port_not_allowed', 'ok'],
    ['https://example.com:1024/hook', 'port_not_allowed', 'ok'],
    ['https://example.com:80/hook', 'port_not_allowed', 'ok'],
    ['https://example.com:1023/hook', 'port_not_allowed', 'port_not_allowed'],
    ['https://example.com:22/hook', 'port_not_allowed', 'port_not_allowed'],
    ['https://example.com:25/hook', 'port_not_allowed', 'port_not_allowed'],
    ['https://example.com:0/hook', 'port_not_allowed', 'port_not_allowed'],
    ['https://user@example.com/hook', 'userinfo_not_allowed', 'userinfo_not_allowed'],
    ['https://user:password@example.com/hook', 'userinfo_not_allowed', 'userinfo_not_allowed'],
    ['https://@example.com/hook', 'userinfo_not_allowed', 'userinfo_not_allowed'],
    ['https://:@example.com/hook', 'userinfo_not_allowed', 'userinfo_not_allowed'],
    ['https://example.com%2f@127.0.0.1/', 'userinfo_not_allowed', 'userinfo_not_allowed'],
    ['https://example.com/hook@2', 'ok', 'ok'],
    ['https://example.com/hook#part', 'fragment_not_allowed', 'fragment_not_allowed'],
    ['https://example.com/hook#', 'fragment_not_allowed', 'fragment_not_allowed'],
    ['https://127.0.0.1#@example.com/', 'fragment_not_allowed', 'fragment_not_allowed'],
    ['ftp://example.com/hook', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['file:///etc/passwd', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['gopher://example.com/', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['javascript:alert(1)', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['data:text/plain,x', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['unix:/var/run/docker.sock', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['wss://example.com/', 'scheme_not_allowed', 'scheme_not_allowed'],
    ['', 'invalid_url', 'invalid_url'],
    ['example.com/hook', 'invalid_url', 'invalid_url'],
    ['//example.com/hook', 'invalid_url', 'invalid_url'],
    ['https:', 'invalid_url', 'invalid_url'],
    ['https://', 'invalid_url', 'invalid_url'],
    ['https:example.com', 'invalid_url', 'invalid_url'],
    ['https:/example.com', 'invalid_url', 'invalid_url'],
    ['https:///example.com', 'invalid_url', 'invalid_url'],
    ['https:\\\\example.com\\hook', 'invalid_url', 'invalid_url'],
    ['https://example.com\\@127.0.0.1/', 'invalid_url', 'invalid_url'],
    [' https://example.com', 'invalid_url', 'invalid_url'],
    ['https://example.com/ ', 'invalid_url', 'invalid_url'],
    ['https://example.com/a b', 'invalid_url', 'invalid_url'],
    ['https://127.0.0\t.1/', 'invalid_url', 'invalid_url'],
    ['https://exa\nmple.com/', 'invalid_url', 'invalid_url'],
    ['https://example.com/\u0000', 'invalid_url', 'invalid_url'],
    ['https://example.com/\u00a0', 'invalid_url', 'invalid_url'],
    ['https://1.2.3.4.5/', 'invalid_url', 'invalid_url'],
    ['https://256.1.1.1/', 'invalid_url', 'invalid_url'],
    ['https://[fe80::1%25eth0]/', 'invalid_url', 'invalid_url'],
    ['https://[::1]./', 'invalid_url', 'invalid_url'],
    ['https://example.com:65536/', 'invalid_url', 'invalid_url'],
    ['https://example.com:-1/', 'invalid_url', 'invalid_url'],
    ['https://exam%00ple.com/', 'invalid_url', 'invalid_url'],
    [`https://example.com/${'a'.repeat(2029)}`, 'invalid_url', 'invalid_url'],
    [`https://example.com/${'a'.repeat(2028)}`, 'ok', 'ok'],
  ];
  for (const [url, live, test] of table) {
    const shown = url.length > 60 ? `${url.slice(0, 40)}… (${url.length} characters)` : JSON.stringify(url);
    it(`${shown} is ${live} in live and ${test} in test mode`, () => {
      expect(reasonOf(url, 'live')).to.equal(live);
      expect(reasonOf(url, 'test')).to.equal(test);
    });
  }

  it('loopback and localhost are let through exactly when a range covers them', () => {
    const loopback = ['127.0.0.0/8'];
    expect(reasonOf('http://127.0.0.1:4000/', 'test', loopback)).to.equal('ok');
    expect(reasonOf('http://localhost:4000/', 'test', loopback)).to.equal('ok');
    expect(reasonOf('http://localhost:4000/', 'test', ['::1/128'])).to.equal('ok');
    expect(reasonOf('http://localhost:4000/', 'test', ['10.0.0.0/8'])).to.equal('host_not_public');
    expect(reasonOf('http://localhost./', 'test', loopback)).to.equal('host_not_public');
    expect(reasonOf('http://a.localhost/', 'test', loopback)).to.equal('host_not_public');
    expect(reasonOf('http://[::1]:4000/', 'test', loopback)).to.equal('blocked_address');
    expect(reasonOf('http://10.0.0.1:4000/', 'test', loopback)).to.equal('blocked_address');
    expect(reasonOf('https://127.0.0.1:8443/', 'live', loopback)).to.equal('ok');
    expect(reasonOf('http://127.0.0.1/', 'live', loopback)).to.equal('scheme_not_allowed');
  });

  it('says why in a sentence that shows no address and nothing of the URL', () => {
    for (const url of [
      'https://user:secret@127.0.0.1/',
      'https://10.1.2.3/',
      'https://db.internal/',
      'nonsense',
    ]) {
      const checked = checkUrl(url, { mode: 'live' });
      if (checked.ok) throw new Error(`${url} passes`);
      expect(checked.message)
        .to.match(/^The (URL|host|port) .+\.$/)
        .and.not.match(/\d\.\d|secret|internal|nonsense/);
    }
  });

  it('answers any text without throwing, and lets through no address that is not public', () => {
    const piece = fc.constantFrom(
      ...[
        'https://',
        'http://',
        '127',
        '0x7f',
        '1',
        '.',
        ':',
        '/',
        '@',
        '#',
        '?',
        '[',
        ']',
        '%',
        '%2e',
        '\\',
        '::',
        'ffff:',
      ],
      ...['a', 'com', 'localhost', '0', '8443', '。', '①', 'xn--', '-', '\u0000', ' '],
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => `https://${pieces.join('')}`);
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (url) => {
        const checked = checkUrl(url, { mode: 'test' });
        if (!checked.ok) return true;
        const host = checked.url.hostname.replace(/[[\]]/g, '');
        return isPublicAddress(host) || /^[a-z0-9_.-]+\.[a-z0-9-]{2,}$/.test(host);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('gate: resolving without the DNS', () => {
  it('a literal address stands for itself, and is vetted', async () => {
    expect(await resolvePublic('8.8.8.8', { ownAddresses: () => [] })).to.deep.equal({
      ok: true,
      addresses: [{ address: '8.8.8.8', family: 4 }],
    });
    for (const ip of ['127.0.0.1', '::ffff:8.8.8.8', '169.254.169.254']) {
      expect(await resolvePublic(ip), ip).to.include({ ok: false, reason: 'blocked_address' });
    }
  });

  it('localhost is what the ranges let through of 127.0.0.1 and ::1, and nothing by default', async () => {
    const both = await resolvePublic('localhost', { allowCidrs: ['127.0.0.0/8', '::1/128'] });
    expect(both).to.have.deep.property('addresses', [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
    const one = await resolvePublic('localhost', { allowCidrs: ['127.0.0.1/32'] });
    expect(one).to.have.deep.property('addresses', [{ address: '127.0.0.1', family: 4 }]);
    expect(await resolvePublic('localhost')).to.include({ ok: false, reason: 'dns_error' });
  });
});
