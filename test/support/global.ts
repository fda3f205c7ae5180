import { config } from 'chai';
import type { Context } from 'mocha';
import { isLong } from './size.ts';
import { fileEnded, stopStores, stores } from './stores.ts';

// They would tell an assertion that does not exist (`to.be.tru`), which the types tell too, and take a quarter of the
// time of suites that assert much.
config.useProxy = false;

/**
 * Runs once before all suites, in mocha's first process. In CI the servers may have to be fetched, which no suite's
 * limit of time is meant for, and processes side by side (`--parallel`) share one pair, named in their environment;
 * elsewhere they start when the first suite asks.
 */
export async function mochaGlobalSetup(): Promise<void> {
  const isParallel = process.argv.includes('--parallel');
  if (!process.env.CI && !isParallel) return;
  const { mongodbUri, redisUrl } = await stores();
  if (isParallel) Object.assign(process.env, { TEST_MONGODB_URI: mongodbUri, TEST_REDIS_URL: redisUrl });
}

/** Runs once after all suites, whether they passed or not (.mocharc.json, `require`). */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopStores();
}

/** In one process these run once, for all files: there is nothing to be handed on. */
export const mochaHooks = {
  /** mocha tells why at the end of all files: that is an hour later, and never where it is cut off. */
  afterEach(this: Context): void {
    const { state, err } = this.currentTest ?? {};
    if (isLong && state === 'failed') process.stderr.write(`${err?.stack ?? err}\n`);
  },
  async afterAll(): Promise<void> {
    if (process.env.MOCHA_WORKER_ID !== undefined) await fileEnded();
  },
};
