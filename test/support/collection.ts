import {
  type CollectionContext,
  type CollectionEvent,
  collectionMachine,
  type RailTerms,
} from '../../machines/collection.ts';
import { mpesaTerms } from '../../src/rails/mpesa/terms.ts';
import { Drive } from './drive.ts';
import { hourMs, startMs, type Untimed } from './moves.ts';

/** A collection's chart on M-Pesa's terms, for tables. */
export type Told = Untimed<CollectionEvent>;

const secondMs = 1_000;

export class Collection extends Drive<CollectionContext, CollectionEvent> {
  /** When asks started, in seconds since the beginning. */
  readonly askStarts: number[] = [];

  constructor(terms: Partial<RailTerms> = {}, acceptsLate = false) {
    const input = { at: startMs, terms: { ...mpesaTerms, ...terms }, acceptsLate };
    super(collectionMachine, input);
  }

  /** Answers "pending" as soon as something is asked. */
  readonly answerPending = (): void => {
    if (!this.context.askOpen) return;
    const { askedAt } = this.context;
    this.askStarts.push((askedAt - startMs) / secondMs);
    this.send({ type: 'ask.undecided', answer: 'pending', askedAt, at: Math.max(askedAt, this.now) });
  };
}

/** Every child of `created`, and a way to it on which no ask is left open. */
export const createdStates: Readonly<Record<string, () => Collection>> = {
  'created.pushing.sending': () => new Collection(),
  'created.pushing.backingOff': () => new Collection().send({ type: 'push.notAttempted' }),
  'created.awaitingApproval.waiting': () =>
    new Collection().send({ type: 'push.accepted', askedAt: startMs }),
  'created.awaitingApproval.noticed': () => {
    const collection = new Collection({ noticeLadderMs: [60 * secondMs] });
    collection.send({ type: 'push.accepted', askedAt: startMs });
    collection.send({ type: 'rail.noticed' }).send({ type: 'ask.undecided', answer: 'unknown' });
    return collection.wait(secondMs);
  },
  'created.confirming.polling': () => {
    const collection = new Collection().send({ type: 'push.unknown' });
    collection.send({ type: 'ask.undecided', answer: 'unknown' }).wait(5 * secondMs);
    return collection.send({ type: 'ask.undecided', answer: 'unknown' });
  },
  'created.underReview.polling': () => new Collection().send({ type: 'ask.reversed' }),
  'created.underReview.resting': () =>
    new Collection({ reviewAsksMax: 0 }).send({ type: 'ask.reversed' }).wait(hourMs),
};

type Late = 'failed' | 'expired';

/** A collection that ended without money, nothing asked since. */
export function ended(status: Late, acceptsLate = false): Collection {
  const collection = new Collection({}, acceptsLate).wait(200);
  return status === 'failed'
    ? collection.send({ type: 'push.failed', code: 'declined' })
    : collection.send({ type: 'ask.expired' });
}

/** Every child of `failed` and of `expired`, and a way to it on which no ask is left open. */
export const endedStates: Readonly<Record<string, () => Collection>> = Object.fromEntries(
  (['failed', 'expired'] as const).flatMap((status) => {
    const held = () =>
      ended(status)
        .wait(60 * secondMs)
        .send({ type: 'push.succeeded', receipt: 'R-LATE' });
    const returning = () => held().send({ type: 'operator.returnedLate', reason: 'the customer asked' });
    const ways: [string, () => Collection][] = [
      [`${status}.watching`, () => ended(status)],
      [`${status}.resting`, () => rested(ended(status))],
      [`${status}.latePaid.held`, held],
      [`${status}.latePaid.returning.polling`, returning],
      [`${status}.latePaid.returned`, () => returning().send({ type: 'reverse.succeeded' })],
    ];
    return ways;
  }),
);

function rested(collection: Collection): Collection {
  const { length } = mpesaTerms.watchLadderMs;
  for (let ask = 0; ask < length; ask += 1) collection.wait(24 * hourMs, collection.answerPending);
  return collection;
}
