import type { MachineDefinition } from '@kusanya/durable-actors';
import { type EngineOptions, openEngine } from '../../packages/durable-actors/test/support/engine.ts';
import { createLog } from '../../src/log.ts';
import { actorIndexes } from '../../src/standing.ts';

/** The engine alone, with small charts made for a test, and actors that are listed as this service lists its own. */
export async function openListed(definitions: MachineDefinition[], options: EngineOptions = {}) {
  const labels = { merchantId: 'mer_1', mode: 'test' } as const;
  const engine = await openEngine(definitions, { ...options, indexes: actorIndexes, labels });
  return { ...engine, log: createLog('silent') };
}
