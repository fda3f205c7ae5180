import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Bearers, SessionKeeper, type SessionTerms } from '../../src/rails/mpesa/session.ts';
import { checkApart, MpesaRail, TestRail } from '../../src/rails/rails.ts';
import { Bearers as PortalBearers } from '../../tools/simulator/keys.ts';
import { OwnSessions } from '../support/ownSessions.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';

const secondMs = 1_000;
const terms: SessionTerms = {
  lifeMs: 3_000 * secondMs,
  activationMs: 30 * secondMs,
  holdMs: 500,
  backOffMs: 1_000,
  lookMs: 2,
  tryMs: 5,
};
const never = new AbortController().signal;

function bench(processes = 1) {
  const clock = new MovableClock(1_000_000);
  const store = new OwnSessions();
  const made: string[] = [];
  const tried: string[] = [];
  /** `live`: what the gate takes; undefined: whatever was made. */
  const state = { isUp: true, live: undefined as readonly string[] | undefined };
  const make = async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (!state.isUp) return undefined;
    made.push(`session-${made.length + 1}`);
    return made.at(-1);
  };
  const attempt = async ({ id }: { id: string }) => {
    tried.push(id);
    return (state.live ?? made).includes(id) ? ('taken' as const) : ('refused' as const);
  };
  const keepers = Array.from(
    { length: processes },
    () => new SessionKeeper({ clock, store, terms, make, attempt }),
  );
  const serve = (keeper = keepers[0]!, withinMs = 60 * secondMs) =>
    keeper.serving(clock.now() + withinMs, never);
  return { clock, store, made, tried, state, keepers, keeper: keepers[0]!, serve };
}

/** Waits for what comes by itself; what should not come is given a moment. */
const reached = async (what: () => boolean) => {
  const giveUpAt = performance.now() + 10_000;
  while (!what() && performance.now() < giveUpAt) await new Promise((resolve) => setTimeout(resolve, 2));
  expect(what(), String(what)).to.equal(true);
};
const settled = () => new Promise((resolve) => setTimeout(resolve, 40));

