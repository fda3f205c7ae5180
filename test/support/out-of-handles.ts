/** Run under a low `ulimit -n`: takes every file handle there is, then posts. Prints the result as JSON. */
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { SystemClock } from '@kusanya/durable-actors';
import { WebhookPoster } from '../../src/webhooks/post.ts';

const server = createServer();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as { port: number };
const poster = new WebhookPoster({ clock: new SystemClock(), timeoutMs: 300, allowCidrs: ['127.0.0.0/8'] });
const attempt = { mode: 'test', endpointKey: 'we_1', headers: {}, body: Buffer.from('{}') } as const;
// Once before, so that nothing is loaded while there are no handles.
await poster.post({ ...attempt, url: `http://127.0.0.1:${port}/` });

const taken: number[] = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  // None left: that is the state wanted.
}
const result = await poster.post({ ...attempt, url: `http://127.0.0.1:${port}/` });
taken.forEach(closeSync);
process.stdout.write(JSON.stringify(result));
process.exit();
