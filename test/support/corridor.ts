import type { MachineDefinition } from '@kusanya/durable-actors';
import { type CorridorOptions, openCorridor } from '../../packages/durable-actors/test/support/corridor.ts';
import { createLog } from '../../src/log.ts';
import { actorIndexes } from '../../src/standing.ts';

/** The engine alone, with small charts made for a test, and actors that are listed as this service lists its own. */
export async function openListed(definitions: MachineDefinition[], options: CorridorOptions = {}) {
  const labels = { merchantId: 'mer_1', mode: 'test' } as const;
  const corridor = await openCorridor(definitions, { ...options, indexes: actorIndexes, labels });
  return { ...corridor, log: createLog('silent') };
}
