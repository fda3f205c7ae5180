import { expect } from 'chai';
import { failureCodes } from '../../machines/collection.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** CONTRACT 10.3 to 10.5. The network of test mode keeps its own pace here: nothing ends by itself in time. */
describe('test helpers', () => {
  const unhurried = { SIMULATOR_SPEED: '1' };
  const net = 4_900;
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService(unhurried);
    receiver = await startReceiver();
    merchant = await test.merchant();
    await test.endpoint(merchant.id, receiver.url);
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const balanceOf = async (payee: TestMerchant) => {
    const { pending, available, reserved } = (await payee.get('/v1/balance')).json;
    return { pending, available, reserved };
  };
  /** The types of a collection's webhooks, in the order of their coming. */
  const told = (id: string): string[] =>
    receiver.received.filter(({ event }) => event.data.id === id).map(({ event }) => event.type);
  const codeOf = ({ status, json }: { status: number; json: { error: { code: string } } }) =>
    `${status} ${json.error.code}`;

  describe('an outcome', () => {
    /** A payment that ends as it is told to, and its answer. */
    const ended = async (outcome: object, payee = merchant, changes = {}) => {
      const { json } = await payee.create(changes);
      const answer = await payee.tell(json.id, outcome);
      expect(answer.status, answer.text).to.equal(202);
      return { answer, final: await payee.final(json.id) };
    };

    it('succeeded: the customer pays now, and the webhook tells it', async () => {
      const { answer, final } = await ended({ outcome: 'succeeded' });
      expect(answer.json).to.include({ id: final.id, object: 'collection', status: 'created' });
      expect(final.status).to.equal('succeeded');
      expect(final.provider_reference).to.be.a('string');
      const { event } = await receiver.next((received) => received.event.data.id === final.id);
      expect(event.data).to.deep.equal(final);
      expect(await balanceOf(merchant)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    });

    it('goes the way of every payment: the bell rings, the network is asked, its answer decides', async () => {
      const { final } = await ended({ outcome: 'expired' });
      expect(final.status).to.equal('expired');
      const steps = await test.history(final.id);
      const rung = steps.find(({ event: { type } }) => type === 'rail.noticed');
      expect(rung.cause.kind).to.equal('merchant');
      expect(rung.actions).to.deep.equal(['askRail']);
      expect(steps.at(-1).event.type).to.equal('ask.expired');
    });

    it('failed with any code of the list, also those that no phone number has', async () => {
      const ends = failureCodes.map(async (code) => {
        const { final } = await ended({ outcome: 'failed', failure_code: code });
        expect(final).to.include({ status: 'failed', failure_code: code });
        expect(final.failure_message).to.be.a('string').and.not.equal('');
      });
      await Promise.all(ends);
    });

    it('failed without a reason is declined', async () => {
      expect((await ended({ outcome: 'failed' })).final.failure_code).to.equal('declined');
    });

    it('late: expires, and the payment that follows is held', async () => {
      const payee = await test.merchant();
      const { final } = await ended({ outcome: 'late' }, payee);
      expect(final.status).to.equal('expired');
      const isHeld = async () => (await balanceOf(payee)).reserved === net;
      expect(await until(isHeld), 'the money is there').to.equal(true);
      expect((await test.actor(final.id)).state).to.equal('expired.latePaid.held');
    });

    it('late counts for a merchant who wants it so, and is told after the expiry', async () => {
      const payee = await test.merchant({ late_payments: 'accept' });
      await test.endpoint(payee.id, receiver.url);
      const { final } = await ended({ outcome: 'late' }, payee);
      expect(await until(async () => told(final.id).length === 2)).to.equal(true);
      const { json } = await payee.get(`/v1/collections/${final.id}`);
      expect(json).to.include({ status: 'succeeded', late: true });
      expect(told(final.id)).to.have.members(['collection.expired', 'collection.succeeded']);
    });

    it('late has its webhooks in the wrong order for the number that is for that', async () => {
      const payee = await test.merchant();
      await test.endpoint(payee.id, receiver.url);
      const { json } = await payee.create({ phone: '255700000026' });
      await payee.tell(json.id, { outcome: 'late' });
      expect(await until(async () => told(json.id).length === 2)).to.equal(true);
      expect(told(json.id)).to.deep.equal(['collection.succeeded', 'collection.expired']);
      // What is told to end there has nothing after it, and waits for nothing.
      const { final } = await ended({ outcome: 'expired' }, payee, { phone: '255700000026' });
      expect(await until(async () => told(final.id).length === 1)).to.equal(true);
    });

    it('late is what can still be told of a collection that ended without money, and nothing else', async () => {
      const firsts = ['failed', 'expired', 'succeeded'].map(async (first) => {
        const payee = await test.merchant();
        const { final } = await ended({ outcome: first }, payee);
        for (const outcome of ['succeeded', 'failed', 'expired']) {
          const refused = await payee.tell(final.id, { outcome });
          expect(codeOf(refused), `${first}, then ${outcome}`).to.equal('409 action_not_allowed');
        }
        const late = await payee.tell(final.id, { outcome: 'late' });
        if (first === 'succeeded') expect(codeOf(late)).to.equal('409 action_not_allowed');
        else {
          expect(late.status, late.text).to.equal(202);
          expect(await until(async () => (await balanceOf(payee)).reserved === net), first).to.equal(true);
        }
      });
      await Promise.all(firsts);
    });

    it('is stronger than the story of the phone number', async () => {
      const ends = ['001', '005', '020', '021'].map(async (last) => {
        const { final } = await ended({ outcome: 'succeeded' }, merchant, { phone: `255700000${last}` });
        expect(final.status, last).to.equal('succeeded');
      });
      await Promise.all(ends);
    });

    it('is kept: another process, after a restart, answers what was told', async () => {
      const database = freshDatabase('told');
      const api = await startTestService({ ...unhurried, ROLE: 'api' }, { database });
      const payee = await api.merchant();
      const { json } = await payee.create();
      const { status } = await payee.tell(json.id, { outcome: 'failed', failure_code: 'payer_blocked' });
      expect(status).to.equal(202);
      expect((await payee.get(`/v1/collections/${json.id}`)).json.status).to.equal('created');
      await api.stop();
      const whole = await startTestService(unhurried, { database });
      try {
        const read = () => whole.call('GET', `/v1/collections/${json.id}`, { token: payee.key });
        const final = await until(async () => {
          const { json: now } = await read();
          return now.status !== 'created' && now;
        });
        expect(final).to.include({ status: 'failed', failure_code: 'payer_blocked' });
      } finally {
        await whole.stop();
      }
    });

    it('told again with the same key is answered the same, with another body refused', async () => {
      const { json } = await merchant.create();
      const first = await merchant.tell(json.id, { outcome: 'succeeded' }, 'told-once');
      await merchant.final(json.id);
      const again = await merchant.tell(json.id, { outcome: 'succeeded' }, 'told-once');
      expect([again.status, again.text]).to.deep.equal([202, first.text]);
      expect(again.headers.get('idempotent-replayed')).to.equal('true');
      const other = await merchant.tell(json.id, { outcome: 'failed' }, 'told-once');
      expect(codeOf(other)).to.equal('409 idempotency_key_reused');
    });

    it('that makes no sense is refused, and changes nothing', async () => {
      const { json } = await merchant.create();
      const bodies = {
        'outcome parameter_missing': {},
        'outcome parameter_invalid': { outcome: 'cancelled' },
        'failure_code parameter_invalid': { outcome: 'failed', failure_code: 'no_mood' },
        'outcom parameter_unknown': { outcome: 'failed', outcom: 'failed' },
      };
      for (const [fault, body] of Object.entries(bodies)) {
        const { status, json: answer } = await merchant.tell(json.id, body);
        const faults = answer.error.errors.map(
          ({ param, code }: Record<string, string>) => `${param} ${code}`,
        );
        expect([status, faults], fault).to.deep.equal([400, [fault]]);
      }
      const reason = await merchant.tell(json.id, { outcome: 'expired', failure_code: 'declined' });
      expect(reason.json.error.message).to.equal('failure_code goes with the outcome failed only.');
      expect((await test.actor(json.id)).data).to.not.have.property('testOutcome');
    });

    it('of a stranger’s payment is not found', async () => {
      const { json } = await merchant.create();
      const stranger = await test.merchant();
      expect(codeOf(await stranger.tell(json.id, { outcome: 'failed' }))).to.equal('404 resource_not_found');
      expect((await test.actor(json.id)).data).to.not.have.property('testOutcome');
    });
  });

  describe('to settle', () => {
    it('makes what is pending available now, and everything tells it as at midnight', async () => {
      const payee = await test.merchant();
      const paid = async () => {
        const { json } = await payee.create();
        await payee.tell(json.id, { outcome: 'succeeded' });
        return (await payee.final(json.id)).id;
      };
      const ids = [await paid(), await paid()];
      const { status, json } = await payee.settle();
      const balance = { pending: 0, available: 2 * net, reserved: 0 };
      expect([status, json]).to.deep.equal([
        202,
        { object: 'balance', mode: 'test', currency: 'TZS', ...balance },
      ]);
      expect(await balanceOf(payee)).to.deep.equal(balance);
      const [settlement] = (await payee.get('/v1/settlements')).json.data;
      expect(settlement).to.include({ status: 'settled', amount: 2 * net, pending: 0 });
      expect(Date.parse(settlement.settled_at)).to.be.below(Date.parse(settlement.due_at));
      const { json: of } = await payee.get(`/v1/settlements/${settlement.id}/collections`);
      expect(of.data.map(({ id }: { id: string }) => id)).to.have.members(ids);
      const { json: told } = await payee.get('/v1/balance_transactions?type=settlement');
      expect(told.data[0].source).to.deep.equal({ object: 'settlement', id: settlement.id });

      // What comes after it that day is a further part, by the next call or at midnight.
      await paid();
      const further = (await payee.get(`/v1/settlements/${settlement.id}`)).json;
      expect(further).to.include({ status: 'settled', amount: 2 * net, pending: net });
      expect((await payee.settle()).json).to.include({ pending: 0, available: 3 * net });
      const { json: audit } = await test.call('GET', '/admin/ledger/audit');
      expect(audit.breaches ?? []).to.deep.equal([]);
    });

    it('the same request again is answered the same and settles nothing more', async () => {
      const payee = await test.merchant();
      const first = await payee.settle('settled-once');
      const { json } = await payee.create();
      await payee.tell(json.id, { outcome: 'succeeded' });
      await payee.final(json.id);
      const again = await payee.settle('settled-once');
      expect([again.status, again.text]).to.deep.equal([202, first.text]);
      expect(await balanceOf(payee)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    });

    it('leaves what an operator holds, and the money of others', async () => {
      const [payee, other] = [await test.merchant(), await test.merchant()];
      for (const each of [payee, other]) {
        const { json } = await each.create();
        await each.tell(json.id, { outcome: 'succeeded' });
        await each.final(json.id);
      }
      await test.call('POST', '/admin/settlements/run', { body: { reason: 'makes it' } });
      const { json: all } = await test.call('GET', `/admin/settlements?merchant=${payee.id}`);
      await test.call('POST', `/admin/settlements/${all.data[0].id}/hold`, { body: { reason: 'a dispute' } });
      expect((await payee.settle()).json).to.include({ pending: net, available: 0 });
      expect(await balanceOf(other)).to.deep.equal({ pending: net, available: 0, reserved: 0 });
    });

    it('is nothing that live money can meet, whoever asks', async () => {
      const { settlements } = test.service.wired;
      const live = { merchantId: merchant.id, mode: 'live' } as const;
      const cause = { kind: 'merchant', id: 'a-request' } as const;
      const fault = await settlements.settleNow(live, cause).catch((error: unknown) => error);
      expect(fault).to.be.instanceOf(RangeError);
    });
  });

  it('refuse a live key before they look at anything, and change nothing', async () => {
    const { json } = await merchant.create();
    const { secret: token } = await test.issueKey(merchant.id, 'live');
    for (const body of [{ outcome: 'succeeded' }, { outcome: 7 }, 'no JSON']) {
      const path = `/v1/test_helpers/collections/${json.id}/outcome`;
      const headers = { 'idempotency-key': 'live' };
      const refused = await test.call('POST', path, { token, headers, body });
      expect(codeOf(refused)).to.equal('403 permission_denied');
      expect(refused.json.error.message).to.match(/test key/);
    }
    const headers = { 'idempotency-key': 'live' };
    const settle = await test.call('POST', '/v1/test_helpers/settle', { token, headers, body: {} });
    expect(codeOf(settle)).to.equal('403 permission_denied');
    expect((await test.actor(json.id)).data).to.not.have.property('testOutcome');
    expect((await merchant.get(`/v1/collections/${json.id}`)).json.status).to.equal('created');
  });
});
