import { type Html, html } from '../pages/pages.ts';
import { pill } from './chartWords.ts';
import { formOf } from './forms.ts';
import { card, facts } from './layout.ts';
import { idLink } from './links.ts';
import type { RowOf, Visit } from './page.ts';
import type { Destination } from './shapes.ts';
import { label, moment, money, weekdays } from './words.ts';

/** What the merchant's page says and asks about money that is paid out. */
export type Schedule = RowOf<'/admin/merchants/:id/schedules'>;

/** Where the merchant's money may go, and that some of it goes there. */
export function payoutForms(
  visit: Visit,
  id: string,
  destinations: readonly Destination[],
  [schedule]: readonly Schedule[],
): Html[] {
  const { mode } = visit;
  return [
    formOf(visit, {
      id: 'destination',
      to: 'POST /admin/merchants/:id/destinations',
      params: { id },
      title: `New ${mode} destination`,
      fixed: { mode },
      hint: 'Where payouts may go. Somebody else has to confirm it.',
      fields: {
        name: { label: 'holder of the account' },
        number: { hint: 'A phone, a till or an account.' },
        bank: { hint: 'Of a bank account.' },
        rail: { label: 'paid over', hint: 'Empty: the network for a wallet, else by hand.' },
      },
      submit: 'Enter',
    }),
    formOf(visit, {
      id: 'payout',
      to: 'POST /admin/merchants/:id/payouts',
      params: { id },
      title: `Pay out, ${mode}`,
      fixed: { mode },
      hint: 'Held at once. From an amount on somebody else has to approve it.',
      fields: {
        amount: { label: 'amount, TZS' },
        destination: {
          choices: destinations.map(choiceOf),
        },
      },
      submit: 'Pay out',
      isDangerous: mode === 'live',
    }),
    scheduleForm(visit, id, destinations, schedule),
  ];
}

/** Filled with what holds: what is left empty would be nothing. */
function scheduleForm(
  visit: Visit,
  id: string,
  destinations: readonly Destination[],
  now: Schedule | undefined,
): Html {
  const { mode } = visit;
  return formOf(visit, {
    id: 'schedule',
    to: 'POST /admin/merchants/:id/schedules',
    params: { id },
    title: `Pay out by itself, ${mode}`,
    fixed: { mode },
    hint: 'At most once on a day, of what is available then. Set again, it goes by the new plan.',
    fields: {
      interval: { value: now?.interval },
      weekday: { value: now?.weekday, hint: 'With weekly: 1 is Monday, 7 Sunday.' },
      destination: { value: now?.destination, choices: destinations.map(choiceOf) },
      minimum: {
        value: now?.minimum,
        label: 'smallest payout, TZS',
        hint: 'Less is left for another day.',
      },
      retain: { value: now?.retain, label: 'stays available, TZS' },
      cap: { value: now?.cap, label: 'at most on a day, TZS' },
    },
    submit: 'Set',
    isDangerous: mode === 'live',
  });
}

function choiceOf({ id, account }: Destination): readonly [string, string] {
  return [id, `${account.name}, ${account.number}`];
}

/** When it is paid out by itself; nothing where that was never agreed on. */
export function scheduleCard(visit: Visit, [schedule]: readonly Schedule[]): Html | '' {
  if (!schedule) return '';
  const { id, state, interval, weekday, destination, minimum, retain, cap, due_at, paused_by } = schedule;
  const { latest_payout: payout, latest_amount: amount } = schedule;
  return card(
    html`Paid out by itself <span class="quiet">${visit.mode}</span>`,
    facts([
      ['state', html`${pill(state)} ${paused_by === null ? '' : label(paused_by)} ${idLink(visit, id)}`],
      ['when', weekday === null ? interval : `weekly, ${weekdays[weekday - 1]}`],
      ['next', due_at ? moment(due_at) : '–'],
      ['to', destination ? idLink(visit, destination) : '–'],
      ['smallest payout', money(minimum ?? 0)],
      ['stays available', money(retain ?? 0)],
      ['at most on a day', cap === null ? 'no cap of its own' : money(cap)],
      ['latest', payout ? html`${money(amount ?? 0)} ${idLink(visit, payout)}` : 'none yet'],
    ]),
  );
}
