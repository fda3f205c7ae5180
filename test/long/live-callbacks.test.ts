import { quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { callbackSecret, type Live, openLive } from '../support/live.ts';
import { until } from '../support/until.ts';

const dayMs = 86_400_000;

/** What was answered 200 is heard, whatever happens between the answer and the bell. */
describe('callbacks that nobody heard', function () {
  this.timeout(300_000);
  let live: Live;

  before(async () => {
    live = await openLive();
  });
  after(() => live.close());

  const callBack = async (conversation: string) => {
    const answer = await fetch(`${live.service.baseUrl}/rails/MPESA_TZ/${callbackSecret}`, {
      method: 'POST',
      body: JSON.stringify({ input_ThirdPartyConversationID: conversation, input_ResultCode: 'INS-0' }),
    });
    expect(answer.status).to.equal(200);
  };
  const stored = () => live.service.service.wired.db.collection('railCallbacks');

  /** Two collections that expired, whose watch is over, and whose customers pay only now. */
  const paidAfterTheWatch = async (): Promise<[string, string]> => {
    const expired = async (): Promise<string> => {
      const { json } = await live.create('255740000014');
      expect((await live.final(json.id)).status).to.equal('expired');
      return json.id;
    };
    const ids: [string, string] = [await expired(), await expired()];
    const rests = await until(async () => {
      live.clock.advance(dayMs / 4);
      await live.service.sweep();
      const actors = await Promise.all(ids.map((id) => live.service.actor(id)));
      return actors.every(({ state, calls }) => state === 'expired.resting' && calls.length === 0);
    }, 60_000);
    expect(rests, 'the watch is over').to.equal(true);
    for (const id of ids) {
      live.simulator.network.find(id.slice(4))!.scenario = {
        outcome: { kind: 'paid', afterMs: 0 },
        callbacksMs: [],
      };
    }
    live.clock.advance(dayMs);
    return ids;
  };

  it('are rung by a chore, each for itself, and a late payment is seen', async () => {
    const [broken, id] = await paidAfterTheWatch();
    const { bells, db } = live.service.service.wired;
    const { ring } = bells;
    let failures = 0;
    bells.ring = async () => {
      failures += 1;
      throw new Error('MongoDB has no primary');
    };
    for (const each of [broken, id]) await callBack(each.slice(4));
    expect(await until(async () => failures === 2)).to.equal(true);
    bells.ring = ring;
    // The older one can be heard by nobody: it must not stand in the way of the other.
    await db
      .collection<{ _id: string }>('collections')
      .updateOne({ _id: broken }, { $set: quarantinedAt(new Date(), 'a test') });
    const seen = await until(async () => {
      live.clock.advance(61_000);
      await live.service.sweep();
      return (await live.service.actor(id)).state === 'expired.latePaid.held';
    }, 60_000);
    expect(seen, (await live.service.actor(id)).state).to.equal(true);
    const unheard = await stored().find({ rungAt: null }).toArray();
    expect(unheard.map(({ collectionId }) => collectionId)).to.deep.equal([broken]);
    const { queryPlanner } = await stored()
      .find({ rungAt: { $eq: null as never }, at: { $lt: new Date() } })
      .sort({ at: 1 })
      .explain();
    expect(JSON.stringify(queryPlanner.winningPlan), 'found without reading all').to.include('IXSCAN');
  });
});
