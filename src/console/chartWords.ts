import { type Html, html } from '../pages/pages.ts';
import { spaced } from './words.ts';

/** What charts say, as people say it: states, timers and events. What operators may tell them is in `operatorEvents.ts`. */

/** `created.underReview.polling` → `under review`: the part that says most. */
export function stateWords(state: string): string {
  return stateNames[state] ?? spaced(state.split('.').at(-1)!);
}

const stateNames: Readonly<Record<string, string>> = {
  'created.pushing.sending': 'sending the prompt',
  'created.pushing.backingOff': 'waiting to try again',
  'created.awaitingApproval.waiting': 'awaiting approval',
  'created.awaitingApproval.noticed': 'called back, asking',
  'created.confirming.polling': 'asking the network',
  'created.underReview.polling': 'under review',
  'created.underReview.resting': 'under review',
  due: 'to be settled',
  'succeeded.standing': 'succeeded',
  'succeeded.reversed': 'reversed',
  'failed.watching': 'failed',
  'failed.resting': 'failed',
  'expired.watching': 'expired',
  'expired.resting': 'expired',
  ...Object.fromEntries(
    ['failed', 'expired'].flatMap((end) => [
      [`${end}.latePaid.held`, 'paid late, held'],
      [`${end}.latePaid.returning`, 'being returned'],
      [`${end}.latePaid.returning.polling`, 'being returned'],
      [`${end}.latePaid.returned`, 'returned'],
    ]),
  ),
  'created.awaitingExport': 'awaiting the bank’s file',
  'created.exported': 'in a file for the bank',
  'created.awaitingBank': 'with the bank',
  'created.sending.calling': 'being sent',
  'created.sending.backingOff': 'waiting to try again',
  'paid.watching': 'paid',
  'paid.resting': 'paid',
  entered: 'awaiting a second person',
  awaitingDay: 'until its next day',
  paying: 'making the payout',
  'pending.scheduled': 'being sent',
  'pending.extra': 'being sent',
  waiting: 'waiting to retry',
  'failing.fresh': 'failing',
  'failing.warned': 'failing, warned',
  'failing.warnedTwice': 'failing, warned twice',
  lastTry: 'last try',
  'disabled.automatic.probing': 'disabled, probing',
  'disabled.automatic.resting': 'disabled',
  'disabled.operator': 'disabled by operator',
  'running.paging': 'running',
  'running.pausing': 'running',
  halfOpen: 'half open',
  'matching.lines': 'looking lines up',
  'matching.books': 'looking entries up',
  'matching.waiting': 'waiting, too young',
  'open.comparing': 'comparing balances',
  'open.resting': 'to be closed',
  'asking.polling': 'asking the network',
  'awaitingOperator.looking': 'awaiting a person',
  'open.waiting': 'open',
  'open.held': 'held open',
};

/** Good, bad, needing somebody, under way or at rest: the colour of a state. */
export type Tone = 'good' | 'bad' | 'care' | 'busy' | 'calm';

export function toneOf(state: string): Tone {
  if (/underReview|latePaid\.(held|returning)|^failing|lastTry|^held$|halfOpen|^entered/.test(state))
    return 'care';
  if (/^open\.resting|^awaitingOperator/.test(state)) return 'care';
  if (/^(succeeded\.standing|delivered|settled|done|active|closed|paid|explained|resolved)/.test(state))
    return 'good';
  if (/^open\.comparing/.test(state)) return 'busy';
  if (/^(failed|expired|disabled|open|returned)|reversed|quarantined/.test(state)) return 'bad';
  if (/^(created|pending|waiting|running|due|resting|importing|matching|asking|awaitingFile)/.test(state))
    return 'busy';
  return 'calm';
}

export function pill(state: string): Html {
  return html`<span class="pill ${toneOf(state)}" title="${state}">${stateWords(state)}</span>`;
}

/** An event's type as people say it; what has no words of its own is its own name. */
export function eventWords(type: string): string {
  const timer = timerWords(type);
  return timer ? `timer: ${timer}` : (eventNames[type] ?? type);
}

/** What a timer is for; undefined of what is none. */
export function timerWords(type: string): string | undefined {
  const [, timer] = /^xstate\.after\.(\w+)/.exec(type) ?? [];
  return timer && (timerNames[timer] ?? spaced(timer));
}

const timerNames: Readonly<Record<string, string>> = {
  approvalDeadline: 'end of waiting for an approval, cancelled',
  sendRetryDelay: 'next try to reach the network',
  bankDeadline: 'end of waiting for the bank, a person looks',
  rest: 'end of its rest, usable',
  answerTimeout: 'end of waiting for the network’s answer',
  pushRetryDelay: 'next try to reach the network',
  approvalDelay: 'next question to the network',
  noticeDelay: 'next question after a callback',
  approvalTimeout: 'end of the prompt on the phone',
  pollDelay: 'next question to the network',
  confirmDeadline: 'end of asking, a person decides',
  reviewDelay: 'next question to the network',
  returnDelay: 'next question about the return',
  watchDelay: 'next look for a late payment',
  lookAgainDelay: 'last question, whether that is still so',
  failureWatchDelay: 'last look for a late payment',
  retryDelay: 'next attempt',
  holdTimeout: 'end of holding, given up',
  firstWarning: 'first warning to operators',
  secondWarning: 'second warning to operators',
  disableDeadline: 'disabled, unless it answers',
  lastTryTimeout: 'end of the last try',
  probeDelay: 'next try whether it answers',
  midnight: 'midnight in Dar es Salaam',
  pageDelay: 'next page',
  openDelay: 'next try whether the network answers',
  probeTimeout: 'end of waiting for the network’s answer',
  judgeDelay: 'the newest lines are old enough',
  askDelay: 'next question to the network',
  silence: 'end of asking, a person decides',
  fileDelay: 'end of waiting for the next file',
  lookDelay: 'next look at the books',
  dueDelay: 'its next day',
  pauseDelay: 'next look, whether something is in the way still',
};

