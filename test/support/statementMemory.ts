/**
 * Run with `--expose-gc`: takes a statement of each size (lines) in turn, one day after the other, and looks again and
 * again at what nobody could free meanwhile. Prints as JSON the bytes: the most seen of each, and what stays after it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { bringLargeDay, eachTzs, type LargeDay, plantLargeDay, readLargeDay } from './largeStatement.ts';
import { startTestService } from './service.ts';

const lookMs = 250;

const main = async (sizes: readonly number[]) => {
  const test = await startTestService();
  const told = [];
  let openingTzs = 0;
  for (const [n, lines] of sizes.entries()) {
    const date = eatDate(Date.now() - (sizes.length + 2 - n) * limits.dayMs);
    const day = { date, payments: lines / 2, openingTzs };
    openingTzs += day.payments * eachTzs;
    await plantLargeDay(test, day);
    told.push({ lines, ...(await watched(() => reconcile(test, day))) });
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
  await test.stop();
  process.exit();
};

async function reconcile(test: Awaited<ReturnType<typeof startTestService>>, day: LargeDay): Promise<void> {
  await bringLargeDay(test, day);
  while ((await readLargeDay(test, day)).state !== 'open.resting') await sleep(lookMs);
}

/** What is held while something is done, and after it. */
async function watched(work: () => Promise<void>) {
  const seen = { most: 0, after: 0, rss: 0, looks: 0 };
  let isOver = false;
  const working = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    seen.rss = Math.max(seen.rss, process.memoryUsage().rss);
    seen.most = Math.max(seen.most, held());
    seen.looks += 1;
    await sleep(lookMs);
  }
  await working;
  seen.after = held();
  return seen;
}

/** Bytes in use that a collection of garbage does not free. */
function held(): number {
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

void main(process.argv.slice(2).map(Number));
