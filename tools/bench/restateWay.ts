import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { validate } from './request.ts';

/**
 * The same on Restate: a virtual object per collection and per merchant, as its documentation teaches. Requests come
 * to Restate's own ingress, which answers once it has stored the result; nothing of ours stands in front.
 *
 * env: RESTATE_DIR (where its packages were installed), RESTATE_ADMIN (address), RESTATE_PORT (of this process's
 * handlers), RESTATE_PAY_MS (how long after its creation a collection is paid).
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
const port = Number(process.env.RESTATE_PORT);
const payAfterMs = Number(process.env.RESTATE_PAY_MS);
const merchants = 100;

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
      if (!validate(body)) throw new restate.TerminalError('not a collection', { errorCode: 400 });
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
      ctx.objectSendClient(collection, ctx.key).pay({}, restate.rpc.sendOpts({ delay: payAfterMs }));
      return doc;
    },
    pay: async (ctx: Loose) => {
      const doc = { ...(await ctx.get('doc')), status: 'succeeded' };
      ctx.set('doc', doc);
      ctx.set('event', { type: 'collection.succeeded', data: doc });
      const owner = Number(/\d+$/.exec(ctx.key)?.[0] ?? 0) % merchants;
      ctx.objectSendClient(merchant, `mer_${owner}`).credit({ id: ctx.key, net: doc.amount - doc.fee });
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

process.send?.({});
process.on('disconnect', () => process.exit(1)); // the bench was killed
process.on('message', () => process.send?.({ paid }));
