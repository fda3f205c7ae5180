import { stopStores, stores } from './stores.ts';

/**
 * Runs once before all suites. In CI the servers may have to be fetched, which no suite's limit of time is meant for;
 * elsewhere they start when the first suite asks.
 */
export async function mochaGlobalSetup(): Promise<void> {
  if (process.env.CI) await stores();
}

/** Runs once after all suites, whether they passed or not (.mocharc.json, `require`). */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopStores();
}
