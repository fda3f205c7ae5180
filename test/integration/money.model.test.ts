import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import fc from 'fast-check';
import { entryTypes } from '../../src/ledger/ledger.ts';
import type { Merchant } from '../../src/principal.ts';
import { Desk, deeds, splitPostings } from '../support/desk.ts';
import { sized } from '../support/size.ts';
import { openTill, type Till } from '../support/till.ts';

const noonMs = Date.parse('2026-11-21T09:00:00.000Z');

/**
 * Merchants, payments, callbacks, late successes, operators, settlements, clock jumps and crashes in any order,
 * over the real engine on real stores; after each of them every invariant of the books (CONTRACT 18).
 */
describe('money against a model', function () {
  this.timeout(600_000);
  let till: Till;
  let merchants: Merchant[];
  const clock = new MovableClock(noonMs);

  before(async () => {
    till = await openTill('money_model', clock);
    merchants = [
      await till.merchant(),
      await till.merchant({ latePayments: 'accept', settlementDelayDays: 2 }),
      await till.merchant({ settlementDelayDays: 0 }),
    ];
  });
  after(async () => {
    await till.close();
  });

  // When its time is over fast-check walks off from the run that it is in; the next test must not meet that one.
  let running: Promise<void> | undefined;
  afterEach(() => running?.catch(() => undefined));

  type Mutate = ConstructorParameters<typeof Desk>[0]['mutate'];
  const run = async (mutate: Mutate, commands: Iterable<fc.AsyncCommand<{ payments: number }, Desk>>) => {
    const desk = new Desk({ till, merchants, mutate });
    try {
      await fc.asyncModelRun(() => ({ model: { payments: 0 }, real: desk }), commands);
    } finally {
      await desk.clear();
    }
  };
  const property = (mutate: Mutate, longest: number) =>
    fc.asyncProperty(fc.commands(deeds, { maxCommands: longest, size: 'max' }), (commands) => {
      running = run(mutate, commands);
      return running;
    });

  it('keeps every invariant after each of any deeds in any order', async () => {
    await fc.assert(property(undefined, 40), {
      numRuns: 60,
      interruptAfterTimeLimit: sized(4_000, 35_000),
      markInterruptAsFailure: false,
    });
    await running;
    expect(Desk.seen.get('deeds'), 'deeds').to.be.above(sized(10, 60));
    expect(Desk.seen.get('deaths'), 'deaths').to.be.above(0);
    expect(Desk.seen.get('collection.succeeded'), 'successes').to.be.above(0);
  });

  it('meets every way that money can go', async () => {
    // In one walk, since a short run of random ones may miss a few.
    const desk = new Desk({ till, merchants, mutate: undefined });
    await desk.tour();
    const types = await till.db.collection('journal_entries').distinct('type');
    // Money out and the network's statement have charts of their own, which the till does not run.
    const isMoneyIn = (type: string) => !/^(payout|refund|float|statement)\./.test(type);
    expect(types).to.have.members(entryTypes.filter(isMoneyIn));
    await desk.clear();
  });

  it('catches a mutant that posts outside the commit', async () => {
    const verdict = await fc.check(property(splitPostings, 40), {
      numRuns: 200,
      endOnFailure: true,
      interruptAfterTimeLimit: 240_000,
    });
    expect(verdict.failed, 'the mutant lives').to.equal(true);
    const error = String((verdict.errorInstance as Error | undefined)?.message);
    expect(error).to.match(/the auditor|money owed|reserved|quarantined|trial/);
  });
});
