import { type Html, html, type Part } from '../pages/pages.ts';
import { stateWords } from './chartWords.ts';
import type { Visit } from './page.ts';
import type { Actor, Merchant } from './shapes.ts';
import { ago, label, left, money, reasonWords, weekdays } from './words.ts';

/** One sentence in plain words of where an actor stands. */
export async function sentenceOf(visit: Visit, actor: Actor): Promise<Html> {
  const says = sentences[actor.machine as Told];
  const merchant = actor.merchant_id.startsWith('mer_')
    ? await merchantOf(visit, actor.merchant_id)
    : undefined;
  return says({ visit, actor, name: merchant?.name ?? 'the house' });
}

export function merchantOf(visit: Visit, id: string): Promise<Merchant> {
  return visit.read('/admin/merchants/:id', { params: { id } });
}

interface Subject {
  visit: Visit;
  actor: Actor;
  /** The merchant's. */
  name: string;
}

type Says = (subject: Subject) => Html | Promise<Html>;
type Told = keyof typeof sentences;

/** By machine: each has one. */
export const sentences = {
  collection: ({ visit, actor, name }) => {
    const { data, state } = actor;
    const what = html`${money(Number(data.amountTzs))} from ${String(data.phone ?? 'a customer')} for ${name}`;
    const end = collectionEnds(actor)(state);
    if (end) return html`${what} ${end}.`;
    const waits = collectionWaits[state] ?? (() => stateWords(state));
    return html`${what}: ${waits(untilDue(visit, actor))}.`;
  },
  delivery: async ({ visit, actor }) => {
    const { url } = await visit.read('/admin/endpoints/:id', {
      params: { id: String(actor.data.endpointId) },
    });
    const tries = Number(actor.context.tries);
    const ends: Readonly<Record<string, Part>> = {
      pending: 'is being sent',
      waiting: html`failed (${reasonWords(String(actor.context.reason))}) and comes again in ${untilDue(visit, actor)}`,
      held: 'is held, since its endpoint is disabled',
      delivered: `arrived with attempt ${tries}`,
      failed: `was given up (${reasonWords(String(actor.context.reason ?? 'no reason'))})`,
      canceled: 'was dropped, since its endpoint was deleted',
    };
    const attempts = tries > 1 && actor.state !== 'delivered' ? `, ${tries} attempts` : '';
    return html`${String(actor.data.type)} to ${url} ${ends[actor.state.split('.', 1)[0]!]}${attempts}.`;
  },
  endpoint: ({ visit, actor, name }) => {
    const { state, context } = actor;
    const since = (at: unknown) => (typeof at === 'number' ? html` for ${ago(at, visit.nowMs)}` : '');
    const deadline = Number(context.failingSince) + Number(context.disableAfterMs);
    const how = state.startsWith('failing')
      ? html`has been failing${since(context.failingSince)}; it is disabled in ${left(deadline, visit.nowMs)} unless it answers`
      : state.startsWith('disabled.operator')
        ? html`was disabled by an operator; its deliveries are held`
        : state.startsWith('disabled')
          ? html`is disabled${since(context.disabledAt)} because it kept failing; its deliveries are held`
          : {
              active: 'answers well',
              lastTry: 'is tried a last time before it is disabled',
              deleted: 'is deleted',
            }[state];
    return html`${String(actor.data.url)} of ${name} ${how}.`;
  },
  settlement: ({ visit, actor, name }) => {
    const { state, context, data } = actor;
    const how: Readonly<Record<string, Part>> = {
      due: html`is settled in ${left(Number(context.dueAtMs), visit.nowMs)}`,
      held: 'is held back by an operator',
      settled: html`is settled: ${money(Number(context.settledTzs))}`,
    };
    return html`The money of ${name} for ${String(data.date)} ${how[state]}.`;
  },
  replay: ({ actor }) => {
    const { replayed } = actor.context;
    const how = { done: 'is done', canceled: 'was stopped' }[actor.state] ?? 'is under way';
    return html`Sending again what failed: ${String(replayed)} of ${String(actor.data.total)} deliveries so far; it ${how}.`;
  },
  payout: ({ visit, actor, name }) => {
    const { data, state, context } = actor;
    const { kind, name: holder, number, bank } = data.account as Account;
    const where = html`${label(kind)} ${number}${bank ? html` at ${bank}` : ''} of ${holder}`;
    const what = html`${money(Number(data.amountTzs))} for ${name} to ${where}`;
    const ends: Readonly<Record<string, Part>> = {
      paid: html`was paid${context.late ? ', after it had been given up' : ''}${context.receipt ? html` (receipt ${String(context.receipt)})` : ''}`,
      failed: html`failed: ${label(String(context.failureCode ?? 'no reason'))}`,
      cancelled: html`was cancelled by the ${String(context.cancelledBy ?? 'operator')}`,
      returned: 'was paid and came back',
    };
    const end = ends[state.split('.', 1)[0]!];
    return html`${what} ${end ?? html`is ${moneyOutWaits[state]?.(untilDue(visit, actor)) ?? stateWords(state)}`}.`;
  },
  refund: ({ visit, actor, name }) => {
    const { data, state, context } = actor;
    const what = html`${money(Number(data.amountTzs))} of ${name} back to ${String(data.phone ?? 'the customer')}`;
    const receipt = context.receipt ? html` (receipt ${String(context.receipt)})` : '';
    const ends: Readonly<Record<string, Part>> = {
      succeeded: html`went back${context.late ? ', after it had been given up' : ''}${receipt}`,
      failed: html`did not go back: ${label(String(context.failureCode ?? 'no reason'))}`,
    };
    const waits = moneyOutWaits[state] ?? (() => stateWords(state));
    return html`${what} ${ends[state.split('.', 1)[0]!] ?? html`is ${waits(untilDue(visit, actor))}`}.`;
  },
  schedule: ({ visit, actor, name }) => {
    const { state, context } = actor;
    const { interval, weekday } = context.plan as { interval: string; weekday: number | null };
    const when = weekday === null ? interval : `each ${weekdays[weekday - 1]}`;
    const how: Readonly<Record<string, Part>> = {
      awaitingDay: html`; the next time in ${untilDue(visit, actor)}`,
      paying: '; it is being paid now',
      paused: html`, and something is in the way (${label(String(context.pausedBy))}): looked at again in ${untilDue(visit, actor)}`,
      stopped: ', which an operator has stopped',
    };
    return html`${name} is paid out by itself, ${when}${how[state] ?? ''}.`;
  },
  reconciliation: ({ actor }) => {
    const { data, state } = actor;
    return html`The statement of ${String(data.rail)} for ${String(data.date)}, ${String(data.lines)} lines: ${stateWords(state)}.`;
  },
  difference: ({ actor }) => {
    const { kind, effectTzs, rail, receipt } = actor.data;
    const what = html`${money(Number(effectTzs))} that ${String(rail)} has more than the books`;
    return html`${label(String(kind))}${receipt ? html` (receipt ${String(receipt)})` : ''}, ${what}: ${stateWords(actor.state)}.`;
  },
  destination: ({ visit, actor, name }) => {
    const { kind, name: holder, number, bank } = actor.data.account as Account;
    const how: Readonly<Record<string, Part>> = {
      entered: html`was entered by ${String(actor.context.enteredBy)} and waits for somebody else to confirm it`,
      resting: html`rests; money may go there in ${untilDue(visit, actor)}`,
      active: 'may be paid',
      removed: 'was removed',
    };
    return html`${label(kind)} ${number}${bank ? html` at ${bank}` : ''} of ${holder}, for ${name}, ${how[actor.state] ?? stateWords(actor.state)}.`;
  },
  breaker: ({ visit, actor }) => {
    const { state, data } = actor;
    const names: Readonly<Record<string, string>> = {
      push: 'Prompts',
      payout: 'Payouts',
      query: 'Questions',
    };
    const what = `${names[String(data.operation)]} to`;
    const how: Readonly<Record<string, Part>> = {
      closed: 'go out',
      'open.waiting': html`are stopped, since it failed too often; it is tried again in ${untilDue(visit, actor)}`,
      'open.held': 'are stopped by an operator',
      halfOpen: 'are stopped, since it failed too often; it is being tried now',
    };
    return html`${what} ${String(data.rail)} ${how[state] ?? stateWords(state)}.`;
  },
} satisfies Readonly<Record<string, Says>>;

