import { connectMongo } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { freshDatabase, stores, whenFileEnds } from './stores.ts';

/**
 * Databases of test services. To prepare one takes more of the processors than most tests do, so those of a file go,
 * emptied, to the files that the same process runs after it.
 */
interface Lent {
  /** How many services run on it. */
  running: number;
  /** In Redis nothing is emptied: each use has a prefix of its own. */
  prefix: string;
  uses: number;
}

/** What holds more is left alone: to remove it takes longer than to prepare another. */
const objectsMax = 2_000;

const lent = new Map<string, Lent>();
const emptied: { name: string; uses: number }[] = [];

/** One that nobody else has: prepared and emptied, or not there yet. */
export async function lendDatabase(): Promise<string> {
  const { mongodbUri } = await stores();
  for (let found = emptied.pop(); found; found = emptied.pop()) {
    const { name } = found;
    const client = await connectMongo(mongodbUri);
    const isFit = await isAsPrepared(client.db(name));
    await client.close();
    if (!isFit) continue;
    const uses = found.uses + 1;
    lent.set(name, { running: 0, prefix: `${name}_${uses}`, uses });
    return name;
  }
  const name = freshDatabase('service');
  lent.set(name, { running: 0, prefix: name, uses: 1 });
  return name;
}

/** What the keys of a service on this database begin with. */
export function redisPrefixOf(database: string): string {
  return lent.get(database)?.prefix ?? database;
}

/** A service begins on this database. What it returns is to be called when that has ended, once or more often. */
export function serviceBegins(database: string): () => void {
  const known = lent.get(database);
  if (!known) return () => {};
  let isRunning = true;
  known.running += 1;
  return () => {
    if (isRunning) known.running -= 1;
    isRunning = false;
  };
}

/** Nothing is stored, and nobody made or dropped a collection or an index. */
async function isAsPrepared(db: Db): Promise<boolean> {
  const { objects, collections, indexes } = await db.stats();
  const own = mongoCollectionSpecs.reduce((sum, spec) => sum + (spec.indexes?.length ?? 0), 0);
  const { length } = mongoCollectionSpecs;
  return objects === 0 && collections === length && indexes === length + own;
}

/** One on which something still runs is left alone. */
whenFileEnds(async () => {
  const over = [...lent].filter(([, { running }]) => running === 0);
  lent.clear();
  if (over.length === 0) return;
  const client = await connectMongo((await stores()).mongodbUri);
  try {
    for (const [name, { uses }] of over) {
      const db = client.db(name);
      if ((await db.stats()).objects > objectsMax) continue;
      await Promise.all(mongoCollectionSpecs.map((spec) => db.collection(spec.name).deleteMany({})));
      emptied.push({ name, uses });
    }
  } finally {
    await client.close();
  }
});
