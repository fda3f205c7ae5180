import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import fc from 'fast-check';
import { entryTypes } from '../../src/ledger/ledger.ts';
import type { Merchant } from '../../src/principal.ts';
import { deadly, deeds, stock, stocked, tour } from '../support/deeds.ts';
import { Desk, splitPostings } from '../support/desk.ts';
import { isLong, sized } from '../support/size.ts';
import { openTill, type Till } from '../support/till.ts';

const noonMs = Date.parse('2026-11-21T09:00:00.000Z');

/**
 * Merchants, payments, late successes, payouts over the network and by hand, refunds, what the network takes back behind
 * our back, its statements and what people decide about them, settlements, clock jumps and crashes in any order, over the
 * real engine on real stores; after each of them every account is what the actors' states add up to (CONTRACT 18).
 */
describe('money against a model', function () {
  this.timeout(3_600_000);
  let till: Till;
  let merchants: Merchant[];
  const clock = new MovableClock(noonMs);

  before(async () => {
    till = await openTill('money_model', clock, {
      ...{ PAYOUT_FEE: '500', PAYOUT_APPROVAL_FROM: '20000', PAYOUT_DESTINATION_REST: '0s' },
      DECIDE_ALONE_MAX: '30000',
    });
    merchants = [
      await till.merchant({ refundFee: 'return' }),
      await till.merchant({ latePayments: 'accept', settlementDelayDays: 2 }),
      await till.merchant({ settlementDelayDays: 0 }),
    ];
  });
  after(async () => {
    await till.close();
  });

  type Mutate = ConstructorParameters<typeof Desk>[0]['mutate'];
  /** Walks of any of these deeds in any order, one after another. */
  const property = (mutate: Mutate, of: typeof deeds, maxCommands: number) =>
    fc.asyncProperty(fc.commands(of, { maxCommands, size: 'max' }), async (commands) => {
      const desk = new Desk({ till, merchants, mutate });
      try {
        await stock(desk);
        await fc.asyncModelRun(() => ({ model: stocked(), real: desk }), commands);
      } finally {
        await desk.clear();
      }
    });

  it('meets every way that money can go', async () => {
    const desk = new Desk({ till, merchants, mutate: undefined });
    await tour(desk);
    expect(await till.db.collection('journal_entries').distinct('type')).to.have.members(entryTypes);
    expect(Desk.seen.get('deaths')).to.equal(1);
    await desk.clear();
  });

  it('keeps every invariant after each of any deeds in any order', async () => {
    // By their number and not by the time they take: a loaded machine does as much.
    const [walks, longest] = isLong ? [200, 40] : sized([2, 12], [12, 25]);
    await fc.assert(property(undefined, deeds, longest), { numRuns: walks, endOnFailure: !isLong });
  });

  // Of the walks themselves and not of the service, and as long as all that is before it.
  if (sized(false, true))
    it('catches a mutant that posts outside the commit', async () => {
      const verdict = await fc.check(property(splitPostings, deadly, 12), {
        numRuns: 200,
        endOnFailure: true,
      });
      expect(verdict.failed, 'the mutant lives').to.equal(true);
      const error = String((verdict.errorInstance as Error | undefined)?.message);
      expect(error).to.match(/the auditor|money owed|reserved|quarantined|trial|provider_clearing/);
    });
});
