import { expect } from 'chai';
import type { BreakerContext } from '../../machines/breaker.ts';
import type { CollectionContext } from '../../machines/collection.ts';
import type { DeliveryContext } from '../../machines/delivery.ts';
import type { DestinationContext } from '../../machines/destination.ts';
import type { DifferenceContext } from '../../machines/difference.ts';
import type { EndpointContext } from '../../machines/endpoint.ts';
import type { PayoutContext } from '../../machines/payout.ts';
import type { ReconciliationContext } from '../../machines/reconciliation.ts';
import type { RefundContext } from '../../machines/refund.ts';
import type { ReplayContext } from '../../machines/replay.ts';
import type { ScheduleContext } from '../../machines/schedule.ts';
import type { SettlementContext } from '../../machines/settlement.ts';
import type { Chart, Position } from './charts.ts';
import type { Model, Move } from './moves.ts';

/** What must hold of every chart after every step, on any path whatever. */

/** What a path has done so far. */
export interface History {
  /** How often each action was asked for. */
  asked: Readonly<Record<string, number>>;
  /** How often each event was taken. */
  taken: Readonly<Record<string, number>>;
  openAsks: number;
  lastAskedAt: number;
}

interface Step {
  /** Undefined for the first step of an actor. */
  before: Position | undefined;
  move: Move;
  after: Position;
  history: History;
}

const nothing: History = { asked: {}, taken: {}, openAsks: 0, lastAskedAt: Number.NEGATIVE_INFINITY };

/** Checks one step and returns the history with it. @throws AssertionError */
export function checked(
  model: Model,
  chart: Chart,
  past: History | undefined,
  before: Position | undefined,
  move: Move,
  after: Position,
): History {
  const history = withStep(past ?? nothing, move, after);
  const step = { before, move, after, history };
  checkChart(model, chart, step);
  if (model.name === 'collection') checkCollection(step, past ?? nothing);
  if (model.name === 'delivery') checkDelivery(step);
  if (model.name === 'endpoint') checkEndpoint(step);
  if (model.name === 'settlement') checkSettlement(step);
  if (model.name === 'breaker') checkBreaker(step);
  if (model.name === 'replay') checkReplay(step);
  if (model.name === 'reconciliation') checkReconciliation(step);
  if (model.name === 'difference') checkDifference(step);
  if (model.name === 'payout') checkPayout(step, past ?? nothing);
  if (model.name === 'destination') checkDestination(step);
  if (model.name === 'refund') checkRefund(step);
  if (model.name === 'schedule') checkSchedule(step);
  return history;
}

/** Questions to the rail: at most one of either kind is open. */
const asking = ['askRail', 'askReturn', 'askPayout', 'askRefund'];

function withStep(past: History, move: Move, after: Position): History {
  const asked = { ...past.asked };
  for (const { type } of after.asked) asked[type] = (asked[type] ?? 0) + 1;
  const taken = { ...past.taken };
  if (after.taken.length > 0) taken[move.event.type] = (taken[move.event.type] ?? 0) + 1;
  const answered = move.event.type.startsWith('ask.') ? 1 : 0;
  const opened = after.asked.filter(({ type }) => asking.includes(type)).length;
  return {
    asked,
    taken,
    openAsks: Math.max(0, past.openAsks - answered) + opened,
    lastAskedAt: opened > 0 ? (after.context.askedAt as number) : past.lastAskedAt,
  };
}

function names({ asked }: Position): string[] {
  return asked.map(({ type }) => type);
}

function alerts({ asked }: Position): unknown[] {
  return asked.filter(({ type }) => type === 'raiseAlert').map(({ params }) => params.kind);
}

