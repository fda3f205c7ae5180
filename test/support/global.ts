import { stopStores } from './stores.ts';

/** Runs once after all suites, whether they passed or not (.mocharc.json, `require`). */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopStores();
}
