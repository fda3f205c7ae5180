import type { Db } from 'mongodb';
import { idFloor } from '../ids.ts';
import { limits } from '../limits.ts';
import type { StatementLineDoc } from './documents.ts';

/** The network's clock is not quite ours. */
const laterMs = 5 * limits.minuteMs;
/** Our short reference: the end of an id. */
const tailChars = 16;

/** By line: what of one kind it names by our short reference, among those made so long before it. */
export async function endingWith(
  db: Db,
  { stored, prefix, earlierMs }: { stored: string; prefix: Parameters<typeof idFloor>[0]; earlierMs: number },
  lines: readonly StatementLineDoc[],
): Promise<Map<string, string>> {
  const tails = new Map<string, StatementLineDoc[]>();
  for (const line of lines) {
    for (const word of line.named) {
      if (word.length === tailChars) tails.set(word, [...(tails.get(word) ?? []), line]);
    }
  }
  const found = new Map<string, string>();
  if (tails.size === 0) return found;
  const times = [...tails.values()].flat().map(({ bookedAt }) => bookedAt.getTime());
  const then = {
    $gte: idFloor(prefix, Math.max(0, Math.min(...times) - earlierMs)),
    $lt: idFloor(prefix, Math.max(...times) + laterMs),
  };
  const ends = { $substrBytes: ['$_id', prefix.length + 1 + 26 - tailChars, tailChars] };
  const named = db
    .collection<{ _id: string }>(stored)
    .aggregate<{ _id: string }>([
      { $match: { _id: then } },
      { $project: { _id: 1 } },
      { $match: { $expr: { $in: [ends, [...tails.keys()]] } } },
    ]);
  for await (const { _id } of named) {
    for (const line of tails.get(_id.slice(-tailChars)) ?? []) found.set(line._id, _id);
  }
  return found;
}