function checkChart(model: Model, chart: Chart, { before, move, after }: Step): void {
  expect([...model.writes, ...model.calls], 'asks only for declared effects').to.include.members(
    names(after),
  );
  expect(JSON.parse(JSON.stringify(after.context)), 'context is plain JSON').to.deep.equal(after.context);
  expect(chart.restore(after).value, 'restores to the same state').to.deep.equal(after.value);
  const wanted = chart.wantedTimers(after);
  const armed = after.timers.map(({ id }) => id);
  expect(wanted, 'timers belong to active states only').to.include.members(armed);
  expect(new Set(armed).size, 'each timer is armed once').to.equal(armed.length);
  // A timer that fired without leaving its state is spent; any other of an active state is armed.
  const spent = before
    ? chart.wantedTimers(before).filter((id) => !before.timers.some((timer) => timer.id === id))
    : [];
  const missing = wanted.filter((id) => !armed.includes(id));
  expect([...spent, move.fires], 'every active state’s timer is armed').to.include.members(missing);
  if (before && after.taken.length === 0) {
    expect(after.state, 'an event that is not taken changes nothing').to.equal(before.state);
    expect(after.context).to.deep.equal(before.context);
    expect(names(after)).to.deep.equal([]);
  }
}

const statusOf = ({ state }: Position): string => state.split('.', 1)[0]!;
/** What the network can only say if a success, or its reversal, is not what we took it for. */
const contradictionsIn = ({ state, context }: Position): readonly string[] => {
  if (state === 'succeeded.reversed') return ['ask.succeeded', 'push.failed', 'reverse.succeeded'];
  return (context.refundedTzs as number) > 0
    ? contradicting.filter((each) => each !== 'ask.reversed')
    : contradicting;
};
const contradicting = ['ask.failed', 'ask.expired', 'ask.reversed', 'push.failed', 'reverse.succeeded'];

function checkCollection(step: Step, past: History): void {
  const { before, move, after } = step;
  const context = after.context as unknown as CollectionContext;
  const status = statusOf(after);
  const isNewStatus = before !== undefined && statusOf(before) !== status;
  expect(context.completedAt !== null, 'final, and only that, is completed').to.equal(status !== 'created');
  expect(context.failureCode !== null, 'failed, and only that, has a code').to.equal(status === 'failed');
  if (context.late) expect(status, 'late').to.equal('succeeded');
  const told = { recordEvent: isNewStatus ? 1 : 0, openDeliveries: isNewStatus ? 1 : 0 };
  for (const [action, times] of Object.entries(told)) {
    expect(names(after).filter((each) => each === action).length, action).to.equal(times);
  }
  if (before) {
    const old = before.context as unknown as CollectionContext;
    if (statusOf(before) === 'succeeded') expect(status, 'succeeded for good').to.equal('succeeded');
    if (isNewStatus && statusOf(before) !== 'created') expect(status).to.equal('succeeded');
    if (!isNewStatus) expect(context.completedAt, 'completed once').to.equal(old.completedAt);
    for (const fixed of ['createdAt', 'notAfter', 'expiresAt', 'acceptsLate', 'terms'] as const) {
      expect(context[fixed], fixed).to.deep.equal(old[fixed]);
    }
    if (before.state.startsWith('succeeded') && contradictionsIn(before).includes(move.event.type)) {
      const other = names(after).filter((name) => !asking.includes(name));
      expect(other, 'a contradiction is an alert').to.deep.equal(['recordContradiction']);
      const { askOpen, askedAt, bell } = context;
      expect(context).to.deep.equal({ ...old, askOpen, askedAt, bell });
    }
  }
  checkMoney(step, status);
  checkRefunded(step, status);
  checkAsks(step, past, context);
  expect(
    step.history.asked.pushPrompt ?? 0,
    'a prompt is pushed again only when nothing was sent',
  ).to.be.at.most(1 + (step.history.taken['push.notAttempted'] ?? 0));
}

/** What goes back is never more than came in, and nothing that is on its way is taken back twice. */
function checkRefunded({ before, move, after, history }: Step, status: string): void {
  const { refundedTzs, refundsOpen } = after.context as unknown as CollectionContext;
  const isOrdered = names(after).includes('openRefund');
  if (isOrdered) expect([status, move.event.type.split('.')[1]]).to.deep.equal(['succeeded', 'refunded']);
  expect(refundedTzs, 'what is on its way back is counted').to.be.at.least(1_000 * refundsOpen);
  expect(refundsOpen, 'each refund ends once').to.be.within(0, history.asked.openRefund ?? 0);
  if (names(after).includes('reverseCapture')) expect(before!.context.refundsOpen).to.equal(0);
}

