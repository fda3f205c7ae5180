import type { ActorDoc, Migration } from '../actors/actors.ts';

const secondMs = 1_000;

/** The ladders that terms of version 1 do not have. */
const newLadders = {
  approvalLadderMs: [20, 20, 30, 40].map((seconds) => seconds * secondMs),
  noticeLadderMs: [3, 5, 10].map((seconds) => seconds * secondMs),
};

const waitingTimer = 'xstate.after.approvalDelay.approvalWaiting';

/** What lifts stored collections to the present chart. */
export const collectionMigrations: Record<number, Migration> = {
  /** 2: the rail is asked while the customer may still approve. */
  1: (doc) => {
    const terms = { ...newLadders, ...(doc.snapshot.context.terms as object) };
    const lifted = {
      ...doc,
      machineVersion: 2,
      snapshot: { ...doc.snapshot, context: { ...doc.snapshot.context, terms } },
    };
    return doc.state === 'created.awaitingApproval' ? awaiting(lifted) : lifted;
  },
};

/** Its first question is due a rung after the last step. */
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
