import { expect } from 'chai';
import fc from 'fast-check';
import { type BreakerContext, type BreakerEvent, breakerMachine } from '../../machines/breaker.ts';
import { healthOf, type RailOperation } from '../../src/rails/rails.ts';
import { Drive } from '../support/drive.ts';
import { startMs, type Untimed } from '../support/moves.ts';

type Told = Untimed<BreakerEvent>;

const secondMs = 1_000;
const terms = {
  failuresMax: 3,
  windowMs: 60 * secondMs,
  openMs: 5 * secondMs,
  openMaxMs: 60 * secondMs,
  probeMs: 45 * secondMs,
};
const failed: Told = { type: 'rail.failed' };
const answered: Told = { type: 'rail.answered' };
const probeFailed: Told = { type: 'probe.failed' };
const probeSucceeded: Told = { type: 'probe.succeeded' };
const opened: Told = { type: 'operator.opened', reason: 'our account is closed' };
const closed: Told = { type: 'operator.closed', reason: 'it is open again' };

class Breaker extends Drive<BreakerContext, BreakerEvent> {
  constructor() {
    super(breakerMachine, { at: startMs, ...terms } as { at: number });
  }

  tell(...events: Told[]): this {
    for (const event of events) this.send(event);
    return this;
  }
}

const open = () => new Breaker().tell(failed, failed, failed);

describe('breaker', () => {
  it('opens at the third failure in a row, with one alert', () => {
    expect(new Breaker().tell(failed, failed).state).to.equal('closed');
    const breaker = open();
    expect([breaker.state, breaker.asked]).to.deep.equal(['open.waiting', ['raiseAlert']]);
  });

  it('counts anew after an answer, and after a minute without failures', () => {
    expect(new Breaker().tell(failed, failed, answered, failed, failed).state).to.equal('closed');
    const breaker = new Breaker().tell(failed, failed).wait(60 * secondMs + 1);
    expect(breaker.tell(failed, failed).state).to.equal('closed');
    expect(breaker.tell(failed).state).to.equal('open.waiting');
  });

  it('costs no step while the rail answers', () => {
    expect(new Breaker().tell(answered).isTaken).to.equal(false);
  });

  it('asks after five seconds, and for nothing but a probe', () => {
    const breaker = open().wait(5 * secondMs - 1);
    expect(breaker.state).to.equal('open.waiting');
    breaker.wait(1);
    expect([breaker.state, breaker.asked]).to.deep.equal(['halfOpen', ['probeRail']]);
  });

  it('waits twice as long after each failed probe, a minute at most', () => {
    const breaker = open();
    const waits: number[] = [];
    for (let probe = 0; probe < 6; probe += 1) {
      const [waitMs] = Object.values(breaker.timers);
      waits.push(waitMs! / secondMs);
      breaker.wait(waitMs!).tell(probeFailed);
    }
    expect(waits).to.deep.equal([5, 10, 20, 40, 60, 60]);
  });

  it('closes when a probe succeeds, also one that was thought lost', () => {
    expect(
      open()
        .wait(5 * secondMs)
        .tell(probeSucceeded).state,
    ).to.equal('closed');
    const late = open()
      .wait(5 * secondMs)
      .wait(45 * secondMs);
    expect(late.state).to.equal('open.waiting');
    expect(late.tell(probeSucceeded).state).to.equal('closed');
  });

  it('opens again at the first failure after a probe, for longer each time, until the rail has answered', () => {
    const breaker = open();
    const waits: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const [waitMs] = Object.values(breaker.timers);
      waits.push(waitMs! / secondMs);
      breaker.wait(waitMs!).tell(probeSucceeded);
      expect(breaker.state).to.equal('closed');
      breaker.tell(failed);
      expect(breaker.state, 'one failure').to.equal('open.waiting');
    }
    expect(waits).to.deep.equal([5, 10, 20, 40, 60]);
    const [waitMs] = Object.values(breaker.timers);
    breaker.wait(waitMs!).tell(probeSucceeded, answered, failed, failed);
    expect(breaker.state, 'counted anew').to.equal('closed');
    breaker.tell(failed);
    expect(Object.values(breaker.timers)).to.deep.equal([5 * secondMs]);
  });

  it('says that the rail refuses us where it does, and else that it is out of reach', () => {
    const refused: Told = { type: 'rail.failed', isRefusal: true };
    const kinds = (...events: Told[]) => {
      const breaker = new Breaker().tell(...events);
      return breaker.params('raiseAlert').map(({ kind }) => kind);
    };
    expect(kinds(refused, refused, refused)).to.deep.equal(['rail_refused']);
    expect(kinds(failed, failed, failed)).to.deep.equal(['rail_unreachable']);
  });

  it('hears of no outcome while it is open: pushes that end late decide nothing', () => {
    for (const breaker of [open(), open().wait(5 * secondMs)]) {
      const { state } = breaker;
      expect(breaker.tell(answered, failed).state).to.equal(state);
    }
  });

  it('stays open for an operator, without probes, until the operator closes it', () => {
    for (const breaker of [new Breaker(), open(), open().wait(5 * secondMs)]) {
      expect(breaker.tell(opened).state).to.equal('open.held');
      expect(breaker.wait(24 * 3_600 * secondMs).state).to.equal('open.held');
      expect(breaker.tell(closed).state).to.equal('closed');
    }
  });
});

