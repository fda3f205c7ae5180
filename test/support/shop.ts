import { connectMongo, MovableClock, prepareDatabase } from '@kusanya/durable-actors';
import { Redis } from 'ioredis';
import type { Db } from 'mongodb';
import { type MerchantDeps, merchantRoutes } from '../../src/app.ts';
import type { CollectionObject, OwnCollections } from '../../src/collections/routes.ts';
import { loadConfig } from '../../src/config.ts';
import {
  createKoa,
  IdempotencyStore,
  idempotencySpec,
  listen,
  RateLimiter,
  type Route,
} from '../../src/http/http.ts';
import { newId } from '../../src/ids.ts';
import type { Balance } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import { keyScopes, type Merchant, type Principal } from '../../src/principal.ts';
import type { Own } from '../../src/whose.ts';
import { type Call, call, type Reply } from './call.ts';
import { checkResponse } from './contract.ts';
import { freshDatabase, stores } from './stores.ts';

/**
 * The merchants' listener over real HTTP with real stores behind idempotency and rate limit, but with rooms that
 * only pretend. Every answer that `ask` returns has been checked against openapi.json.
 */
export interface Shop {
  port: number;
  ask(method: string, path: string, options?: Call): Promise<Reply>;
  /** POST /v1/collections with a new Idempotency-Key unless `headers` has one. */
  create(body: unknown, key?: string, headers?: Call['headers']): Promise<Reply>;
  /** How many collections were made. */
  created(): number;
  close(): Promise<void>;
}

export const clock = new MovableClock();
/** Everything the listener logged, one JSON text per line. */
export const logged: string[] = [];
export const log = createLog('info', { write: (line: string) => void logged.push(line) });

/** A secret is the name of its principal. */
export const keys = {
  test: principal('test'),
  live: principal('live'),
  small: principal('test', { limits: { amountMinTzs: 1000, amountMaxTzs: 2000 } }),
  slow: principal('test', { limits: { rateLimitPerSecond: 1 } }),
  suspended: principal('test', { suspended: true }),
} satisfies Record<string, Principal>;

export const goodBody = { amount: 5000, phone: '255700000000', reference: 'order-1' };

/** `doings`: what happens, instead of a collection, for a reference. */
export async function openShop(doings: Record<string, () => never> = {}): Promise<Shop> {
  const { mongodbUri, redisUrl } = await stores();
  const mongo = await connectMongo(mongodbUri);
  const db = mongo.db(freshDatabase('shop'));
  await prepareDatabase(db, [idempotencySpec]);
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1 });
  const pretended = pretendRoom(db, doings);
  const app = createKoa({
    routes: routesOf(pretended.room),
    clock,
    log,
    authenticateMerchant: (secret) => (keys as Record<string, Principal>)[secret],
    idempotency: new IdempotencyStore({
      db,
      clock,
      secretsKey: Buffer.alloc(32, 7).toString('base64'),
      waitMs: 100,
    }),
    rate: {
      limiter: new RateLimiter({ redis, prefix: db.databaseName, timeoutMs: 30_000 }),
      terms: { perSecond: 1000, burst: 2000 },
    },
  });
  const listener = await listen(app, { port: 0, host: '127.0.0.1', clock });
  let nextKey = 0;
  const shop: Shop = {
    port: listener.port,
    async ask(method, path, options = {}) {
      const reply = await call(listener.port, method, path, { key: 'test', ...options });
      checkResponse(method, path, reply.status, reply.headers, reply.text);
      return reply;
    },
    create: (body, key = 'test', headers = {}) =>
      shop.ask('POST', '/v1/collections', {
        key,
        json: body,
        headers: { 'Idempotency-Key': `shop-${nextKey++}`, ...headers },
      }),
    created: pretended.created,
    async close() {
      await listener.close();
      redis.disconnect();
      await mongo.close();
    },
  };
  return shop;
}

function principal(mode: 'live' | 'test', changes: Partial<Merchant> = {}): Principal {
  const merchant: Merchant = {
    _id: newId('mer', clock.now()),
    name: 'Duka',
    suspended: false,
    latePayments: 'hold',
    limits: {},
    createdAt: new Date(clock.now()),
    ...changes,
  };
  return { merchantId: merchant._id, mode, keyId: newId('key', clock.now()), scopes: keyScopes, merchant };
}

function routesOf(collections: OwnCollections): Route[] {
  return merchantRoutes({
    config: {
      amountMinTzs: 100,
      amountMaxTzs: 5_000_000,
      publicBaseUrl: undefined,
      port: 3000,
      webhooks: loadConfig({}).webhooks,
    },
    clock,
    collections,
    refunds: {} as MerchantDeps['refunds'],
    payouts: {} as MerchantDeps['payouts'],
    readBalance: async () => ({ pending: 1, available: 2, reserved: 3 }) as Own<Balance>,
    readEvent: async () => undefined,
    readEvents: async () => ({ data: [], hasMore: false }),
    eventsBegin: async () => undefined,
    // Nobody in this shop asks for them.
    revokeOwnKey: async () => undefined as never,
    endpoints: {} as MerchantDeps['endpoints'],
    resendEvent: async () => undefined,
    rateLimiter: { take: async () => undefined },
    settleNow: async () => {},
    commit: async () => {},
    tails: { open: () => ({ hasNews: async () => false, end: () => {} }) },
    money: {
      entries: async () => ({ entries: [], hasMore: false }),
      journalBegins: async () => undefined,
      settlements: {
        list: async () => ({ rows: [], hasMore: false }),
        show: async () => undefined,
        collectionIds: async () => ({ ids: [], hasMore: false }),
      },
      collections: async () => [],
    },
  });
}

function pretendRoom(db: Db, doings: Record<string, () => never>) {
  const made = new Map<string, Own<CollectionObject>>();
  const room: OwnCollections = {
    async create({ mode }, body, _requestId, recordWrite) {
      doings[body.reference]?.();
      const collection: CollectionObject = {
        id: newId('col', clock.now()),
        object: 'collection',
        status: 'created',
        amount: body.amount,
        fee: 100,
        currency: 'TZS',
        channel: 'MPESA_TZ',
        phone: body.phone,
        reference: body.reference,
        metadata: body.metadata ?? {},
        mode,
        created_at: '2026-11-21T09:00:00.000Z',
      };
      const answer = { status: 202, body: JSON.stringify(collection) };
      const write = recordWrite(answer.status, answer.body);
      if (write.op !== 'insert') throw new Error('an insert was expected');
      await db.collection<{ _id: string }>(write.into).insertOne(write.doc);
      made.set(collection.id, collection as Own<CollectionObject>);
      return answer;
    },
    get: async (_principal, id) => made.get(id),
    tell: async () => {},
    list: async (_principal, { limit }) => ({ data: [], hasMore: limit === 1 }),
  };
  return { room, created: () => made.size };
}
