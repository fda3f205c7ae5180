import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import Koa from 'koa';
import { koaBody } from 'koa-body';
import { validate } from './request.ts';

/**
 * The same on Restate: Koa in front, a virtual object per collection and per merchant behind, as its documentation
 * teaches. The 202 is answered once Restate has stored the result.
 *
 * env: RESTATE_DIR (where its packages were installed), RESTATE_INGRESS, RESTATE_ADMIN (addresses), RESTATE_PORT
 * (of this process's handlers).
 */
// The SDK is written for a newer Node; this is all that it misses in version 20.
const missing = Promise as unknown as { withResolvers?: () => object };
missing.withResolvers ??= () => {
  const made: Record<string, unknown> = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

const require = createRequire(join(process.env.RESTATE_DIR!, 'package.json'));
const sdk = pathToFileURL(require.resolve('@restatedev/restate-sdk')).href;
// biome-ignore lint/suspicious/noExplicitAny: its types are installed only while the bench runs
type Loose = any;
const restate = (await import(sdk)) as Loose;
const ingress = process.env.RESTATE_INGRESS!;
const port = Number(process.env.RESTATE_PORT);

let paid = 0;
const merchant = restate.object({
  name: 'merchant',
  handlers: {
    credit: async (ctx: Loose, { id, net }: { id: string; net: number }) => {
      ctx.set('pending', ((await ctx.get('pending')) ?? 0) + net);
      ctx.set('entry', { id, net });
      paid += 1;
    },
  },
});
const collection = restate.object({
  name: 'collection',
  handlers: {
    create: async (ctx: Loose, body: { amount: number }) => {
      const fee = Math.floor((body.amount * 200 + 5_000) / 10_000);
      const createdAt = new Date(await ctx.date.now()).toISOString();
      const doc = {
        id: ctx.key,
        object: 'collection',
        status: 'created',
        ...body,
        fee,
        created_at: createdAt,
      };
      ctx.set('doc', doc);
      ctx.objectSendClient(collection, ctx.key).pay({}, restate.rpc.sendOpts({ delay: 500 }));
      return doc;
    },
    pay: async (ctx: Loose) => {
      const doc = { ...(await ctx.get('doc')), status: 'succeeded' };
      ctx.set('doc', doc);
      ctx.set('event', { type: 'collection.succeeded', data: doc });
      ctx.objectSendClient(merchant, 'mer_1').credit({ id: ctx.key, net: doc.amount - doc.fee });
    },
  },
});
await restate.serve({ services: [collection, merchant], port });
const registered = await fetch(`${process.env.RESTATE_ADMIN}/deployments`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
});
if (!registered.ok) throw new Error(await registered.text());

const app = new Koa();
app.use(koaBody({ text: false, urlencoded: false, multipart: false, jsonLimit: '32kb' }));
app.use(async (ctx) => {
  if (!validate(ctx.request.body)) ctx.throw(400);
  const key = ctx.get('idempotency-key');
  const answer = await fetch(`${ingress}/collection/col_${key}/create`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(ctx.request.body),
  });
  ctx.body = await answer.text();
  ctx.status = answer.ok ? 202 : 502;
  ctx.type = 'application/json';
});
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as { port: number }).port, key: 'none' });
});
process.on('message', () => process.send?.({ paid }));