/** A return that was ordered ends by the network's word, or a person's: never because nobody knows. */
function checkReturn(before: Position | undefined, move: Move, after: Position): void {
  if (!before?.state.includes('latePaid.returning') || after.state.includes('latePaid.returning')) return;
  const old = before.context as unknown as CollectionContext;
  const { type, askedAt } = move.event as { type: string; askedAt?: number };
  if (after.state.endsWith('latePaid.returned')) {
    expect(type).to.match(/^(ask\.reversed|reverse\.succeeded|operator\.confirmedReturn)$/);
    return;
  }
  expect([after.state.endsWith('latePaid.held'), type], 'back').to.deep.equal([true, 'ask.succeeded']);
  expect([old.returnsOpen, old.returnRefused], 'nothing is under way').to.deep.equal([0, true]);
  const knownMs = askedAt! - old.returnSentAt!;
  expect(knownMs, 'and the network would know').to.be.at.least(old.terms.notFoundGraceMs);
}

function checkMoney({ before, move, after, history }: Step, status: string): void {
  const times = (action: string) => history.asked[action] ?? 0;
  const captured = times('postCapture');
  const late = times('postLateReceipt');
  const [released, returned, reversed] = [times('releaseLate'), times('postReturn'), times('reverseCapture')];
  expect(captured + late, 'money is received at most once').to.be.at.most(1);
  expect(released + returned, 'late money goes one way').to.be.at.most(late);
  expect(captured + released, 'credited when succeeded').to.equal(status === 'succeeded' ? 1 : 0);
  expect(reversed, 'reversed').to.equal(after.state === 'succeeded.reversed' ? 1 : 0);
  const isLate = after.state.includes('latePaid');
  if (isLate || status !== 'succeeded') expect(late, 'late money in latePaid').to.equal(isLate ? 1 : 0);
  checkReturn(before, move, after);
  expect(returned, 'returned').to.equal(after.state.endsWith('latePaid.returned') ? 1 : 0);
  if (names(after).includes('postLateReceipt')) {
    expect(alerts(after), 'operators hear of it').to.deep.equal(['late_payment']);
  }
}

type Asks = Pick<CollectionContext, 'askOpen' | 'bell' | 'askedAt'> & { terms: { askSpacingMs: number } };

function checkAsks({ move, after, history }: Step, past: History, c: Asks) {
  expect(history.openAsks, 'at most one ask at a time').to.be.at.most(1);
  expect(c.askOpen, 'askOpen').to.equal(history.openAsks === 1);
  expect(c.bell && !c.askOpen, 'a bell that nobody answers').to.equal(false);
  if (names(after).some((name) => asking.includes(name))) {
    expect(c.askedAt, 'not before now').to.be.at.least(move.event.at);
    expect(c.askedAt, 'spaced').to.be.at.least(past.lastAskedAt + c.terms.askSpacingMs);
  }
}

const payoutEnds = ['paid', 'failed', 'cancelled', 'returned'];
/** What proves, or lets a person say, that a payout was not paid. */
const unpaid =
  /^(send\.failed|ask\.failed|send\.notAttempted|operator\.(resolved|refused)|merchant\.cancelled|xstate\.after\.approvalDeadline.*)$/;
/** Nothing has left the house in these states, so the merchant may still take it back. */
const unsent = /^created\.(awaitingApproval|awaitingExport|sending\.backingOff)$/;