describe('sessions of M-Pesa', () => {
  it('are made once, however many ask and in however many processes', async () => {
    const { keepers, made, serve } = bench(3);
    const all = await Promise.all(keepers.flatMap((each) => Array.from({ length: 50 }, () => serve(each))));
    expect(made).to.deep.equal(['session-1']);
    expect(new Set(all.map((session) => session?.id))).to.deep.equal(new Set(['session-1']));
  });

  it('that activate are tried by one for all who wait', async () => {
    const { state, tried, serve, clock } = bench();
    state.live = [];
    const waiting = Array.from({ length: 60 }, () => serve());
    await reached(() => tried.length >= 3);
    expect(tried.length, 'one at a time, not one for each who waits').to.be.below(60);
    state.live = ['session-1'];
    const all = await Promise.all(waiting);
    expect(new Set(all.map((session) => session?.id))).to.deep.equal(new Set(['session-1']));
    const before = tried.length;
    clock.advance(secondMs);
    await serve();
    expect(tried.length, 'known to be live').to.equal(before);
  });

  it('that are not live in time let those go who wait', async () => {
    const { state, serve, clock, tried } = bench();
    state.live = [];
    const waiting = serve(undefined, 20 * secondMs);
    await reached(() => tried.length > 0);
    clock.advance(20 * secondMs);
    expect(await waiting).to.equal(undefined);
  });

  it('are renewed at four fifths of their life; the old one serves until the gate takes the new one', async () => {
    const { keeper, clock, made, tried, state, serve } = bench();
    await serve();
    clock.advance(0.8 * terms.lifeMs - 1);
    await keeper.tend();
    await settled();
    expect(made).to.have.length(1);
    clock.advance(1);
    state.live = ['session-1'];
    await keeper.tend();
    await reached(() => made.length === 2); // although nobody calls
    expect((await serve())!.id).to.equal('session-1');
    state.live = made;
    const before = tried.length;
    await reached(() => {
      void keeper.tend(); // as it is called every few seconds
      return tried.slice(before).includes('session-2');
    });
    await settled();
    expect((await serve())!.id).to.equal('session-2');
  });

  it('that were refused although they are well go on serving: none is made', async () => {
    const { keeper, clock, made, serve } = bench();
    const session = (await serve())!;
    clock.advance(60 * secondMs);
    keeper.doubt(session);
    expect((await serve())!.id).to.equal('session-1');
    expect(made).to.have.length(1);
  });

  it('that are over are replaced once, by whoever noticed first', async () => {
    const { keepers, clock, made, state, serve } = bench(2);
    const first = (await serve(keepers[0]))!;
    await serve(keepers[1]);
    clock.advance(60 * secondMs);
    state.live = ['session-2'];
    for (const keeper of keepers) keeper.doubt(first);
    const all = await Promise.all(keepers.flatMap((each) => Array.from({ length: 20 }, () => serve(each))));
    expect(made).to.have.length(2);
    expect(new Set(all.map((session) => session?.id))).to.deep.equal(new Set(['session-2']));
  });

  it('that were refused serve again when the gate takes them, while their successor activates', async () => {
    const { keeper, clock, made, state, serve } = bench();
    const session = (await serve())!;
    clock.advance(60 * secondMs);
    state.live = [];
    keeper.doubt(session);
    await reached(() => made.length === 2);
    state.live = ['session-1'];
    expect((await serve())!.id).to.equal('session-1');
  });

  it('with used-up limits serve no more, and are succeeded', async () => {
    const { keeper, clock, made, serve } = bench();
    const session = (await serve())!;
    clock.advance(60 * secondMs);
    keeper.exhaust(session);
    expect((await serve())!.id).to.equal('session-2');
    expect(made).to.have.length(2);
  });

  it('are not minted in a storm: one that was just made is not replaced', async () => {
    const { keeper, clock, made, state, serve } = bench();
    const session = (await serve())!;
    clock.advance(terms.activationMs - 1);
    state.live = [];
    keeper.doubt(session);
    await settled();
    keeper.exhaust(session);
    await settled();
    expect(made).to.have.length(1);
  });

  it('go on serving beyond their assumed life while no new one can be had', async () => {
    const { clock, state, serve } = bench();
    await serve();
    state.isUp = false;
    clock.advance(2 * terms.lifeMs);
    expect((await serve())!.id).to.equal('session-1');
    expect((await serve())!.id, 'also before the next attempt').to.equal('session-1');
  });

  it('are asked for again a second after a failure, not at once', async () => {
    const { clock, state, made, serve } = bench();
    state.isUp = false;
    expect(await serve()).to.equal(undefined);
    state.isUp = true;
    expect(await serve()).to.equal(undefined);
    expect(made).to.deep.equal([]);
    clock.advance(terms.backOffMs);
    expect((await serve())!.id).to.equal('session-1');
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
    expect(() => new Bearers('bm90IGEga2V5')).to.throw('is no public key');
  });
});

describe('the address of the live rail', () => {
  const open = (baseUrl: string) =>
    new MpesaRail({
      config: {
        ...{ baseUrl, apiKey: 'key', publicKey: new PortalBearers(simulatorKeys).publicKey },
        ...{
          serviceProviderCode: '000000',
          origin: '*',
          isSynchronous: true,
          paysWallets: false,
          callbackSecret: undefined,
          askDelaysMs: [20_000],
        },
        sessionLifeMs: 3_000_000,
      },
      clock: new MovableClock(),
      sessions: new OwnSessions(),
    });

  it('tells production, the sandbox and a simulator apart', () => {
    const kind = (baseUrl: string) => {
      const { isSandbox, isSimulator } = open(baseUrl).line;
      return { isSandbox, isSimulator };
    };
    const [no, yes] = [false, true];
    expect(kind('https://openapi.m-pesa.com/openapi')).to.deep.equal({ isSandbox: no, isSimulator: no });
    expect(kind('https://openapi.m-pesa.com/sandbox')).to.deep.equal({ isSandbox: yes, isSimulator: no });
    expect(kind('http://127.0.0.1:4010/openapi')).to.deep.equal({ isSandbox: no, isSimulator: yes });
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
    const test = new TestRail({ clock: new MovableClock(), ring: () => {}, simulator });
    expect(() => checkApart({ test, live })).not.to.throw();
    expect(() => checkApart({ test: live, live })).to.throw('address of the live rail');
    expect(() => checkApart({ test: live, live: undefined })).to.throw('reaches an address');
  });
});
