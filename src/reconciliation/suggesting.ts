import type { Db } from 'mongodb';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { idFloor } from '../ids.ts';
import { limits } from '../limits.ts';
import { int64 } from '../mongo.ts';
import type { StatementLineDoc } from './documents.ts';

const aroundMs = 15 * limits.minuteMs;

/** A collection of the same phone and amount, made within a quarter of an hour of the line. Only where there is just one. */
export async function suggestionFor(
  db: Db,
  { msisdn, amountTzs, bookedAt, side }: StatementLineDoc,
): Promise<string | undefined> {
  if (msisdn === null || side === 'out') return undefined;
  const atMs = bookedAt.getTime();
  const found = await db
    .collection<CollectionDoc>(collectionsSpec.name)
    .find({
      'data.msisdn': msisdn,
      _id: { $gte: idFloor('col', Math.max(0, atMs - aroundMs)), $lt: idFloor('col', atMs + aroundMs) },
      mode: 'live',
      'data.amountTzs': int64(amountTzs),
    })
    .project<{ _id: string }>({ _id: 1 })
    .limit(2)
    .toArray();
  return found.length === 1 ? found[0]!._id : undefined;
}