function checkPayout(step: Step, past: History): void {
  const { before, move, after, history } = step;
  const context = after.context as unknown as PayoutContext;
  const [status, from] = [statusOf(after), before ? statusOf(before) : 'created'];
  const times = (action: string) => history.asked[action] ?? 0;
  const isNew = status !== from;
  expect(context.completedAt !== null, 'ended, and only that, is completed').to.equal(status !== 'created');
  expect(context.failureCode !== null, 'failed, and only that, has a code').to.equal(status === 'failed');
  expect(context.cancelledBy !== null, 'cancelled, and only that, by somebody').to.equal(
    status === 'cancelled',
  );
  expect(context.returnedAt !== null, 'returnedAt').to.equal(status === 'returned');
  const told = isNew && status !== 'cancelled' ? 1 : 0;
  for (const action of ['recordEvent', 'openDeliveries'])
    expect(names(after).filter((each) => each === action).length, action).to.equal(told);
  // The money: held once, and out of reserved once, whichever way.
  expect(times('holdMoney'), 'held').to.equal(1);
  const [paid, released] = [times('postPaid'), times('releaseMoney')];
  expect(paid + released, 'held money goes one way').to.equal(status === 'created' ? 0 : 1);
  expect(times('postFoundPaid'), 'found paid after a release').to.be.at.most(released);
  expect(context.late, 'late').to.equal(times('postFoundPaid') === 1);
  const isOut = paid + times('postFoundPaid') - times('postReturned');
  expect(isOut, 'with the merchant').to.equal(status === 'paid' ? 1 : 0);
  if (isNew && (status === 'failed' || status === 'cancelled'))
    expect(move.event.type, 'ended unpaid').to.match(unpaid);
  if (isNew && status === 'cancelled') expect(before!.state, 'nothing was sent').to.match(unsent);
  if (before && payoutEnds.includes(from) && isNew)
    expect(`${from} ${status}`, 'after its end').to.be.oneOf([
      'paid returned',
      'failed paid',
      'cancelled paid',
    ]);
  if (move.event.type === 'ask.notFound')
    expect(after.state, 'not found ends nothing').to.equal(before!.state);
  checkApproval(step, context);
  checkAsks(step, past, context);
  expect(times('sendMoney'), 'sent again only when nothing was sent').to.be.at.most(
    1 + (history.taken['send.notAttempted'] ?? 0),
  );
  expect(context.file !== null, 'in a file').to.equal((history.taken['operator.exported'] ?? 0) > 0);
  expect(history.taken['operator.exported'] ?? 0, 'in one file').to.be.at.most(1);
  if (context.isByHand) expect([times('sendMoney'), times('askPayout')], 'by hand').to.deep.equal([0, 0]);
}

/** Money goes to what another operator has confirmed and what has rested, and to nothing else. */
/** It pays at its time, on no day twice, on days of its plan, and tells people of an obstacle once. */
function checkSchedule({ before, after }: Step): void {
  const { dueAtMs, doneDay, plan, dayTimeMs, pausedBy } = after.context as unknown as ScheduleContext;
  const past = before?.context as ScheduleContext | undefined;
  if (after.state === 'awaitingDay') {
    const sinceMidnight = (dueAtMs + 3 * 3_600_000) % 86_400_000;
    if (past?.dueAtMs !== dueAtMs) expect(sinceMidnight, 'its time of the day').to.equal(dayTimeMs);
    const day = Math.floor((dueAtMs + 3 * 3_600_000) / 86_400_000);
    if (doneDay !== null) expect(day, 'not again on a day that is done').to.be.above(doneDay);
    const weekday = new Date(day * 86_400_000).getUTCDay() || 7;
    if (plan.interval === 'weekdays') expect(weekday).to.be.below(6);
    if (plan.interval === 'weekly') expect(weekday).to.equal(plan.weekday);
  }
  const isTold = names(after).includes('raiseAlert');
  if (isTold) expect([after.state, past?.pausedBy === pausedBy]).to.deep.equal(['paused', false]);
  if (names(after).includes('payOut')) expect(after.state).to.equal('paying');
}

function checkDestination({ before, after }: Step): void {
  const { confirmedBy, enteredBy, needsSecond, restMs, usableAt, confirmedAt, removedAt } =
    after.context as unknown as DestinationContext;
  const isConfirmed = confirmedBy !== null;
  if (isConfirmed && needsSecond) expect(confirmedBy, 'confirmed by another').not.to.equal(enteredBy);
  if (isConfirmed) expect(usableAt! - confirmedAt!, 'the rest').to.equal(restMs);
  if (after.state === 'active') {
    expect(isConfirmed, 'confirmed').to.equal(true);
    expect(after.now, 'rested').to.be.at.least(usableAt!);
  }
  expect(removedAt !== null, 'removedAt').to.equal(after.state === 'removed');
  if (before?.state === 'removed') expect(after.state, 'for good').to.equal('removed');
}

