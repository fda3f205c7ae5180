import { type ActorDoc, MovableClock, quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Long } from 'mongodb';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Answer, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Where a payment stands, how it got there, and what an operator may do about it. */
describe('operators and actors', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock: new MovableClock() });
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const admin = (method: string, path: string, body?: object) => test.call(method, `/admin${path}`, { body });
  const codeOf = ({ status, json }: Answer) => `${status} ${json.error?.code}`;
  /** The audit lines about something, oldest first. */
  const audit = (target: string) =>
    test.service.wired.db.collection('audit').find({ target }).sort({ _id: 1 }).toArray();
  /** A collection in its final state, with the test number that leads there. */
  const ended = async (phone: string) => {
    const { json } = await merchant.create({ phone });
    return merchant.final(json.id);
  };

  describe('see any actor', () => {
    it('where it stands: state, timers with their due times, open calls, and what it accepts now', async () => {
      const { json } = await merchant.create({ phone: '255700000021', metadata: { secret: 'mine' } });
      const waiting = await until(async () => {
        const actor = await test.actor(json.id);
        return actor.timers.length > 0 && actor.seq > 1 && actor;
      });
      expect(waiting).to.include({ object: 'actor', machine: 'collection', mode: 'test', quarantined: null });
      expect(waiting.merchant_id).to.equal(merchant.id);
      expect(waiting.state).to.match(/^created\./);
      for (const timer of waiting.timers) {
        expect(timer.event).to.match(/^xstate\.after\./);
        expect(Date.parse(timer.due_at)).to.be.above(Date.parse(json.created_at));
      }
      expect(waiting.accepts).to.include('operator.asked');
      expect(waiting.accepts.every((type: string) => type.startsWith('operator.'))).to.equal(true);
    });

    it('without the customer’s number and without what the merchant attached', async () => {
      const { json } = await merchant.create({ phone: '255712345678', metadata: { secret: 'of the shop' } });
      const { text } = await admin('GET', `/actors/${json.id}`);
      expect(text).to.not.include('255712345678').and.to.not.include('of the shop');
      expect(JSON.parse(text).data.phone).to.match(/^2557\*+5678$/);
      expect((await admin('GET', `/actors/${json.id}/history`)).text).to.not.include('255712345678');
      const endpoint = await test.endpoint(merchant.id, 'http://127.0.0.1:9999/hook');
      expect((await admin('GET', `/actors/${endpoint.id}`)).text).to.not.include('sealed');
    });

    it('with its rail’s terms, of which its document has the id only', async () => {
      const { id } = await ended('255700000000');
      const { terms } = test.service.wired.rails.test;
      expect((await admin('GET', `/actors/${id}`)).json.context.terms).to.deep.equal(terms);
      const stored = await test.service.wired.db.collection<ActorDoc>('collections').findOne({ _id: id });
      expect(stored!.snapshot.context.terms).to.match(/^[\w-]{22}$/);
    });

    it('how it got there: every step with its event, from, to, actions and cause', async () => {
      const { id } = await ended('255700000000');
      const { json } = await admin('GET', `/actors/${id}/history`);
      const [first, ...others] = json.data;
      expect(first).to.include({ seq: 1, from: null, to: 'created.pushing.sending' });
      expect(first.cause.kind).to.equal('merchant');
      const last = others.at(-1);
      expect(last.to).to.equal('succeeded.standing');
      expect(last.actions).to.include.members(['postCapture', 'recordEvent', 'openDeliveries']);
      const steps = json.data as { seq: number; at: string; from: string | null; to: string }[];
      for (const [index, step] of steps.slice(1).entries()) expect(step.from).to.equal(steps[index]!.to);
      expect(steps.map(({ seq }) => seq)).to.deep.equal(steps.map(({ seq }) => seq).sort((a, b) => a - b));
      const page = (await admin('GET', `/actors/${id}/history?limit=1`)).json;
      expect([page.data, page.has_more]).to.deep.equal([[first], true]);
      const rest = (await admin('GET', `/actors/${id}/history?after_seq=1`)).json;
      expect(rest.data).to.deep.equal(others);
    });

    it('that exists: 404 for others', async () => {
      for (const id of [
        'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
        'we_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
        'nonsense',
        'stl.x',
      ]) {
        for (const path of [`/actors/${id}`, `/actors/${id}/history`]) {
          expect(codeOf(await admin('GET', path)), path).to.equal('404 resource_not_found');
        }
        const sent = await admin('POST', `/actors/${id}/events`, { type: 'operator.asked', reason: 'x' });
        expect(codeOf(sent), id).to.equal('404 resource_not_found');
      }
    });
  });

  describe('send events', () => {
    const send = (id: string, body: object) =>
      admin('POST', `/actors/${id}/events`, { reason: 'as agreed', ...body });

    it('a dry run says what would happen and nothing does; in earnest it happens, if the books allow it', async () => {
      const { merchant: payee, id } = await test.latePayment();
      const before = await test.actor(id);
      const dry = await send(id, { type: 'operator.acceptedLate', dry_run: true });
      expect(dry.status).to.equal(200);
      expect(dry.json).to.deep.include({
        dry_run: true,
        accepted: true,
        from: 'expired.latePaid.held',
        to: 'succeeded.standing',
      });
      expect(dry.json.actions).to.include.members(['releaseLate', 'recordEvent', 'openDeliveries']);
      expect(await test.actor(id)).to.deep.equal(before);
      expect((await payee.get('/v1/balance')).json.reserved).to.equal(4_900);
      expect(await audit(id)).to.deep.equal([]);
      // What the chart accepts the books may still refuse: here somebody took the held money away.
      const balances = test.service.wired.db.collection('balances');
      const set = (reserved: number) =>
        balances.updateOne({ merchantId: payee.id, reserved: { $exists: true } }, [
          { $set: { reserved: { $toLong: reserved } } },
        ]);
      await set(100);
      const refused = await send(id, { type: 'operator.acceptedLate' });
      expect(codeOf(refused)).to.equal('409 action_not_allowed');
      expect(await test.actor(id)).to.deep.equal(before);
      await set(4_900);
      // Then the same in earnest.
      const real = await send(id, { type: 'operator.acceptedLate' });
      const [line, ...others] = await audit(id);
      expect(others).to.deep.equal([]);
      expect(line).to.deep.include({ by: 'admin', merchantId: payee.id, reason: 'as agreed' });
      expect([line!.before.state, line!.after.state]).to.deep.equal([dry.json.from, dry.json.to]);
      const { entries, ...outlook } = dry.json;
      expect(real.json).to.deep.equal({ ...outlook, dry_run: false });
      expect(entries.map(({ type }: { type: string }) => type)).to.deep.equal(['late.accepted']);
      expect((await payee.get(`/v1/collections/${id}`)).json.status).to.equal('succeeded');
    });

    it('409 where the chart refuses, dry or not, and nothing is written', async () => {
      const { id } = await ended('255700000004');
      // A failure is watched for a while: what is at rest stays as it is.
      const before = await until(async () => {
        const actor = await test.actor(id);
        return actor.state === 'failed.resting' && actor.calls.length === 0 && actor;
      });
      for (const dry_run of [true, false]) {
        for (const body of [
          { type: 'operator.acceptedLate' },
          { type: 'operator.resolved', outcome: 'succeeded' },
          { type: 'operator.unheardOf' },
        ]) {
          const answer = await send(id, { ...body, dry_run });
          expect(codeOf(answer), body.type).to.equal('409 action_not_allowed');
          expect(answer.json.error.type).to.equal('conflict_error');
        }
      }
      expect(await test.actor(id)).to.deep.equal(before);
      expect(await audit(id)).to.deep.equal([]);
    });

    it('409 to an actor that is set aside because it cannot be understood', async () => {
      const { id } = await ended('255700000004');
      const { db } = test.service.wired;
      const set = quarantinedAt(new Date(), 'no migration from version 0');
      await db.collection<{ _id: string }>('collections').updateOne({ _id: id }, { $set: set });
      const actor = await test.actor(id);
      expect(actor.quarantined.why).to.equal('no migration from version 0');
      expect(actor.accepts).to.deep.equal([]);
      for (const dry_run of [true, false]) {
        const answer = await send(id, { type: 'operator.asked', dry_run });
        expect(codeOf(answer)).to.equal('409 action_not_allowed');
        expect(answer.json.error.message).to.include('no migration from version 0');
      }
    });

    it('operators’ events only, with a reason', async () => {
      const { id } = await ended('255700000004');
      for (const type of [
        'ask.succeeded',
        'push.succeeded',
        'rail.noticed',
        'xstate.after.watchDelay.x',
        'created',
      ]) {
        expect(codeOf(await send(id, { type })), type).to.equal('400 parameter_invalid');
      }
      const silent = await admin('POST', `/actors/${id}/events`, { type: 'operator.asked' });
      expect(silent.json.error.param).to.equal('reason');
      const emptily = await send(id, { type: 'operator.asked', reason: ' ' });
      expect(emptily.json.error?.param).to.equal('reason');
    });

    it('a verdict is whole: what a chart would have to guess is asked for', async () => {
      const json = await test.underReview(merchant);
      for (const [body, param] of [
        [{}, 'outcome'],
        [{ outcome: 'lost' }, 'outcome'],
        [{ outcome: 'failed', failureCode: 'bad_luck' }, 'failureCode'],
        [{ outcome: 'succeeded', failureCode: 'declined' }, 'failureCode'],
        [{ outcome: 'failed', receipt: 'R-1' }, 'receipt'],
      ] as const) {
        const answer = await send(json.id, { type: 'operator.resolved', ...body });
        expect([answer.status, answer.json.error?.param], JSON.stringify(body)).to.deep.equal([400, param]);
      }
      expect((await merchant.get(`/v1/collections/${json.id}`)).json.status).to.equal('created');
      const resolved = await send(json.id, {
        type: 'operator.resolved',
        outcome: 'failed',
        failureCode: 'payer_blocked',
      });
      expect(resolved.json.to).to.match(/^failed\./);
      const { json: final } = await merchant.get(`/v1/collections/${json.id}`);
      expect(final).to.include({ status: 'failed', failure_code: 'payer_blocked' });
      expect(final.failure_message).to.be.a('string').and.to.not.equal('');
    });

    it('a success proved false takes the money back, also where it is gone already', async () => {
      const payee = await test.merchant({ settlement_delay_days: 0 });
      const { json } = await payee.create();
      await payee.final(json.id);
      const { db } = test.service.wired;
      // As if all but 100 shillings had been paid out.
      const payOut = { $inc: { available: Long.fromNumber(-4_800) } };
      await db.collection('balances').updateOne({ merchantId: payee.id }, payOut);
      expect((await send(json.id, { type: 'operator.reversed' })).json.to).to.equal('succeeded.reversed');
      expect((await payee.get('/v1/balance')).json).to.include({ pending: 0, available: -4_800 });
      expect(codeOf(await send(json.id, { type: 'operator.reversed' }))).to.equal('409 action_not_allowed');
    });
  });
});
