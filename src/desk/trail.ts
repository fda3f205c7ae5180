import { type ActorDoc, type StepLine, stepId, stepRange, stepsSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';

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
export async function readTrail(db: Db, doc: ActorDoc, seq?: number): Promise<Trail | undefined> {
  const whole = stepRange(doc._id);
  const upTo = seq === undefined ? whole.$lt : stepId(doc._id, seq + 1);
  const lines = await db
    .collection<StepLine>(stepsSpec.name)
    .find({ _id: { $gt: whole.$gt, $lt: upTo } }, { projection: { seq: 1, from: 1, to: 1 } })
    .sort({ _id: -1 })
    .limit(linesMax)
    .toArray();
  const [last] = lines;
  if (!last) return undefined;
  const visited = new Set(lines.flatMap(({ from, to }) => (from === null ? [to] : [from, to])));
  // What was set aside or claimed has a higher number than its last line, and still stands where that led.
  return { seq: last.seq, active: seq === undefined ? doc.state : last.to, visited: [...visited] };
}

/** The lines of an actor's history after a step, oldest first. */
export function readHistory(db: Db, actor: string, limit: number, afterSeq = 0): Promise<StepLine[]> {
  return db
    .collection<StepLine>(stepsSpec.name)
    .find({ _id: { ...stepRange(actor), $gt: stepId(actor, afterSeq) } })
    .sort({ _id: 1 })
    .limit(limit)
    .toArray();
}
