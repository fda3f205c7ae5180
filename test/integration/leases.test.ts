import { Lease, leasesSpec } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { MongoClient } from 'mongodb';
import { startTestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';

const leaseMs = 15_000;

describe('A service', () => {
  it('lives under a name of its own while it runs, and not afterwards', async () => {
    const kusanya = await startTestService();
    const { db, lease, clock } = kusanya.service.wired;
    const other = new Lease(db, clock, 'other', leaseMs);
    expect([...(await other.dead([lease.owner]))]).deep.equal([]);
    const own = await db
      .collection(leasesSpec.name)
      .findOne({ owner: lease.owner, _id: /^process\./ as never });
    expect(own).not.equal(null);
    const client = await new MongoClient((await stores()).mongodbUri).connect();
    await kusanya.stop();
    const after = new Lease(client.db(db.databaseName), clock, 'other', leaseMs);
    expect([...(await after.dead([lease.owner]))]).deep.equal([lease.owner]);
    await client.close();
  });
});
