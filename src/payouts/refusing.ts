import { balanceInsufficient, channelUnavailable, type Fault, faulty } from '../http/http.ts';
import { BalanceInsufficient } from '../ledger/ledger.ts';
import { AmountOutOfBounds, NoDestination, NoPayoutRail } from './payouts.ts';

/** What the room refuses, in the words of the interface; of both listeners. */
export function asAnswer(error: unknown): never {
  const fault = (param: string, code: Fault['code'], message: string) => faulty([{ param, code, message }]);
  if (error instanceof BalanceInsufficient) throw balanceInsufficient();
  if (error instanceof NoDestination)
    throw fault('destination', 'parameter_invalid', `destination ${error.message}`);
  if (error instanceof AmountOutOfBounds) {
    const code = error.isTooLarge ? 'amount_too_large' : 'amount_too_small';
    throw fault('amount', code, `amount: ${error.message}`);
  }
  if (error instanceof NoPayoutRail) throw channelUnavailable();
  throw error;
}
