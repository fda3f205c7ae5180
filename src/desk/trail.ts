import { type ActorDoc, type StepLine, stepId, stepRange, stepsSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type Archive, type Archived, nothingArchived } from '../archive/archive.ts';

/** Where histories are: the latest steps in MongoDB, those of long ago in the archive. */
export interface Histories {
  db: Db;
  archive: Pick<Archive, 'of'>;
}

/** Lines of a history, and what of it came from the archive or could not. */
export interface History {
  lines: StepLine[];
  archived: Archived;
}

/** Where an actor was at a step, and all the states that it had been in by then. */
export interface Trail {
  /** The step's number, or the latest one before it that left a line. */
  seq: number;
  active: string;
  visited: string[];
}

/** Steps that are looked back on; an endpoint of many years has more. */
const linesMax = 2_000;

/** The trail of an actor up to a step; undefined where it had none by then. */
export async function readTrail(
  histories: Histories,
  doc: ActorDoc,
  seq?: number,
): Promise<Trail | undefined> {
  const whole = stepRange(doc._id);
  const upTo = seq === undefined ? whole.$lt : stepId(doc._id, seq + 1);
  const stored = await histories.db
    .collection<StepLine>(stepsSpec.name)
    .find({ _id: { $gt: whole.$gt, $lt: upTo } }, { projection: { seq: 1, from: 1, to: 1 } })
    .sort({ _id: -1 })
    .limit(linesMax)
    .toArray();
  const archived = stored.length < linesMax ? await archivedOf(histories, doc._id) : nothingArchived;
  const lines = merged(archived, stored).filter(({ _id }) => _id < upTo);
  const last = lines.at(-1);
  if (!last) return undefined;
  const visited = new Set(lines.flatMap(({ from, to }) => (from === null ? [to] : [from, to])));
  // What was set aside or claimed has a higher number than its last line, and still stands where that led.
  return { seq: last.seq, active: seq === undefined ? doc.state : last.to, visited: [...visited] };
}

/** The lines of an actor's history after a step, oldest first, wherever they are. */
export async function readHistory(
  histories: Histories,
  actor: string,
  limit: number,
  afterSeq = 0,
): Promise<History> {
  const stored = await histories.db
    .collection<StepLine>(stepsSpec.name)
    .find({ _id: { ...stepRange(actor), $gt: stepId(actor, afterSeq) } })
    .sort({ _id: 1 })
    .limit(limit)
    .toArray();
  const archived = await archivedOf(histories, actor);
  const lines = merged(archived, stored).filter(({ seq }) => seq > afterSeq);
  return { lines: lines.slice(0, limit), archived };
}

/** A history goes to the archive from its birth on: who has that line in MongoDB has all others there too. */
async function archivedOf({ db, archive }: Histories, actor: string): Promise<Archived> {
  const birth = { _id: stepId(actor, 1) };
  const isStored = await db.collection<StepLine>(stepsSpec.name).findOne(birth, { projection: { _id: 1 } });
  return isStored ? nothingArchived : archive.of('history', actor);
}

/** In their order, each once: what is being removed just now is in both. */
function merged({ docs }: Archived, stored: readonly StepLine[]): StepLine[] {
  const lines = new Map(stored.map((line) => [line._id, line]));
  for (const { doc } of docs) if (!lines.has(doc._id)) lines.set(doc._id, doc as StepLine);
  return [...lines.values()].sort((a, b) => a.seq - b.seq);
}
