import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import {
  certificate,
  closeAll,
  eventually,
  hurried,
  newPoster,
  okAnswer,
  post,
  slackMs,
  timeoutMs,
} from '../support/posting.ts';
import { startHttp, startHttps, startRaw } from '../support/receivers.ts';

describe('webhook sockets', () => {
  afterEach(closeAll);

  const secured = { http: undefined, https: certificate };

  describe('are used again', () => {
    it('by the same endpoint, over http and https', async () => {
      const plain = await startHttp((_request, response) => void response.end('x'));
      const sealed = await startHttps(certificate, (_request, response) => void response.end('x'));
      for (const receiver of [plain, sealed]) {
        const poster = newPoster();
        for (const reusedSocket of [false, true, true, true, true]) {
          expect(await post(receiver.url, poster)).to.include({ ok: true, reusedSocket, resent: false });
        }
        expect(receiver.connections).to.equal(1);
      }
    });

    it('never by another endpoint, be it of the same host', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const poster = newPoster();
      for (const endpointKey of ['we_1', 'we_2', 'we_1', 'we_2']) {
        await post(receiver.url, poster, { endpointKey });
      }
      expect(receiver.connections).to.equal(2);
      expect(poster.idleSockets).to.equal(2);
    });

    it('after a failure and after a body longer than the excerpt, as long as it ends', async () => {
      const receiver = await startHttp((_request, response) => {
        response.writeHead(500).end('x'.repeat(30_000));
      });
      const poster = newPoster();
      expect(await post(receiver.url, poster)).to.include({
        reason: 'http_status',
        excerpt: 'x'.repeat(2048),
      });
      await eventually(() => expect(poster.idleSockets).to.equal(1));
      expect(await post(receiver.url, poster)).to.include({ status: 500, reusedSocket: true });
      expect(receiver.connections).to.equal(1);
    });

    it('without piling up listeners', async () => {
      const warnings: Error[] = [];
      const listen = (warning: Error) => void warnings.push(warning);
      process.on('warning', listen);
      const receiver = await startHttp((_request, response) => void response.end('x'));
      const poster = newPoster();
      for (let round = 0; round < 40; round += 1) await post(receiver.url, poster);
      await wait(10);
      process.removeListener('warning', listen);
      expect(warnings).to.deep.equal([]);
      expect(receiver.connections).to.equal(1);
    });

    it('not when the receiver says close, nor after an answer that had to be cut off', async () => {
      const poster = newPoster();
      const closing = await startHttp((_request, response) => {
        response.writeHead(200, { Connection: 'close' }).end();
      });
      const hanging = await startRaw((socket) =>
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'),
      );
      for (const receiver of [closing, hanging]) {
        await post(receiver.url, poster);
        expect(await post(receiver.url, poster)).to.include({ ok: true, reusedSocket: false });
        expect(receiver.connections).to.equal(2);
      }
      expect(poster.idleSockets).to.equal(0);
    });

    it('not past their age, so that an endpoint that moves is followed', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const poster = newPoster({ socketMaxAgeMs: 400 });
      const begun = performance.now();
      expect(await post(receiver.url, poster)).to.include({ reusedSocket: false });
      while ((await post(receiver.url, poster)).reusedSocket) await wait(50);
      expect(performance.now() - begun).to.be.above(400);
      expect(receiver.connections).to.equal(2);
    });
  });

  describe('that went stale while idle', () => {
    const endings = { 'a reset': 'resetAndDestroy', 'a close': 'destroy' } as const;
    for (const [name, ending] of Object.entries(endings)) {
      for (const [scheme, given] of Object.entries(secured)) {
        it(`${name} over ${scheme} before any answer is tried once more on a fresh socket`, async () => {
          const requests: string[] = [];
          const receiver = await startRaw((socket, request, nth) => {
            requests.push(request);
            // The bare sockets: TLS ones cannot be reset.
            if (nth === 1) for (const each of receiver.open) each[ending]();
            else socket.write(okAnswer);
          }, given);
          const poster = newPoster();
          expect(await post(receiver.url, poster)).to.include({ ok: true, resent: false });
          expect(await post(receiver.url, poster)).to.include({
            ok: true,
            resent: true,
            reusedSocket: false,
          });
          expect(receiver.connections).to.equal(2);
          expect(requests).to.have.length(3);
          expect(requests[2], 'the same bytes again').to.equal(requests[1]);
        });
      }
    }

    it('the second try is the last one', async () => {
      const receiver = await startRaw((socket, _request, nth) => {
        if (nth === 0) socket.write(okAnswer);
        else socket.resetAndDestroy();
      });
      const poster = newPoster();
      await post(receiver.url, poster);
      const result = await post(receiver.url, poster);
      expect(result).to.include({ ok: false, reason: 'connection_reset', resent: true, charged: true });
      expect(receiver.connections).to.equal(2);
    });

    it('the second try does not meet the stale neighbours of the first', async () => {
      // A receiver that has forgotten its old connections says so only when one is used.
      const old = new WeakSet<object>();
      const receiver = await startRaw((socket) => {
        if (old.has(socket)) return void socket.resetAndDestroy();
        old.add(socket);
        setTimeout(() => socket.write(okAnswer), 40);
      });
      const poster = newPoster();
      await Promise.all(Array.from({ length: 4 }, () => post(receiver.url, poster)));
      await eventually(() => expect(poster.idleSockets).to.equal(4));
      expect(await post(receiver.url, poster)).to.include({ ok: true, resent: true, reusedSocket: false });
    });

    it('is not tried again once a byte of the answer has come, nor after a timeout', async () => {
      for (const second of ['HTTP/1.1 200', undefined]) {
        const receiver = await startRaw((socket, _request, nth) => {
          if (nth === 0) socket.write(okAnswer);
          else if (second) socket.write(second, () => setTimeout(() => socket.resetAndDestroy(), 20));
        });
        const poster = newPoster(second ? {} : { timeoutMs: 2_000 });
        await post(receiver.url, poster);
        const reason = second ? 'connection_reset' : 'timeout';
        expect(await post(receiver.url, poster)).to.include({
          ok: false,
          reason,
          resent: false,
          reusedSocket: true,
        });
        expect(receiver.connections).to.equal(1);
      }
    });

    it('and was closed by the receiver in good time is not used at all', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const poster = newPoster();
      await post(receiver.url, poster);
      for (const socket of receiver.open) socket.end();
      await eventually(() => expect(poster.idleSockets).to.equal(0));
      expect(await post(receiver.url, poster)).to.include({ ok: true, resent: false, reusedSocket: false });
    });

    it('a second answer nobody asked for does not become the next attempt’s answer', async () => {
      const smuggled = 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n';
      const delivered: unknown[] = [];
      const together = await startRaw((socket, _request, nth) => {
        socket.write(nth === 0 ? okAnswer + smuggled : okAnswer);
      });
      const apart = await startRaw((socket, _request, nth) => {
        socket.write(okAnswer);
        if (nth === 0) setTimeout(() => socket.write(smuggled, () => delivered.push(apart)), 20);
      });
      for (const receiver of [together, apart]) {
        const poster = newPoster();
        expect(await post(receiver.url, poster)).to.include({ ok: true, status: 200 });
        if (receiver === apart) await eventually(() => expect(delivered).to.have.length(1));
        await wait(50);
        expect(await post(receiver.url, poster)).to.include({ ok: true, status: 200 });
      }
    });
  });

  describe('are bounded', () => {
    it('in time: an idle one is closed', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const poster = newPoster({ idleMs: 300 });
      await post(receiver.url, poster);
      expect(poster.idleSockets).to.equal(1);
      await eventually(() => expect(poster.idleSockets).to.equal(0));
      await eventually(() => expect(receiver.open).to.have.property('size', 0));
    });

    it('per endpoint, whatever is under way at once', async () => {
      const receiver = await startHttp((_request, response) => void setTimeout(() => response.end(), 40));
      const poster = newPoster({ idleMaxPerEndpoint: 3 });
      await Promise.all(Array.from({ length: 12 }, () => post(receiver.url, poster)));
      await eventually(() => expect(poster.idleSockets).to.equal(3));
      await eventually(() => expect(receiver.open).to.have.property('size', 3));
      expect(receiver.connections).to.equal(12);
    });

    it('over all endpoints: the longest idle gives way', async () => {
      const receiver = await startHttp((_request, response) => void response.end());
      const poster = newPoster({ idleMax: 2 });
      for (const endpointKey of ['we_1', 'we_2', 'we_3', 'we_4']) {
        await post(receiver.url, poster, { endpointKey });
      }
      await eventually(() => expect(poster.idleSockets).to.equal(2));
      await eventually(() => expect(receiver.open).to.have.property('size', 2));
      expect(await post(receiver.url, poster, { endpointKey: 'we_4' })).to.include({ reusedSocket: true });
      expect(await post(receiver.url, poster, { endpointKey: 'we_1' })).to.include({ reusedSocket: false });
    });
  });

  describe('on closing', () => {
    it('attempts under way end well, idle sockets are closed, and no new attempt is taken', async () => {
      const receiver = await startHttp((_request, response) => void setTimeout(() => response.end(), 80));
      const poster = newPoster();
      const attempt = post(receiver.url, poster);
      await poster.close();
      expect(await attempt).to.include({ ok: true });
      await eventually(() => expect(receiver.open).to.have.property('size', 0));
      const refused = await post(receiver.url, poster).catch((error: Error) => error.message);
      expect(refused).to.equal('the webhook poster is closed');
    });

    it('a receiver that hangs holds it up for its own deadline at most', async () => {
      const receiver = await startRaw(() => {});
      const poster = newPoster(hurried);
      const attempt = post(receiver.url, poster);
      const begun = performance.now();
      await poster.close();
      expect(performance.now() - begun).to.be.below(timeoutMs + slackMs);
      expect(await attempt).to.include({ reason: 'timeout' });
    });
  });
});
