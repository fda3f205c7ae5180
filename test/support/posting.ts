/** Posters for loopback receivers, and what must hold of every attempt they make. */
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { SystemClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import {
  type AttemptResult,
  type PosterOptions,
  type PostInput,
  WebhookPoster,
} from '../../src/webhooks/post.ts';
import { createAuthority } from './certificates.ts';
import { closeReceivers } from './receivers.ts';

/** The clock of a poster in tests that wait for its end. In all others it is longer: the machine may be busy. */
export const timeoutMs = 400;
export const hurried = { timeoutMs };
const unhurriedMs = 20_000;
/** A busy machine may take its time; what counts is that nothing waits longer than its poster is told to. */
export const slackMs = 8_000;

export const body = Buffer.from('{"id":"evt_1"}');
export const okAnswer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Trusted by every poster made here. */
export const authority = createAuthority('Test Authority');
export const certificate = authority.issue(['127.0.0.1', 'localhost', 'good.test']);

/** Every poster made here, and its clock. */
const posters = new Map<WebhookPoster, number>();

export function newPoster(options: Partial<PosterOptions> = {}): WebhookPoster {
  const base = {
    clock: new SystemClock(),
    timeoutMs: unhurriedMs,
    allowCidrs: ['127.0.0.0/8'],
    ca: [authority.cert],
  };
  const poster = new WebhookPoster({ ...base, ...options });
  posters.set(poster, options.timeoutMs ?? unhurriedMs);
  return poster;
}

/** Posts, and checks that the attempt ends in time and that what is told of it shows no address. */
export async function post(
  url: string,
  poster = newPoster(),
  input: Partial<PostInput> = {},
): Promise<AttemptResult> {
  const headers = { 'Service-Signature': 't=1,v1=ab' };
  const begun = performance.now();
  const result = await poster.post({ url, mode: 'test', endpointKey: 'we_1', headers, body, ...input });
  const mostMs = posters.get(poster)! + slackMs;
  expect(performance.now() - begun, 'until it is told').to.be.below(mostMs);
  expect(result.durationMs, 'until it is decided').to.be.below(mostMs);
  const { excerpt: _, ...shown } = result;
  expect(JSON.stringify(shown)).to.not.match(/\d+\.\d+\.\d+\.\d+|localhost|\.test|:\/\//);
  return result;
}

/** Closes every poster and receiver that a test opened. */
export async function closeAll(): Promise<void> {
  for (const poster of posters.keys()) await poster.close();
  posters.clear();
  await closeReceivers();
}

/** Waits until what must come about has come about: sockets close when the machine finds the time. */
export async function eventually(check: () => void): Promise<void> {
  const begun = performance.now();
  for (;;) {
    try {
      return check();
    } catch (error) {
      if (performance.now() - begun > slackMs) throw error;
      await wait(5);
    }
  }
}

/** Writes a text byte by byte. */
export function drip(socket: Socket, text: string, everyMs = 25): void {
  let sent = 0;
  const timer = setInterval(() => {
    if (socket.destroyed || sent === text.length) return clearInterval(timer);
    socket.write(text.charAt(sent));
    sent += 1;
  }, everyMs);
}

/** Writes for as long as the other side takes it; `sent` hears how much. */
export function flood(socket: Socket, chunk: Buffer, sent: (bytes: number) => void = () => {}): void {
  const more = (): void => {
    while (!socket.destroyed && socket.writable) {
      sent(chunk.length);
      if (socket.write(chunk)) continue;
      socket.once('drain', more);
      return;
    }
  };
  more();
}

/** Keeps the process busy, as a long garbage collection or a stopped process would. */
export function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
