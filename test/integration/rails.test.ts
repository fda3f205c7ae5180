import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { MpesaRail, networkStories, statusAt, TestRail, testScenario } from '../../src/rails/rails.ts';
import { startSimulator } from '../../tools/simulator/simulator.ts';
import { OwnSessions } from '../support/ownSessions.ts';
import { type Door, describeRail, type Story } from '../support/railKit.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';
import { until } from '../support/until.ts';

/** The conformance kit against both doors of the simulated network. */
describe('rails', () => {
  describeRail('the rail of test mode, in this process', openTestRail, 'no line');
  describeRail('M-Pesa over its wire, synchronous', () => openMpesa('sync'), 'a line');
  describeRail('M-Pesa over its wire, asynchronous', () => openMpesa('async'), 'a line');
});

const testStories: readonly Story[] = [
  { msisdn: '255700000000', what: 'pays', ends: 'succeeded' },
  { msisdn: '255700000001', what: 'no money', ends: 'insufficient_funds' },
  { msisdn: '255700000002', what: 'declines', ends: 'declined' },
  { msisdn: '255700000003', what: 'cancels', ends: 'cancelled' },
  { msisdn: '255700000004', what: 'rejected at once', ends: 'rejected' },
  { msisdn: '255700000005', what: 'nobody answers', ends: 'expired' },
  { msisdn: '255700000006', what: 'wrong PIN', ends: 'invalid_pin' },
  { msisdn: '255700000007', what: 'no wallet', ends: 'payer_not_found' },
  { msisdn: '255700000008', what: 'a limit', ends: 'payer_limit_reached' },
  { msisdn: '255700000020', what: 'lost callback', ends: 'succeeded' },
  { msisdn: '255700000021', what: 'never known', ends: 'underReview' },
  { msisdn: '255700000022', what: 'pays late', ends: 'late' },
  { msisdn: '255700000023', what: 'three callbacks', ends: 'succeeded' },
  { msisdn: '255700000024', what: 'a forged callback', ends: 'succeeded' },
  { msisdn: '255700000025', what: 'the webhook comes twice', ends: 'succeeded' },
  { msisdn: '255700000026', what: 'pays late; the later webhook comes first', ends: 'late' },
];

async function openTestRail(): Promise<Door> {
  const clock = new MovableClock(Date.parse('2026-11-21T09:00:00.000Z'));
  const times = { delayMinMs: 10_000, delayMaxMs: 20_000, promptLifeMs: 20_000, speed: 1 };
  const pushed = new Map<string, { msisdn: string; atMs: number }>();
  const bells = new Set<(collectionId: string) => void>();
  const rail = new TestRail({
    clock,
    simulator: { delayMinMs: 10_000, delayMaxMs: 20_000, speed: 1 },
    // The bell rings as soon as the driver lets time pass: when it rings must not matter.
    ring: (collectionId) =>
      setImmediate(() => {
        for (const heard of bells) heard(collectionId);
      }),
  });
  const push = rail.requestPayment.bind(rail);
  rail.requestPayment = async (request) => {
    const outcome = await push(request);
    const isNew = !pushed.has(request.collectionId) && outcome.kind === 'accepted';
    if (isNew) pushed.set(request.collectionId, { msisdn: request.msisdn, atMs: clock.now() });
    return outcome;
  };
  return {
    rail,
    clock,
    stories: testStories,
    debits: () =>
      [...pushed]
        .filter(([id, { msisdn, atMs }]) => {
          const scenario = testScenario(msisdn, id, times);
          return statusAt(scenario, id, clock.now() - atMs, times.promptLifeMs).kind === 'succeeded';
        })
        .map(([id]) => id),
    breaches: () => [],
    onBell: (heard) => {
      bells.add(heard);
      return () => bells.delete(heard);
    },
    close: async () => {},
  };
}

async function openMpesa(mode: 'sync' | 'async'): Promise<Door> {
  const clock = new MovableClock();
  const dataDir = await mkdtemp(join(tmpdir(), 'kusanya-rail-'));
  const bells = new Set<(collectionId: string) => void>();
  const claims = new Map<string, string[]>();
  const parts: { rail?: MpesaRail } = {};
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const parse = parts.rail!.parseCallback({ body: Buffer.concat(chunks) });
      response.writeHead(parse.reply.status).end(parse.reply.body);
      if (parse.kind !== 'report') return;
      const { id: collectionId } = parse.about;
      const { hint } = parse;
      if (hint.code) claims.set(collectionId, [...(claims.get(collectionId) ?? []), hint.code]);
      for (const heard of bells) heard(collectionId);
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const simulator = await startSimulator({
    ...{ keys: simulatorKeys, dataDir, mode, clock, speed: 100, activationMs: 0 },
    callbackUrl: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/callback`,
  });
  const sessions = new OwnSessions();
  const open = (times: { pushMs: number; queryMs: number }) =>
    new MpesaRail({
      config: {
        baseUrl: simulator.baseUrl,
        apiKey: simulator.apiKey,
        publicKey: simulator.publicKey,
        serviceProviderCode: '000000',
        origin: '*',
        ...{ isSynchronous: mode === 'sync', paysWallets: true, sessionLifeMs: 3_000_000 },
        ...{ callbackSecret: undefined, askDelaysMs: [20_000, 20_000, 30_000, 40_000] },
      },
      ...{ clock, sessions },
      times,
      sessionTerms: { activationMs: 0, backOffMs: 0, tryMs: 20, lookMs: 5 },
    });
  const rail = open({ pushMs: 60_000, queryMs: 60_000 });
  const hurried = open({ pushMs: 1_500, queryMs: 500 });
  parts.rail = rail;
  // Nothing says INS-9: nobody asks before the prompt is over by our own clock, and by then it is paid.
  const isWaitedFor = (ends: string) => mode === 'async' && ends === 'late';
  // By then the network would also deny what it never told: that story needs an answer in between.
  const isTold = ([msisdn]: [string, unknown]) => mode === 'sync' || msisdn !== '255740000015';
  const told = Object.entries(networkStories).filter(isTold);
  const stories = told.map(([msisdn, { what, ends }]) => ({
    ...{ msisdn, what, hangs: what.includes('never comes') },
    ends: isWaitedFor(ends) ? 'succeeded' : ends,
  }));
  return {
    rail,
    clock,
    stories,
    scripted: Object.values(networkStories).map(({ ends }) => ends),
    debits: () => simulator.network.debits.map(({ reference }) => `col_${reference}`),
    breaches: () => {
      const { clean, ...breaches } = simulator.invariants();
      return clean ? [] : [JSON.stringify(breaches)];
    },
    onBell: (heard) => {
      bells.add(heard);
      return () => bells.delete(heard);
    },
    claims: (collectionId) => until(async () => claims.get(collectionId)).then((codes) => codes ?? []),
    line: {
      ...{ faults: simulator.faults, counts: simulator.counts, sessionsMade: simulator.sessionsMade },
      hurried,
    },
    close: async () => {
      rail.close();
      hurried.close();
      await simulator.close();
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
