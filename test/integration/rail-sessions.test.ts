import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Db, MongoClient } from 'mongodb';
import { PhoneTurns, railSessionsSpec, StoredSessions } from '../../src/rails/rails.ts';
import { freshDatabase, stores } from '../support/stores.ts';

const secondMs = 1_000;

describe('what the processes of a rail share', () => {
  let client: MongoClient;
  let db: Db;
  const clock = new MovableClock();
  const secretsKey = Buffer.alloc(32, 5).toString('base64');
  const open = (key = secretsKey, name = 'MPESA_TZ.test') =>
    new StoredSessions({ db, clock, secretsKey: key, name });
  const sessions = { newest: { id: 'a-session-of-the-tests', madeAtMs: 1, liveAtMs: 2 } };

  before(async () => {
    client = await new MongoClient((await stores()).mongodbUri).connect();
    db = client.db(freshDatabase('rail_sessions'));
  });
  after(() => client.close());

  it('keeps sessions sealed: the database holds no id, and another key opens none', async () => {
    await open().write(sessions);
    expect(await open().read()).to.deep.equal(sessions);
    const stored = await db.collection(railSessionsSpec.name).find().toArray();
    expect(JSON.stringify(stored)).not.to.include('a-session-of-the-tests');
    expect(await open(Buffer.alloc(32, 6).toString('base64')).read()).to.equal(undefined);
    expect(await open(secretsKey, 'MPESA_TZ.other').read()).to.equal(undefined);
  });

  it('gives the turn to renew to one process, until it is given up or over', async () => {
    const [one, other] = [open(), open()];
    expect(await one.hold(10 * secondMs)).to.equal(true);
    expect(await other.hold(10 * secondMs)).to.equal(false);
    await other.release();
    expect(await other.hold(10 * secondMs), 'nobody gives up another’s turn').to.equal(false);
    await one.release();
    expect(await other.hold(10 * secondMs)).to.equal(true);
    clock.advance(10 * secondMs);
    expect(await one.hold(10 * secondMs), 'its holder died').to.equal(true);
    expect(await one.read(), 'the sessions stay').to.deep.equal(sessions);
  });

  it('has one prompt at a time per phone, and lets nobody wait beyond notAfter', async () => {
    const lease = { owner: 'me', dead: async () => new Set<string>() };
    const turns = new PhoneTurns({ db, clock, lease });
    const turn = (collectionId: string, waitMs: number) => ({
      ...{ msisdn: '255712000001', collectionId },
      notAfterMs: clock.now() + waitMs,
    });
    const never = new AbortController().signal;
    expect(await turns.take(turn('col_a', 0), never)).to.equal(undefined);
    expect(await turns.take(turn('col_a', 0), never), 'its own turn').to.equal(undefined);
    expect(await turns.take(turn('col_b', 300), never)).to.equal('phone_busy');
    expect(await turns.take(turn('col_b', 60_000), AbortSignal.abort())).to.equal('stopping');
    const waiting = turns.take(turn('col_b', 60_000), never);
    await turns.giveUp('col_a');
    expect(await waiting).to.equal(undefined);
    clock.advance(100 * secondMs); // the wait for a session took its time: the prompt comes only now
    expect(await turns.begin(turn('col_b', 0), 120 * secondMs)).to.equal(true);
    clock.advance(119 * secondMs);
    expect(await turns.take(turn('col_c', 0), never), 'the prompt is still there').to.equal('phone_busy');
    clock.advance(secondMs);
    expect(await turns.take(turn('col_c', 0), never), 'the prompt is over').to.equal(undefined);
    expect(await turns.begin(turn('col_b', 0), 120 * secondMs), 'another has the phone').to.equal(false);
  });

  it('ends the turn of a process that died before it pushed, and no turn of one that had pushed', async () => {
    const dead = new Set<string>();
    const owned = (owner: string) => new PhoneTurns({ db, clock, lease: { owner, dead: async () => dead } });
    const [one, other] = [owned('one'), owned('other')];
    const turn = (collectionId: string) => ({
      ...{ msisdn: '255712000002', collectionId, notAfterMs: clock.now() },
    });
    const never = new AbortController().signal;
    expect(await one.take(turn('col_a'), never)).to.equal(undefined);
    expect(await other.take(turn('col_b'), never)).to.equal('phone_busy');
    dead.add('one');
    expect(await other.take(turn('col_b'), never)).to.equal(undefined);
    await one.giveUp('col_b');
    expect(await one.take(turn('col_a'), never), 'nobody gives up another’s turn').to.equal('phone_busy');
    await other.begin(turn('col_b'), 120 * secondMs);
    dead.add('other');
    expect(await one.take(turn('col_a'), never), 'its prompt is on the phone').to.equal('phone_busy');
    await one.end('col_b');
    expect(await one.take(turn('col_a'), never)).to.equal(undefined);
  });
});
