import { type Document, Long } from 'mongodb';
import type { Write } from './mongo.ts';

type Increment = Extract<Write, { op: 'increment' }>;
type Update = Extract<Write, { op: 'update' }>;
/** The guarded update of an actor. */
type Step = Update & { filter: { _id: string; seq: number } };

/** One command of a batch, as MongoDB takes it. */
export interface Command {
  command: Document;
  /** What it writes, in the order of its documents or updates; of increments, those that were merged. */
  writes: Write[];
  /** Plain updates, each of which must match. */
  mustMatch: number;
}

/** Steps whose sequence numbers are read, in the same transaction, before anything of it is written. */
export interface Look {
  command: Document;
  /** By the id of the actor. */
  steps: Map<string, Step>;
}

/** From so many steps in a MongoDB collection on, one look is cheaper than a condition in the filter of each. */
const looksFrom = 3;

/**
 * MongoDB plans an update by anything but the `_id` alone anew, over all indexes: a third of its time for a step. So
 * many steps are guarded by one look at all their sequence numbers. What changes between the look and the update is a
 * write conflict of the snapshot, as it is between two updates.
 */
export function looksOf(batch: readonly { writes: Write[] }[]): Look[] {
  const updates = new Map<string, Update[]>();
  for (const write of batch.flatMap(({ writes }) => writes)) {
    if (write.op !== 'update') continue;
    const others = updates.get(write.into);
    if (others) others.push(write);
    else updates.set(write.into, [write]);
  }
  return [...updates].flatMap(([into, all]) => {
    const steps = stepsAlone(all);
    if (steps.size < looksFrom) return [];
    const filter = { _id: { $in: [...steps.keys()] } };
    const command = { find: into, filter, projection: { seq: 1 }, batchSize: steps.size, singleBatch: true };
    return [{ command, steps }];
  });
}

/** Those that nothing else in the batch updates: a look says nothing of what the batch itself changes. */
function stepsAlone(updates: readonly Update[]): Map<string, Step> {
  const steps = new Map<string, Step>();
  const met = new Set<string>();
  for (const write of updates) {
    const { _id } = write.filter;
    if (typeof _id !== 'string') return new Map();
    if (met.has(_id)) steps.delete(_id);
    else if (isStep(write) && Object.keys(write.filter).length === 2) steps.set(_id, write);
    met.add(_id);
  }
  return steps;
}

/**
 * The batch as commands in a fixed order: updates, removals, inserts, and the counters last since they are the hottest; of each
 * kind one for a MongoDB collection. Updates go first because there it shows who lost a race. Plain commands, because
 * the driver's bulk writes encode every document twice, once to measure it.
 */
export function commandsOf(batch: readonly { writes: Write[] }[], looks: readonly Look[] = []): Command[] {
  const looked = new Set<Write>(looks.flatMap(({ steps }) => [...steps.values()]));
  // A member that stands alone has each write on its own, in its own order, so that a refusal names the write.
  const alone = batch.length === 1 ? batch[0] : undefined;
  const writes = batch.flatMap((member) => member.writes);
  const counters = increments(writes.filter(isIncrement));
  if (alone) return [...alone.writes.flatMap((write) => commands([write], looked)), ...counters];
  return [...commands(writes, looked), ...counters];
}

/** The updates, removals and inserts among some writes. */
function commands(writes: readonly Write[], looked: ReadonlySet<Write>): Command[] {
  const updates = new Map<string, Command>();
  const removals = new Map<string, Command>();
  const inserts = new Map<string, Command>();
  for (const write of writes) {
    if (write.op === 'update') {
      const part = partOf(updates, write.into, () => ({ update: write.into, updates: [], ordered: true }));
      const { filter, update: u, isUpsert } = write;
      const q = looked.has(write) ? { _id: filter._id } : filter;
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

export function isStep(write: Write): write is Step {
  return (
    write.op === 'update' && typeof write.filter.seq === 'number' && typeof write.filter._id === 'string'
  );
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
