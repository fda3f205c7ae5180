import type { Migration } from '@kusanya/durable-actors';
import type { PayoutTerms } from '../../machines/payout.ts';

const bankTimer = 'xstate.after.bankDeadline.exported';

/** What lifts stored payouts to the present chart. */
export const payoutMigrations: Record<number, Migration> = {
  /** 2: somebody looks at what lies in its file for long, and what was proven not to be sent is sent again. */
  1: (doc) => {
    const lifted = { ...doc, machineVersion: 2 };
    if (doc.state !== 'created.exported') return lifted;
    const { bankMs } = doc.snapshot.context.terms as PayoutTerms;
    const dueAt = new Date(doc.updatedAt.getTime() + bankMs);
    return { ...lifted, timers: [{ id: bankTimer, event: bankTimer, dueAt, armedSeq: doc.seq }], dueAt };
  },
};