/** Nothing leaves the house unapproved, and nobody approves their own. */
function checkApproval({ after, history }: Step, { needsApproval, madeBy, approvedBy }: PayoutContext): void {
  const isApproved = approvedBy !== null;
  if (isApproved) expect(approvedBy, 'approved by another').not.to.equal(madeBy);
  const hasLeft = (history.asked.sendMoney ?? 0) > 0 || (history.taken['operator.exported'] ?? 0) > 0;
  if (needsApproval && hasLeft) expect(isApproved, 'approved').to.equal(true);
  if (!needsApproval) expect(after.state).not.to.equal('created.awaitingApproval');
}

function checkDelivery({ before, move, after, history }: Step): void {
  const context = after.context as unknown as DeliveryContext;
  const isPending = after.state.startsWith('pending');
  const entered = isPending && !before?.state.startsWith('pending');
  const isAttempt = /^attempt\.(succeeded|failed)$/.test(move.event.type) && after.taken.length > 0;
  const isQuiet = move.event.type === 'attempt.succeeded' && move.event.endpointActive === true;
  expect(names(after).includes('postWebhook'), 'one attempt per entry').to.equal(entered);
  expect(names(after).includes('recordAttempt'), 'every attempt is kept').to.equal(isAttempt);
  expect(names(after).includes('tellEndpoint'), 'the endpoint hears').to.equal(isAttempt && !isQuiet);
  const made = history.asked.recordAttempt ?? 0;
  expect(context.tries, 'numbers have no gap').to.equal(made + (isPending ? 1 : 0));
  expect(context.attempt, 'the schedule').to.be.within(0, context.delaysMs.length + 1);
  if (after.state === 'held') expect(context.heldAt, 'heldAt').to.be.a('number');
  if (after.state === 'waiting') {
    expect(after.timers[0]!.dueAt, 'retryAt').to.equal(Math.max(context.retryAt!, after.now));
  }
  if (/^(delivered|failed|canceled)$/.test(after.state)) {
    expect(after.timers, 'rests').to.deep.equal([]);
    expect([context.retryAt, context.heldAt], 'nothing is waited for').to.deep.equal([null, null]);
  }
  if (after.state === 'held') expect(context.retryAt, 'held').to.equal(null);
  if (/^(waiting|failed)$/.test(after.state)) expect(context.reason, 'why').to.be.a('string');
  if (after.state === 'delivered') expect(context.reason, 'delivered').to.equal(null);
  if (before?.state === 'canceled') expect(after.state).to.equal('canceled');
  if (before?.state === 'pending.extra') {
    expect(context.attempt, 'outside the schedule').to.equal(before.context.attempt);
  }
}

function checkEndpoint({ before, move, after }: Step): void {
  const context = after.context as unknown as EndpointContext;
  const from = before?.state ?? 'active';
  const { state } = after;
  if (state === 'active') {
    const healthy = { failingSince: null, lastFailureAt: null, failures: 0, disabledAt: null, probes: 0 };
    expect(context, 'active').to.include(healthy);
  }
  if (/^(failing|lastTry)/.test(state)) expect(context.failingSince).to.be.a('number');
  expect(context.disabledAt !== null, 'disabledAt').to.equal(
    state.startsWith('disabled') || (state === 'deleted' && context.disabledAt !== null),
  );
  const isDisabling = state.startsWith('disabled.automatic') && !from.startsWith('disabled.automatic');
  expect(alerts(after).includes('endpoint_disabled'), 'an alert per disablement').to.equal(isDisabling);
  if (isDisabling) {
    expect(move.event.at - context.failingSince!, '72 h').to.be.at.least(context.disableAfterMs);
  }
  if (!context.autoProbe) {
    expect(names(after), 'never probed').not.to.include('probeDelivery');
    expect(state).not.to.match(/lastTry|probing/);
  }
  if (from === 'deleted') expect(state).to.equal('deleted');
  if (from === 'disabled.operator' && state !== from) {
    expect(move.event.type).to.match(/^(operator\.enabled|(operator|merchant)\.deleted)$/);
  }
  if (from.startsWith('disabled') && state === 'active') expect(names(after)).to.include('releaseHeld');
  if (move.event.type !== 'attempt.failed') return;
  if (move.event.charged === false) {
    expect(after.taken, 'our own faults are not charged').to.deep.equal([]);
  } else if (after.taken.length > 0) {
    const failures = from === 'active' ? 1 : (before!.context.failures as number) + 1;
    expect(context, 'each counts').to.include({ failures, lastFailureAt: move.event.at });
  }
}

