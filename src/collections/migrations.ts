import { type ActorDoc, type Actors, type Migration, versionOf } from '@kusanya/durable-actors';
import type { Understood } from '../ledger/ledger.ts';

const secondMs = 1_000;

/** The ladders that terms of version 1 do not have. */
const newLadders = {
  approvalLadderMs: [20, 20, 30, 40].map((seconds) => seconds * secondMs),
  noticeLadderMs: [3, 5, 10].map((seconds) => seconds * secondMs),
};

const waitingTimer = 'xstate.after.approvalDelay.approvalWaiting';

/** What lifts stored collections to the present chart. */
export const collectionMigrations: Record<number, Migration> = {
  /** 2: the rail is asked while the customer may still approve, and a return is followed to its end. */
  1: (doc) => {
    const terms = { ...newLadders, ...(doc.snapshot.context.terms as object) };
    const lifted = {
      ...doc,
      machineVersion: 2,
      snapshot: { ...doc.snapshot, context: { ...doc.snapshot.context, terms } },
    };
    return followReturns(doc.state === 'created.awaitingApproval' ? awaiting(lifted) : lifted);
  },
  /** 3: a prompt's life counts from its push. Whoever waits already was given an end, and keeps it. */
  2: (doc) => ({ ...doc, machineVersion: 3 }),
  /** 4: hears of the network's statement, and counts what is refunded. */
  3: (doc) => ({
    ...doc,
    machineVersion: 4,
    snapshot: {
      ...doc.snapshot,
      context: { ...doc.snapshot.context, refundedTzs: 0, refundsOpen: 0 },
    },
  }),
};

/** Its first question is due one wait of its ladder after the last step. */
function awaiting(doc: ActorDoc): ActorDoc {
  const dueAt = new Date(doc.updatedAt.getTime() + newLadders.approvalLadderMs[0]!);
  const timer = { id: waitingTimer, event: waitingTimer, dueAt, armedSeq: doc.seq };
  return {
    ...doc,
    state: 'created.awaitingApproval.waiting',
    snapshot: {
      value: { created: { awaitingApproval: 'waiting' } },
      context: { ...doc.snapshot.context, asks: 0 },
    },
    timers: [...doc.timers, timer],
    dueAt: doc.dueAt && doc.dueAt < dueAt ? doc.dueAt : dueAt,
  };
}

/** Collections of older versions as the auditor, which knows no charts, is to read them. */
export function readable(actors: Actors): Understood {
  const definition = actors.definition('collection');
  return { version: versionOf(definition), lift: (stored) => actors.shown('collection', stored) };
}

const returning = /^(failed|expired)\.latePaid\.returning$/;

/** Version 1 did not follow a return: it asked once, and then waited for a person. */
function followReturns(doc: ActorDoc): ActorDoc {
  const open = doc.calls.filter(({ type }) => type === 'reversePayment').length;
  const status = returning.exec(doc.state)?.[1];
  const context = {
    ...doc.snapshot.context,
    returnsOpen: open,
    returnSentAt: status ? doc.updatedAt.getTime() : null,
    returnRefused: false,
  };
  if (!status) return { ...doc, snapshot: { ...doc.snapshot, context } };
  const event = `xstate.after.returnDelay.${status}ReturnPolling`;
  const timers = [{ id: event, event, dueAt: doc.updatedAt, armedSeq: doc.seq }];
  return {
    ...doc,
    state: `${doc.state}.polling`,
    snapshot: {
      value: { [status]: { latePaid: { returning: 'polling' } } },
      context: { ...context, asks: 0 },
    },
    // Long due: the next step arms it, and who looks on in the meantime is the person it waits for.
    timers,
    dueAt: doc.updatedAt,
  };
}
