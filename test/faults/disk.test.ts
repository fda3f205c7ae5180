import { spawnSync } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const diskSize = '700m';

describe(`MongoDB’s disk is full (SEED=${seed})`, () => {
  let world: World | undefined;
  let disk: string | undefined;

  after(async () => {
    await world?.close();
    if (!disk) return;
    spawnSync('umount', [disk]);
    await rm(disk, { recursive: true });
  });

  it('creates are refused with 503, nothing is half-written, and it goes on once there is room', async function () {
    this.timeout(600_000);
    const folder = await mkdtemp(join(tmpdir(), 'kusanya-disk-'));
    const isMounted =
      isLong && spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${diskSize}`, 'tmpfs', folder]).status === 0;
    if (!isMounted) {
      await rm(folder, { recursive: true });
      const why = isLong ? 'a disk of its own needs root' : 'only npm run faults fills a disk';
      process.stderr.write(`        skipped: ${why}\n`);
      this.skip();
    }
    disk = folder;
    world = await openWorld({}, { mongodDir: join(folder, 'data') });
    const load = startLoad(world);
    await wait(3_000);
    const statuses = await untilRefused(world, join(folder, 'filler'));
    expect([...statuses].filter((status) => status !== 202)).to.deep.equal([503]);
    await rm(join(folder, 'filler'));
    await world.create(); // MongoDB gave up; its keeper starts it again, less and less eagerly
    await load.stop();
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});

/**
 * Leaves no room until a create is refused, and tells how creates were answered: what MongoDB has set aside lasts for a
 * moment, and it frees some as it goes. No longer than that, and side by side: the longer its keeper finds no room, the
 * later it tries again, and merchants wait meanwhile.
 */
async function untilRefused(world: World, filler: string): Promise<Set<number>> {
  const statuses = new Set<number>();
  let asked = 0;
  const ask = async () => {
    const key = `full-${++asked}`;
    const body = { amount: 1_000, phone: '255700000000', reference: 'full' };
    const answer = await world.ask('POST', '/v1/collections', { key, body });
    if (answer) statuses.add(answer.status);
    if (answer?.status === 202) world.outside.accepted.set(key, new Set([answer.json.id]));
  };
  await until(async () => {
    await fill(filler);
    await Promise.all(Array.from({ length: 4 }, ask));
    return statuses.has(503);
  }, 90_000);
  return statuses;
}

/** Writes until there is no room left, behind what was written before. */
async function fill(path: string): Promise<void> {
  const file = await open(path, 'a');
  try {
    for (const size of [1_048_576, 4_096]) {
      for (;;) {
        const { bytesWritten } = await file.write(Buffer.alloc(size)).catch(() => ({ bytesWritten: 0 }));
        if (bytesWritten < size) break;
      }
    }
  } finally {
    await file.close();
  }
}
