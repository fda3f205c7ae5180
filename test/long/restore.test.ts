import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { SystemClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { type Simulator, startSimulator } from '../../tools/simulator/simulator.ts';
import { freePort } from '../support/processes.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';
import { sized } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, type World } from '../support/world.ts';

const payments = sized(40, 120);
const overMs = sized(8_000, 20_000);
const amount = 1_000;

interface Stored {
  _id: string;
  status: string;
  state: string;
}

/**
 * OPERATING, "Backup": MongoDB is put back to a moment in the middle of live payments. What was open then the network is
 * asked about; what came after is told exactly, by the network's own record of it.
 */
describe('a backup that is put back', function () {
  this.timeout(600_000);
  let world: World;
  let network: Simulator;
  let liveKey: string;
  const folders: string[] = [];
  const folder = async () => {
    folders.push(await mkdtemp(join(tmpdir(), 'kusanya-embedded-')));
    return folders.at(-1)!;
  };

  before(async () => {
    network = await startSimulator({
      ...{ keys: simulatorKeys, dataDir: await folder(), mode: 'sync', clock: new SystemClock(), speed: 8 },
      ...{ activationMs: 0, port: await freePort() },
    });
    const mpesa = {
      ...{
        MPESA_BASE_URL: network.baseUrl,
        MPESA_API_KEY: network.apiKey,
        MPESA_PUBLIC_KEY: network.publicKey,
      },
      ...{ MPESA_SERVICE_PROVIDER_CODE: '000000', MPESA_SYNCHRONOUS: 'true' },
    };
    world = await openWorld(mpesa, { mongodDir: await folder() });
    const made = await world.operate('POST', `/admin/merchants/${world.merchantId}/keys`, {
      ...{ mode: 'live', reason: 'for a rehearsal' },
    });
    liveKey = made!.json.secret as string;
  });
  after(async () => {
    await world?.close();
    await network?.close();
    for (const each of folders) await rm(each, { recursive: true, force: true });
  });

  const read = (id: string) => world.ask('GET', `/v1/collections/${id}`, { apiKey: liveKey });
  const stored = () => world.db.collection<Stored>('collections').find({ mode: 'live' }).toArray();
  const debits = () => network.network.debits.map(({ reference }) => `col_${reference}`);
  /** Ids that were answered 202. */
  const promised = new Set<string>();
  /** A copy of the data as it was at one moment, while payments went on. */
  let copy: string;

  const pay = async (n: number) => {
    const body = { amount, phone: `2557${57_000_000 + n}`, reference: `order-${n}` };
    const answer = await until(async () => {
      const given = await world.ask('POST', '/v1/collections', {
        key: `restore-${n}`,
        body,
        apiKey: liveKey,
      });
      return given?.status === 202 ? given : undefined;
    }, 120_000);
    promised.add(answer!.json.id as string);
  };

  it('is a copy of a locked member, taken while payments go on', async () => {
    copy = await folder();
    const admin = world.db.client.db('admin');
    const data = join(folders[1]!, 'mongod');
    const paying: Promise<void>[] = [];
    for (let n = 0; n < payments; n += 1) {
      paying.push(pay(n));
      if (n === Math.round(payments / 2)) {
        await admin.command({ fsync: 1, lock: true });
        await cp(data, join(copy, 'mongod'), { recursive: true });
        await admin.command({ fsyncUnlock: 1 });
      }
      await wait(overMs / payments);
    }
    await Promise.all(paying);
    const isOver = await until(
      async () => (await stored()).every(({ status }) => status !== 'created'),
      240_000,
    );
    expect(isOver, 'all payments ended').equal(true);
    expect(promised.size).equal(payments);
  });

  it('brings back what was there, and one worker asks the network about all that was open', async () => {
    await world.process.kill();
    await world.stores!.stop('mongod');
    await rm(join(folders[1]!, 'mongod'), { recursive: true });
    await cp(join(copy, 'mongod'), join(folders[1]!, 'mongod'), { recursive: true });
    await world.stores!.start('mongod');
    await world.redis.flushall();
    const open = (await stored()).filter(({ status }) => status === 'created');
    expect(open.length, 'payments that were open at that moment').greaterThan(0);
    expect((await stored()).length, 'payments that had ended').greaterThan(open.length);
    await world.restart(0, { ROLE: 'worker' });
    const isOver = await until(
      async () => (await stored()).every(({ status }) => status !== 'created'),
      240_000,
    );
    const left = (await stored()).filter(({ status }) => status === 'created');
    expect(isOver, `all that was open is decided; left ${JSON.stringify(left)}`).equal(true);
    // A push that had not begun at that moment was too late afterwards, so its payment failed: it is asked about too.
    for (const { _id } of (await stored()).filter(({ status }) => status !== 'succeeded')) {
      const body = { type: 'operator.asked', reason: 'restored' };
      expect((await world.operate('POST', `/admin/actors/${_id}/events`, body))?.status, _id).equal(200);
    }
    const known = new Set((await stored()).map(({ _id }) => _id));
    const paid = new Set(debits().filter((id) => known.has(id)));
    const isKnown = await until(async () => {
      const all = await stored();
      return all.every(
        ({ _id, status, state }) => paid.has(_id) === (status === 'succeeded' || /latePaid/.test(state)),
      );
    }, 120_000);
    expect(isKnown, 'what the network debited is known to be paid, at once or as a late payment').equal(true);
    process.stderr.write(`    ${open.length} of ${known.size} were open at that moment\n`);
  });

  it('asks no customer twice, debits nobody twice, and its books are clean', async () => {
    const all = debits();
    expect(new Set(all).size, 'debits').equal(all.length);
    expect(network.invariants(), 'the network’s own judgement').deep.include({ clean: true });
    expect((await auditAll(world.db, Date.now())).breaches).deep.equal([]);
  });

  it('tells what is lost exactly: to the merchant as 404, to the operator by the network’s record', async () => {
    await world.process.kill('SIGTERM');
    await world.restart(0, { ROLE: 'all' });
    const known = new Set((await stored()).map(({ _id }) => _id));
    const lost = [...promised].filter((id) => !known.has(id));
    expect(lost.length, 'payments that came after that moment').greaterThan(0);
    for (const id of promised) expect((await read(id))?.status, id).equal(known.has(id) ? 200 : 404);
    // Every debit is of a payment in the books or of one that was told as lost; each names it.
    const unknown = debits().filter((id) => !known.has(id));
    expect(unknown.toSorted()).deep.equal(lost.filter((id) => debits().includes(id)).toSorted());
    const inBooks = await world.db
      .collection('journal_entries')
      .countDocuments({ mode: 'live', 'lines.account': { $regex: 'clearing' } });
    expect(inBooks, 'entries of the network’s account').equal(debits().length - unknown.length);
    process.stderr.write(
      `    ${promised.size} promised, ${known.size} known, ${lost.length} lost, ${unknown.length} of them paid\n`,
    );
  });
});
