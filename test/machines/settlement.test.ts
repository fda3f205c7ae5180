import { expect } from 'chai';
import {
  type SettlementContext,
  type SettlementEvent,
  settlementMachine,
} from '../../machines/settlement.ts';
import { Drive } from '../support/drive.ts';
import { hourMs, startMs, type Untimed } from '../support/moves.ts';

type Told = Untimed<SettlementEvent>;

const midnight = 12 * hourMs;
const held: Told = { type: 'operator.held', reason: 'a dispute' };
const released: Told = { type: 'operator.released', reason: 'settled with the merchant' };

class Settlement extends Drive<SettlementContext, SettlementEvent> {
  constructor(dueInMs = midnight, isTest = false) {
    const input = { at: startMs, dueAtMs: startMs + dueInMs, isTest };
    super(settlementMachine, input);
  }

  due(stripe: number, amountTzs: number, at = this.now): this {
    return this.send({ type: 'settlement.due', stripe, amountTzs, at });
  }
}

const early: Told = { type: 'merchant.settled', stripe: 1, amountTzs: 700 };

describe('settlement', () => {
  it('of live mode is settled by no merchant, be it before midnight or after it', () => {
    const settlement = new Settlement().send(early);
    expect([settlement.isTaken, settlement.state, settlement.asked]).to.deep.equal([false, 'due', []]);
    expect(settlement.wait(midnight).send(early).isTaken).to.equal(false);
    expect(settlement.due(1, 700).send(early).isTaken, 'settled').to.equal(false);
  });

  it('of test mode is settled early, part by part, and what comes after that at midnight', () => {
    const settlement = new Settlement(midnight, true).send(early);
    expect([settlement.state, settlement.asked]).to.deep.equal(['settled', ['settleBucket']]);
    expect(settlement.context.settledAt).to.equal(startMs);
    expect(settlement.send(early).due(1, 9).isTaken, 'before midnight').to.equal(false);
    expect(settlement.wait(midnight).due(1, 9).asked).to.deep.equal(['settleBucket']);
    expect(settlement.context).to.deep.include({ parts: { 1: 3 }, settledTzs: 1_409 });
  });

  it('of test mode is not settled while it is held', () => {
    const settlement = new Settlement(midnight, true).send(held).send(early);
    expect([settlement.isTaken, settlement.state]).to.deep.equal([false, 'held']);
  });

  it('reads its buckets at midnight, not a moment before', () => {
    const settlement = new Settlement().wait(midnight - 1);
    expect(settlement.times('collectBuckets')).to.equal(0);
    settlement.wait(1);
    expect([settlement.state, settlement.asked]).to.deep.equal(['due', ['collectBuckets']]);
    expect(settlement.wait(48 * hourMs).times('collectBuckets'), 'once').to.equal(1);
  });

  it('reads its buckets at once when it is made after its date', () => {
    expect(new Settlement(-hourMs).wait(0).asked).to.deep.equal(['collectBuckets']);
  });

  for (const [atMs, isTaken] of [
    [midnight - 1, false],
    [midnight, true],
    [midnight + 1, true],
  ] as const) {
    it(`${isTaken ? 'settles' : 'refuses'} a bucket ${atMs - midnight} ms after midnight`, () => {
      const settlement = new Settlement().due(1, 5_000, startMs + atMs);
      expect(settlement.isTaken).to.equal(isTaken);
      expect(settlement.asked).to.deep.equal(isTaken ? ['settleBucket'] : []);
      expect(settlement.state).to.equal(isTaken ? 'settled' : 'due');
    });
  }

  it('numbers the parts of each stripe, one step per bucket', () => {
    const settlement = new Settlement().wait(midnight);
    for (const [stripe, amountTzs] of [
      [3, 700],
      [1, 20],
      [3, 5],
    ] as const) {
      settlement.due(stripe, amountTzs);
      expect(settlement.asked).to.deep.equal(['settleBucket']);
    }
    expect(settlement.context.parts).to.deep.equal({ 1: 1, 3: 2 });
    expect(settlement.context.settledTzs).to.equal(725);
  });

  it('settles what comes later as a further part', () => {
    const settlement = new Settlement()
      .wait(midnight)
      .due(1, 700)
      .wait(30 * 24 * hourMs)
      .due(1, 9);
    expect([settlement.state, settlement.asked]).to.deep.equal(['settled', ['settleBucket']]);
    expect(settlement.context).to.deep.include({
      parts: { 1: 2 },
      settledTzs: 709,
      settledAt: settlement.now,
    });
  });

  it('held refuses to settle, and has no timer', () => {
    const settlement = new Settlement().send(held).wait(midnight).due(1, 700);
    expect([settlement.state, settlement.isTaken, settlement.timers]).to.deep.equal(['held', false, {}]);
    expect(settlement.times('collectBuckets')).to.equal(0);
  });

  it('released before midnight waits for it', () => {
    const settlement = new Settlement().send(held).wait(hourMs).send(released);
    expect(settlement.timers).to.deep.equal({ 'xstate.after.midnight.due': 11 * hourMs });
  });

  it('released after midnight reads its buckets at once', () => {
    const settlement = new Settlement()
      .send(held)
      .wait(2 * midnight)
      .send(released)
      .wait(0);
    expect([settlement.state, settlement.asked]).to.deep.equal(['due', ['collectBuckets']]);
  });

  it('held after midnight, before anything was settled, can be released again', () => {
    const settlement = new Settlement().wait(midnight).send(held).due(1, 700);
    expect(settlement.state).to.equal('held');
    expect(settlement.send(released).due(1, 700).state).to.equal('settled');
  });

  it('settled is not held back any more', () => {
    const settlement = new Settlement().wait(midnight).due(1, 700);
    expect(settlement.send(held).isTaken).to.equal(false);
  });
});
