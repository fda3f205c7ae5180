import type { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type PayoutContext, payoutMachine } from '../../machines/payout.ts';
import { newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import type { PayoutAnswer, PayoutRail, SendRequest } from '../../src/rails/rails.ts';
import type { Faults } from '../../tools/simulator/faults.ts';
import { Chart, earliestOf, type Position } from './charts.ts';
import { until } from './until.ts';

/**
 * The conformance kit of a rail that pays (CONTRACT 22.8): the same facts, stated of any door to a network. Judged by where
 * the payout's chart gets with it, against what the network knows moved.
 */
export interface PayoutDoor {
  rail: PayoutRail;
  /** The rail's and the network's; the kit moves it. */
  clock: MovableClock;
  stories: readonly { msisdn: string; what: string; ends: string }[];
  /** Payouts whose money moved, once per time that it did. */
  paid(): string[];
  /** What is wrong with the network's books; empty when nothing is. */
  breaches(): string[];
  /** Doors that go over a line can have it broken. */
  line?: {
    faults: Faults;
    /** The same rail, which waits for an answer for a moment only. */
    hurried: PayoutRail;
    counts: Record<'payout', number>;
    /** What the network's wallet of ours holds. */
    heldTzs(): number;
  };
  close(): Promise<void>;
}

const never = new AbortController().signal;
/** Sent, as far as an answer tells. */
const taken = ['accepted', 'paid'];
/** The network pays within this. */
const paysMs = 20_000;

/** States the facts of the rail behind a door. */
export function describePayouts(name: string, open: () => Promise<PayoutDoor>, over: 'a line' | 'no line') {
  describe(name, function () {
    this.timeout(120_000);
    let door: PayoutDoor;
    before(async () => {
      door = await open();
    });
    after(() => door.close());
    afterEach(() => {
      door.line?.faults.clear();
      expect(door.breaches(), 'the books of the network').to.deep.equal([]);
    });
    describePort(() => door);
    describeStories(() => door);
    if (over === 'a line') describeLine(() => door as PayoutDoor & Required<Pick<PayoutDoor, 'line'>>);
  });
}

function describePort(door: () => PayoutDoor): void {
  it('lets no payout begin so late that its answer is not waited for', () => {
    const { answerTimeoutMs, beginMs, sendRetryMs, sendWindowMs } = door().rail.terms;
    expect(beginMs).to.be.below(answerTimeoutMs);
    expect(sendRetryMs).to.be.below(sendWindowMs);
  });

  it('pays once for the same payout sent twice', async () => {
    const request = requestOf(door());
    expect((await door().rail.sendPayout(request, never)).kind).to.be.oneOf(taken);
    const second = await door().rail.sendPayout(request, never);
    expect(second.kind, 'the second is no failure').to.be.oneOf(['accepted', 'unknown']);
    door().clock.advance(paysMs);
    expect((await ask(door(), request)).kind).to.equal('paid');
    expect(timesPaid(door(), request)).to.equal(1);
  });

  it('sends nothing after its time, also where that ran out during the claim', async () => {
    const { rail, clock } = door();
    const late = { ...requestOf(door()), notAfterMs: clock.now() - 1 };
    expect(await rail.sendPayout(late, never)).to.include({ kind: 'notAttempted', why: 'too_late' });
    const slow = requestOf(door());
    const claim = async () => {
      clock.advance(slow.notAfterMs - clock.now() + 1);
      return true;
    };
    const outcome = await rail.sendPayout({ ...slow, claim }, never);
    expect(outcome).to.include({ kind: 'notAttempted', why: 'too_late' });
    clock.advance(paysMs);
    for (const each of [late, slow]) expect(timesPaid(door(), each)).to.equal(0);
  });

  it('claims a payout once, before anything of it is sent, and sends nothing where that is refused', async () => {
    const { rail, clock, line } = door();
    const sent = line?.counts.payout;
    const refused = requestOf(door());
    const outcome = await rail.sendPayout({ ...refused, claim: async () => false }, never);
    expect(outcome).to.include({ kind: 'notAttempted', why: 'taken' });
    let claims = 0;
    const claim = async () => {
      claims += 1;
      expect(line?.counts.payout, 'sent before the claim').to.equal(sent);
      return true;
    };
    expect((await rail.sendPayout({ ...requestOf(door()), claim }, never)).kind).to.be.oneOf(taken);
    expect(claims).to.equal(1);
    clock.advance(paysMs);
    expect(timesPaid(door(), refused)).to.equal(0);
  });

  it('finds nothing of a payout that was never sent, and does not call that a failure', async () => {
    const request = requestOf(door());
    expect((await ask(door(), request, null)).kind).to.equal('notFound');
  });
}

function describeStories(door: () => PayoutDoor): void {
  it('ends every scripted number as its story says, paid once where money moved and never elsewhere', async () => {
    for (const { msisdn, what, ends } of door().stories) {
      const { ending, states, sends, payoutId } = await walk(door(), msisdn);
      const about = `${msisdn}, ${what}: ${states.join(' → ')}`;
      expect(ending, about).to.equal(ends);
      expect(sends, `sent, of ${about}`).to.equal(1);
      const times = timesPaid(door(), { payoutId });
      if (ends === 'underReview') expect(times, about).to.be.at.most(1);
      else expect(times, about).to.equal(['paid', 'returned'].includes(ends) ? 1 : 0);
    }
  }).timeout(300_000);
}

function describeLine(door: () => PayoutDoor & Required<Pick<PayoutDoor, 'line'>>): void {
  for (const does of ['resets', 'hangs', 'fails', 'garbles', 'cuts'] as const) {
    for (const when of ['before', 'after'] as const) {
      it(`knows nothing when the line ${does} ${when} the payout, and asking never fails it`, async () => {
        const { line, clock } = door();
        const request = requestOf(door());
        const rail = does === 'hangs' ? line.hurried : door().rail;
        // A question mends a session that a story has ended; what is sent once would only be told as not sent.
        await ask({ ...door(), rail }, request);
        line.faults.add({ operation: 'payout', does, when, times: 1 });
        const outcome = await rail.sendPayout(request, never);
        expect(outcome.kind, JSON.stringify(outcome)).to.equal('unknown');
        clock.advance(paysMs);
        const answer = await ask(door(), request);
        expect(answer.kind).to.equal(when === 'after' ? 'paid' : 'notFound');
        expect(timesPaid(door(), request)).to.equal(when === 'after' ? 1 : 0);
      });
    }
  }

  it('sends nothing again by itself: what hangs was sent once', async () => {
    const { line } = door();
    const sent = line.counts.payout;
    await ask({ ...door(), rail: line.hurried }, requestOf(door()));
    line.faults.add({ operation: 'payout', does: 'hangs', when: 'after', times: 1 });
    await line.hurried.sendPayout(requestOf(door()), never);
    expect(line.counts.payout).to.equal(sent + 1);
  });

  it('asks about a code that nobody has mapped, and never fails by it', async () => {
    const { line, rail } = door();
    for (const code of ['INS-7777', 'INS-10', 'INS-1', 'INS-9', 'INS-23', 'constructor']) {
      line.faults.add({ operation: 'payout', does: 'answers', when: 'after', times: 1, code });
      const outcome = await rail.sendPayout(requestOf(door()), never);
      expect(outcome.kind, code).to.equal('unknown');
      expect(outcome.evidence?.code).to.equal(code);
    }
  });

  it('may be sent again after 401, 403 and 429 without a code: nothing reached the platform', async () => {
    const { line, rail } = door();
    for (const httpStatus of [401, 403, 429]) {
      const request = requestOf(door());
      line.faults.add({ operation: 'payout', does: 'refuses', when: 'before', times: 9, httpStatus });
      expect((await rail.sendPayout(request, never)).kind, String(httpStatus)).to.equal('notAttempted');
      line.faults.clear();
      // As the chart does, which backs off: the session may be on the point of being replaced.
      const again = await until(async () => {
        const outcome = await rail.sendPayout(request, never);
        return outcome.kind === 'notAttempted' ? undefined : outcome;
      });
      expect(again?.kind).to.be.oneOf(taken);
      door().clock.advance(paysMs);
      await ask(door(), request);
      expect(timesPaid(door(), request)).to.equal(1);
    }
  });

  it('fails by a wallet of ours that does not hold enough, and has us told', async () => {
    const { line, rail } = door();
    const request = { ...requestOf(door()), amountTzs: line.heldTzs() + 1 };
    const outcome = await rail.sendPayout(request, never);
    expect(outcome).to.include({ kind: 'failed', code: 'float_insufficient', fault: 'us' });
    expect(outcome.evidence?.code).to.equal('INS-2006');
    expect((await ask(door(), request)).kind).to.equal('notFound');
  });

  it('leaves a payout that is stopped while it waits as unknown', async () => {
    const { line, rail } = door();
    const stopping = new AbortController();
    const { payout } = line.counts;
    const sending = rail.sendPayout({ ...requestOf(door()), msisdn: '255740000065' }, stopping.signal);
    expect(await until(async () => line.counts.payout > payout), 'it is on its way').to.equal(true);
    stopping.abort();
    expect(await sending).to.include({ kind: 'unknown', why: 'stopped' });
  });
}

/** A payout to a wallet that takes it. */
function requestOf({ clock, rail }: PayoutDoor): SendRequest {
  return {
    payoutId: newId('po', clock.now()),
    msisdn: '255712345678',
    amountTzs: 5_000,
    description: 'Week 47 – "takings" #1',
    notAfterMs: clock.now() + rail.terms.beginMs,
    claim: async () => true,
  };
}

function ask(
  { rail, clock }: PayoutDoor,
  { payoutId, msisdn, amountTzs }: SendRequest,
  sentAtMs: number | null = clock.now() - paysMs,
): Promise<PayoutAnswer> {
  return rail.queryPayout({ payoutId, msisdn, amountTzs, sentAtMs, isPaid: false }, never);
}

function timesPaid(door: PayoutDoor, { payoutId }: { payoutId: string }): number {
  return door.paid().filter((id) => id === payoutId).length;
}

const stepsMax = 300;
/** Longer than any network takes to have something come back. */
const watchedMs = 2 * limits.hourMs;

/** Walks one payout over its chart with this rail, from the 202 to where it rests; time is moved, not waited for. */
async function walk({ rail, clock, line }: PayoutDoor, msisdn: string) {
  const payoutId = newId('po', clock.now());
  const chart = new Chart(payoutMachine);
  const beganAt = clock.now();
  const input = { at: beganAt, terms: rail.terms, isByHand: false, needsApproval: false, madeBy: 'x' };
  let position = chart.begin(input);
  const states = [position.state];
  const isCall = ({ type }: { type: string }) => type === 'sendMoney' || type === 'askPayout';
  const calls = position.asked.filter(isCall);
  let sends = 0;
  const take = (next: Position) => {
    if (next.state !== position.state) states.push(next.state);
    position = next;
    calls.push(...next.asked.filter(isCall));
  };
  const send = (event: { type: string }) => take(chart.step(position, { ...event, at: clock.now() }));
  for (let steps = 0; steps < stepsMax; steps += 1) {
    const context = position.context as PayoutContext & Record<string, unknown>;
    const of = { payoutId, msisdn, amountTzs: 5_000 };
    const call = calls.shift();
    if (call?.type === 'sendMoney') {
      const askedAt = clock.now();
      const request = { ...of, description: 'x', notAfterMs: context.notAfter, claim: async () => true };
      // Of one whose answer never comes the line is heard to be silent.
      const isSilent = msisdn === '255740000065' && line !== undefined;
      const outcome = await (isSilent ? line.hurried : rail).sendPayout(request, never);
      if (outcome.kind !== 'notAttempted') sends += 1;
      const told = { ...outcome, type: `send.${outcome.kind}`, askedAt };
      send(told);
    } else if (call) {
      clock.advance(Math.max(0, context.askedAt - clock.now()));
      const isPaid = position.state.startsWith('paid');
      const answer = await rail.queryPayout({ ...of, sentAtMs: context.sentAt, isPaid }, never);
      const isUndecided = answer.kind === 'pending' || answer.kind === 'unknown';
      const type = isUndecided ? 'ask.undecided' : `ask.${answer.kind}`;
      const told = { ...answer, type, answer: answer.kind, askedAt: clock.now() };
      send(told);
    } else {
      const timer = earliestOf(position.timers);
      const isWatched = clock.now() - beganAt > watchedMs;
      if (!timer || (position.state.startsWith('created.underReview') && isWatched)) break;
      clock.advance(Math.max(0, timer.dueAt - clock.now()));
      take(chart.fire(position, timer.id));
    }
  }
  return { payoutId, states, sends, ending: endingOf(position) };
}

function endingOf({ state, context }: Position): string {
  if (state.startsWith('created.underReview')) return 'underReview';
  if (state.startsWith('failed')) return String(context.failureCode);
  return state.split('.', 1)[0]!;
}
