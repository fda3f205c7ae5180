import { armFailpoint, connectMongo, MovableClock } from '@kusanya/durable-actors';
import { archiverOf } from './past.ts';

/** A process that archives and is killed at a point: `archiving.ts <uri> <database> <folder> <nowMs> <point> <passes> [retentions]`. */
const [uri, database, dir, now, point, passes, kept] = process.argv.slice(2);
const client = await connectMongo(uri!);
armFailpoint(point!, Number(passes));
const more = kept ? { keptMs: JSON.parse(kept) } : {};
await archiverOf(client.db(database), new MovableClock(Number(now)), dir!, more).run();
await client.close();
