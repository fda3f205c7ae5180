import type { FormSpec } from './forms.ts';

/** What operators may tell a chart, as its form says it. One name has one meaning, whichever charts take it. */
interface EventWords {
  title: string;
  hint: string;
  submit: string;
  only?: readonly string[];
  isDangerous?: boolean;
}

/** What operators may tell a chart. An event without words here is offered under its own name. */
export const operatorEvents: Readonly<Record<string, EventWords>> = {
  'operator.asked': {
    title: 'Ask the network',
    hint: 'Asks what became of the payment, now. It decides nothing.',
    submit: 'Ask',
  },
  'operator.resolved': {
    title: 'Decide the outcome',
    hint: 'Only when you know it from the network’s own statement. The merchant is told, and the books follow.',
    submit: 'Decide',
    only: ['outcome', 'failureCode', 'receipt'],
    isDangerous: true,
  },
  'operator.reversed': {
    title: 'The success was false',
    hint: 'Takes the money back from the merchant’s balance, even below zero.',
    submit: 'Reverse',
    isDangerous: true,
  },
  'operator.refunded': {
    title: 'Give money back to the customer',
    hint: 'A refund begins: the merchant’s part is set aside at once, and the network is asked to reverse it.',
    submit: 'Refund',
    only: ['amount'],
    isDangerous: true,
  },
  'operator.acceptedLate': {
    title: 'Accept the late payment',
    hint: 'The collection succeeds after all, and the merchant is told.',
    submit: 'Accept',
  },
  'operator.returnedLate': {
    title: 'Send the late payment back',
    hint: 'Asks the network to return the money to the customer.',
    submit: 'Send back',
    isDangerous: true,
  },
  'operator.retried': {
    title: 'Try the return again',
    hint: 'Repeats the request under the same id.',
    submit: 'Try again',
  },
  'operator.confirmedReturn': {
    title: 'The money went back',
    hint: 'When the network’s statement shows the return.',
    submit: 'Confirm',
    isDangerous: true,
  },
  'operator.approved': {
    title: 'Approve',
    hint: 'It is sent at once, or waits for the next file for the bank. Not by whoever asked for it.',
    submit: 'Approve',
    isDangerous: true,
  },
  'operator.refused': {
    title: 'Refuse',
    hint: 'Nothing is sent, and the money is free again.',
    submit: 'Refuse',
  },
  'operator.sent': {
    title: 'The bank has it',
    hint: 'A whole file is marked on its page. Then the bank’s word is waited for.',
    submit: 'Mark as sent',
  },
  'operator.foundPaid': {
    title: 'It was paid after all',
    hint: 'When a statement shows it. Takes the money from the merchant’s balance, even below zero.',
    submit: 'Take it',
    only: ['receipt'],
    isDangerous: true,
  },
  'operator.returned': {
    title: 'It came back',
    hint: 'When a statement shows it. The amount is available to the merchant again; the fee is kept.',
    submit: 'Give it back',
    isDangerous: true,
  },
  'operator.confirmed': {
    title: 'Confirm the account',
    hint: 'When you have checked it yourself, with the merchant. Not by whoever entered it.',
    submit: 'Confirm',
    isDangerous: true,
  },
  'operator.stopped': {
    title: 'Stop it',
    hint: 'Nothing is paid by itself until somebody starts it again. A payout that was made goes on.',
    submit: 'Stop',
  },
  'operator.started': {
    title: 'Go on',
    hint: 'By its plan again, from its next day on; one that is paused looks at once.',
    submit: 'Start',
    isDangerous: true,
  },
  'operator.removed': { title: 'Remove', hint: 'For good: no money goes there any more.', submit: 'Remove' },
  'operator.resent': {
    title: 'Send it again',
    hint: 'One attempt outside the schedule, the same bytes.',
    submit: 'Send',
  },
  'operator.enabled': { title: 'Enable', hint: 'What is held is sent, oldest first.', submit: 'Enable' },
  'operator.disabled': {
    title: 'Disable',
    hint: 'Deliveries are held until it is enabled; nothing is lost for 30 days.',
    submit: 'Disable',
    isDangerous: true,
  },
  'operator.deleted': {
    title: 'Delete',
    hint: 'For good. Deliveries under way are dropped.',
    submit: 'Delete',
    isDangerous: true,
  },
  'operator.held': {
    title: 'Hold back',
    hint: 'The money of this day stays pending until it is released.',
    submit: 'Hold',
  },
  'operator.released': { title: 'Release', hint: 'What is due settles within a minute.', submit: 'Release' },
  'operator.opened': {
    title: 'Stop calling the network',
    hint: 'Until somebody lets it go on. New live collections are refused meanwhile.',
    submit: 'Stop',
    isDangerous: true,
  },
  'operator.closed': {
    title: 'Call the network again',
    hint: 'Calls go out at once.',
    submit: 'Go on',
  },
  'operator.closedDay': {
    title: 'Close this day',
    hint: 'It closes only if nothing is unexplained. Differences that are open stay open.',
    submit: 'Close',
  },
  'operator.ruled': {
    title: 'It is this payment’s money',
    hint: 'Two people say so. The payment takes it as the network’s own word; suspense is free of it.',
    submit: 'Give it',
    only: ['collection'],
    isDangerous: true,
  },
  'operator.accepted': {
    title: 'The books follow the statement',
    hint: 'Two people say so. Suspense holds the other side until somebody knows more.',
    submit: 'Accept',
    isDangerous: true,
  },
  'operator.sentBack': {
    title: 'It was sent back',
    hint: 'After you returned it at the network. A later statement shows that it went, and frees suspense of it.',
    submit: 'Wait for the statement',
  },
  'operator.canceled': { title: 'Stop', hint: 'What was sent stays sent.', submit: 'Stop' },
};

/** The form by which an actor is told it. */
export function toldAs(id: string, type: string): FormSpec {
  const words = operatorEvents[type] ?? { title: type, hint: 'An event of this chart.', submit: 'Send' };
  return {
    ...{ id: type.replace('.', '-'), to: 'POST /admin/actors/:id/events', params: { id }, only: [] },
    ...words,
    fixed: { type },
  };
}

export function titleOfEvent(type: string): string {
  return operatorEvents[type]?.title ?? type;
}
