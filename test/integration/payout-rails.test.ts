import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { limits } from '../../src/limits.ts';
import { MpesaRail, TestRail, testPayoutNumbers } from '../../src/rails/rails.ts';
import { payoutStories } from '../../tools/simulator/payoutStories.ts';
import { startSimulator, usualProvider } from '../../tools/simulator/simulator.ts';
import { OwnSessions } from '../support/ownSessions.ts';
import { describePayouts, type PayoutDoor } from '../support/payoutKit.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';

/** The conformance kit of payouts against both doors of the simulated network. */
describe('rails that pay', () => {
  describePayouts('the rail of test mode, in this process', openTestRail, 'no line');
  describePayouts('M-Pesa over its wire, synchronous', () => openMpesa('sync'), 'a line');
  describePayouts('M-Pesa over its wire, asynchronous', () => openMpesa('async'), 'a line');
});

async function openTestRail(): Promise<PayoutDoor> {
  const clock = new MovableClock(Date.parse('2026-11-21T09:00:00.000Z'));
  const { payouts } = new TestRail({
    clock,
    simulator: { delayMinMs: 10_000, delayMaxMs: 20_000, speed: 1 },
    ring: () => {},
  });
  const paid = new Set<string>();
  const rail = {
    terms: payouts.terms,
    sendPayout: payouts.sendPayout.bind(payouts),
    queryPayout: async (...asked: Parameters<typeof payouts.queryPayout>) => {
      const answer = await payouts.queryPayout(...asked);
      if (answer.kind === 'paid') paid.add(asked[0].payoutId);
      return answer;
    },
  };
  return {
    rail,
    clock,
    stories: [
      { msisdn: '255712345678', what: 'paid', ends: 'paid' },
      { msisdn: testPayoutNumbers.refused, what: 'no wallet', ends: 'recipient_not_found' },
      { msisdn: testPayoutNumbers.walletEmpty, what: 'our wallet is empty', ends: 'float_insufficient' },
      { msisdn: testPayoutNumbers.unknown, what: 'never known', ends: 'underReview' },
      { msisdn: testPayoutNumbers.unclear, what: 'its answer is lost', ends: 'paid' },
      { msisdn: testPayoutNumbers.returned, what: 'it comes back', ends: 'returned' },
    ],
    paid: () => [...paid],
    breaches: () => [],
    close: async () => {},
  };
}

/** Longer than the kit lets pass: what becomes of sessions is another test's. */
const sessionLifeMs = 30 * limits.dayMs;

async function openMpesa(mode: 'sync' | 'async'): Promise<PayoutDoor> {
  const clock = new MovableClock();
  const dataDir = await mkdtemp(join(tmpdir(), 'kusanya-payouts-'));
  const simulator = await startSimulator({
    ...{ keys: simulatorKeys, dataDir, mode, clock, speed: 100, activationMs: 0 },
    sessionLifeMs,
  });
  const { network } = simulator;
  await network.move('deposit', usualProvider, 1_000_000);
  const sessions = new OwnSessions();
  const open = (times: { pushMs: number; queryMs: number }) =>
    new MpesaRail({
      config: {
        ...{ baseUrl: simulator.baseUrl, apiKey: simulator.apiKey, publicKey: simulator.publicKey },
        ...{ serviceProviderCode: usualProvider, origin: '*', callbackSecret: undefined },
        ...{ isSynchronous: mode === 'sync', paysWallets: true, sessionLifeMs },
        askDelaysMs: [20_000],
      },
      ...{ clock, sessions, times },
      sessionTerms: { activationMs: 0, backOffMs: 0, tryMs: 20, lookMs: 5 },
    });
  const rail = open({ pushMs: 60_000, queryMs: 60_000 });
  const hurried = open({ pushMs: 1_500, queryMs: 1_500 });
  return {
    rail: rail.payouts!,
    clock,
    stories: Object.entries(payoutStories).map(([msisdn, { what, ends }]) => ({ msisdn, what, ends })),
    paid: () => network.paidOut.map(({ reference }) => `po_0${reference.slice(1)}`),
    breaches: () => {
      const { clean, ...breaches } = simulator.invariants();
      return clean ? [] : [JSON.stringify(breaches)];
    },
    line: {
      faults: simulator.faults,
      hurried: hurried.payouts!,
      counts: simulator.counts,
      heldTzs: () => network.balanceOf(usualProvider),
    },
    close: async () => {
      rail.close();
      hurried.close();
      await simulator.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
