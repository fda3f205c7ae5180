import { type ActorDoc, actorsSpec } from '@kusanya/durable-actors';
import type { SettlementContext } from '../../machines/settlement.ts';
import type { Bucket } from '../ledger/ledger.ts';
import { actorIndexes } from '../standing.ts';

/** Settlements as they are stored: actors, one per merchant, mode and date. */
export const settlementsSpec = actorsSpec({
  name: 'settlements',
  indexes: [
    ...actorIndexes,
    { key: { 'data.date': -1, _id: -1 } },
    { key: { mode: 1, state: 1, 'data.date': -1, _id: -1 } },
    { key: { merchantId: 1, mode: 1, 'data.date': -1, _id: -1 } },
  ],
});

export interface SettlementDoc extends ActorDoc {
  data: { date: string; currency: string };
  snapshot: { value: unknown; context: SettlementContext & Record<string, unknown> };
}

/** One settlement per merchant, mode and date. */
export function settlementId({
  mode,
  merchantId,
  date,
}: Pick<Bucket, 'mode' | 'merchantId' | 'date'>): string {
  return `stl.${mode}.${merchantId}.${date}`;
}
