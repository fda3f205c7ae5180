import { failureCodes } from '../../machines/collection.ts';
import { payoutFailureCodes } from '../../machines/payout.ts';
import { refundFailureCodes } from '../../machines/refund.ts';
import type { Fault } from '../http/http.ts';
import type { Decision } from './secondPerson.ts';

/** What can be said of a machine's actors by operator.resolved. */
export const verdicts: Readonly<Record<string, { outcomes: readonly string[]; codes: readonly string[] }>> = {
  collection: { outcomes: ['succeeded', 'failed', 'expired'], codes: failureCodes },
  payout: { outcomes: ['paid', 'failed'], codes: payoutFailureCodes },
  refund: { outcomes: ['succeeded', 'failed'], codes: refundFailureCodes },
};
export const outcomes = [...new Set(Object.values(verdicts).flatMap((each) => each.outcomes))];
export const codes = [...new Set(Object.values(verdicts).flatMap((each) => each.codes))];

/** A verdict in words of another machine's. */
export function foreignFaults(machine: string, { outcome, failureCode }: Decision): Fault[] {
  const known = verdicts[machine];
  const isForeign = (all: readonly string[] | undefined, one: string | undefined) =>
    one !== undefined && !all?.includes(one);
  const fault = (param: string, all: readonly string[] = []): Fault => ({
    ...{ param, code: 'parameter_invalid' },
    message: `${param} of a ${machine} is one of ${all.join(', ')}.`,
  });
  return [
    ...(isForeign(known?.outcomes, outcome) ? [fault('outcome', known?.outcomes)] : []),
    ...(isForeign(known?.codes, failureCode) ? [fault('failureCode', known?.codes)] : []),
  ];
}

/** What an operator says of a payment must be whole: a chart that hears no outcome would choose one. */
export function verdictFaults(body: Readonly<Record<string, unknown>>): Fault[] {
  const faults: Fault[] = [];
  const isVerdict = body.type === 'operator.resolved';
  if (isVerdict && body.outcome === undefined) {
    const message = `outcome is required with operator.resolved: ${outcomes.join(', ')}.`;
    faults.push({ param: 'outcome', code: 'parameter_missing', message });
  }
  if (!isVerdict && body.outcome !== undefined) {
    faults.push({
      param: 'outcome',
      code: 'parameter_unknown',
      message: 'outcome goes with operator.resolved.',
    });
  }
  const isPaid =
    body.outcome === 'succeeded' || body.outcome === 'paid' || body.type === 'operator.foundPaid';
  const beside = (param: string, isRight: boolean, what: string) => {
    if (body[param] === undefined || isRight) return;
    faults.push({ param, code: 'parameter_unknown', message: `${param} goes with the outcome ${what}.` });
  };
  beside('failureCode', body.outcome === 'failed', 'failed');
  beside('receipt', isPaid, 'succeeded or paid');
  const isRefund = body.type === 'operator.refunded';
  if (isRefund && body.amount === undefined) {
    const message = 'amount is required with operator.refunded: what goes back, in whole shillings.';
    faults.push({ param: 'amount', code: 'parameter_missing', message });
  }
  if (!isRefund && body.amount !== undefined) {
    const message = 'amount goes with operator.refunded.';
    faults.push({ param: 'amount', code: 'parameter_unknown', message });
  }
  if (body.collection !== undefined && body.type !== 'operator.ruled') {
    const message = 'collection goes with operator.ruled.';
    faults.push({ param: 'collection', code: 'parameter_unknown', message });
  }
  return faults;
}
