import { armFailpoint, connectMongo, MovableClock } from '@kusanya/durable-actors';
import { archiverOf } from './past.ts';

/** A process that archives and is killed at a point: `archiving.ts <uri> <database> <folder> <nowMs> <point> <passes>`. */
const [uri, database, dir, now, point, passes] = process.argv.slice(2);
const client = await connectMongo(uri!);
armFailpoint(point!, Number(passes));
await archiverOf(client.db(database), new MovableClock(Number(now)), dir!).run();
await client.close();
