import { expect } from 'chai';
import { collectionsSpec } from '../../src/collections/collections.ts';
import { phoneTurnsSpec } from '../../src/rails/rails.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** A 202 is a promise to prompt the customer: it is not given where pushes wait too long. */
describe('admission', () => {
  const clock = clockAtNoon();
  let api: TestService;
  let merchant: TestMerchant;
  let waiting: string;

  before(async () => {
    api = await startTestService({ ROLE: 'api' }, { clock });
    merchant = await api.merchant();
  });
  after(() => api.stop());

  const create = (phone?: string) => merchant.create(phone ? { phone } : {});
  const stored = () => api.service.wired.db.collection(collectionsSpec.name).countDocuments();

  it('is open while pushes wait for less than half of their window', async () => {
    const { status, json } = await create();
    expect(status).equal(202);
    waiting = json.id as string;
    clock.advance(28_000);
    expect((await create('255712345001')).status).equal(202);
  });

  it('is closed from then on: 503 channel_unavailable with Retry-After, and nothing is created', async () => {
    clock.advance(4_000);
    const before = await stored();
    const refused = await create();
    expect([refused.status, refused.json.error?.code]).deep.equal([503, 'channel_unavailable']);
    expect(Number(refused.headers.get('retry-after'))).greaterThan(0);
    expect(await stored()).equal(before);
  });

  it('is open where a push waits for its phone and not for us', async () => {
    const turns = api.service.wired.db.collection<{ _id: string; collectionId: string; until: Date }>(
      phoneTurnsSpec.name,
    );
    const late = await api.service.wired.db
      .collection(collectionsSpec.name)
      .findOne({ _id: waiting as never });
    const _id = late!.data.msisdn as string;
    await turns.insertOne({ _id, collectionId: 'col_other', until: new Date(clock.now() + 120_000) });
    clock.advance(1_100);
    expect((await create()).status).equal(202);
    await turns.deleteOne({ _id });
    clock.advance(1_100);
    expect((await create()).status).equal(503);
  });

  it('is open again as soon as somebody makes them, and none of them fails', async () => {
    const { database } = { database: api.service.wired.db.databaseName };
    const worker = await startTestService({ ROLE: 'worker' }, { clock, database });
    const open = () =>
      api.service.wired.db
        .collection(collectionsSpec.name)
        .countDocuments({ state: 'created.pushing.sending' });
    expect(await until(async () => (await open()) === 0)).equal(true);
    clock.advance(1_100);
    expect((await create()).status).equal(202);
    const failed = await api.service.wired.db
      .collection(collectionsSpec.name)
      .countDocuments({ status: 'failed' });
    expect(failed).equal(0);
    await worker.stop();
  });
});
