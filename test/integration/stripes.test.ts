import { Committer } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { collectionSucceeded, post, readBalance } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import { type Books, openBooks, payment, tomorrow } from '../support/books.ts';

/** CONTRACT 18.4: the stripe of a credit is that of the process that commits it. */
describe('successes of several processes for one merchant', function () {
  this.timeout(300_000);
  let books: Books;
  before(async () => {
    books = await openBooks('stripes');
  });
  after(async () => {
    await books.close();
  });

  /** So many processes commit successes of one merchant at once; how often their batches aborted each other. */
  const pay = async (merchantId: string, processes: number, stripeOf: (process: number) => number) => {
    const log = createLog('silent');
    const committers = Array.from(
      { length: processes },
      () => new Committer({ client: books.client, db: books.db, log }),
    );
    const perProcess = 120;
    await Promise.all(
      committers.map(async (committer, process) => {
        let left = perProcess;
        const till = async () => {
          while (left > 0) {
            left -= 1;
            const to = { settlesOn: tomorrow, stripe: stripeOf(process) };
            const outcome = await committer.commit(post(collectionSucceeded(payment({ merchantId }), to)));
            expect(outcome.ok).to.equal(true);
          }
        };
        await Promise.all(Array.from({ length: 12 }, till));
      }),
    );
    const { pending } = await readBalance(books.db, merchantId, 'live');
    expect(pending).to.equal(processes * perProcess * 9_750);
    return committers.reduce((sum, { counts }) => sum + counts.retries, 0);
  };

  for (const processes of [2, 4]) {
    it(`${processes} processes never abort each other on stripes of their own; on one they do`, async () => {
      expect(await pay(`mer_own_${processes}`, processes, (process) => 1 + process)).to.equal(0);
      // Sharing one by mistake is only slower, never wrong.
      expect(await pay(`mer_shared_${processes}`, processes, () => 1)).to.be.above(0);
    });
  }
});
