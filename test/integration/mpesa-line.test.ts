import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { newId } from '../../src/ids.ts';
import { MpesaRail, type PushOutcome } from '../../src/rails/rails.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../tools/simulator/simulator.ts';
import { createAuthority } from '../support/certificates.ts';
import { OwnSessions } from '../support/ownSessions.ts';
import { openProxy } from '../support/proxy.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';
import { until } from '../support/until.ts';

const secondMs = 1_000;
const never = new AbortController().signal;

/** The M-Pesa client on its line to the simulated network: TLS, sessions that take time, and a network that restarts. */
describe('the line to M-Pesa', () => {
  let clock: MovableClock;
  let dataDir: string;
  let simulator: Simulator;
  let rail: MpesaRail;

  const start = async (more: Partial<SimulatorOptions> = {}) => {
    const usual = {
      keys: simulatorKeys,
      dataDir,
      clock,
      mode: 'async' as const,
      activationMs: 0,
      sessionLifeMs: 3_600 * secondMs,
    };
    simulator = await startSimulator({ ...usual, ...more });
  };
  const open = (more: { baseUrl?: string; ca?: string; lifeMs?: number } = {}) =>
    new MpesaRail({
      config: {
        baseUrl: more.baseUrl ?? simulator.baseUrl,
        ...{ apiKey: simulator.apiKey, publicKey: simulator.publicKey, serviceProviderCode: '000000' },
        ...{
          origin: '*',
          isSynchronous: false,
          paysWallets: true,
          callbackSecret: undefined,
          askDelaysMs: [20_000],
        },
        sessionLifeMs: more.lifeMs ?? 3_000 * secondMs,
      },
      clock,
      sessions: new OwnSessions(),
      times: { queryMs: 30_000 },
      sessionTerms: { tryMs: 10, lookMs: 5 },
      ...(more.ca ? { ca: more.ca } : {}),
    });
  let phones = 0;
  /** Of another customer each: a prompt may still stand on the one before. */
  const request = (windowMs = 60 * secondMs) => {
    phones += 1;
    return {
      collectionId: newId('col', clock.now()),
      ...{ msisdn: `2557${12_000_000 + phones}`, amountTzs: 5_000, description: 'Coffee' },
      notAfterMs: clock.now() + windowMs,
      claim: async () => true,
    };
  };
  const push = (of = request()): Promise<PushOutcome> => rail.requestPayment(of, never);
  const debits = () => simulator.network.debits.length;

  beforeEach(async () => {
    clock = new MovableClock();
    dataDir = await mkdtemp(join(tmpdir(), 'kusanya-line-'));
  });
  afterEach(async () => {
    rail.close();
    await simulator.close();
    expect(simulator.invariants()).to.deep.include({ clean: true });
    await rm(dataDir, { recursive: true, force: true });
  });

  describe('over TLS', () => {
    const authority = createAuthority('The test’s own authority');
    const port = () => Number(new URL(simulator.baseUrl).port);

    it('pushes and asks where the certificate is vouched for', async () => {
      await start({ tls: authority.issue(['127.0.0.1']) });
      rail = open({ ca: authority.cert });
      expect(simulator.baseUrl).to.match(/^https:/);
      expect(await rail.probe(never)).to.equal('up');
      const payment = request();
      expect((await push(payment)).kind).to.equal('accepted');
      expect((await rail.queryStatus({ ...payment, pushedAtMs: clock.now() }, never)).kind).to.equal(
        'pending',
      );
    });

    it('sends nothing to a stranger: not even the request for a session', async () => {
      await start({ tls: authority.issue(['127.0.0.1']) });
      rail = open();
      expect(await push()).to.include({ kind: 'notAttempted', why: 'no_session' });
      expect(await rail.probe(never)).to.equal('down');
      rail.close();
      rail = open({ ca: createAuthority('Another').cert });
      expect(await push()).to.include({ kind: 'notAttempted', why: 'no_session' });
      expect(simulator.counts).to.deep.equal({ session: 0, push: 0, query: 0, reversal: 0, payout: 0 });
    });

    it('NODE_TLS_REJECT_UNAUTHORIZED=0 changes nothing', async () => {
      await start({ tls: authority.issue(['127.0.0.1']) });
      rail = open();
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
      try {
        expect(await push()).to.include({ kind: 'notAttempted', why: 'no_session' });
        expect(await rail.probe(never)).to.equal('down');
        expect(simulator.counts).to.deep.equal({ session: 0, push: 0, query: 0, reversal: 0, payout: 0 });
      } finally {
        delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      }
    });

    it('sends nothing where the certificate is somebody else’s, or over', async () => {
      for (const tls of [
        authority.issue(['openapi.example']),
        authority.issue(['127.0.0.1'], { toMs: Date.now() - 60 * secondMs }),
      ]) {
        await start({ tls });
        rail = open({ ca: authority.cert });
        expect(await push()).to.include({ kind: 'notAttempted', why: 'no_session' });
        expect(simulator.counts.session).to.equal(0);
        rail.close();
        await simulator.close();
      }
    });

    it('sends no byte of a push whose time ran out during the handshake', async () => {
      await start({ tls: authority.issue(['127.0.0.1']) });
      const proxy = await openProxy({ port: port() });
      try {
        rail = open({ ca: authority.cert, baseUrl: `https://127.0.0.1:${proxy.port}/openapi` });
        await rail.queryStatus({ ...request(), pushedAtMs: null }, never);
        proxy.onConnection = () => clock.advance(60 * secondMs + 1);
        expect(await push()).to.include({ kind: 'notAttempted', why: 'too_late' });
        expect(simulator.counts.push).to.equal(0);
        proxy.onConnection = () => {};
        expect((await push()).kind).to.equal('accepted');
      } finally {
        await proxy.close();
      }
    });
  });

  describe('a session', () => {
    it('that is not live yet is waited for, and the push goes out once', async () => {
      await start({ activationMs: 30 * secondMs });
      rail = open();
      const pushing = push();
      await until(async () => simulator.counts.query >= 3);
      expect(simulator.counts.push, 'nothing hits the gate but one question').to.equal(0);
      expect([...simulator.network.payments]).to.have.length(0);
      clock.advance(30 * secondMs);
      expect((await pushing).kind).to.equal('accepted');
      expect([...simulator.network.payments]).to.have.length(1);
      expect(simulator.sessionsMade()).to.equal(1);
    });

    it('that is not live in time lets the push go, and nothing of it arrives later', async () => {
      await start({ activationMs: 30 * secondMs });
      rail = open();
      const pushing = push(request(20 * secondMs));
      await until(async () => simulator.counts.query >= 2);
      clock.advance(20 * secondMs + 1);
      expect(await pushing).to.include({ kind: 'notAttempted' });
      clock.advance(60 * secondMs);
      expect([...simulator.network.payments]).to.have.length(0);
      expect((await push()).kind).to.equal('accepted');
    });

    it('is renewed after four fifths of its set life, and the old one serves until the new one is live', async () => {
      await start({ activationMs: 30 * secondMs, sessionLifeMs: 600 * secondMs });
      rail = open({ lifeMs: 600 * secondMs });
      void push();
      await until(async () => simulator.counts.query >= 1);
      clock.advance(30 * secondMs);
      await until(async () => [...simulator.network.payments].length === 1);
      clock.advance(450 * secondMs);
      const before = simulator.counts.push;
      expect((await push()).kind).to.equal('accepted');
      await until(async () => simulator.sessionsMade() === 2);
      expect((await push()).kind).to.equal('accepted');
      clock.advance(30 * secondMs);
      expect((await push()).kind).to.equal('accepted');
      clock.advance(200 * secondMs);
      expect((await push()).kind, 'the first one is over by now').to.equal('accepted');
      expect(simulator.counts.push - before, 'none was refused').to.equal(4);
      expect(simulator.sessionsMade()).to.equal(2);
    });

    /** Ends the session that served until now, and the next one takes its time. */
    const endSession = async () => {
      await start({ activationMs: 30 * secondMs, sessionLifeMs: 120 * secondMs });
      rail = open();
      void push();
      await until(async () => simulator.counts.query >= 1);
      clock.advance(30 * secondMs);
      await until(async () => [...simulator.network.payments].length === 1);
      clock.advance(100 * secondMs);
    };
    /** With the number of its claims. */
    const counted = () => {
      const payment = { ...request(), claims: 0 };
      return Object.assign(payment, {
        claim: async () => {
          payment.claims += 1;
          return true;
        },
      });
    };

    it('that ended holds no push that was claimed: it comes back, and waits for the next one unclaimed', async () => {
      await endSession();
      const payment = counted();
      let outcome: PushOutcome | undefined;
      const pushing = push(payment).then((told) => {
        outcome = told;
      });
      expect(await until(async () => outcome, 20 * secondMs), 'while time stands still').to.include({
        ...{ kind: 'notAttempted', why: 'session_refused' },
      });
      await pushing;
      expect(outcome).to.not.have.property('fault');
      expect(outcome).to.have.nested.property('evidence.httpStatus', 401);
      payment.claims = 0;
      const again = push(payment);
      await until(async () => simulator.sessionsMade() === 2);
      const { query } = simulator.counts;
      await until(async () => simulator.counts.query > query);
      expect(payment.claims, 'claimed while it waits').to.equal(0);
      clock.advance(30 * secondMs);
      expect((await again).kind).to.equal('accepted');
      expect(payment.claims).to.equal(1);
      expect(simulator.sessionsMade(), 'replaced once').to.equal(2);
      expect([...simulator.network.payments]).to.have.length(2);
    });

    it('that is refused for pushes although questions pass is an operator’s matter, the second time', async () => {
      await start();
      rail = open();
      simulator.faults.add({ operation: 'push', does: 'refuses', when: 'before', times: 4 });
      expect(await push()).to.deep.include({ kind: 'notAttempted', why: 'session_refused' });
      expect(await push()).to.deep.include({ kind: 'notAttempted', why: 'gate_refused', fault: 'us' });
      expect((await push()).kind).to.equal('accepted');
      simulator.faults.add({ operation: 'push', does: 'refuses', when: 'before', times: 2 });
      expect(await push(), 'one that served meanwhile').to.deep.include({ why: 'session_refused' });
    });

    it('whose limits are used up holds no push that was claimed either', async () => {
      await start({ activationMs: 30 * secondMs });
      rail = open();
      void push();
      await until(async () => simulator.counts.query >= 1);
      clock.advance(30 * secondMs);
      await until(async () => [...simulator.network.payments].length === 1);
      clock.advance(31 * secondMs);
      const used = { operation: 'push', does: 'answers', when: 'before', times: 1, code: 'INS-992' } as const;
      simulator.faults.add(used);
      let outcome: PushOutcome | undefined;
      const payment = counted();
      void push(payment).then((told) => {
        outcome = told;
      });
      expect(await until(async () => outcome, 20 * secondMs)).to.include({
        ...{ kind: 'notAttempted', why: 'session_exhausted', fault: 'us' },
      });
      const again = push(payment);
      await until(async () => simulator.sessionsMade() === 2);
      expect(payment.claims, 'no claim while it waits').to.equal(1);
      clock.advance(30 * secondMs);
      expect((await again).kind).to.equal('accepted');
    });
  });

  it('a network that was killed while it wrote, and restarted, refuses the reference it knows (INS-10)', async () => {
    await start();
    rail = open();
    const payment = request();
    expect((await push(payment)).kind).to.equal('accepted');
    clock.advance(20 * secondMs);
    const ask = () => rail.queryStatus({ ...payment, pushedAtMs: clock.now() }, never);
    expect((await ask()).kind).to.equal('succeeded');
    for (let restarts = 0; restarts < 2; restarts += 1) {
      rail.close();
      await simulator.close();
      const [journal] = (await readdir(dataDir)).filter((name) => name.startsWith('journal'));
      await appendFile(join(dataDir, journal!), '{"kind":"debit","reference":"01JDX');
      await start();
      rail = open();
      const again = await push(payment);
      expect(again).to.include({ kind: 'unknown', why: 'duplicate_reference' });
      expect(again).to.have.nested.property('evidence.code', 'INS-10');
      expect((await push()).kind, 'what is written next is whole').to.equal('accepted');
      expect((await ask()).kind).to.equal('succeeded');
      expect(debits()).to.be.at.least(1);
      const own = simulator.network.debits.filter(
        ({ reference }) => `col_${reference}` === payment.collectionId,
      );
      expect(own).to.have.length(1);
    }
  });
});
