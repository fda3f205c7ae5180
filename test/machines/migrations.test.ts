import { readFileSync } from 'node:fs';
import { type ActorDoc, type Migration, stateText } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { collectionMigrations } from '../../src/collections/collections.ts';
import { payoutMigrations } from '../../src/payouts/migrations.ts';
import { breakerMigrations } from '../../src/rails/rails.ts';
import { differenceMigrations } from '../../src/reconciliation/effects.ts';
import { refundMigrations } from '../../src/refunds/effects.ts';
import { settlementMigrations } from '../../src/settlement/settlement.ts';
import { deliveryMigrations, endpointMigrations } from '../../src/webhooks/webhooks.ts';
import { Chart, type Position } from '../support/charts.ts';
import { models } from '../support/every-chart.ts';

interface Golden {
  states: Record<
    string,
    {
      snapshot: { value: unknown; context: Record<string, unknown> };
      timers: { id: string; dueAt: string }[];
      now: string;
    }
  >;
}

/** Every state of every older version, lifted to the present chart: it restores and has the timers that it wants. */
describe('stored documents of older versions', () => {
  /** Those of every machine that has an older version. */
  const migrationsOf: Record<string, Record<number, Migration>> = {
    collection: collectionMigrations,
    breaker: breakerMigrations,
    difference: differenceMigrations,
    payout: payoutMigrations,
    refund: refundMigrations,
    delivery: deliveryMigrations,
    settlement: settlementMigrations,
    endpoint: endpointMigrations,
  };
  for (const { name, machine } of models) {
    const migrations = migrationsOf[name] ?? {};
    it(`${name}: each older version has a migration, which this file tests`, () => {
      const older = Array.from({ length: Number(machine.version) - 1 }, (_, index) => String(index + 1));
      expect(Object.keys(migrations)).to.deep.equal(older);
    });
    const chart = new Chart(machine);
    for (let from = 1; from < Number(machine.version); from += 1) {
      const file = new URL(`./golden/${name}/v${from}.json`, import.meta.url);
      const { states } = JSON.parse(readFileSync(file, 'utf8')) as Golden;
      for (const [state, golden] of Object.entries(states)) {
        it(`${name} ${from}, ${state}: restores, with the timers that it wants and no other`, () => {
          const now = new Date(golden.now);
          const timers = golden.timers.map(({ id, dueAt }) => ({
            ...{ id, event: id, dueAt: new Date(dueAt), armedSeq: 3 },
          }));
          const dueAt = timers.map((timer) => timer.dueAt).sort((a, b) => Number(a) - Number(b))[0] ?? null;
          let doc = {
            ...{ _id: `${name}_1`, machineVersion: from, seq: 3, state, snapshot: golden.snapshot },
            ...{ timers, calls: [], dueAt, lastStep: 's', updatedAt: now },
            ...{ merchantId: 'mer_1', mode: 'live', data: {} },
          } as ActorDoc;
          for (let at = from; at < Number(machine.version); at += 1) doc = migrations[at]!(doc);
          expect(doc.machineVersion).to.equal(Number(machine.version));
          expect(doc.state).to.equal(stateText(doc.snapshot.value as never));
          const position = {
            ...{ status: 'active', output: undefined, error: undefined, asked: [], taken: [] },
            ...{ state: doc.state, ...doc.snapshot, now: now.getTime() },
            timers: doc.timers.map((timer) => ({ id: timer.id, dueAt: timer.dueAt.getTime() })),
          } as unknown as Position;
          expect(chart.restore(position).value).to.deep.equal(doc.snapshot.value);
          expect(doc.timers.map(({ id }) => id)).to.have.members(chart.wantedTimers(position));
          const first = doc.timers.map((timer) => timer.dueAt.getTime()).sort((a, b) => a - b)[0];
          expect(doc.dueAt?.getTime()).to.equal(first);
          for (const { id } of doc.timers) chart.fire(position, id);
        });
      }
    }
  }
});
