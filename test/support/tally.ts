import { armFailpoint, connectMongo, MovableClock } from '@kusanya/durable-actors';
import { createLog } from '../../src/log.ts';
import { Tallier } from '../../src/tallies/tallies.ts';

/** A process that counts once and is killed at a point: `tally.ts <uri> <database> <nowMs> <point> <passes>`. */
const [uri, database, now, point, passes] = process.argv.slice(2);
const client = await connectMongo(uri!);
armFailpoint(point!, Number(passes));
const clock = new MovableClock(Number(now));
await new Tallier({ db: client.db(database), clock, log: createLog('silent') }).run();
await client.close();
