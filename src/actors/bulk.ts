import { type AnyBulkWriteOperation, Long } from 'mongodb';
import type { Doc, Write } from '../mongo.ts';

/** One bulk write of a batch. */
export interface Plan {
  into: string;
  operations: AnyBulkWriteOperation<Doc>[];
  writes: Write[];
  /** Plain updates, each of which must match. */
  mustMatch: number;
}

/**
 * The batch as bulk writes in a fixed order, so that two processes never wait for each other crosswise:
 * inserts and guarded updates per MongoDB collection, and the counters last since they are the hottest.
 */
export function planOf(batch: readonly { writes: Write[] }[]): Plan[] {
  const plain = new Map<string, Plan>();
  const counters = new Map<string, Map<string, Extract<Write, { op: 'increment' }>>>();
  for (const { writes } of batch) {
    for (const write of writes) {
      if (write.op === 'increment') {
        merge(counters, write);
        continue;
      }
      // A member that stands alone has each write on its own, so that a refusal names the write.
      const place = batch.length > 1 ? write.into : `${write.into}#${plain.size}`;
      let part = plain.get(place);
      if (!part) {
        part = { into: write.into, operations: [], writes: [], mustMatch: 0 };
        plain.set(place, part);
      }
      part.writes.push(write);
      if (write.op === 'insert') part.operations.push({ insertOne: { document: write.doc } });
      else {
        part.operations.push({ updateOne: { filter: write.filter, update: write.update } });
        part.mustMatch += 1;
      }
    }
  }
  const plans = [...plain.values()];
  for (const [into, byId] of counters) {
    const writes = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    plans.push({
      into,
      writes,
      mustMatch: 0,
      operations: writes.map((write) => ({
        updateOne: {
          filter: { _id: write.id },
          update: { $inc: write.amounts, $setOnInsert: write.onInsert },
          upsert: true,
        },
      })),
    });
  }
  return plans;
}

/** Increments of one document within a batch become one. */
function merge(
  counters: Map<string, Map<string, Extract<Write, { op: 'increment' }>>>,
  write: Extract<Write, { op: 'increment' }>,
): void {
  let byId = counters.get(write.into);
  if (!byId) {
    byId = new Map();
    counters.set(write.into, byId);
  }
  const known = byId.get(write.id);
  if (!known) {
    byId.set(write.id, { ...write, amounts: { ...write.amounts } });
    return;
  }
  for (const [path, amount] of Object.entries(write.amounts)) {
    known.amounts[path] = (known.amounts[path] ?? Long.ZERO).add(amount);
  }
}
