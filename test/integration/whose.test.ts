import { expect } from 'chai';
import { type Db, MongoClient } from 'mongodb';
import type { MerchantDeps, MoneyReads } from '../../src/app.ts';
import type { CollectionDoc } from '../../src/collections/collections.ts';
import { presentCollection } from '../../src/collections/present.ts';
import { Events } from '../../src/events/events.ts';
import { type Balance, entriesOf, ownEntriesOf } from '../../src/ledger/ledger.ts';
import { SettlementReader } from '../../src/settlement/settlement.ts';
import type { EndpointDoc } from '../../src/webhooks/webhooks.ts';
import { fromOwn, isOwn, ownOf, surelyOwn, type Whose } from '../../src/whose.ts';
import { freshDatabase, stores } from '../support/stores.ts';

describe("A merchant's own documents", () => {
  interface Note extends Whose {
    _id: string;
    words: string;
  }
  const whoses: Whose[] = ['mer_A', 'mer_B'].flatMap((merchantId) => [
    { merchantId, mode: 'live' as const },
    { merchantId, mode: 'test' as const },
  ]);
  const [me, ...others] = whoses as [Whose, ...Whose[]];
  const notes = whoses.map((whose, index): Note => ({ _id: `n${index}`, words: 'alike', ...whose }));
  let client: MongoClient;
  let db: Db;

  before(async () => {
    client = await new MongoClient((await stores()).mongodbUri).connect();
    db = client.db(freshDatabase('whose'));
    await db.collection<Note>('notes').insertMany(notes);
  });

  after(() => client.close());

  it('are found by no other merchant, and in no other mode', async () => {
    for (const [index, whose] of whoses.entries()) {
      const found = await ownOf(db.collection<Note>('notes'), whose).find({ words: 'alike' }).toArray();
      expect(found.map(({ _id }) => _id)).to.deep.equal([`n${index}`]);
      expect(notes.map((note) => isOwn(whose, note))).to.deep.equal(whoses.map((each) => each === whose));
      for (const note of notes.filter((each) => !isOwn(whose, each)))
        expect(() => surelyOwn(whose, note)).to.throw(TypeError, 'somebody else');
    }
  });

  it('are the only ones found, whatever the filter says of merchants and modes', async () => {
    const own = ownOf(db.collection<Note>('notes'), me);
    for (const other of others) {
      expect((await own.find({ ...other }).toArray()).map(({ _id }) => _id)).to.deep.equal(['n0']);
    }
  });

  // Were one of these to compile, the compiler would refuse the comment above it.
  it('are all that the answers to merchants can be made of: anything else does not compile', () => {
    type Entries = MoneyReads['entries'];
    type Settlements = MoneyReads['settlements'];
    type One = MerchantDeps['collections']['get'];
    const whole = { mode: 'live' } as const;
    const stored = db.collection<CollectionDoc>('collections');
    const endpoints = db.collection<EndpointDoc>('endpoints');
    const findEndpoint = async (id: string) => (await endpoints.findOne({ _id: id })) ?? undefined;
    const events = new Events(db);
    const settlements = new SettlementReader(db, (doc) => doc);
    const forgetful = [
      // @ts-expect-error: whose?
      () => ownOf(stored).find({}),
      // @ts-expect-error: in which mode?
      () => ownOf(stored, { merchantId: me.merchantId }).find({}),
      // @ts-expect-error: a document of anybody's
      () => fromOwn(notes[0]!, ({ words }) => words),
      // @ts-expect-error: a balance of nobody's
      (): MerchantDeps['readBalance'] => async (): Promise<Balance> => noBalance,
      // @ts-expect-error: an event by its id alone
      (): MerchantDeps['readEvent'] => (_whose, id) => events.find(id),
      // @ts-expect-error: the entries that operators see
      (): Entries => (_whose, _filter, page) => entriesOf(db, whole, page),
      // @ts-expect-error: a settlement by its id alone
      (): Settlements['show'] => (_whose, id) => settlements.find(id),
      // @ts-expect-error: a list that all merchants are in
      (): Settlements['list'] => (_whose, page) => settlements.search({}, page),
      // @ts-expect-error: an endpoint by its id alone
      (): MerchantDeps['endpoints']['find'] => (_whose, id) => findEndpoint(id),
      // @ts-expect-error: a collection by its id alone
      (): One => async (_whose, id) => presentCollection((await stored.findOne({ _id: id }))!),
    ];
    const sound = [
      (): MerchantDeps['readEvent'] => (whose, id) => events.show(whose, id),
      (): Entries => (whose, filter, page) => ownEntriesOf(db, whose, filter, page),
      (): Settlements => settlements,
    ];
    expect([forgetful.length, sound.length]).to.deep.equal([10, 3]);
  });
});

const noBalance: Balance = { pending: 0, available: 0, reserved: 0 };
