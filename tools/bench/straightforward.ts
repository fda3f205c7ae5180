import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import process from 'node:process';
import Router from '@koa/router';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { koaBody } from 'koa-body';
import { Long, MongoClient } from 'mongodb';
import { validate } from './request.ts';

/**
 * The straightforward way, written well: Koa, one MongoDB transaction per request, one BullMQ delayed job, no
 * charts, no group commit. It keeps the same promises about durability (majority and journal, idempotency record
 * in the transaction) and does the same checks; it is what a good team would write first.
 *
 * env: MONGODB_URI, REDIS_URL, BENCH_DB, BENCH_ROLE (api, all), BENCH_MERCHANTS (1), BENCH_CONCURRENCY (of payments).
 * Says its port and a key of each merchant.
 */
const client = await new MongoClient(process.env.MONGODB_URI!, {
  writeConcern: { w: 'majority', journal: true },
  readConcern: { level: 'majority' },
}).connect();
const db = client.db(process.env.BENCH_DB);
const redis = new Redis(process.env.REDIS_URL!, { maxRetriesPerRequest: null });
const queue = new Queue('payments', { connection: redis, prefix: process.env.BENCH_DB! });

// biome-ignore lint/suspicious/noExplicitAny: plain documents
type Plain = any;
const collections = db.collection<Plain>('sf_collections');
const idempotency = db.collection<Plain>('sf_idempotency');
const entries = db.collection<Plain>('sf_entries');
const balances = db.collection<Plain>('sf_balances');
const events = db.collection<Plain>('sf_events');
const keys = db.collection<Plain>('sf_keys');
await collections.createIndexes([
  { key: { merchantId: 1, mode: 1, _id: -1 } },
  { key: { merchantId: 1, mode: 1, reference: 1, _id: -1 } },
  { key: { merchantId: 1, mode: 1, status: 1, _id: -1 } },
]);

const hashOf = (text: string) => createHmac('sha256', 'pepper').update(text).digest('hex');
const secrets = Array.from(
  { length: Number(process.env.BENCH_MERCHANTS ?? 1) },
  () => `kusanya_test_sk_${randomBytes(19).toString('hex')}`,
);
await keys.insertMany(
  secrets.map((secret, n) => ({
    _id: `key_${n}`,
    hash: hashOf(secret),
    merchantId: `mer_${n}`,
    mode: 'test',
  })),
);
await keys.createIndex({ hash: 1 }, { unique: true });

const cache = new Map<string, Plain>();
async function principalOf(authorization: string | undefined): Promise<Plain> {
  const key = authorization?.slice(7) ?? '';
  const known = cache.get(key);
  if (known) return known;
  const found = await keys.findOne({ hash: hashOf(key) });
  if (found) cache.set(key, found);
  return found;
}

let counter = 0;
const newId = () =>
  `col_${Date.now().toString(36)}${(counter++).toString(36).padStart(8, '0')}${randomBytes(4).toString('hex')}`;

const router = new Router();
router.post('/v1/collections', async (ctx) => {
  const principal = await principalOf(ctx.get('authorization'));
  if (!principal) ctx.throw(401);
  const key = ctx.get('idempotency-key');
  const recordId = `${principal.merchantId}.${principal.mode}.${key}`;
  const seen = await idempotency.findOne({ _id: recordId });
  if (seen) {
    ctx.status = 202;
    ctx.body = seen.body;
    return;
  }
  const body = ctx.request.body as Plain;
  if (!validate(body)) ctx.throw(400);
  const _id = newId();
  const createdAt = new Date();
  const fee = Math.floor((body.amount * 200 + 5000) / 10_000);
  const answer = {
    id: _id,
    object: 'collection',
    status: 'created',
    ...body,
    fee,
    created_at: createdAt.toISOString(),
  };
  const text = JSON.stringify(answer);
  const { merchantId, mode } = principal;
  await client.withSession((session) =>
    session.withTransaction(async () => {
      await collections.insertOne(
        {
          _id,
          merchantId,
          mode,
          status: 'created',
          ...body,
          amount: Long.fromNumber(body.amount),
          fee,
          createdAt,
        },
        { session },
      );
      await idempotency.insertOne(
        { _id: recordId, body: text, createdAt, expiresAt: new Date(createdAt.getTime() + 86_400_000) },
        { session },
      );
    }),
  );
  await queue.add('pay', { id: _id }, { jobId: _id, delay: 500, removeOnComplete: true, removeOnFail: true });
  ctx.status = 202;
  ctx.type = 'application/json';
  ctx.body = text;
});

/** Paid: status, entry, balance and event in one transaction. */
async function pay(id: string): Promise<void> {
  await client.withSession((session) =>
    session.withTransaction(async () => {
      const doc = await collections.findOneAndUpdate(
        { _id: id, status: 'created' },
        { $set: { status: 'succeeded', completedAt: new Date() } },
        { session, returnDocument: 'after' },
      );
      if (!doc) return;
      const net = Number(doc.amount) - doc.fee;
      await entries.insertOne(
        { _id: `${id}:succeeded`, merchantId: doc.merchantId, net, gross: doc.amount },
        { session },
      );
      await events.insertOne({ _id: `evt_${id}`, type: 'collection.succeeded', data: doc }, { session });
      await balances.updateOne(
        { _id: `${doc.merchantId}.${doc.mode}` },
        { $inc: { pending: Long.fromNumber(net) } },
        { session, upsert: true },
      );
    }),
  );
}

if (process.env.BENCH_ROLE === 'all') {
  const connection = new Redis(process.env.REDIS_URL!, { maxRetriesPerRequest: null });
  new Worker('payments', (job) => pay(job.data.id as string), {
    connection,
    prefix: process.env.BENCH_DB!,
    // The bench tries several: with few merchants, transactions that meet at a balance abort each other.
    concurrency: Number(process.env.BENCH_CONCURRENCY ?? 16),
    maxStalledCount: 1000,
  });
}

process.on('disconnect', () => process.exit(1)); // the bench was killed
const app = new Koa();
app.use(async (ctx, next) => {
  ctx.set('Request-Id', ctx.get('x-request-id') || randomUUID());
  await next();
});
app.use(koaBody({ text: false, urlencoded: false, multipart: false, jsonLimit: '32kb' }));
app.use(router.routes());
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as { port: number }).port, keys: secrets });
});
