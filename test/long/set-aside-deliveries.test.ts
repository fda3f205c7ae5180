import { MovableClock, quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** A delivery that is set aside waits for an operator; the others of its endpoint do not wait with it. */
describe('deliveries that are set aside', () => {
  const clock = new MovableClock();
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;
  let endpointId: string;

  before(async () => {
    test = await startTestService({ WEBHOOK_RETRY_DELAYS: '20ms' }, { clock });
  });
  beforeEach(async () => {
    receiver = await startReceiver();
    merchant = await test.merchant();
    endpointId = (await test.endpoint(merchant.id, receiver.url)).id;
  });
  afterEach(() => receiver.close());
  after(() => test.stop());

  const deliveries = () => test.service.wired.db.collection<{ _id: string }>('deliveries');
  const count = (state: string) =>
    deliveries().countDocuments({ 'data.endpointId': endpointId, state, quarantined: { $exists: false } });
  const reaches = async (number: number, state: string) => {
    const reached = await until(async () => (await count(state)) === number);
    expect(reached, `${await count(state)} are ${state}`).to.equal(true);
  };
  const command = (verb: string, body: object = {}) =>
    test.call('POST', `/admin/endpoints/${endpointId}/${verb}`, { body: { reason: 'as agreed', ...body } });
  /** Collections that fail at once, which is to say: events. */
  const events = (number: number) =>
    Promise.all(Array.from({ length: number }, () => merchant.create({ phone: '255700000004' })));

  /** What can be wrong with a delivery: it is set aside already, or it is found out only now. */
  const wrong = {
    'set aside': () => ({
      $set: quarantinedAt(new Date(clock.now()), 'planted'),
      $inc: { seq: 1 },
    }),
    'found to be poisoned': () => ({ $set: { 'snapshot.value': 'nowhere' }, $inc: { seq: 1 } }),
  };
  /** Spoils so many of the endpoint's deliveries in a state: the oldest, or the newest. */
  const spoil = async (state: string, number: number, update: object, order: 1 | -1 = 1) => {
    const found = await deliveries()
      .find({ 'data.endpointId': endpointId, state })
      .sort({ _id: order })
      .limit(number)
      .toArray();
    expect(found).to.have.length(number);
    await deliveries().updateMany({ _id: { $in: found.map(({ _id }) => _id) } }, update);
  };

  for (const [name, update] of Object.entries(wrong)) {
    it(`${name}, the oldest ones hold back none of those that are released`, async () => {
      await command('disable');
      await events(25);
      await reaches(25, 'held');
      await spoil('held', 10, update());
      expect((await command('enable')).status).to.equal(200);
      await reaches(15, 'delivered');
      expect(receiver.received).to.have.length(15);
    });

    it(`${name}, one of those that failed does not end a replay`, async () => {
      receiver.answer = 500;
      const since = new Date(clock.now()).toISOString();
      await events(5);
      const failed = await until(async () => {
        clock.advance(50);
        await test.sweep();
        return (await count('failed')) === 5;
      });
      expect(failed, 'all have failed').to.equal(true);
      await spoil('failed', 1, update());
      receiver.answer = 200;
      const { json } = await command('recover', { since });
      const ended = await until(async () => {
        const replay = (await test.call('GET', `/admin/replays/${json.id}`)).json;
        return replay.status === 'done' && replay;
      });
      expect(ended, 'the replay ends').to.include({ replayed: 4 });
      await reaches(4, 'delivered');
    });

    it(`${name}, the oldest held one does not keep its endpoint disabled`, async function () {
      this.timeout(120_000);
      receiver.answer = 500;
      await events(1);
      const endpoint = async () => (await test.call('GET', `/admin/endpoints/${endpointId}`)).json;
      const isAt = async (state: RegExp) => {
        const is = await until(async () => state.test((await endpoint()).state));
        expect(is, (await endpoint()).state).to.equal(true);
      };
      await isAt(/^failing/);
      clock.advance(73 * limits.hourMs);
      await test.sweep();
      await isAt(/^disabled\.automatic/);
      await events(3);
      await reaches(3, 'held');
      await spoil('held', 1, update());
      receiver.answer = 200;
      clock.advance(limits.hourMs + limits.minuteMs);
      await test.sweep();
      await isAt(/^active/);
      await reaches(0, 'held');
    });
  }
});