function checkSettlement({ before, move, after, history }: Step): void {
  const context = after.context as unknown as SettlementContext;
  const settled = history.asked.settleBucket ?? 0;
  const parts = Object.values(context.parts).reduce((sum, count) => sum + count, 0);
  expect(parts, 'a part number for each bucket').to.equal(settled);
  expect(context.settledTzs).to.equal(settled * 4_900);
  expect(after.state === 'settled').to.equal(settled > 0);
  const isEarly = names(after).includes('settleBucket') && move.event.at < context.dueAtMs;
  if (isEarly) expect([context.isTest, move.event.type]).to.deep.equal([true, 'merchant.settled']);
  if (before?.state === 'held') expect(names(after)).to.deep.equal([]);
}

function checkBreaker({ before, move, after }: Step): void {
  const context = after.context as unknown as BreakerContext;
  const from = before?.state ?? 'closed';
  const isOpening = from === 'closed' && after.state.startsWith('open');
  const byFailures = isOpening && move.event.type === 'rail.failed';
  expect(context.openedAt !== null, 'openedAt').to.equal(after.state !== 'closed');
  expect(alerts(after), 'an alert when it opens by itself').to.deep.equal(
    byFailures ? [move.event.isRefusal ? 'rail_refused' : 'rail_unreachable'] : [],
  );
  expect(names(after).includes('probeRail'), 'half-open asks once').to.equal(
    after.state === 'halfOpen' && from !== 'halfOpen',
  );
  if (after.state === 'closed') expect(context.failures).to.be.below(context.terms.failuresMax);
  if (from !== 'closed' && after.state === 'closed') {
    expect(move.event.type, 'closed by a probe or an operator').to.match(
      /^(probe\.succeeded|operator\.closed)$/,
    );
    const byProbe = move.event.type === 'probe.succeeded';
    expect([context.failures, context.isOnTrial], 'on trial after a probe').to.deep.equal([0, byProbe]);
    if (!byProbe) expect(context.probes).to.equal(0);
  }
  if (after.state === 'open.held') expect(after.timers, 'held open').to.deep.equal([]);
}

function checkRefund({ before, move, after, history }: Step): void {
  const context = after.context as unknown as RefundContext;
  const status = statusOf(after);
  const times = (action: string) => history.asked[action] ?? 0;
  expect(times('holdMoney'), 'held once, when it begins').to.equal(1);
  if (!before) expect(names(after).slice(0, 2)).to.deep.equal(['holdMoney', 'sendRefund']);
  expect(times('postPaid') + times('releaseMoney'), 'what is held goes one way').to.equal(
    status === 'created' ? 0 : 1,
  );
  expect(times('postFoundPaid'), 'found paid only after its release').to.be.at.most(times('releaseMoney'));
  expect(times('postPaid') + times('postFoundPaid'), 'paid').to.equal(status === 'succeeded' ? 1 : 0);
  const isEnd = before !== undefined && statusOf(before) !== status;
  for (const action of ['recordEvent', 'openDeliveries', 'tellCollection'])
    expect(names(after).filter((each) => each === action).length, action).to.equal(isEnd ? 1 : 0);
  expect(times('sendRefund'), 'sent again only when nothing was sent').to.be.at.most(
    1 + (history.taken['reverse.notAttempted'] ?? 0),
  );
  expect(context.completedAt !== null, 'completed').to.equal(status !== 'created');
  expect(context.failureCode !== null, 'failed, and only that, has a code').to.equal(status === 'failed');
  if (isEnd && status === 'failed')
    expect(move.event.type, 'never because nobody knows').to.match(
      /^(reverse\.(failed|notAttempted)|operator\.resolved)$/,
    );
  if (isEnd && move.event.type === 'reverse.notAttempted') expect(before.context.wasSent).to.equal(false);
  expect(history.openAsks, 'at most one ask at a time').to.be.at.most(1);
  expect(context.askOpen, 'askOpen').to.equal(history.openAsks === 1);
  expect(context.bell && !context.askOpen, 'a bell that nobody answers').to.equal(false);
}

