import { expect } from 'chai';
import { Bearers as PortalBearers } from '../../simulator/keys.ts';
import { MovableClock } from '../../src/clock.ts';
import { Bearers, SessionKeeper, type SessionTerms } from '../../src/rails/mpesa/session.ts';
import { checkApart, MpesaRail, OwnSessions, TestRail } from '../../src/rails/rails.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';

const secondMs = 1_000;
const terms: SessionTerms = {
  lifeMs: 3_000 * secondMs,
  activationMs: 30 * secondMs,
  holdMs: 500,
  backOffMs: 1_000,
  lookMs: 5,
};

function bench(processes = 1) {
  const clock = new MovableClock(1_000_000);
  const store = new OwnSessions();
  const made: string[] = [];
  const state = { isUp: true };
  const make = async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (!state.isUp) return undefined;
    made.push(`session-${made.length + 1}`);
    return made.at(-1);
  };
  const keepers = Array.from({ length: processes }, () => new SessionKeeper({ clock, store, terms, make }));
  return { clock, store, made, state, keepers, keeper: keepers[0]! };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 40));

describe('sessions of M-Pesa', () => {
  it('are made once, however many ask and in however many processes', async () => {
    const { keepers, made } = bench(3);
    const all = await Promise.all(
      keepers.flatMap((each) => Array.from({ length: 50 }, () => each.serving())),
    );
    expect(made).to.deep.equal(['session-1']);
    expect(new Set(all.map((session) => session?.id))).to.deep.equal(new Set(['session-1']));
  });

  it('are renewed at four fifths of their life; the old one serves until the new one is live', async () => {
    const { keeper, clock, made } = bench();
    await keeper.serving();
    clock.advance(0.8 * terms.lifeMs - 1);
    await keeper.serving();
    await settled();
    expect(made).to.have.length(1);
    clock.advance(1);
    expect((await keeper.serving())!.id, 'renewed in the background').to.equal('session-1');
    await settled();
    expect(made).to.have.length(2);
    clock.advance(30 * secondMs - 1);
    expect((await keeper.serving())!.id).to.equal('session-1');
    clock.advance(1);
    expect((await keeper.serving())!.id).to.equal('session-2');
  });

  it('are replaced once when the gate refuses one, by whoever noticed first', async () => {
    const { keepers, clock, made } = bench(2);
    const [first, second] = await Promise.all(keepers.map((each) => each.serving()));
    clock.advance(60 * secondMs);
    const replaced = await Promise.all([
      ...Array.from({ length: 20 }, () => keepers[0]!.replace(first!)),
      ...Array.from({ length: 20 }, () => keepers[1]!.replace(second!)),
    ]);
    expect(made).to.have.length(2);
    expect(new Set(replaced.map((session) => session?.id))).to.deep.equal(new Set(['session-2']));
  });

  it('are not minted in a storm: one that was just made is not replaced', async () => {
    const { keeper, clock, made } = bench();
    const session = (await keeper.serving())!;
    clock.advance(terms.activationMs - 1);
    expect(await keeper.replace(session)).to.equal(undefined);
    expect(made).to.have.length(1);
  });

  it('go on serving beyond their assumed life while no new one can be had', async () => {
    const { keeper, clock, state } = bench();
    await keeper.serving();
    state.isUp = false;
    clock.advance(2 * terms.lifeMs);
    expect((await keeper.serving())!.id).to.equal('session-1');
  });

  it('are asked for again a second after a failure, not at once', async () => {
    const { keeper, clock, state, made } = bench();
    state.isUp = false;
    expect(await keeper.serving()).to.equal(undefined);
    state.isUp = true;
    expect(await keeper.serving()).to.equal(undefined);
    expect(made).to.deep.equal([]);
    clock.advance(terms.backOffMs);
    expect((await keeper.serving())!.id).to.equal('session-1');
  });
});

describe('bearers', () => {
  const portal = new PortalBearers(simulatorKeys);

  it('are opened by the private key alone, and differ every time they are made', () => {
    const [one, other] = [
      new Bearers(portal.publicKey).of('secret'),
      new Bearers(portal.publicKey).of('secret'),
    ];
    expect(one).not.to.equal(other);
    expect([one, other].map((bearer) => portal.open(`Bearer ${bearer}`))).to.deep.equal(['secret', 'secret']);
    expect(one).to.have.length(684);
    expect(portal.open('Bearer AAAA')).to.equal(undefined);
    expect(portal.open(undefined)).to.equal(undefined);
  });

  it('refuse a public key that is none', () => {
    expect(() => new Bearers('bm90IGEga2V5')).to.throw();
  });
});

describe('the address of the live rail', () => {
  const open = (baseUrl: string) =>
    new MpesaRail({
      config: {
        ...{ baseUrl, apiKey: 'key', publicKey: new PortalBearers(simulatorKeys).publicKey },
        ...{ serviceProviderCode: '000000', origin: '*', isSynchronous: true, callbackSecret: undefined },
        sessionLifeMs: 3_000_000,
      },
      clock: new MovableClock(),
      sessions: new OwnSessions(),
    });

  it('begins with https, or is on this machine', () => {
    for (const good of [
      'https://openapi.m-pesa.com/openapi',
      'http://127.0.0.1:4010/openapi',
      'http://localhost:1',
    ]) {
      expect(open(good).addresses).to.have.length(1);
    }
    for (const bad of [
      'http://openapi.m-pesa.com',
      'http://127.0.0.1.example.com',
      'http://10.0.0.1',
      'ftp://localhost',
    ]) {
      expect(() => open(bad), bad).to.throw('https');
    }
  });

  it('cannot be reached by the rail of test mode', () => {
    const live = open('http://127.0.0.1:4010/openapi');
    const simulator = { delayMinMs: 1, delayMaxMs: 1, speed: 1 };
    const test = new TestRail({ clock: new MovableClock(), ring: () => {}, simulator, leastWindowMs: 1 });
    expect(() => checkApart({ test, live })).not.to.throw();
    expect(() => checkApart({ test: live, live })).to.throw('address of the live rail');
    expect(() => checkApart({ test: live, live: undefined })).to.throw('reaches an address');
  });
});
