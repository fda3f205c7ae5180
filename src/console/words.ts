import { limits } from '../limits.ts';
import { type Html, html, type PieceWords } from '../pages/pages.ts';
import { isoTime } from '../time.ts';

/** How things are written for people: money, times, ids and events. */

/** `TZS 12,000`; a minus is a real one. */
export function money(tzs: number | null | undefined): Html {
  return html`<span class="money">${tzs === null || tzs === undefined ? '–' : `TZS ${figures(tzs)}`}</span>`;
}

/** `1,234,567` */
export function figures(value: number): string {
  return `${value < 0 ? '−' : ''}${Math.abs(value).toLocaleString('en-US', { maximumFractionDigits: 2 })}`;
}

/** `41 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (ms < 1000 && ms > 0) return `${Math.round(ms)} ms`;
  const units: [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = units.findIndex(([each]) => seconds >= each);
  if (first < 0) return '0 s';
  const [size, unit] = units[first]!;
  const [rest, restUnit] = units[first + 1] ?? [0, ''];
  const lesser = rest ? Math.floor((seconds % size) / rest) : 0;
  return `${Math.floor(seconds / size)} ${unit}${lesser ? ` ${lesser} ${restUnit}` : ''}`;
}

/** A moment in Dar es Salaam, with UTC to hover: `21 Nov 17:05:09 EAT`. Every time of the console is in that zone. */
export function moment(at: string | number | null | undefined): Html {
  if (at === null || at === undefined) return html`<span class="quiet">–</span>`;
  const ms = typeof at === 'number' ? at : Date.parse(at);
  return html`<time datetime="${isoTime(ms)}" title="${isoTime(ms)} (UTC)">${eat(ms)}</time>`;
}

const eatFormat = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Africa/Dar_es_Salaam',
  day: '2-digit',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

function eat(ms: number): string {
  return `${eatFormat.format(ms).replace(',', '')} EAT`;
}

/** An hour in Dar es Salaam: `Sat 21 Nov, 13:00`. */
export function hourName(ms: number): string {
  return `${dayName(ms)}, ${typedMoment(ms).slice('yyyy-mm-dd '.length, 'yyyy-mm-dd hh:mm'.length)}`;
}

const dayFormat = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Africa/Dar_es_Salaam',
  weekday: 'short',
  day: 'numeric',
  month: 'short',
});

/** A day in Dar es Salaam: `Sat 21 Nov`. */
export function dayName(ms: number): string {
  return dayFormat.format(ms).replace(',', '');
}

/** A moment as it is typed into a field, in the zone of all others: `2026-11-21 17:05:09`. */
export function typedMoment(ms: number): string {
  return isoTime(ms + limits.eatOffsetMs)
    .slice(0, 'yyyy-mm-dd hh:mm:ss'.length)
    .replace('T', ' ');
}

/** How long ago, counted on by the script. */
export function ago(at: string | number | null | undefined, nowMs: number): Html {
  if (at === null || at === undefined) return html`<span class="quiet">–</span>`;
  const ms = typeof at === 'number' ? at : Date.parse(at);
  const text = span(nowMs - ms);
  return html`<time datetime="${isoTime(ms)}" title="${eat(ms)}" data-since="${ms}">${text}</time>`;
}

/** How long until then, counted down by the script. */
export function left(due: string | number, nowMs: number): Html {
  const ms = typeof due === 'number' ? due : Date.parse(due);
  if (!Number.isFinite(ms)) return html`<span class="quiet">–</span>`;
  const text = ms > nowMs ? span(ms - nowMs) : 'now';
  return html`<time class="countdown" datetime="${isoTime(ms)}" title="${eat(ms)}" data-due="${ms}">${text}</time>`;
}

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

/** `awaitingApproval` → `awaiting approval` */
export function spaced(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, (_all, before, after) => `${before} ${after.toLowerCase()}`);
}

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
};

/** Why an attempt to deliver failed. */
export function reasonWords(reason: string): string {
  return reasonNames[reason] ?? label(reason);
}

const reasonNames: Readonly<Record<string, string>> = {
  timeout: 'no answer in time',
  blocked_address: 'its address is not allowed',
  dns_error: 'its name was not found',
  connect_error: 'no connection',
  tls_error: 'no secure connection',
  redirect: 'it answered with a redirect',
  http_status: 'it answered with an error',
  connection_reset: 'the connection broke',
  invalid_response: 'its answer was no HTTP',
  sender_fault: 'a fault of ours',
  worker_lost: 'a fault of ours',
  endpoint_disabled: 'its endpoint was disabled for too long',
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
  'operator.opened': 'operator: opened',
  'operator.closed': 'operator: closed',
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
  'rail.denied': 'the network says it was not, or was taken back',
  'collection.ruled': 'the payment took it',
  'collection.refused': 'the payment did not take it',
  'operator.ruled': 'operator: this payment’s money',
  'operator.accepted': 'operator: the books follow the statement',
};

/** A list cut in two lines of words: `created_at` → `created at`. */
export function label(name: string): string {
  return spaced(name).replaceAll('_', ' ');
}

/** `col_01K5…9Z0AB`: enough to tell two apart; the whole of it to hover and to copy. */
export function shortId(id: string): Html {
  const text = id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
  return html`<code class="id" title="${id}">${text}</code>`;
}

/** `late.held` → `late held`: what an entry of the books, or a breach of them, is called. */
export function kindWords(kind: string): string {
  return label(kind).replaceAll('.', ' ');
}

/** `2 % + TZS 100, at most TZS 5,000` */
export function feeWords({ bps, fixed, min, max }: FeeTerms): string {
  const parts = [
    [`${bps / 100} %`, fixed ? `TZS ${figures(fixed)}` : ''].filter(Boolean).join(' + '),
    min === null ? '' : `at least TZS ${figures(min)}`,
    max === null ? '' : `at most TZS ${figures(max)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

interface FeeTerms {
  bps: number;
  fixed: number;
  min: number | null;
  max: number | null;
}

/** What lists and forms say by themselves. */
export const pieceWords: PieceWords = {
  newest: 'Newest',
  older: 'Older',
  further: 'Further',
  show: 'Show',
  all: 'All',
  yes: 'yes',
  no: 'no',
  reason: 'reason',
  kept: 'Kept in the audit.',
  sayWhy: 'Say why; it is kept in the audit.',
  tryFirst: 'Try it first',
  byDefault: 'default',
  restores: '“default” restores the default.',
  label,
};
