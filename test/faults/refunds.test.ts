import { setTimeout as wait } from 'node:timers/promises';
import { connectMongo } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { railSessionsSpec } from '../../src/rails/rails.ts';
import type { RefundDoc } from '../../src/refunds/refunds.ts';
import { type Live, openLive } from '../support/live.ts';
import { type ServiceProcess, seeded } from '../support/processes.ts';
import { isLong } from '../support/size.ts';
import { stores } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { seed } from '../support/world.ts';

/** Where a process can die between the order of a refund and the end of it. */
const points = [
  'beforeAnswer',
  'beforeCommit',
  'afterCommit',
  'beforeClaim',
  'afterClaim',
  'beforeCall',
  'afterCall',
  'afterCallAnswer',
] as const;

const payments = isLong ? 61 : 13;
const killsAtRandom = isLong ? 20 : 2;
const partTzs = 1_000;
const partsPerPayment = 5;

for (const mode of ['sync', 'async'] as const) {
  describe(`refunds, ${mode}: killed at named points and at random, by the network’s own journal (SEED=${seed})`, () => {
    let live: Live;
    let key: string;
    let paid: string[];
    const random = seeded(seed);
    /** What was answered 202, by its idempotency key. */
    const accepted = new Map<string, Set<string>>();
    const odd: string[] = [];
    let orders = 0;

    before(async function () {
      this.timeout(600_000);
      live = await openLive({ mode });
      const merchant = await live.service.call('PATCH', `/admin/merchants/${live.merchantId}`, {
        body: { settlement_delay_days: 0, reason: 'refunds need available money' },
      });
      expect(merchant.status, merchant.text).to.equal(200);
      key = (await live.service.issueKey(live.merchantId, 'live', ['refunds'])).secret;
      // One more than is refunded, for what the fees take.
      paid = [];
      while (paid.length < payments + 2) {
        const { json, status, text } = await live.create(`2557560000${String(paid.length).padStart(2, '0')}`);
        expect(status, text).to.equal(202);
        paid.push(json.id);
      }
      for (const id of paid) expect((await live.final(id, 120_000)).status, id).to.equal('succeeded');
    });

    after(() => live?.close());

    /** The next part of a payment that has some left. */
    const next = () => {
      orders += 1;
      return {
        key: `refund-${mode}-${orders}`,
        collection: paid[Math.floor((orders - 1) / partsPerPayment)]!,
      };
    };
    const left = () => payments * partsPerPayment - orders;

    type Order = ReturnType<typeof next>;

    /** Asked once; undefined when nobody answered. */
    const post = async (baseUrl: string, order: Order): Promise<string | undefined> => {
      const headers = {
        ...{ authorization: `Bearer ${key}`, 'idempotency-key': order.key },
        'content-type': 'application/json',
      };
      const body = JSON.stringify({ collection: order.collection, amount: partTzs });
      const sent = fetch(`${baseUrl}/v1/refunds`, {
        ...{ method: 'POST', headers, body },
        signal: AbortSignal.timeout(20_000),
      });
      const answer = await sent.then(
        async (response) => ({ status: response.status, text: await response.text() }),
        () => undefined,
      );
      if (!answer) return undefined;
      if (answer.status !== 202) {
        const isInUse = answer.status === 409 && answer.text.includes('idempotency_key_in_use');
        if (answer.status !== 503 && !isInUse) odd.push(`${order.key}: ${answer.status} ${answer.text}`);
        return undefined;
      }
      const { id } = JSON.parse(answer.text) as { id: string };
      accepted.set(order.key, (accepted.get(order.key) ?? new Set()).add(id));
      return id;
    };

    /** As a merchant would: the same key again until it is answered 202, or the process is gone. */
    const insist = async (order: Order, baseUrl: string, isOver = () => false): Promise<boolean> =>
      (await until(async () => {
        if (isOver() || (await post(baseUrl, order))) return true;
        await wait(100);
        return false;
      }, 120_000)) === true;

    const isGone = ({ child }: ServiceProcess) => child.exitCode !== null || child.signalCode !== null;
    const settings = { NODE_ENV: 'test', SWEEP_INTERVAL: '500ms', WORKER_LOST_AFTER: '3s' };

    it('each order is made once, whichever point its process dies at', async function () {
      this.timeout(points.length * 240_000);
      const unanswered: Order[] = [];
      for (const point of points) {
        let doomed: ServiceProcess | undefined;
        // Some points are passed by the start itself, by the round that every process makes.
        for (let passing = 1; !doomed; passing += 2)
          doomed = await live
            .startProcess({ ...settings, FAILPOINT: `${point}:${passing}` })
            .catch(() => undefined);
        const { baseUrl } = doomed;
        const isOver = isGone.bind(undefined, doomed);
        while (!isOver() && left() > payments) {
          const order = next();
          await insist(order, baseUrl, isOver);
          if (!accepted.has(order.key)) unanswered.push(order);
          // What is done after the answer is done soon.
          await until(async () => isOver(), 2_000);
        }
        await until(async () => isOver(), 60_000);
        expect(doomed.child.signalCode, `${point} is never passed: ${doomed.output()}`).to.equal('SIGKILL');
      }
      const whole = await live.startProcess(settings);
      for (const order of unanswered) expect(await insist(order, whole.baseUrl), order.key).to.equal(true);
      await whole.kill('SIGKILL');
    });

    it('nor at random moments', async function () {
      this.timeout(killsAtRandom * 240_000);
      for (let kill = 0; kill < killsAtRandom; kill += 1) {
        const doomed = await live.startProcess(settings);
        const some = Array.from({ length: Math.min(4, left()) }, next);
        const insisting = some.map((order) => insist(order, doomed.baseUrl, () => isGone(doomed)));
        await wait(random() * 1_500);
        await doomed.kill('SIGKILL');
        await Promise.all(insisting);
        const whole = await live.startProcess(settings);
        for (const order of some) expect(await insist(order, whole.baseUrl), order.key).to.equal(true);
        await whole.kill('SIGKILL');
      }
    });

    it('one that waits for a session when its process dies is sent by the next', async function () {
      this.timeout(240_000);
      const client = await connectMongo((await stores()).mongodbUri);
      try {
        const db = client.db(live.database);
        live.simulator.faults.add({ operation: 'session', does: 'hangs', when: 'before', times: 1_000 });
        await db.collection(railSessionsSpec.name).deleteMany({});
        const doomed = await live.startProcess(settings);
        const order = next();
        expect(await insist(order, doomed.baseUrl), order.key).to.equal(true);
        const [id] = accepted.get(order.key)!;
        const read = async () => (await db.collection<RefundDoc>('refunds').findOne({ _id: id! }))!;
        // Whoever claims it does so within moments.
        const claimed = await until(
          async () => (await read()).calls.some(({ startedAt }) => startedAt),
          2_000,
        );
        const { state } = await read();
        await doomed.kill('SIGKILL');
        expect(state, 'nothing was sent').to.match(/^created\.sending\./);
        expect(claimed, 'claimed').to.equal(undefined);
        live.simulator.faults.clear();
        const whole = await live.startProcess(settings);
        const ended = await until(async () => (await read()).status !== 'created', 120_000);
        await whole.kill('SIGKILL');
        expect([ended, (await read()).state]).to.deep.equal([true, 'succeeded']);
      } finally {
        await client.close();
      }
    });

    it('every 202 ends: by the network’s word, or by a person where it has no word of it', async function () {
      this.timeout(600_000);
      await live.restart();
      const { db } = live.service.service.wired;
      const refunds = db.collection<RefundDoc>('refunds');
      const reversalOf = (id: string) => live.simulator.network.find(`F${id.slice('rf_0'.length)}`);
      let byPerson = 0;
      const isOver = await until(async () => {
        live.clock.advance(60_000);
        await live.service.sweep();
        // What may still be sent has an open call, and what the network has made it says by itself.
        const unclear = { state: /^created\.underReview/, calls: [] };
        for (const { _id } of await refunds.find(unclear).toArray()) {
          if (reversalOf(_id)) continue;
          const body = { type: 'operator.resolved', outcome: 'failed', reason: 'the statement lacks it' };
          const told = await live.service.call('POST', `/admin/actors/${_id}/events`, { body });
          if (told.status === 200) byPerson += 1;
        }
        const open = { $or: [{ status: 'created' as const }, { 'calls.0': { $exists: true } }] };
        return (await refunds.countDocuments(open)) === 0;
      }, 300_000);
      const stored = await refunds.find({}).toArray();
      const states = stored.map(({ _id, state }) => `${_id} ${state}`);
      expect(isOver, states.join('\n')).to.equal(true);
      const byStatus = (wanted: string) => stored.filter(({ status }) => status === wanted).length;
      process.stdout.write(
        `      ${stored.length} refunds: ${byStatus('succeeded')} succeeded, ${byStatus('failed')} failed, ${byPerson} by a person\n`,
      );
    });

    it('nobody got anything back twice, and who got nothing has a refund that failed', async () => {
      const { db } = live.service.service.wired;
      const stored = await db.collection<RefundDoc>('refunds').find({}).toArray();
      expect(odd, 'answers that no kill excuses').to.deep.equal([]);
      expect([...accepted.values()].filter((ids) => ids.size !== 1)).to.deep.equal([]);
      const ids = [...accepted.values()].flatMap((each) => [...each]);
      expect(stored.map(({ _id }) => _id).sort(), 'the 202s, and nothing else').to.deep.equal(ids.sort());
      const made = [...live.simulator.network.payments].flatMap(({ reversals }) => [...reversals]);
      const succeeded = stored
        .filter(({ status }) => status === 'succeeded')
        .map(({ _id }) => `F${_id.slice(4)}`);
      expect(made.map(([reference]) => reference).sort()).to.deep.equal(succeeded.sort());
      expect(made.filter(([, { amountTzs }]) => amountTzs !== partTzs)).to.deep.equal([]);
      // Not one was sent a second time: the network would have refused its reference, and it counts that too.
      expect(live.simulator.counts.reversal, 'sent').to.equal(made.length);
    });

    it('the books balance, with themselves and with the network', async () => {
      const { auditWatch } = live.service.service.wired;
      await auditWatch.full();
      expect((await live.service.call('GET', '/admin/ledger/audit')).json.open_breaches).to.deep.equal([]);
      expect(live.simulator.invariants()).to.deep.include({ clean: true });
      const { db } = live.service.service.wired;
      for (const { _id, snapshot } of await db.collection('collections').find({ mode: 'live' }).toArray()) {
        const at = live.simulator.network.find(String(_id).slice('col_'.length))!;
        const back = [...at.reversals.values()].reduce((sum, { amountTzs }) => sum + amountTzs, 0);
        expect(snapshot.context.refundedTzs, String(_id)).to.equal(back);
        expect(snapshot.context.refundsOpen, String(_id)).to.equal(0);
      }
    });
  });
}