const eventNames: Readonly<Record<string, string>> = {
  created: 'created',
  'push.accepted': 'the network took the prompt',
  'push.succeeded': 'the network says paid',
  'push.failed': 'the network says failed',
  'push.notAttempted': 'the network was not reached',
  'push.unknown': 'the network’s answer is unclear',
  'ask.undecided': 'asked: undecided yet',
  'ask.succeeded': 'asked: paid',
  'ask.failed': 'asked: failed',
  'ask.expired': 'asked: expired',
  'ask.reversed': 'asked: reversed',
  'ask.notFound': 'asked: not found',
  'rail.noticed': 'the network called back',
  'reverse.succeeded': 'the money went back',
  'reverse.accepted': 'the network will send the money back',
  'reverse.failed': 'the money did not go back',
  'reverse.unknown': 'unclear whether the money went back',
  'reverse.notAttempted': 'the network was not reached',
  'ask.standing': 'asked: not sent back, as far as it knows',
  'merchant.refunded': 'the merchant: gives money back',
  'operator.refunded': 'operator: gives money back',
  'refund.succeeded': 'a refund was made',
  'refund.failed': 'a refund failed',
  'refund.foundPaid': 'a failed refund was made all the same',
  'payout.made': 'the payout of the day was made',
  'payout.skipped': 'too little for a payout',
  'payout.hindered': 'something is in the way of the payout',
  'operator.planned': 'operator: gave it another plan',
  'operator.stopped': 'operator: stopped it',
  'operator.started': 'operator: lets it go on',
  'operator.asked': 'operator: ask the network',
  'operator.resolved': 'operator: decided the outcome',
  'operator.reversed': 'operator: reversed',
  'operator.acceptedLate': 'operator: accepted the late payment',
  'operator.returnedLate': 'operator: sends the late payment back',
  'operator.retried': 'operator: tries the return again',
  'operator.confirmedReturn': 'operator: the money went back',
  'send.accepted': 'the network took the payout',
  'send.paid': 'the network says paid',
  'send.failed': 'the network says failed',
  'send.notAttempted': 'the network was not reached',
  'send.unknown': 'the network’s answer is unclear',
  'ask.paid': 'asked: paid',
  'ask.returned': 'asked: it came back',
  'statement.found': 'a statement shows it',
  'statement.returned': 'a statement shows that it came back',
  'merchant.cancelled': 'the merchant: cancelled',
  'operator.approved': 'operator: approved',
  'operator.refused': 'operator: refused',
  'operator.exported': 'operator: wrote it into a file for the bank',
  'operator.sent': 'operator: the bank has it',
  'operator.foundPaid': 'operator: it was paid after all',
  'operator.returned': 'operator: it came back',
  'operator.confirmed': 'operator: confirmed',
  'operator.removed': 'operator: removed',
  'operator.resent': 'operator: sent again',
  'merchant.resent': 'the merchant: sent again',
  'operator.enabled': 'operator: enabled',
  'operator.disabled': 'operator: disabled',
  'operator.updated': 'operator: changed',
  'operator.deleted': 'operator: deleted',
  'merchant.enabled': 'the merchant: enabled',
  'merchant.updated': 'the merchant: changed',
  'merchant.deleted': 'the merchant: deleted',
  'operator.held': 'operator: held back',
  'operator.released': 'operator: released',
  'operator.canceled': 'operator: stopped',
  'operator.opened': 'operator: stops calling the network',
  'operator.closed': 'operator: lets calls go on',
  'operator.closedDay': 'operator: closes the day',
  'operator.sentBack': 'operator: it was sent back, a statement will show it',
  'attempt.succeeded': 'answered 2xx',
  'attempt.failed': 'attempt failed',
  'attempt.withheld': 'withheld: endpoint disabled',
  'attempt.canceled': 'canceled: endpoint deleted',
  'delivery.released': 'released',
  'delivery.probed': 'sent as a probe',
  'delivery.recovered': 'sent again by a recovery',
  'probe.started': 'probe sent',
  'probe.none': 'nothing to probe with',
  'release.more': 'releasing held deliveries',
  'release.done': 'all released',
  'rail.failed': 'the network failed',
  'rail.answered': 'the network answered',
  'probe.succeeded': 'a probe was answered',
  'probe.failed': 'a probe was not answered',
  'settlement.due': 'a part was settled',
  'merchant.settled': 'the merchant had test money settled',
  'buckets.read': 'the day was read',
  'page.replayed': 'a page was sent again',
  'statement.ruled': 'proved by the network’s statement, say two people',
  'page.imported': 'a page of lines was kept',
  'lines.matched': 'a page of lines was looked for in the books',
  'books.matched': 'a page of entries was looked for among the lines',
  'balances.compared': 'both balances were compared',
  'books.agreed': 'books and statement agree',
  'books.unmoved': 'the books have not changed',
  'line.met': 'a later line is the other side of it',
  'rail.confirmed': 'the network says it was paid',
  'rail.absent': 'there is nobody to ask, and the next statement is waited for',
  'rail.denied': 'the network says it was not, or was taken back',
  'collection.ruled': 'the payment took it',
  'collection.refused': 'the payment did not take it',
  'operator.ruled': 'operator: this payment’s money',
  'operator.accepted': 'operator: the books follow the statement',
};