/** As the actor's route shows it. */
interface Account {
  kind: string;
  name: string;
  number: string;
  bank?: string;
}

/** Of payouts and refunds by state; what they are given is the time until the next timer. */
const moneyOutWaits: Readonly<Record<string, (left: Part) => Part>> = {
  'created.awaitingApproval': (left) => html`waiting for an approval; it is cancelled in ${left}`,
  'created.awaitingExport': () => 'waiting for the next file for the bank',
  'created.exported': () => 'in a file for the bank, which nobody has marked as sent',
  'created.awaitingBank': (left) => html`with the bank; somebody has to look in ${left}`,
  'created.sending.calling': () => 'being sent',
  'created.sending.backingOff': (left) =>
    html`not sent yet, since the network was not reached; again in ${left}`,
  'created.confirming.polling': (left) => html`with the network, which is asked again in ${left}`,
  'created.underReview.polling': (left) =>
    html`unclear: a person has to find out whether it was made. The network is asked again in ${left}`,
  'created.underReview.resting': () => 'unclear: a person has to find out whether it was made',
};

/** By state; what they are given is the time until the next timer. */
const collectionWaits: Readonly<Record<string, (left: Part) => Part>> = {
  'created.pushing.sending': () => 'the prompt is on its way to the phone',
  'created.pushing.backingOff': (left) => html`the network was not reached and is tried again in ${left}`,
  'created.awaitingApproval.waiting': (left) => html`waiting for the PIN; the network is asked in ${left}`,
  'created.awaitingApproval.noticed': (left) =>
    html`the network called back and is being asked, again in ${left}`,
  'created.confirming.polling': (left) =>
    html`the network is being asked what became of it, again in ${left}`,
  'created.underReview.polling': (left) =>
    html`nobody can tell whether it was paid: a person has to decide. The network is asked again in ${left}`,
  'created.underReview.resting': () => 'nobody can tell whether it was paid: a person has to decide',
};

