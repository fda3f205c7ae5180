import { connectMongo } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { Db } from 'mongodb';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import type { PayoutDoc } from '../../src/payouts/payouts.ts';
import { eatDate } from '../../src/time.ts';
import { SimulatedBank } from '../../tools/simulator/bank.ts';
import { type Live, openLive } from '../support/live.ts';
import type { ServiceProcess } from '../support/processes.ts';
import { stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

const env = { SETTLEMENT_DELAY_DAYS: '0', PAYOUT_DESTINATION_REST: '0s' };
const amount = 1_000;
/** More than two pages, with payouts on each. */
const lines = 1_200;
const payouts = 8;

/** A bank's statement is being read while its process is killed, again and again: each payout is confirmed once. */
describe('killed while a bank’s statement confirms payouts', function () {
  this.timeout(400_000);
  let live: Live;
  let db: Db;
  let client: Awaited<ReturnType<typeof connectMongo>>;
  let running: ServiceProcess | undefined;
  const ids: string[] = [];
  const date = eatDate(Date.now() - limits.dayMs);
  const bank = new SimulatedBank(100_000_000);

  const call = (method: string, path: string, more: object = {}) => live.service.call(method, path, more);
  const paid = () => db.collection<PayoutDoc>('payouts').countDocuments({ status: 'paid' });
  const bring = async ({ adminUrl }: ServiceProcess) => {
    const answer = await fetch(`${adminUrl}/admin/reconciliations?rail=BANK&date=${date}&reason=today`, {
      method: 'POST',
      body: bank.statement(date),
      headers: { authorization: `Bearer ${live.service.operatorToken}`, 'content-type': 'text/csv' },
    });
    return answer.status;
  };

  before(async () => {
    live = await openLive({ env });
    const { json: second } = await call('POST', '/admin/operators', {
      body: { name: 'zuri', role: 'operator', reason: 'a second person' },
    });
    for (let n = 0; n < 2; n += 1) {
      const { json } = await live.create('255740000001');
      expect((await live.final(json.id, 60_000)).status).to.equal('succeeded');
    }
    const entered = await call('POST', `/admin/merchants/${live.merchantId}/destinations`, {
      body: {
        ...{ mode: 'live', kind: 'bank_account', name: 'Acme Ltd', number: '0150123456789', bank: 'CRDB' },
        ...{ rail: 'manual', reason: 'theirs' },
      },
    });
    const destination: string = entered.json.id;
    const confirmed = { body: { type: 'operator.confirmed', reason: 'theirs' }, token: second.token };
    expect((await call('POST', `/admin/actors/${destination}/events`, confirmed)).status).to.equal(200);
    const isActive = async () => {
      await live.service.sweep();
      return (await live.service.actor(destination)).state === 'active';
    };
    expect(await until(isActive, 60_000)).to.equal(true);
    for (let n = 0; n < payouts; n += 1) {
      const made = await call('POST', `/admin/merchants/${live.merchantId}/payouts`, {
        body: { mode: 'live', amount, destination, reason: 'pay them' },
      });
      expect(made.status, made.text).to.equal(202);
      ids.push(made.json.id);
    }
    const { json: file } = await call('POST', '/admin/payout-files', {
      body: { mode: 'live', reason: 'today' },
    });
    const sent = await call('POST', `/admin/payout-files/${file.id}/sent`, { body: { reason: 'sent' } });
    expect(sent.json.count).to.equal(payouts);
    for (let n = 0; n < lines; n += 1) {
      const isOurs = n % (lines / payouts) === 0;
      const id = ids[Math.floor(n / (lines / payouts))]!;
      bank.move(date, isOurs ? `TRF/${id}/TISS` : `Salary ${n}`, isOurs ? amount * -100 : -1_000);
    }
    client = await connectMongo((await stores()).mongodbUri);
    db = client.db(live.database);
  });
  after(async () => {
    await running?.kill('SIGKILL');
    await client?.close();
    await live?.close();
  });

  it('goes on where it stood, and confirms each of them once', async () => {
    const moments: readonly [string, () => Promise<boolean>][] = [
      ['lines are kept', async () => (await db.collection('statement_lines').countDocuments()) > 0],
      ['the first is paid', async () => (await paid()) > 0],
      ['half are paid', async () => (await paid()) >= payouts / 2],
    ];
    for (const [what, isThere] of moments) {
      running = await live.startProcess(env);
      expect(await bring(running), 'brought, or there already').to.be.oneOf([200, 202]);
      expect(await until(isThere, 90_000), what).to.equal(true);
      await running.kill('SIGKILL');
    }
    running = await live.startProcess(env);
    expect(await bring(running)).to.equal(200);
    const isWhole = async () => {
      const rec = await db.collection<{ _id: string; state: string }>('reconciliations').findOne({});
      return rec?.state === 'open.resting';
    };
    expect(await until(isWhole, 90_000)).to.equal(true);
    await running.kill('SIGKILL');
    running = undefined;
    expect(await paid()).to.equal(payouts);
    expect(await db.collection('statement_lines').countDocuments()).to.equal(lines);
    const posted = await db.collection('journal_entries').distinct('_id', { type: 'payout.paid' });
    expect(posted.map(String).sort()).to.deep.equal(ids.map((id) => `live:${id}:paid`).sort());
    const matched = await db.collection('statement_lines').distinct('entry');
    expect(matched.map(String).sort()).to.deep.equal(ids.map((id) => `live:${id}:paid`).sort());
  });

  it('leaves books that balance, and an auditor with nothing to say', async () => {
    await live.restart(env);
    const { breaches } = await auditAll(db, Date.now() + limits.minuteMs);
    expect(breaches).to.deep.equal([]);
  });
});
