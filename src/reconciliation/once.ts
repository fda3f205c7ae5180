import type { Db } from 'mongodb';
import { type StatementLineDoc, statementLinesSpec } from './documents.ts';
import type { Judged } from './judging.ts';

/** One entry of ours is one line: a second one that names the same is money that moved a second time. */

/** By entry: the line that it was met by. */
export async function metBy(db: Db, entries: readonly string[]): Promise<Map<string, string>> {
  if (entries.length === 0) return new Map();
  const lines = db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .find({ entry: { $in: [...entries], $type: 'string' } })
    .project<{ _id: string; entry: string }>({ entry: 1 });
  return new Map((await lines.toArray()).map(({ _id, entry }) => [entry, _id]));
}

/** What was judged, with no entry given to two lines: whoever has it keeps it, and else the first. */
export async function onceEach(
  db: Db,
  judged: readonly (readonly [StatementLineDoc, Judged])[],
): Promise<(readonly [StatementLineDoc, Judged])[]> {
  const keys = judged.flatMap(([, each]) => (each.is === 'matched' ? [each.fact.key] : []));
  const holders = await metBy(db, keys);
  return judged.map(([line, each]) => {
    if (each.is !== 'matched') return [line, each] as const;
    const { key, collection, merchantId } = each.fact;
    const holder = holders.get(key) ?? line._id;
    holders.set(key, holder);
    if (holder === line._id) return [line, each] as const;
    const again: Judged = {
      is: line.side === 'in' ? 'unclaimed' : 'unknown_withdrawal',
      ...(merchantId ? { merchantId } : {}),
      ...(line.side === 'in' && collection ? { suggestion: collection } : {}),
    };
    return [line, again] as const;
  });
}
