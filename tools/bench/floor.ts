import { randomBytes } from 'node:crypto';
import type { Stage } from './stage.ts';

/**
 * The floor under durable creates: the same three documents of the same size (collection, history line,
 * idempotency record), written in batches of 64 by one loop and nothing else. What a service reaches of it is
 * what its HTTP, checks, charts and hand-over leave.
 */
export async function floor(stage: Stage, forMs: number): Promise<number> {
  const db = stage.client.db('bench_floor');
  const names = ['collections', 'steps', 'idempotency'];
  const bytes: Readonly<Record<string, number>> = { collections: 1_300, steps: 350, idempotency: 700 };
  for (const name of names) await db.createCollection(name).catch(() => undefined);
  const durable = { w: 'majority', journal: true } as const;
  let units = 0;
  const startedAt = performance.now();
  while (performance.now() - startedAt < forMs) {
    const session = stage.client.startSession();
    session.startTransaction({ readConcern: { level: 'snapshot' }, writeConcern: durable });
    for (const name of names) {
      const documents = Array.from({ length: 64 }, (_, n) => ({
        _id: `${units + n}` as never,
        filler: randomBytes(bytes[name]! / 2).toString('hex'),
      }));
      await db.collection(name).insertMany(documents, { session });
    }
    await session.commitTransaction();
    await session.endSession();
    units += 64;
  }
  return Math.round(units / ((performance.now() - startedAt) / 1_000));
}
