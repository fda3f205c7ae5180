import { readFileSync } from 'node:fs';
import type { ActorDoc, Migration } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { int64 } from '../../src/mongo.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/**
 * Payments rest for years in the shape in which they ended. Whoever reads them, merchant, operator or auditor, is shown
 * the present one (CONTRACT 17).
 */
describe('collections that rest since an older version of the chart', function () {
  this.timeout(120_000);
  const clock = clockAtNoon();
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock });
    merchant = await test.merchant();
  });
  after(() => test.stop());

  const stored = () => test.service.wired.db.collection<ActorDoc>('collections');

  describe('as version 1 left them', () => {
    type Golden = { states: Record<string, { snapshot: ActorDoc['snapshot']; now: string }> };
    const golden = new URL('../machines/golden/collection/v1.json', import.meta.url);
    const { states } = JSON.parse(readFileSync(golden, 'utf8')) as Golden;
    /** What a state of version 1 is called today, where that has changed. */
    const today: Record<string, string> = {
      'created.awaitingApproval': 'created.awaitingApproval.waiting',
      'failed.latePaid.returning': 'failed.latePaid.returning.polling',
      'expired.latePaid.returning': 'expired.latePaid.returning.polling',
    };
    const idOf = (index: number) => `col_01J000000000000000000000${String(index).padStart(2, '0')}`;

    before(async () => {
      const data = {
        ...{ amountTzs: int64(5_000), feeTzs: int64(100), feePlan: { id: 'fee_default', version: 1 } },
        ...{ currency: 'TZS', channel: 'MPESA_TZ', phone: '0712345678', msisdn: '255712345678' },
        ...{ reference: 'of old', metadata: {}, createdAt: new Date(clock.now()) },
      };
      const docs = Object.entries(states).map(([state, { snapshot, now }], index) => ({
        ...{ _id: idOf(index), machine: 'collection', machineVersion: 1, seq: 4, state, snapshot },
        ...{ timers: [], calls: [], dueAt: null, lastStep: 'long-ago', updatedAt: new Date(now) },
        ...{ merchantId: merchant.id, mode: 'test' as const, data, status: state.split('.')[0]! },
      }));
      await stored().insertMany(docs);
    });

    for (const [index, state] of Object.keys(states).entries()) {
      it(`${state}: its merchant reads it, and an operator sees where it stands today`, async () => {
        const { status, json } = await merchant.get(`/v1/collections/${idOf(index)}`);
        expect(status).to.equal(200);
        expect(json).to.include({ status: state.split('.')[0], amount: 5_000, fee: 100 });
        const actor = await test.actor(idOf(index));
        expect(actor.state).to.equal(today[state] ?? state);
        expect(actor.context).to.include({ returnRefused: false });
      });
    }

    it('are listed whole', async () => {
      const { json } = await merchant.get('/v1/collections?limit=100');
      const ids = json.data.map(({ id }: { id: string }) => id);
      expect(ids.sort()).to.deep.equal(Object.keys(states).map((_, index) => idOf(index)));
    });
  });

  describe('in a shape of which nothing but its migration knows', () => {
    const presentVersion = 4;
    let migrations: Record<number, Migration>;
    let usual: Migration;
    let payee: TestMerchant;
    let shownBefore: Record<string, unknown>[];

    /** The amounts had other names once, and so had the time of the end and what the network calls a payment. */
    const age = (doc: ActorDoc): ActorDoc => {
      const { amountTzs: gross, feeTzs: commission, ...data } = doc.data as Record<string, unknown>;
      const { completedAt: endedAt, receipt: slip, ...context } = doc.snapshot.context;
      return {
        ...doc,
        machineVersion: presentVersion - 1,
        data: { ...data, gross, commission },
        snapshot: { ...doc.snapshot, context: { ...context, endedAt, slip } },
      };
    };
    const lift: Migration = (doc) => {
      const { gross: amountTzs, commission: feeTzs, ...data } = doc.data as Record<string, unknown>;
      const { endedAt: completedAt, slip: receipt, ...context } = doc.snapshot.context;
      return {
        ...doc,
        machineVersion: presentVersion,
        data: { ...data, amountTzs, feeTzs },
        snapshot: { ...doc.snapshot, context: { ...context, completedAt, receipt } },
      };
    };

    before(async () => {
      const definition = test.service.wired.actors.definition('collection');
      expect(definition.machine.version, 'the version to be aged from').to.equal(String(presentVersion));
      migrations = definition.migrations as Record<number, Migration>;
      usual = migrations[presentVersion - 1]!;
      migrations[presentVersion - 1] = lift;
      payee = (await test.latePayment()).merchant;
      for (const phone of ['255700000000', '255700000004', '255700000005']) {
        const { json } = await payee.create({ phone, reference: 'order-7' });
        await payee.final(json.id);
      }
      shownBefore = (await payee.get('/v1/collections')).json.data;
      for (const doc of await stored().find({ merchantId: payee.id }).toArray()) {
        await stored().replaceOne({ _id: doc._id }, age(doc));
      }
    });

    after(() => {
      migrations[presentVersion - 1] = usual;
    });

    it('they are read and listed as they were', async () => {
      expect(shownBefore).to.have.length(4);
      expect((await payee.get('/v1/collections')).json.data).to.deep.equal(shownBefore);
      for (const each of shownBefore)
        expect((await payee.get(`/v1/collections/${each.id}`)).json).to.deep.equal(each);
    });

    it('the statement names them, and its closing is the balance', async () => {
      clock.advance(limits.hourMs); // what has just happened may still be on its way
      const path = `/admin/merchants/${payee.id}/statement.csv?mode=test`;
      const { text } = await test.call('GET', path);
      expect(text)
        .to.include('order-7')
        .and.to.match(/\r\nclosing,/);
    });

    it('the auditor finds every amount, receipt and held payment where it is, in both rounds', async () => {
      const { auditWatch } = test.service.wired;
      const found = async () => {
        const { is_clean, open_breaches } = (await test.call('GET', '/admin/ledger/audit')).json;
        const ours = open_breaches.filter(
          ({ merchantId }: { merchantId?: string }) => merchantId === payee.id,
        );
        return { is_clean, ours };
      };
      clock.advance(limits.minuteMs);
      await test.sweep();
      await auditWatch.idle();
      expect((await found()).ours, 'what is new').to.deep.equal([]);
      clock.advance(limits.dayMs);
      await test.sweep();
      await auditWatch.idle();
      expect((await found()).ours, 'everything').to.deep.equal([]);
    });
  });
});
