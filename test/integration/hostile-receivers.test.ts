import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { SystemClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { steadyMs } from '../../packages/durable-actors/src/clock.ts';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import {
  authority,
  block,
  body,
  certificate,
  closeAll,
  drip,
  eventually,
  flood,
  hurried,
  newPoster,
  okAnswer,
  post,
  timeoutMs,
} from '../support/posting.ts';
import { closeReceivers, startHttp, startHttps, startRaw, startTcp } from '../support/receivers.ts';

describe('hostile receivers', () => {
  afterEach(closeAll);

  describe('that behave', () => {
    it('any 2xx is a success, and its body an excerpt', async () => {
      const receiver = await startHttp((request, response) => {
        response.writeHead(Number(request.url?.slice(1))).end('thank you ☕');
      });
      for (const status of [200, 201, 202, 299]) {
        const result = await post(`http://127.0.0.1:${receiver.port}/${status}`);
        expect(result).to.include({
          ok: true,
          status,
          charged: true,
          phase: 'answer',
          excerpt: 'thank you ☕',
        });
        expect(result).to.not.have.property('reason');
      }
      const empty = await post(`http://127.0.0.1:${receiver.port}/204`);
      expect(empty).to.include({ ok: true, status: 204 }).and.not.have.property('excerpt');
    });

    it('any other status is a failure with that status, and still has an excerpt', async () => {
      const receiver = await startRaw((socket, request) => {
        const status = /^POST \/(\d+)/.exec(request)?.[1];
        socket.end(`HTTP/1.1 ${status} Whatever\r\nContent-Length: 2\r\n\r\nno`);
      });
      for (const status of [400, 401, 404, 410, 429, 500, 503, 600, 999]) {
        const result = await post(`http://127.0.0.1:${receiver.port}/${status}`);
        expect(result).to.include({ ok: false, status, reason: 'http_status', charged: true, excerpt: 'no' });
      }
    });

    it('the request is what was asked for: one POST, exact bytes, no Accept-Encoding', async () => {
      let head: Record<string, unknown> = {};
      let received = '';
      const receiver = await startHttp((request, response) => {
        head = { ...request.headers, method: request.method, url: request.url };
        request.setEncoding('utf8').on('data', (text) => {
          received += text;
        });
        request.on('end', () => response.end());
      });
      const text = '{"description":"kahawa ☕"}';
      await post(`${receiver.url}?a=b`, newPoster(), { body: Buffer.from(text) });
      expect(received).to.equal(text);
      expect(head).to.include({ method: 'POST', url: '/hook?a=b', host: `127.0.0.1:${receiver.port}` });
      expect(head).to.include({ 'content-type': 'application/json', 'user-agent': 'Kusanya-Webhooks/1' });
      expect(head).to.include({ 'service-signature': 't=1,v1=ab', 'content-length': '28' });
      expect(head).to.not.have.any.keys('accept-encoding', 'transfer-encoding', 'expect', 'cookie');
    });

    it('times are by the service’s clock and the stopwatch', async () => {
      const receiver = await startHttp((_request, response) => void setTimeout(() => response.end('x'), 60));
      const clock = new SystemClock();
      clock.offsetMs = 3_600_000;
      const begun = performance.now();
      const result = await post(receiver.url, newPoster({ clock }));
      const mostMs = performance.now() - begun;
      expect(result.durationMs).to.be.within(55, mostMs);
      expect(result.startedAt - steadyMs()).to.be.within(3_500_000, 3_600_000);
      expect(result.endedAt - result.startedAt).to.be.within(55, mostMs + 1);
    });

    it('a redirect is a failure and is not followed', async () => {
      let visits = 0;
      const other = await startHttp((_request, response) => {
        visits += 1;
        response.end();
      });
      for (const status of [301, 302, 303, 307, 308]) {
        const receiver = await startHttp((_request, response) => {
          response.writeHead(status, { Location: other.url }).end();
        });
        expect(await post(receiver.url)).to.include({ ok: false, status, reason: 'redirect', charged: true });
      }
      expect(visits).to.equal(0);
    });
  });

  describe('that answer slowly or never', () => {
    it('silence until the deadline is a timeout', async () => {
      const receiver = await startRaw(() => {});
      const result = await post(receiver.url, newPoster(hurried));
      // A process that stood still meanwhile charges nobody for it.
      const charged = result.durationMs < timeoutMs + 1_000;
      expect(result).to.include({ ok: false, reason: 'timeout', phase: 'answer', charged });
      expect(result.durationMs).to.be.at.least(timeoutMs - 5);
      await eventually(() => expect(receiver.open, 'the socket is given up').to.have.property('size', 0));
    });

    it('a head that comes byte by byte is a timeout', async () => {
      const receiver = await startRaw((socket) =>
        drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
      );
      expect(await post(receiver.url, newPoster(hurried))).to.include({ ok: false, reason: 'timeout' });
    });

    it('a success whose body never comes stays a success', async () => {
      const receiver = await startRaw((socket) =>
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'),
      );
      const begun = performance.now();
      const result = await post(receiver.url);
      expect(result).to.include({ ok: true, status: 200 }).and.not.have.property('excerpt');
      const waitedMs = performance.now() - begun - result.durationMs;
      expect(waitedMs, 'the wait for the body is not part of it').to.be.above(900);
    });

    it('a success whose body comes byte by byte stays a success, with what came', async () => {
      const receiver = await startRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n');
        drip(socket, 'abcdefghij'.repeat(10));
      });
      const result = await post(receiver.url);
      expect(result).to.include({ ok: true, status: 200 });
      expect(result.excerpt).to.match(/^abc/);
    });

    it('a failure whose body hangs is told by its status', async () => {
      const receiver = await startRaw((socket) =>
        socket.write('HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nbad'),
      );
      expect(await post(receiver.url)).to.include({
        ok: false,
        status: 500,
        reason: 'http_status',
        excerpt: 'bad',
      });
    });

    it('a TLS partner that says nothing is a timeout', async () => {
      const receiver = await startTcp((socket) => socket.resume(), 'https');
      expect(await post(receiver.url, newPoster(hurried))).to.include({
        ok: false,
        reason: 'timeout',
        phase: 'tls',
      });
    });

    it('an answer that arrived in time counts although we were too busy to read it', async () => {
      const receiver = await startRaw((socket) => {
        socket.write(okAnswer, () => block(1050));
      });
      const begun = performance.now();
      const result = await newPoster({ timeoutMs: 1000 }).post({
        url: receiver.url,
        mode: 'test',
        endpointKey: 'we_1',
        headers: {},
        body,
      });
      expect(performance.now() - begun).to.be.above(1000);
      expect(result).to.include({ ok: true, status: 200 });
    });

    it('a timeout that rings far too late is our own fault', async () => {
      const receiver = await startRaw(() => block(timeoutMs + 1200));
      const result = await newPoster(hurried).post({
        url: receiver.url,
        mode: 'test',
        endpointKey: 'we_1',
        headers: {},
        body,
      });
      expect(result).to.include({
        ok: false,
        reason: 'timeout',
        charged: false,
        detail: 'attempt_timeout_late',
      });
    });
  });

  describe('that send too much', () => {
    const enoughBytes = 8 * 1024 * 1024;

    it('an endless body stays a success and is cut off, many at once too', async () => {
      let sentBytes = 0;
      const receiver = await startRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        flood(socket, Buffer.from(`10000\r\n${'x'.repeat(65_536)}\r\n`), (bytes) => {
          sentBytes += bytes;
        });
      });
      const poster = newPoster();
      const before = process.memoryUsage().rss;
      const results = await Promise.all(Array.from({ length: 10 }, () => post(receiver.url, poster)));
      for (const result of results) expect(result).to.include({ ok: true, excerpt: 'x'.repeat(2048) });
      expect(process.memoryUsage().rss - before).to.be.below(150 * 1024 * 1024);
      expect(sentBytes / results.length).to.be.below(enoughBytes);
      await eventually(() => expect(receiver.open, 'the sockets are given up').to.have.property('size', 0));
    });

    it('a body of a gigabyte stays a success and is not read', async () => {
      let sentBytes = 0;
      const receiver = await startRaw((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${1024 ** 3}\r\n\r\n`);
        flood(socket, Buffer.alloc(65_536, 'y'), (bytes) => {
          sentBytes += bytes;
        });
      });
      expect(await post(receiver.url)).to.include({
        ok: true,
        status: 200,
        excerpt: 'y'.repeat(2048),
      });
      await wait(50);
      expect(sentBytes).to.be.below(enoughBytes);
    });

    it('a gzip bomb is never inflated', async () => {
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
      const receiver = await startHttp((_request, response) => {
        response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': bomb.length }).end(bomb);
      });
      const before = process.memoryUsage().arrayBuffers;
      const result = await post(receiver.url);
      expect(result).to.include({ ok: true, status: 200 });
      expect(result.excerpt)
        .to.have.length.within(1, 2048)
        .and.match(/^\ufffd/);
      expect(process.memoryUsage().arrayBuffers - before).to.be.below(enoughBytes);
    });

    it('a head of more than 16 KiB is an invalid response', async () => {
      const receiver = await startRaw((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nX-Big: ${'x'.repeat(20_000)}\r\nContent-Length: 0\r\n\r\n`);
      });
      const result = await post(receiver.url);
      expect(result).to.include({ ok: false, reason: 'invalid_response', detail: 'HPE_HEADER_OVERFLOW' });
    });

    it('an endless head is an invalid response', async () => {
      const receiver = await startRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        flood(socket, Buffer.from(`X-More: ${'x'.repeat(1000)}\r\n`));
      });
      expect(await post(receiver.url)).to.include({
        ok: false,
        reason: 'invalid_response',
      });
    });

    it('endless interim answers are an invalid response; a few before the real one are fine', async () => {
      const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
      const endless = await startRaw((socket) => flood(socket, Buffer.from(hints.repeat(100))));
      expect(await post(endless.url)).to.include({
        reason: 'invalid_response',
        detail: 'too_many_1xx',
      });
      const few = await startRaw((socket) =>
        socket.write(`HTTP/1.1 100 Continue\r\n\r\n${hints}${hints}${okAnswer}`),
      );
      expect(await post(few.url)).to.include({ ok: true, status: 200 });
    });

    it('the excerpt is text, whatever came: cut between characters, no control characters', async () => {
      const receiver = await startHttp((request, response) => {
        if (request.url === '/long') response.end('☕'.repeat(1000));
        else response.end(Buffer.from('61ff00621b5b33316d0a63', 'hex'));
      });
      const long = await post(`http://127.0.0.1:${receiver.port}/long`);
      expect(long.excerpt).to.equal('☕'.repeat(682));
      const odd = await post(`http://127.0.0.1:${receiver.port}/odd`);
      expect(odd.excerpt).to.equal('a\ufffd\ufffdb\ufffd[31m\nc');
    });
  });

  describe('that break the rules', () => {
    const broken: [string, string, string][] = [
      [
        'a protocol switch nobody asked for',
        'HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
        'invalid_response',
      ],
      ['a bare 101', 'HTTP/1.1 101 Go\r\n\r\n', 'invalid_response'],
      ['an SSH banner', 'SSH-2.0-OpenSSH_9.2\r\n', 'invalid_response'],
      ['bytes at random', '\u0000\u0001\u0002\u0003\u0004', 'invalid_response'],
      ['an answer without a status', 'HTTP/1.1\r\n\r\n', 'invalid_response'],
      [
        'two lengths',
        'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
        'invalid_response',
      ],
      [
        'a length and chunks',
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        'invalid_response',
      ],
      ['a head that breaks off', 'HTTP/1.1 200 OK\r\nContent-Le', 'connection_reset'],
      ['nothing at all', '', 'connection_reset'],
    ];
    for (const [name, bytes, reason] of broken) {
      it(`${name} is ${reason}`, async () => {
        const receiver = await startRaw((socket) => void socket.end(Buffer.from(bytes, 'latin1')));
        const result = await post(receiver.url);
        expect(result).to.include({ ok: false, reason, charged: true, phase: 'answer', resent: false });
        expect(receiver.connections).to.equal(1);
      });
    }

    it('a success whose body breaks off, or is garbage, stays a success', async () => {
      const heads = ['Content-Length: 100', 'Transfer-Encoding: chunked'];
      for (const head of heads) {
        const receiver = await startRaw(
          (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\nnot a chunk`),
        );
        expect(await post(receiver.url)).to.include({ ok: true, status: 200 });
        const reset = await startRaw((socket) => {
          socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\nsix`, () => socket.resetAndDestroy());
        });
        expect(await post(reset.url)).to.include({ ok: true, status: 200 });
      }
    });

    it('a reset is told as one, and a fresh socket is not tried twice', async () => {
      const late = await startRaw((socket) => socket.resetAndDestroy());
      expect(await post(late.url)).to.include({ ok: false, reason: 'connection_reset', resent: false });
      const early = await startTcp((socket) => socket.resetAndDestroy());
      // Which of the two it is depends on whether the kernel had already told us that we were connected.
      expect((await post(early.url)).reason).to.be.oneOf(['connection_reset', 'connect_error']);
      expect([late.connections, early.connections]).to.deep.equal([1, 1]);
    });

    it('a closed port is a connect_error, and the endpoint’s fault', async () => {
      const receiver = await startTcp(() => {});
      await closeReceivers();
      const refused = {
        ok: false,
        reason: 'connect_error',
        detail: 'ECONNREFUSED',
        phase: 'connect',
        charged: true,
      };
      expect(await post(receiver.url)).to.include(refused);
      expect(await post(`http://localhost:${receiver.port}/`)).to.include(refused);
    });
  });

  describe('over TLS', () => {
    it('a trusted certificate of the right name is a success', async () => {
      const receiver = await startHttps(certificate, (_request, response) => void response.end('sealed'));
      expect(await post(receiver.url)).to.include({ ok: true, excerpt: 'sealed' });
      expect(await post(`https://localhost:${receiver.port}/`)).to.include({ ok: true });
    });

    const dayMs = 86_400_000;
    const wrong = {
      'of another name': [authority.issue(['example.com']), 'ERR_TLS_CERT_ALTNAME_INVALID'],
      'signed by itself': [selfSigned(['127.0.0.1']), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
      'signed by a stranger': [
        createAuthority('Other').issue(['127.0.0.1']),
        'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      ],
      'that has expired': [
        authority.issue(['127.0.0.1'], { toMs: Date.now() - dayMs / 2 }),
        'CERT_HAS_EXPIRED',
      ],
      'of tomorrow': [
        authority.issue(['127.0.0.1'], { fromMs: Date.now() + dayMs / 2 }),
        'CERT_NOT_YET_VALID',
      ],
    } as const;
    for (const [name, [given, detail]] of Object.entries(wrong)) {
      it(`a certificate ${name} is a tls_error`, async () => {
        let visits = 0;
        const receiver = await startHttps(given, () => {
          visits += 1;
        });
        expect(await post(receiver.url)).to.include({ ok: false, reason: 'tls_error', detail, phase: 'tls' });
        expect(visits).to.equal(0);
      });
    }

    it('plain HTTP, garbage or a reset in place of TLS is a tls_error', async () => {
      const plain = await startTcp((socket) => socket.once('data', () => socket.end(okAnswer)), 'https');
      expect(await post(plain.url)).to.include({ ok: false, reason: 'tls_error' });
      const reset = await startTcp((socket) => socket.once('data', () => socket.resetAndDestroy()), 'https');
      expect(await post(reset.url)).to.include({ ok: false, reason: 'tls_error', phase: 'tls' });
    });
  });
});
