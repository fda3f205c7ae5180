import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { type Live, openLive } from '../support/live.ts';
import { untilNoonMs } from '../support/noon.ts';
import { until } from '../support/until.ts';

const { dayMs, hourMs } = limits;
const gross = 5_000;

/** Money back over M-Pesa's line, as the network's own books have it. */
for (const mode of ['sync', 'async'] as const) {
  describe(`live refunds, ${mode}`, function () {
    this.timeout(300_000);
    let live: Live;
    let key: string;

    before(async () => {
      live = await openLive({ mode });
      live.clock.advance(untilNoonMs(live.clock.now()));
      key = (await live.service.issueKey(live.merchantId, 'live', ['refunds'])).secret;
      const changed = await live.service.call('PATCH', `/admin/merchants/${live.merchantId}`, {
        body: { settlement_delay_days: 0, reason: 'refunds need available money' },
      });
      expect(changed.status, changed.text).to.equal(200);
    });
    after(() => live?.close());

    let orders = 0;
    const order = async (collection: string, amount: number): Promise<string> => {
      orders += 1;
      const headers = { 'idempotency-key': `live-refund-${orders}` };
      const send = () =>
        live.service.call('POST', '/v1/refunds', { token: key, headers, body: { collection, amount } });
      let answer = await send();
      // A busy machine says so, and the same key is safe.
      await until(async () => {
        if (answer.status === 503) answer = await send();
        return answer.status !== 503;
      });
      expect(answer.status, answer.text).to.equal(202);
      return answer.json.id;
    };
    const read = async (id: string) =>
      (await live.service.call('GET', `/v1/refunds/${id}`, { token: key })).json;
    const ended = async (id: string) => {
      const isOver = await until(async () => (await read(id)).status !== 'created', 90_000);
      expect(isOver, (await live.service.actor(id)).state).to.equal(true);
      return read(id);
    };
    const pay = async (): Promise<string> => {
      const { status, json, text } = await live.create('255740000001');
      expect(status, text).to.equal(202);
      expect((await live.final(json.id)).status).to.equal('succeeded');
      return json.id;
    };
    const atNetwork = (id: string) => live.simulator.network.find(id.slice('col_'.length))!;
    const reversalsOf = (id: string) => [...atNetwork(id).reversals.entries()];
    const stored = (name: string) => live.service.service.wired.db.collection(name);

    it('two parts and the rest go back, each once under its own reference, and no more', async () => {
      const [id] = [await pay(), await pay()];
      const refunds: string[] = [];
      for (const amount of [1_000, 1_500, gross - 2_500]) {
        const refund = await order(id, amount);
        refunds.push(refund);
        const shown = await ended(refund);
        expect(shown).to.include({ status: 'succeeded', amount });
        const [reference, made] = reversalsOf(id).at(-1)!;
        expect(reference).to.equal(`F${refund.slice('rf_0'.length)}`);
        expect(made).to.include({ amountTzs: amount, receipt: shown.provider_reference });
      }
      expect(reversalsOf(id)).to.have.length(refunds.length);
      const { payments } = (await (
        await fetch(new URL('/_sim/payments', live.simulator.baseUrl))
      ).json()) as { payments: { receipt: string; reversals: object }[] };
      const shown = payments.find(({ receipt }) => receipt === atNetwork(id).receipt)!;
      expect(Object.keys(shown.reversals), 'as the simulator shows them').to.deep.equal(
        reversalsOf(id).map(([reference]) => reference),
      );
      expect(live.simulator.counts.reversal).to.equal(refunds.length);
      const more = await live.service.call('POST', '/v1/refunds', {
        token: key,
        headers: { 'idempotency-key': 'one-too-many' },
        body: { collection: id },
      });
      expect([more.status, more.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
    });

    it('the answer to a reversal is lost: it is asked about, and not sent again', async () => {
      const [id] = [await pay(), await pay()];
      const sent = live.simulator.counts.reversal;
      live.simulator.faults.add({ operation: 'reversal', does: 'resets', when: 'after', times: 1 });
      const refund = await order(id, 2_000);
      expect(await ended(refund)).to.include({ status: 'succeeded', amount: 2_000 });
      const heard = (await live.service.history(refund)).map(
        ({ event }: { event: { type: string } }) => event.type,
      );
      expect(heard).to.include('reverse.unknown');
      expect(live.simulator.counts.reversal).to.equal(sent + 1);
      expect(reversalsOf(id)).to.have.length(1);
    });

    if (mode === 'async') {
      it('the network calls back under the refund’s reference: the refund hears of it, and the payment does not', async () => {
        const [id] = [await pay(), await pay()];
        // Nothing is known of the reversal for as long as that.
        const vague = { operation: 'query', does: 'answers', code: 'INS-6', when: 'before' } as const;
        live.simulator.faults.add({ ...vague, times: 1_000 });
        const refund = await order(id, 1_200);
        const kept = await until(() =>
          stored('railCallbacks').findOne({ collectionId: refund, rungAt: { $type: 'date' } }),
        );
        live.simulator.faults.clear();
        expect(kept, 'kept, and rung').to.include({ machine: 'refund' });
        const noticed = async (actor: string) =>
          (await live.service.history(actor)).filter(
            ({ event }: { event: { type: string } }) => event.type === 'rail.noticed',
          );
        expect(await noticed(refund)).to.have.length(1);
        expect(await stored('railCallbacks').countDocuments({ collectionId: id })).to.equal(1);
        expect(await ended(refund)).to.include({ status: 'succeeded' });
      });
    }

    it('the statement shows each part with its reference, and nothing differs', async () => {
      const [id] = [await pay(), await pay()];
      const made = [await order(id, 700), await order(id, 800)];
      for (const refund of made) await ended(refund);
      // One that the books do not have: the customer's own, in part.
      const other = await pay();
      await live.simulator.network.reverse(atNetwork(other), 'by the customer', 900);
      const date = eatDate(live.clock.now());
      const text = live.simulator.statement({ date });
      for (const refund of made) expect(text).to.include(`F${refund.slice('rf_0'.length)}`);
      // One that is not in the file: the network has it all the same.
      const unlisted = await order(id, 600);
      await ended(unlisted);
      live.clock.advance(2 * dayMs);
      const { status, json } = await live.service.call(
        'POST',
        `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=today`,
        { body: text, headers: { 'content-type': 'text/csv' } },
      );
      expect(status, JSON.stringify(json)).to.equal(202);
      const isJudged = await until(async () => {
        live.clock.advance(hourMs);
        await live.service.sweep();
        const told = await live.service.call('GET', `/admin/reconciliations/${json.id}`);
        return /^open\.resting/.test(told.json.state);
      }, 90_000);
      expect(isJudged, 'judged').to.equal(true);
      const { data } = (
        await live.service.call('GET', `/admin/differences?reconciliation=${json.id}&limit=100`)
      ).json;
      const told = data.map((row: { class: string; collection_id: string; details: string }) => [
        row.class,
        row.collection_id ?? row.details,
      ]);
      expect(told).to.have.deep.members([
        ['reversed_there', other],
        ['missing_there', `live:${unlisted}:paid`],
      ]);
      const { id: missing } = data.find((row: { class: string }) => row.class === 'missing_there');
      const isConfirmed = await until(
        async () => (await live.service.actor(missing)).state === 'awaitingFile',
      );
      expect(isConfirmed, (await live.service.actor(missing)).state).to.equal(true);
      const evidence = await live.service.call('GET', `/admin/refunds/${unlisted}/evidence`);
      expect(
        evidence.json.answers.map(({ operation }: { operation: string }) => operation),
      ).to.include.members(['reversal', 'query']);
    });

    it('leaves books that the auditor finds right', async () => {
      const { auditWatch } = live.service.service.wired;
      await auditWatch.full();
      expect((await live.service.call('GET', '/admin/ledger/audit')).json.open_breaches).to.deep.equal([]);
      expect(live.simulator.invariants()).to.deep.include({ clean: true });
    });
  });
}