function collectionEnds({ context, data }: Actor): (state: string) => Part | undefined {
  const late = context.late ? ', late' : '';
  const ends: Readonly<Record<string, Part>> = {
    'succeeded.standing': html`was paid${late}${context.receipt ? html` (receipt ${String(context.receipt)})` : ''}; the fee is ${money(Number(data.feeTzs))}`,
    'succeeded.reversed': 'was paid, which proved false: the money was taken back',
    'latePaid.held': 'was paid after it had ended; the money is held and a person has to decide',
    'latePaid.returning': 'was paid after it had ended; the money is going back',
    'latePaid.returned': 'was paid after it had ended; the money went back',
    failed: `failed: ${String(context.failureCode ?? 'no reason').replaceAll('_', ' ')}`,
    expired: 'expired: nobody approved it',
  };
  return (state) => {
    const late = state.indexOf('latePaid');
    return ends[late < 0 ? state : state.slice(late)] ?? ends[state.split('.', 1)[0]!];
  };
}

/** The time until the next timer. */
function untilDue(visit: Visit, { timers }: Actor): Html {
  const [next] = [...timers].sort((a, b) => Date.parse(a.due_at) - Date.parse(b.due_at));
  return next ? left(next.due_at, visit.nowMs) : html`a moment`;
}
