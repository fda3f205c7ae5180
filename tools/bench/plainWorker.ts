import { createHmac } from 'node:crypto';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import process from 'node:process';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

/** A plain BullMQ worker that signs and posts and records nothing: the yardstick for deliveries. */
const connection = new Redis(process.env.REDIS_URL!, { maxRetriesPerRequest: null });
const prefix = process.env.BENCH_DB!;
const url = new URL(process.env.BENCH_URL!);
const total = Number(process.env.BENCH_TOTAL);
const agent =
  url.protocol === 'https:'
    ? new HttpsAgent({ keepAlive: true, maxSockets: 100 })
    : new HttpAgent({ keepAlive: true, maxSockets: 100 });
const send = url.protocol === 'https:' ? httpsRequest : httpRequest;

function post(body: string): Promise<void> {
  const t = Math.floor(Date.now() / 1000);
  const v1 = createHmac('sha256', 'whsec_plain').update(`${t}.${body}`).digest('hex');
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'service-signature': `t=${t},v1=${v1}`,
        },
      },
      (response) => {
        response.resume();
        response.on('end', resolve);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const queue = new Queue('hooks', { connection, prefix });
const body = JSON.stringify({
  id: 'evt_x',
  type: 'collection.succeeded',
  created_at: new Date().toISOString(),
  mode: 'test',
  data: { id: 'col_x', amount: 5000, metadata: { filler: 'x'.repeat(300) } },
});
for (let from = 0; from < total; from += 1_000) {
  const jobs = Array.from({ length: Math.min(1_000, total - from) }, (_, index) => ({
    name: 'hook',
    data: { body },
    opts: { jobId: `h${from + index}`, removeOnComplete: true, removeOnFail: true },
  }));
  await queue.addBulk(jobs);
}
process.send?.({});
process.on('disconnect', () => process.exit(1)); // the bench was killed
process.once('message', () => {
  new Worker('hooks', (job) => post(job.data.body as string), { connection, prefix, concurrency: 100 });
});
