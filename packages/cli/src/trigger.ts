import type { SetTestOutcome } from '@kusanya/client';
import { create, ending, linesOf, newKey } from './collections.ts';
import { command } from './command.ts';
import { exits, usage } from './failure.ts';
import { countOf } from './moment.ts';

/** The test number of each failure (docs/API.md, Test mode). */
const failing: Readonly<Record<string, string>> = {
  insufficient_funds: '255700000001',
  declined: '255700000002',
  cancelled: '255700000003',
  rejected: '255700000004',
  invalid_pin: '255700000006',
  payer_not_found: '255700000007',
  payer_limit_reached: '255700000008',
};

/** Other failures have no number, and can only be told to a payment that waits. */
const failingNow = ['payer_blocked', 'payer_busy', 'provider_unavailable', 'provider_error'];

/** Nobody but us says how this one ends. */
const undecided = '255700000021';

/** What can be made to happen, the number that makes it, and the status that a collection then ends with. */
const stories: Readonly<Record<string, { phone: string; status: string }>> = {
  succeeded: { phone: '255700000000', status: 'succeeded' },
  failed: { phone: failing.insufficient_funds!, status: 'failed' },
  expired: { phone: '255700000005', status: 'expired' },
  late: { phone: '255700000022', status: 'expired' },
};

export const trigger = command({
  name: 'trigger',
  operands: ['OUTCOME'],
  words: Object.keys(stories),
  says: 'a test payment that ends like this, and its webhook',
  about: ['late: the customer pays after it has expired. Exit 1: it ended otherwise.'],
  options: {
    code: {
      type: 'string',
      value: 'CODE',
      words: [...Object.keys(failing), ...failingNow],
      says: 'why it fails',
    },
    amount: { type: 'string', value: 'TZS', says: 'whole shillings, 5000 where nothing is said' },
    reference: { type: 'string', value: 'TEXT', says: 'such as an order’s number of yours' },
    now: { type: 'boolean', says: 'at once, without a customer’s 10 to 20 seconds' },
    'no-wait': { type: 'boolean', says: 'do not wait until it has ended' },
  },
  run: async (call) => {
    const { values, operands, output } = call;
    const outcome = operands[0]!;
    if (values.code && outcome !== 'failed') throw usage('--code goes with failed');
    const { phone, status } = stories[outcome]!;
    const { amount = '5000', reference = `trigger-${outcome}`, code, now } = values;
    if (code && failingNow.includes(code) && !now) throw usage(`${code} has no test number: add --now`);
    const kusanya = await call.tester();
    const params = {
      amount: countOf('amount', amount, 1, 999_999_999),
      phone: now ? undecided : code ? failing[code]! : phone,
      reference,
    };
    const created = await create(kusanya, params, newKey(), call);
    if (now) {
      const told = {
        outcome: outcome as SetTestOutcome['outcome'],
        failure_code: code as SetTestOutcome['failure_code'],
      };
      await kusanya.testHelpers.outcome(created.id, told, {
        idempotencyKey: newKey(),
        signal: call.around.signal,
      });
    }
    const ended = values['no-wait'] ? created : await ending(kusanya, created, call);
    output.result(ended, ...linesOf(ended, output));
    return values['no-wait'] || ended.status === status ? exits.ok : exits.failed;
  },
});
