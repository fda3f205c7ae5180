import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import {
  type Breakers,
  GuardedRail,
  type PhoneTurns,
  type PushOutcome,
  type Rail,
  type StatusAnswer,
} from '../../src/rails/rails.ts';

const secondMs = 1_000;
const never = new AbortController().signal;

/** A rail that takes pushes and says nothing until it is told to, and what its guard makes of that. */
function bench() {
  const clock = new MovableClock(1_000_000);
  const seen = { probes: 0, tended: 0, heard: [] as string[] };
  const state = {
    health: 'down' as 'up' | 'down',
    answer: { kind: 'unknown', why: 'timeout' } as StatusAnswer,
  };
  let answerPush: (outcome: PushOutcome) => void = () => {};
  const rail = {
    capabilities: { promptLifeMs: 120 * secondMs },
    requestPayment: () =>
      new Promise<PushOutcome>((resolve) => {
        answerPush = resolve;
      }),
    queryStatus: async () => ({ ...state.answer, evidence: { code: 'INS-23', atMs: clock.now() } }),
    probe: async () => {
      seen.probes += 1;
      return state.health;
    },
    tend: async () => {
      seen.tended += 1;
    },
  } as unknown as Rail;
  const breakers = {
    isOpen: async () => false,
    hear: async (operation: string, { kind, why }: { kind: string; why?: string }) => {
      seen.heard.push([operation, kind, why].filter(Boolean).join(' '));
    },
  } as unknown as Breakers;
  const turns = {
    take: async () => undefined,
    begin: async () => true,
    giveUp: async () => undefined,
    end: async () => undefined,
  } as unknown as PhoneTurns;
  const guarded = new GuardedRail({ rail, breakers, turns, clock });
  const payment = { collectionId: 'col_1', msisdn: '255712000001', amountTzs: 5_000 };
  const push = async () => {
    const request = { ...payment, description: '', notAfterMs: clock.now() + 60 * secondMs };
    const pushing = guarded.requestPayment({ ...request, claim: async () => true }, never);
    await new Promise((resolve) => setImmediate(resolve));
    return { pushing, answer: (outcome: PushOutcome) => answerPush(outcome) };
  };
  const ask = () => guarded.queryStatus({ ...payment, pushedAtMs: null }, never);
  return { clock, seen, state, guarded, push, ask };
}

const silent = 'push unknown timeout';

describe('the watch on a silent network', () => {
  it('asks a network that has taken a push and said nothing for ten seconds, and tells the breaker', async () => {
    const { clock, seen, guarded, push } = bench();
    await push();
    clock.advance(9 * secondMs);
    await guarded.tend();
    expect(seen).to.deep.equal({ probes: 0, tended: 1, heard: [] });
    clock.advance(secondMs);
    for (let times = 0; times < 5; times += 1) await guarded.tend();
    expect(seen).to.deep.equal({ probes: 5, tended: 6, heard: Array(5).fill(silent) });
  });

  it('asks nothing while no push is open: neither before the first nor after the last', async () => {
    const { clock, seen, guarded, push } = bench();
    clock.advance(60 * secondMs);
    await guarded.tend();
    const { pushing, answer } = await push();
    await guarded.tend();
    clock.advance(60 * secondMs);
    answer({ kind: 'unknown', why: 'connection_lost' });
    await pushing;
    await guarded.tend();
    expect(seen.probes).to.equal(0);
  });

  it('takes any answer of the platform for a sign of life, and its own silence for none', async () => {
    const { clock, seen, state, guarded, push, ask } = bench();
    await push();
    clock.advance(9 * secondMs);
    state.answer = { kind: 'notFound' };
    await ask();
    clock.advance(9 * secondMs);
    await guarded.tend();
    expect(seen.probes, 'it answered a question nine seconds ago').to.equal(0);
    state.answer = { kind: 'unknown', why: 'timeout' };
    await ask();
    clock.advance(secondMs);
    await guarded.tend();
    expect(seen.probes).to.equal(1);
  });

  it('lets a network that answers keep its customers waiting, and looks again ten seconds later', async () => {
    const { clock, seen, state, guarded, push } = bench();
    state.health = 'up';
    await push();
    clock.advance(10 * secondMs);
    await guarded.tend();
    await guarded.tend();
    expect(seen).to.deep.equal({ probes: 1, tended: 2, heard: [] });
    clock.advance(10 * secondMs);
    await guarded.tend();
    expect(seen.probes).to.equal(2);
  });
});
