import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

/**
 * A fast receiver of webhooks that counts, as a process of its own: HTTP, HTTPS with a certificate of its own,
 * an address that never answers and one that takes three seconds. `/lag` measures: it notes how long after its creation
 * each event came.
 */
export interface ReceiverHello {
  ports: { http: number; https: number; hang: number; slow: number };
  certFile: string;
}

export interface ReceiverCount {
  count: number;
  /** Of those, at `/lag`. */
  lags: number;
  p50Ms: number;
  p99Ms: number;
}

const slowMs = 3_000;
let count = 0;
let lags: number[] = [];
const answer: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    count += 1;
    if (request.url?.startsWith('/lag')) {
      const { created_at } = JSON.parse(Buffer.concat(chunks).toString()) as { created_at: string };
      lags.push(Date.now() - Date.parse(created_at));
    }
    response.end('ok');
  });
};

const dir = mkdtempSync(join(tmpdir(), 'kusanya-bench-cert-'));
execFileSync(
  'openssl',
  [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1'],
    ...[
      '-addext',
      'subjectAltName=IP:127.0.0.1',
      '-keyout',
      join(dir, 'key.pem'),
      '-out',
      join(dir, 'cert.pem'),
    ],
  ],
  { stdio: 'ignore' },
);
const pem = { key: readFileSync(join(dir, 'key.pem')), cert: readFileSync(join(dir, 'cert.pem')) };
const servers = {
  http: createHttp(answer),
  https: createHttps(pem, answer),
  hang: createHttp(() => {}),
  slow: createHttp((request, response) => {
    request.resume();
    setTimeout(() => response.end('ok'), slowMs);
  }),
};
const ports: Record<string, number> = {};
for (const [name, server] of Object.entries(servers)) {
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ports[name] = (server.address() as AddressInfo).port;
}
process.on('disconnect', () => process.exit(1)); // the bench was killed
process.on('message', (message) => {
  if (message === 'reset') {
    count = 0;
    lags = [];
  }
  lags.sort((a, b) => a - b);
  const at = (share: number) => lags[Math.floor(lags.length * share)] ?? 0;
  process.send?.({ count, lags: lags.length, p50Ms: at(0.5), p99Ms: at(0.99) });
});
process.send?.({ ports, certFile: join(dir, 'cert.pem') });