function checkReplay({ before, move, after, history }: Step): void {
  const context = after.context as unknown as ReplayContext;
  const isEnded = !after.state.startsWith('running');
  expect(context.endedAt !== null, 'endedAt').to.equal(isEnded);
  if (isEnded) expect(after.timers, 'rests').to.deep.equal([]);
  if (before && !before.state.startsWith('running')) {
    expect(after.state, 'ended for good').to.equal(before.state);
    expect(context.endedAt).to.equal(before.context.endedAt);
  }
  const pages = history.asked.replayPage ?? 0;
  expect(pages, 'one page at a time').to.be.at.most(1 + (history.taken['page.replayed'] ?? 0));
  if (move.event.type === 'page.replayed' && after.taken.length > 0) {
    expect(context.cursor, 'the place is kept').to.equal(move.event.cursor ?? before!.context.cursor);
  }
}

const stages = ['importing', 'matching', 'open', 'closed'];

function checkReconciliation({ before, move, after }: Step): void {
  const context = after.context as unknown as ReconciliationContext;
  const stageOf = ({ state }: Position) => stages.indexOf(state.split('.', 1)[0]!);
  if (before) expect(stageOf(after), 'never goes back').to.be.at.least(stageOf(before));
  const isClosed = after.state === 'closed';
  expect(context.endedAt !== null, 'endedAt').to.equal(isClosed);
  if (isClosed) expect(context.agreement?.unexplainedTzs, 'closed where both agree').to.equal(0);
  if (isClosed && before?.state !== 'closed') {
    expect(before!.context.isClosing, 'a person closes it').to.equal(true);
  }
  if (names(after).includes('postCharges')) expect(move.event.type).to.equal('lines.matched');
  const isTaken = after.taken.length > 0;
  if (isTaken && move.event.type === 'page.imported') {
    const imported = before!.context.imported as number;
    expect(context.imported).to.equal(imported + (move.event.imported as number));
  }
  const pages = names(after).filter((name) => /^(importPage|match)/.test(name));
  expect(pages.length, 'one page at a time').to.be.at.most(1);
}

function checkDifference({ before, after, history }: Step): void {
  const context = after.context as unknown as DifferenceContext;
  const times = (action: string) => history.asked[action] ?? 0;
  const open = times('followStatement') - times('releaseStatement');
  expect(open, 'what is followed is released at most once').to.be.within(0, 1);
  expect(context.isFollowed, 'isFollowed').to.equal(open === 1);
  const isEnded = /^(explained|resolved)$/.test(after.state);
  expect(context.endedAt !== null, 'endedAt').to.equal(isEnded);
  if (isEnded) expect(after.timers, 'rests').to.deep.equal([]);
  if (after.state === 'explained') expect(open, 'nothing is left in suspense').to.equal(0);
  if (before && /^(explained|resolved)$/.test(before.state)) {
    expect(after.state, 'ended for good').to.equal(before.state);
  }
  if (before && !before.state.startsWith('awaitingOperator') && after.state.startsWith('awaitingOperator')) {
    const isTold = alerts(after).length === 1 || context.kind === 'unclaimed' || before.state === 'returning';
    expect(isTold, 'a person hears of it').to.equal(true);
  }
}
