import { execFileSync } from 'node:child_process';
import http from 'node:http';
import https from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { Dialer } from '../../src/webhooks/dial.ts';
import { faultOf } from '../../src/webhooks/faults.ts';
import { resolvePublic } from '../../src/webhooks/gate.ts';
import { bundle } from '../support/bundle.ts';
import { selfSigned } from '../support/certificates.ts';
import { type DnsQuery, type DnsReply, type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { certificate, closeAll, eventually, hurried, newPoster, post } from '../support/posting.ts';
import { startHttp, startHttps } from '../support/receivers.ts';

describe('webhook dialling', () => {
  let dns: DnsServer | undefined;

  afterEach(async () => {
    await closeAll();
    await dns?.close();
    dns = undefined;
  });

  /** A DNS server for this test, and a poster that asks it. */
  async function withDns(
    reply: (query: DnsQuery) => DnsReply,
    options: Parameters<typeof newPoster>[0] = {},
  ) {
    dns = await startDnsServer(reply);
    return { dns, poster: newPoster({ dnsServers: [dns.address], ...options }) };
  }

  /** So long that nothing is asked a second time because this process stood still. */
  const unhurriedDns = { dnsTimeoutMs: 60_000 };

  const onlyA =
    (...addresses: string[]) =>
    ({ type }: DnsQuery): DnsReply =>
      type === 'A' ? addresses : [];

  describe('names', () => {
    it('the name stays in Host and SNI, and one dial asks once', async () => {
      const seen: unknown[] = [];
      const receiver = await startHttps(certificate, (request, response) => {
        const { servername } = request.socket as unknown as { servername: string };
        seen.push(servername, request.headers.host);
        response.end();
      });
      const { dns, poster } = await withDns(onlyA('127.0.0.1'), unhurriedDns);
      expect(await post(`https://good.test:${receiver.port}/`, poster)).to.include({ ok: true });
      expect(seen).to.deep.equal(['good.test', `good.test:${receiver.port}`]);
      expect(dns.queries.map((query) => query.type).sort()).to.deep.equal(['A', 'AAAA']);
      expect(await post(`https://other.test:${receiver.port}/`, poster)).to.include({ reason: 'tls_error' });
    });

    const bad: [string, (query: DnsQuery) => DnsReply][] = [
      ['a private address', onlyA('10.0.0.5')],
      ['loopback that is not let through', onlyA('0.0.0.0')],
      ['good addresses and one bad', onlyA('127.0.0.1', '127.0.0.2', '192.168.0.1')],
      ['a good A and a bad AAAA', ({ type }) => (type === 'A' ? ['127.0.0.1'] : ['fd00::1'])],
      ['loopback spelt as IPv6', ({ type }) => (type === 'A' ? [] : ['::ffff:7f00:1'])],
    ];
    for (const [name, reply] of bad) {
      it(`a name with ${name} is a blocked_address, and nothing is dialled`, async () => {
        const receiver = await startHttp((_request, response) => void response.end());
        const { poster, dns } = await withDns(reply);
        const url = `http://bad.test:${receiver.port}/`;
        expect(await post(url, poster)).to.include({ ok: false, reason: 'blocked_address', charged: true });
        expect(receiver.connections).to.equal(0);
        const options = { dnsServers: [dns.address], allowCidrs: ['127.0.0.0/8'] };
        expect(await resolvePublic('bad.test', options)).to.include({ ok: false, reason: 'blocked_address' });
      });
    }

    it('a name that was public at registration and is private at the dial is refused', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const { dns, poster } = await withDns(
        ({ type, earlier }) => (type === 'AAAA' ? [] : [earlier === 0 ? '93.184.215.14' : '127.0.0.1']),
        { allowCidrs: [] },
      );
      expect(await resolvePublic('rebind.test', { dnsServers: [dns.address] })).to.include({ ok: true });
      const result = await post(`http://rebind.test:${receiver.port}/`, poster);
      expect(result).to.include({ ok: false, reason: 'blocked_address' });
      expect(receiver.connections).to.equal(0);
    });

    it('the address that was vetted is the one that is dialled, however the name changes', async () => {
      const receiver = await startHttp((_request, response) => {
        response.writeHead(200, { Connection: 'close' }).end();
      });
      const { dns, poster } = await withDns(
        ({ type, earlier }) => (type === 'AAAA' ? [] : [earlier === 0 ? '127.0.0.1' : '10.0.0.1']),
        unhurriedDns,
      );
      const url = `http://rebind.test:${receiver.port}/`;
      expect(await post(url, poster)).to.include({ ok: true });
      expect(dns.queries).to.have.length(2);
      expect(await post(url, poster)).to.include({ ok: false, reason: 'blocked_address' });
      expect(receiver.connections).to.equal(1);
    });

    it('the next address is tried when one does not connect', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const { poster } = await withDns(onlyA('127.0.0.2', '127.0.0.1'));
      expect(await post(`http://two.test:${receiver.port}/`, poster)).to.include({ ok: true });
    });

    it('a name server that never answers for AAAA costs a moment, not the delivery', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const { poster } = await withDns(({ type }) => (type === 'A' ? ['127.0.0.1'] : 'silent'), {
        dnsTimeoutMs: 60_000,
      });
      expect(await post(`http://half.test:${receiver.port}/`, poster)).to.include({ ok: true });
    });

    const unresolved: [DnsReply, string][] = [
      ['nxdomain', 'ENOTFOUND'],
      ['servfail', 'ESERVFAIL'],
      [[], 'ENODATA'],
      ['silent', 'ETIMEOUT'],
    ];
    for (const [reply, detail] of unresolved) {
      it(`${reply.length === 0 ? 'no addresses' : String(reply)} is a dns_error, charged to the endpoint`, async () => {
        const { poster } = await withDns(() => reply, reply === 'silent' ? hurried : {});
        const result = await post('http://gone.test:8080/', poster);
        expect(result).to.include({ ok: false, reason: 'dns_error', detail, phase: 'dns', charged: true });
      });
    }

    it('the attempt’s deadline ends a question that may take longer, and nothing is asked after it', async () => {
      const { dns, poster } = await withDns(() => 'silent', { ...hurried, dnsTimeoutMs: 7_000 });
      expect(await post('http://gone.test:8080/', poster)).to.include({ reason: 'timeout', phase: 'dns' });
      // Left alone, it would ask a second time after half of its time: long after the deadline, however late that rings.
      await wait(3_500);
      expect(dns.queries).to.have.length(2);
    });

    it('a name that only /etc/hosts knows is asked of the DNS', async () => {
      const { dns } = await withDns(() => 'nxdomain');
      const options = { dnsServers: [dns.address], allowCidrs: ['127.0.0.0/8', '::1/128'] };
      expect(await resolvePublic('ip6-localhost', options)).to.include({ ok: false, reason: 'dns_error' });
      expect(dns.queries).to.have.length(2);
    });

    it('a question can be called off', async () => {
      const { dns } = await withDns(() => 'silent');
      const cancel = new AbortController();
      const options = { dnsServers: [dns.address], dnsTimeoutMs: 2_000, signal: cancel.signal };
      const answer = resolvePublic('slow.test', options);
      await eventually(() => expect(dns.queries).to.have.length(2));
      cancel.abort();
      expect(await answer).to.include({ ok: false, reason: 'dns_error', detail: 'ECANCELLED' });
      expect(await resolvePublic('slow.test', options)).to.include({ detail: 'ECANCELLED' });
      await wait(1_200);
      expect(dns.queries, 'no second try').to.have.length(2);
    });
  });

  describe('the canary', () => {
    it('a DNS failure is the endpoint’s while the canary resolves', async () => {
      const reply = ({ name }: DnsQuery): DnsReply => (name === 'canary.test' ? ['10.0.0.1'] : 'servfail');
      const { poster } = await withDns(reply, { dnsCanary: 'canary.test' });
      expect(await post('http://gone.test:8080/', poster)).to.include({ reason: 'dns_error', charged: true });
    });

    it('a DNS failure is ours when the canary fails too, asked once for many', async () => {
      const { dns, poster } = await withDns(() => 'servfail', { dnsCanary: 'canary.test' });
      const posts = Array.from({ length: 10 }, () => post('http://gone.test:8080/', poster));
      for (const result of await Promise.all(posts)) {
        expect(result).to.include({ reason: 'dns_error', charged: false });
      }
      const asked = dns.queries.filter((query) => query.name === 'canary.test' && query.type === 'A');
      // SERVFAIL is asked twice by c-ares itself.
      expect(asked.length).to.be.within(1, 2);
    });

    it('a silent resolver of ours is found out within the attempt’s time', async () => {
      const { poster } = await withDns(() => 'silent', { ...hurried, dnsCanary: 'canary.test' });
      expect(await post('http://gone.test:8080/', poster)).to.include({
        reason: 'dns_error',
        charged: false,
      });
    });
  });

  describe('the gate at the dial', () => {
    it('a URL that may not be is a blocked_address that names the rule', async () => {
      const refused: [string, string][] = [
        ['http://10.0.0.1/', 'blocked_address'],
        ['http://[::1]:8080/', 'blocked_address'],
        ['http://db.internal/', 'host_not_public'],
        ['http://example.com:25/', 'port_not_allowed'],
        ['nonsense', 'invalid_url'],
      ];
      for (const [url, detail] of refused) {
        const result = await post(url);
        expect(result).to.include({
          ok: false,
          reason: 'blocked_address',
          detail,
          phase: 'gate',
          charged: true,
        });
      }
      const live = await post('http://127.0.0.1:8080/', newPoster(), { mode: 'live' });
      expect(live).to.include({ reason: 'blocked_address', detail: 'scheme_not_allowed' });
    });

    it('a public address that is our own is refused at the dial', async () => {
      const poster = newPoster({ ownAddresses: () => ['93.184.215.14'] });
      const result = await post('http://93.184.215.14:8080/', poster);
      expect(result).to.include({ ok: false, reason: 'blocked_address', charged: true });
    });

    it('a range or a name server that cannot be read stops the poster from being made', () => {
      expect(() => newPoster({ allowCidrs: ['127.0.0.1'] })).to.throw(RangeError);
      expect(() => newPoster({ dnsServers: ['dns.example.com'] })).to.throw(TypeError);
    });

    it('NODE_TLS_REJECT_UNAUTHORIZED=0 changes nothing', async () => {
      const receiver = await startHttps(
        selfSigned(['127.0.0.1']),
        (_request, response) => void response.end(),
      );
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
      try {
        expect(await post(receiver.url)).to.include({ ok: false, reason: 'tls_error' });
      } finally {
        delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      }
    });

    const dialOptions = {
      connectAttemptMs: 100,
      idleMs: 1000,
      idleMaxPerEndpoint: 1,
      idleMax: 1,
      socketMaxAgeMs: 1000,
    };

    function errorOf(dialer: Dialer, url: string): Promise<unknown> {
      const options = { agent: dialer.agentFor(new URL(url)), endpointKey: 'we_1' };
      const { request } = url.startsWith('https') ? https : http;
      return new Promise((resolve) =>
        request(url, options).on('error', resolve).on('response', resolve).end(),
      );
    }

    it('the agents themselves refuse literal addresses, for which Node never looks anything up', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const dialer = new Dialer(dialOptions);
      for (const scheme of ['http', 'https']) {
        for (const host of [
          '127.0.0.1',
          '127.1',
          '[::1]',
          '[::ffff:127.0.0.1]',
          '[::127.0.0.1]',
          'localhost',
        ]) {
          const error = await errorOf(dialer, `${scheme}://${host}:${receiver.port}/`);
          expect(error, host).to.have.property('code').that.is.oneOf(['blocked_address', 'dns_error']);
        }
      }
      expect(receiver.connections).to.equal(0);
      for (const scheme of ['http:', 'https:']) {
        const { sockets } = dialer.agentFor(new URL(`${scheme}//a.test`));
        await eventually(() => expect(sockets).to.deep.equal(Object.create(null)));
      }
    });

    it('a socket that ends up at a refused address is closed before a byte is sent', async () => {
      let requests = 0;
      const receiver = await startHttp((_request, response) => {
        requests += 1;
        response.end();
      });
      const allowCidrs = ['127.0.0.0/8'];
      const dialer = new Dialer({ ...dialOptions, allowCidrs });
      const error = errorOf(dialer, `http://127.0.0.1:${receiver.port}/`);
      allowCidrs.length = 0;
      expect(await error).to.include({ code: 'blocked_address' });
      await wait(20);
      expect(requests).to.equal(0);
    });
  });

  describe('faults of our own', () => {
    it('are not charged: no handles, no ports, no network', () => {
      for (const code of [
        'EMFILE',
        'ENFILE',
        'ENOBUFS',
        'EADDRNOTAVAIL',
        'ENETDOWN',
        'ENETUNREACH',
        'EPERM',
      ]) {
        expect(faultOf({ code }, 'connect')).to.deep.equal({
          reason: 'sender_fault',
          charged: false,
          detail: code,
        });
      }
    });

    it('are what happens when the process has run out of file handles', async () => {
      const program = await bundle('test/support/out-of-handles.ts');
      const command = `ulimit -n 200; exec "${process.execPath}" "${program}"`;
      const result = JSON.parse(execFileSync('sh', ['-c', command], { encoding: 'utf8' }));
      const told = { ok: false, reason: 'sender_fault', charged: false, detail: 'EMFILE', phase: 'connect' };
      expect(result).to.include(told);
    });

    it('are charged once the endpoint has a part in it, or can only be reached over IPv6', () => {
      const errors = [{ code: 'ENETUNREACH', address: '2606:4700::1' }, { code: 'ECONNREFUSED' }];
      expect(faultOf({ errors }, 'connect')).to.include({ reason: 'connect_error', charged: true });
      const both = { errors: [{ code: 'EMFILE' }, { code: 'ECONNREFUSED' }] };
      expect(faultOf(both, 'connect')).to.include({ detail: 'ECONNREFUSED', charged: true });
      expect(faultOf({ errors: [{ code: 'EMFILE' }] }, 'connect')).to.include({ charged: false });
      expect(faultOf(errors[0], 'connect')).to.include({ reason: 'connect_error', charged: true });
    });

    it('an unknown error says nothing of itself', () => {
      expect(faultOf(new Error('connect to 10.0.0.1 failed'), 'answer')).to.deep.equal({
        reason: 'connection_reset',
        charged: true,
        detail: 'unknown',
      });
      expect(faultOf({ code: '10.0.0.1 is odd' }, 'tls')).to.include({
        reason: 'tls_error',
        detail: 'unknown',
      });
    });
  });
});
