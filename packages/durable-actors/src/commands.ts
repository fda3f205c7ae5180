import { type Document, Long } from 'mongodb';
import type { Write } from './mongo.ts';

type Increment = Extract<Write, { op: 'increment' }>;

/** One command of a batch, as MongoDB takes it. */
export interface Command {
  command: Document;
  /** What it writes, in the order of its documents or updates; of increments, those that were merged. */
  writes: Write[];
  /** Plain updates, each of which must match. */
  mustMatch: number;
}

/**
 * The batch as commands in a fixed order: updates, removals, inserts, and the counters last since they are the hottest; of each
 * kind one for a MongoDB collection. Updates go first because there it shows who lost a race. Plain commands, because
 * the driver's bulk writes encode every document twice, once to measure it.
 */
export function commandsOf(batch: readonly { writes: Write[] }[]): Command[] {
  // A member that stands alone has each write on its own, in its own order, so that a refusal names the write.
  const alone = batch.length === 1 ? batch[0] : undefined;
  const writes = batch.flatMap((member) => member.writes);
  const counters = increments(writes.filter(isIncrement));
  if (alone) return [...alone.writes.flatMap((write) => commands([write])), ...counters];
  return [...commands(writes), ...counters];
}

/** The updates, removals and inserts among some writes. */
function commands(writes: readonly Write[]): Command[] {
  const updates = new Map<string, Command>();
  const removals = new Map<string, Command>();
  const inserts = new Map<string, Command>();
  for (const write of writes) {
    if (write.op === 'update') {
      const part = partOf(updates, write.into, () => ({ update: write.into, updates: [], ordered: true }));
      const { filter: q, update: u, isUpsert } = write;
      part.command.updates.push({ q, u, ...(isUpsert ? { upsert: true } : {}) });
      part.writes.push(write);
      part.mustMatch += 1;
    } else if (write.op === 'insert') {
      const part = partOf(inserts, write.into, () => ({ insert: write.into, documents: [], ordered: true }));
      part.command.documents.push(write.doc);
      part.writes.push(write);
    } else if (write.op === 'remove') {
      const part = partOf(removals, write.into, () => ({ delete: write.into, deletes: [], ordered: true }));
      part.command.deletes.push({ q: write.filter, limit: 1 });
      part.writes.push(write);
    }
  }
  return [...updates.values(), ...removals.values(), ...inserts.values()];
}

function partOf(parts: Map<string, Command>, into: string, begin: () => Document): Command {
  let part = parts.get(into);
  if (!part) {
    part = { command: begin(), writes: [], mustMatch: 0 };
    parts.set(into, part);
  }
  return part;
}

export function isIncrement(write: Write): write is Increment {
  return write.op === 'increment';
}

/** Increments of one document become one, and documents are visited in the order of their ids. */
function increments(writes: readonly Increment[]): Command[] {
  const byPlace = new Map<string, Map<string, Increment>>();
  for (const write of writes) {
    const byId = byPlace.get(write.into) ?? new Map<string, Increment>();
    const sum = byId.get(write.id) ?? { ...write, amounts: {} };
    for (const [path, amount] of Object.entries(write.amounts)) {
      sum.amounts[path] = (sum.amounts[path] ?? Long.ZERO).add(amount);
    }
    byPlace.set(write.into, byId.set(write.id, sum));
  }
  return [...byPlace].map(([into, byId]) => {
    const merged = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    const updates = merged.map(({ id, amounts, onInsert }) => ({
      q: { _id: id },
      u: { $inc: amounts, $setOnInsert: onInsert },
      upsert: true,
    }));
    return { command: { update: into, updates, ordered: true }, writes: merged, mustMatch: 0 };
  });
}
