import { connectMongo } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Events, recordEvent } from '../../src/events/events.ts';
import { newId } from '../../src/ids.ts';
import { freshDatabase, stores } from '../support/stores.ts';

describe('events of this process’s own commits', () => {
  const written = (n: number) => {
    const atMs = 1_700_000_000_000 + n;
    const ids = { id: newId('evt', atMs), collectionId: newId('col', atMs), merchantId: 'mer_1' };
    return recordEvent({ ...ids, type: 'collection.succeeded', mode: 'test', atMs, data: { n } });
  };

  it('are found without a look into the database, the latest thousand of them', async () => {
    const client = await connectMongo((await stores()).mongodbUri);
    try {
      const events = new Events(client.db(freshDatabase('events')));
      const writes = Array.from({ length: 1_001 }, (_none, n) => written(n));
      const docs = writes.map((write) => (write.op === 'insert' ? write.doc : expect.fail()));
      events.remember([{ op: 'remove', into: 'events', filter: {} }, ...writes.slice(0, 600)]);
      events.remember(writes.slice(600));
      // Nothing is stored: what is found was kept.
      expect(await events.find(docs[0]!._id), 'the oldest').equal(undefined);
      for (const doc of docs.slice(1)) expect(await events.find(doc._id)).equal(doc);
    } finally {
      await client.close();
    }
  });
});
