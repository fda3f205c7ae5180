import { setTimeout as wait } from 'node:timers/promises';
import { connectMongo, MovableClock, prepareDatabase, type Write } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Db, Long, type MongoClient } from 'mongodb';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import {
  type ApiKey,
  apiKeysSpec,
  Merchants,
  merchantsSpec,
  newKey,
  newMerchant,
  revokeKey,
  rotateKey,
  updateMerchant,
} from '../../src/merchants/merchants.ts';
import { freshDatabase, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

const hashSecret = 'a server secret';
const cacheMs = 100;

describe('merchants', () => {
  let mongo: MongoClient;
  let db: Db;
  const clock = new MovableClock();
  const log = createLog('silent');

  before(async () => {
    mongo = await connectMongo((await stores()).mongodbUri);
    db = mongo.db(freshDatabase('merchants'));
    await prepareDatabase(db, [merchantsSpec, apiKeysSpec]);
  });
  after(() => mongo.close());

  const room = () => new Merchants({ db, clock, log, keyHashSecret: hashSecret, cacheMs });

  /** What the operators' room does in one commit; returns how many documents each write met. */
  async function commit(writes: Write[]): Promise<number[]> {
    const met: number[] = [];
    for (const write of writes) {
      const into = db.collection<{ _id: string }>(write.into);
      if (write.op === 'insert') met.push((await into.insertOne(write.doc)) ? 1 : 0);
      else if (write.op === 'update')
        met.push((await into.updateOne(write.filter, write.update)).matchedCount);
    }
    return met;
  }

  async function open(mode: 'live' | 'test' = 'test') {
    const merchant = newMerchant({ name: 'Duka la Asha' }, clock.now());
    const key = newKey({ merchantId: merchant.record._id, mode, by: 'asha', hashSecret, atMs: clock.now() });
    await commit([...merchant.writes, ...key.writes]);
    return { merchant: merchant.record, key: key.record, secret: key.secret };
  }

  /** The database, with a bell on every question. */
  const counted = (ring: () => void) =>
    ({
      collection(name: string) {
        ring();
        return db.collection(name);
      },
    }) as unknown as Db;

  it('a key names its merchant, mode and id, and brings the merchant’s record', async () => {
    const { merchant, key, secret } = await open('live');
    const principal = await room().authenticate(secret);
    expect(principal).to.include({ merchantId: merchant._id, mode: 'live', keyId: key._id });
    expect(principal?.merchant).to.include({ name: 'Duka la Asha', latePayments: 'hold', suspended: false });
  });

  it('the secret is stored nowhere, only its keyed hash and last four characters', async () => {
    const { key, secret } = await open();
    const stored = await db.collection<ApiKey>('api_keys').findOne({ _id: key._id });
    expect(JSON.stringify(stored)).not.to.include(secret.slice(16, 48));
    expect(stored).to.include({ last4: secret.slice(-4), createdBy: 'asha', mode: 'test' });
    const stranger = new Merchants({ db, clock, log, keyHashSecret: 'another', cacheMs });
    expect(await stranger.authenticate(secret)).to.equal(undefined);
  });

  it('what is no key is refused without a question to the database', async () => {
    const deaf = new Merchants({ db: {} as Db, clock, log, keyHashSecret: hashSecret });
    const { secret } = await open();
    const other = secret.endsWith('0') ? '1' : '0';
    const wrong = ['', 'x', `${secret}x`, secret.slice(0, -1) + other, secret.replace('_test_', '_live_')];
    for (const text of wrong) expect(await deaf.authenticate(text), text).to.equal(undefined);
  });

  it('a revoked key is refused as soon as what is remembered of it has aged', async () => {
    const { key, secret } = await open();
    const merchants = room();
    expect(await merchants.authenticate(secret)).to.be.an('object');
    const revoked = revokeKey(key, 'juma', clock.now());
    expect(await commit(revoked.writes)).to.deep.equal([1]);
    expect(await room().authenticate(secret)).to.equal(undefined);
    await wait(cacheMs + 20);
    expect(await merchants.authenticate(secret)).to.equal(undefined);
    expect((await merchants.findKey(key._id))?.revokedBy).to.equal('juma');
    expect(limits.keyCacheMs).to.be.lessThan(5_000);
  });

  it('an answer that was long on its way is old when it comes', async () => {
    const { key, secret } = await open();
    const slow = {
      collection: (name: string) => ({
        findOne: async (filter: object) => {
          const found = await db.collection(name).findOne(filter);
          await wait(2 * cacheMs);
          return found;
        },
        updateOne: async () => undefined,
      }),
    } as unknown as Db;
    const merchants = new Merchants({ db: slow, clock, log, keyHashSecret: hashSecret, cacheMs });
    expect(await merchants.authenticate(secret)).to.be.an('object');
    await commit(revokeKey(key, 'juma', clock.now()).writes);
    expect(await merchants.authenticate(secret)).to.equal(undefined);
  });

  it('revoking twice meets nothing the second time', async () => {
    const { key } = await open();
    await commit(revokeKey(key, 'juma', clock.now()).writes);
    expect(await commit(revokeKey(key, 'juma', clock.now()).writes)).to.deep.equal([0]);
  });

  it('rotation gives a new key and lets the old one live for the overlap', async () => {
    const { key, secret } = await open();
    const merchants = room();
    await merchants.authenticate(secret);
    const rotated = rotateKey(key, 'juma', 60_000, hashSecret, clock.now());
    expect(await commit(rotated.writes)).to.deep.equal([1, 1]);
    await wait(cacheMs + 20);
    const newId = (await merchants.authenticate(rotated.secret))?.keyId;
    expect([newId, rotated.record.replaces]).to.deep.equal([rotated.record._id, key._id]);
    expect(await merchants.authenticate(secret)).to.be.an('object');
    clock.advance(60_000);
    expect(await merchants.authenticate(secret), 'judged by the clock, remembered or not').to.equal(
      undefined,
    );
    expect(await merchants.authenticate(rotated.secret)).to.be.an('object');
  });

  it('a later rotation never makes an old key live longer', async () => {
    const { key, secret } = await open();
    await commit(rotateKey(key, 'juma', 1_000, hashSecret, clock.now()).writes);
    await commit(rotateKey(key, 'juma', 60_000, hashSecret, clock.now()).writes);
    clock.advance(1_000);
    expect(await room().authenticate(secret)).to.equal(undefined);
  });

  it('changes to a merchant reach requests when what is remembered has aged', async () => {
    const { merchant, secret } = await open();
    const merchants = room();
    await merchants.authenticate(secret);
    const changed = updateMerchant(merchant, { suspended: true, settlementDelayDays: 2 });
    expect(await commit(changed.writes)).to.deep.equal([1]);
    await wait(cacheMs + 20);
    expect((await merchants.authenticate(secret))?.merchant).to.include({
      suspended: true,
      settlementDelayDays: 2,
    });
  });

  it('an update touches only what it names, and null takes a setting away', async () => {
    const { merchant } = await open();
    const first = updateMerchant(merchant, {
      settlementDelayDays: 3,
      limits: { amountMaxTzs: 9_000_000_000, rateLimitPerSecond: 5 },
    });
    await commit(first.writes);
    const second = updateMerchant(first.record, {
      settlementDelayDays: null,
      limits: { rateLimitPerSecond: null },
    });
    await commit(second.writes);
    const stored = await room().find(merchant._id);
    expect(stored).to.deep.equal(second.record);
    expect(stored?.limits).to.deep.equal({ amountMaxTzs: 9_000_000_000 });
    expect(stored).not.to.have.property('settlementDelayDays');
    expect(updateMerchant(merchant, {}).writes).to.deep.equal([]);
  });

  it('amounts are stored as 64-bit integers, and the database refuses any others', async () => {
    const { record, writes } = newMerchant(
      { name: 'M', limits: { amountMinTzs: 5, amountMaxTzs: 10 } },
      clock.now(),
    );
    await commit(writes);
    const raw = await db
      .collection<{ _id: string; limits: object }>('merchants')
      .findOne({ _id: record._id }, { promoteLongs: false });
    expect(raw?.limits).to.deep.equal({
      amountMinTzs: Long.fromNumber(5),
      amountMaxTzs: Long.fromNumber(10),
    });
    const asDouble = { _id: record._id };
    const refused = await db
      .collection<{ _id: string }>('merchants')
      .updateOne(asDouble, { $set: { 'limits.amountMinTzs': 5.5 } })
      .catch((error) => error.code);
    expect(refused).to.equal(121);
  });

  it('lastUsedAt is written in the background, once a minute', async () => {
    const { key, secret } = await open();
    const merchants = room();
    const usedAt = async () => (await merchants.findKey(key._id))?.lastUsedAt?.getTime();
    await merchants.authenticate(secret);
    const first = await until(usedAt);
    expect(first).to.be.a('number');
    clock.advance(1_000);
    await merchants.authenticate(secret);
    await wait(50);
    expect(await usedAt()).to.equal(first);
  });

  it('a flood of unknown keys pushes no merchant’s key out of memory', async () => {
    const { secret } = await open();
    let asked = 0;
    const ofMerchants = { db: counted(() => asked++), clock, log, keyHashSecret: hashSecret };
    const merchants = new Merchants({ ...ofMerchants, cacheMs: 60_000 });
    await merchants.authenticate(secret);
    await wait(50);
    const before = asked;
    const stranger = { merchantId: 'mer_x', mode: 'test' as const, by: 'x', hashSecret, atMs: clock.now() };
    for (let n = 0; n < 20; n++) await merchants.authenticate(newKey(stranger).secret);
    const afterFlood = asked;
    await merchants.authenticate(secret);
    expect([afterFlood - before, asked]).to.deep.equal([20, afterFlood]);
  });

  it('requests that arrive together ask the database once', async () => {
    const { secret } = await open();
    let asked = 0;
    const merchants = new Merchants({ db: counted(() => asked++), clock, log, keyHashSecret: hashSecret });
    await Promise.all(Array.from({ length: 30 }, () => merchants.authenticate(secret)));
    // The key, its merchant, and lastUsedAt.
    expect(asked).to.equal(3);
  });

  it('an outage is thrown, never taken for an unknown key, and not remembered', async () => {
    const { secret } = await open();
    let isDown = true;
    const flaky = {
      collection(name: string) {
        if (isDown) throw new Error('down');
        return db.collection(name);
      },
    } as unknown as Db;
    const merchants = new Merchants({ db: flaky, clock, log, keyHashSecret: hashSecret });
    const failed = await merchants.authenticate(secret).catch((error) => error.message);
    isDown = false;
    expect([failed, (await merchants.authenticate(secret))?.mode]).to.deep.equal(['down', 'test']);
  });

  it('lists merchants and keys newest first', async () => {
    const { merchant, key } = await open();
    const rotated = rotateKey(key, 'juma', 0, hashSecret, clock.now() + 1);
    await commit(rotated.writes);
    const merchants = room();
    expect((await merchants.listKeys(merchant._id)).map(({ _id }) => _id)).to.deep.equal([
      rotated.record._id,
      key._id,
    ]);
    const [newest] = await merchants.list(1);
    expect(newest?._id).to.equal(merchant._id);
    const [next] = await merchants.list(1, merchant._id);
    expect(next!._id < merchant._id).to.equal(true);
  });
});