describe('what feeds a breaker', () => {
  const at = { atMs: startMs };
  const rows: [RailOperation, Parameters<typeof healthOf>[0], ReturnType<typeof healthOf>][] = [
    ['push', { kind: 'notAttempted', why: 'connect_failed', evidence: at }, 'failed'],
    ['push', { kind: 'notAttempted', why: 'no_session', evidence: at }, 'failed'],
    ['push', { kind: 'unknown', why: 'http_error', evidence: { ...at, httpStatus: 502 } }, 'failed'],
    ['push', { kind: 'unknown', why: 'timeout', evidence: at }, 'failed'],
    ['push', { kind: 'unknown', why: 'connection_lost', evidence: at }, 'failed'],
    ['push', { kind: 'unknown', why: 'general_error', evidence: { ...at, code: 'INS-1' } }, 'failed'],
    ['push', { kind: 'notAttempted', why: 'no_session', evidence: { ...at, code: 'INS-989' } }, 'failed'],
    ['push', { kind: 'notAttempted', why: 'gate_busy', evidence: { ...at, httpStatus: 429 } }, 'neither'],
    ['push', { kind: 'unknown', why: 'stopped', evidence: at }, 'neither'],
    ['push', { kind: 'unknown', why: 'ambiguous_code', evidence: { ...at, code: 'INS-9' } }, 'answered'],
    ['push', { kind: 'failed', evidence: { ...at, code: 'INS-6', httpStatus: 401 } }, 'answered'],
    ['push', { kind: 'notAttempted', why: 'gate_refused', evidence: { ...at, httpStatus: 401 } }, 'failed'],
    [
      'push',
      { kind: 'notAttempted', why: 'session_refused', evidence: { ...at, httpStatus: 401 } },
      'neither',
    ],
    [
      'push',
      { kind: 'notAttempted', why: 'session_exhausted', evidence: { ...at, code: 'INS-992' } },
      'answered',
    ],
    ['push', { kind: 'notAttempted', why: 'too_late' }, 'neither'],
    ['push', { kind: 'notAttempted', why: 'breaker_open' }, 'neither'],
    ['push', { kind: 'notAttempted', why: 'phone_busy' }, 'neither'],
    ['query', { kind: 'unknown', why: 'timeout', evidence: at }, 'failed'],
    ['query', { kind: 'unknown', why: 'connection_lost', evidence: at }, 'failed'],
    ['query', { kind: 'unknown', why: 'connect_failed', evidence: at }, 'failed'],
    ['query', { kind: 'unknown', why: 'unreadable', evidence: { ...at, httpStatus: 200 } }, 'failed'],
    ['query', { kind: 'notFound', evidence: { ...at, code: 'INS-23' } }, 'answered'],
    ['query', { kind: 'pending', evidence: { ...at, code: 'INS-0' } }, 'answered'],
    ['query', { kind: 'unknown', why: 'breaker_open' }, 'neither'],
  ];
  for (const [operation, outcome, health] of rows) {
    const { kind, why, evidence } = outcome;
    it(`${operation}: ${[kind, why, evidence?.code].filter(Boolean).join(', ')} is ${health}`, () => {
      expect(healthOf(outcome)).to.equal(health);
    });
  }

  it('is never a failure where there was a result code, but for general errors', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('unmapped_code', 'ambiguous_code', 'duplicate_reference', 'unknown_status'),
        fc.string({ minLength: 1 }),
        fc.integer(),
        (why, code, httpStatus) => {
          const evidence = { ...at, code, httpStatus };
          return healthOf({ kind: 'unknown', why, evidence }) === 'answered';
        },
      ),
    );
  });
});
