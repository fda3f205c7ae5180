import type { Actors, Cause, Clock, Write } from '@kusanya/durable-actors';
import { BatchReader } from '@kusanya/durable-actors';
import type { Db, Filter } from 'mongodb';
import { bornPayout, type PayoutInput, type PayoutTerms } from '../../machines/payout.ts';
import type { Config } from '../config.ts';
import { type IdBounds, idsWithin, newId } from '../ids.ts';
import { withHold } from '../ledger/ledger.ts';
import type { Mode } from '../mode.ts';
import { int64 } from '../mongo.ts';
import { overtaken } from '../overtaken.ts';
import { quickPayoutTerms, type Rails, usualPayoutTerms } from '../rails/rails.ts';
import { Refused } from '../refused.ts';
import { fromOwn, isOwn, type Own, ownOf, type Whose } from '../whose.ts';
import { countedIn, dayOf, Float, OverBound } from './bounds.ts';
import {
  byHand,
  type DestinationDoc,
  destinationsSpec,
  type IsWithheld,
  type PayoutData,
  type PayoutDoc,
  type PayoutStatus,
  payoutsSpec,
  scheduledPayoutsSpec,
} from './documents.ts';
import { presentDestination, presentPayout } from './present.ts';
import { AmountOutOfBounds, NoDestination, NoPayoutRail, Withheld } from './refusals.ts';
import type { DestinationObject, PayoutObject } from './schema.ts';

export { type BankFileSum, BankFiles } from './bankFiles.ts';
export type { PayoutBounds } from './bounds.ts';
export { Destinations } from './destinations.ts';
export * from './documents.ts';
export { maskedAccount, presentPayout } from './present.ts';
export { Schedules } from './schedules.ts';

/** Money that merchants are paid: made, read, cancelled (CONTRACT 22). Everything after that is the chart's. */

interface PayoutsOptions {
  db: Db;
  actors: Actors;
  clock: Clock;
  config: Pick<Config, 'payouts' | 'simulator'>;
  rails: Rails;
  isWithheld: IsWithheld;
}

/** What is asked for, and by whom. */
export interface NewPayout extends Whose {
  amountTzs: number;
  destinationId: string;
  reference?: string | undefined;
  /** An operator's name, or the id of a key or of a schedule. */
  madeBy: string;
  /** Of a schedule: the date, for which it makes one. */
  scheduled?: { date: string; scheduleId: string };
}

export interface PayoutQuery extends IdBounds {
  limit: number;
  status?: PayoutStatus | undefined;
  destinationId?: string | undefined;
}

interface Attendance {
  stepId: string;
  cause: Cause;
  /** Further writes of the commit, made of the answer. */
  writes(answer: PayoutObject): Write[];
}

/** The write by which a schedule has one payout for a date; another one is a `race`. */
function claimOf({ scheduled }: NewPayout, payoutId: string): Write[] {
  if (!scheduled) return [];
  const doc = { _id: `${scheduled.scheduleId}:${scheduled.date}`, payoutId };
  return [{ op: 'insert', into: scheduledPayoutsSpec.name, doc, onDuplicate: 'race' }];
}

export class Payouts {
  readonly #options: PayoutsOptions;
  readonly #float: Float;
  readonly #reader: BatchReader<PayoutDoc>;

  constructor(options: PayoutsOptions) {
    this.#options = options;
    this.#float = new Float(options.db, () => options.clock.now());
    this.#reader = new BatchReader(async (ids) => {
      const found = await this.#stored.find({ _id: { $in: ids } }).toArray();
      const shown = await options.actors.shown('payout', found);
      return new Map(shown.map((doc) => [doc._id, doc]));
    });
  }

  /**
   * Makes a payout: its money is held, its day counted and its answer recorded in the commit that makes it, or nothing is.
   * @throws NoDestination, NoPayoutRail, AmountOutOfBounds, OverBound, BalanceInsufficient, StepReplayed; StepRaced for one of
   * a schedule that is there already
   */
  async create(asked: NewPayout, attendance: Attendance): Promise<PayoutObject> {
    const { db, actors, clock, config } = this.#options;
    const { merchantId, mode, amountTzs, madeBy } = asked;
    const { minTzs, maxTzs } = config.payouts.bounds;
    if (amountTzs < minTzs || amountTzs > maxTzs)
      throw new AmountOutOfBounds(amountTzs, config.payouts.bounds);
    if (await this.#options.isWithheld({ merchantId, mode }))
      throw new Withheld(
        'The network took a payment back that is in the books; nothing is paid out meanwhile.',
      );
    const destination = await this.#destination(asked);
    const terms = await this.#termsOf(mode, destination.data.rail);
    await this.#checkFloat(mode, destination.data.rail, amountTzs);
    const isByHand = destination.data.rail === byHand;
    const needsApproval = amountTzs >= config.payouts.approvalFromTzs;
    return overtaken(async () => {
      const at = clock.now();
      const id = newId('po', at);
      const data = this.#dataOf(asked, destination, at);
      const input = { at, terms, isByHand, needsApproval, madeBy } satisfies PayoutInput;
      // The commit stores the answer, so it is made before there is a document.
      const born = { status: 'created', snapshot: { context: bornPayout(input) } } as const;
      const answer = presentPayout({ _id: id, mode, data, ...born });
      const counted = await countedIn(db, asked, { amountTzs, day: data.day }, config.payouts.bounds);
      const writes = [...counted, ...claimOf(asked, id), ...attendance.writes(answer)];
      await withHold(() =>
        actors.create(
          { machine: 'payout', id, input, merchantId, mode, data },
          { stepId: attendance.stepId, cause: attendance.cause, writes },
        ),
      );
      return answer;
    }, 'this balance');
  }

  #dataOf(
    { amountTzs, reference, scheduled }: NewPayout,
    { _id, data }: DestinationDoc,
    at: number,
  ): PayoutData {
    const { feeTzs } = this.#options.config.payouts;
    return {
      amountTzs: int64(amountTzs),
      feeTzs: int64(feeTzs),
      heldTzs: int64(amountTzs + feeTzs),
      currency: 'TZS',
      rail: data.rail,
      destinationId: _id,
      account: data.account,
      ...(reference === undefined ? {} : { reference }),
      ...(scheduled === undefined ? {} : { scheduledFor: scheduled.date }),
      day: dayOf(at),
      createdAt: new Date(at),
    };
  }

  async #destination({ merchantId, mode, destinationId }: NewPayout): Promise<DestinationDoc> {
    const found = await this.#destinations.findOne({ _id: { $eq: destinationId } });
    if (!found || !isOwn({ merchantId, mode }, found))
      throw new NoDestination('is none of yours in this mode.');
    if (found.state !== 'active')
      throw new NoDestination(found.state === 'removed' ? 'was removed.' : 'cannot be used yet.');
    return found;
  }

  async #termsOf(mode: Mode, rail: string): Promise<PayoutTerms> {
    const { rails, config } = this.#options;
    if (rail === byHand) return mode === 'test' ? quickPayoutTerms(config.simulator.speed) : usualPayoutTerms;
    const payouts = rails[mode]?.name === rail ? rails[mode]?.payouts : undefined;
    if (!payouts || (await payouts.isDown?.())) throw new NoPayoutRail();
    return payouts.terms;
  }

  /** Refused by the books before the network would have to. */
  async #checkFloat(mode: Mode, rail: string, amountTzs: number): Promise<void> {
    if ((await this.#float.roomTzs(mode, rail)) >= amountTzs) return;
    throw new OverBound(
      'The service does not hold enough at the network just now; try again later, or less.',
    );
  }

  /**
   * Takes back a payout that has not left. `writes` are made of the answer. Undefined: there is none of this merchant's.
   * @throws Refused when it may have left already, StepReplayed
   */
  async cancel(
    whose: Whose,
    id: string,
    { stepId, cause, writes }: Attendance,
  ): Promise<PayoutObject | undefined> {
    const { actors, clock } = this.#options;
    if (!(await this.get(whose, id))) return undefined;
    const result = await actors.send(
      { machine: 'payout', id },
      { type: 'merchant.cancelled', at: clock.now() },
      { stepId, cause, writes: (doc) => writes(presentPayout(doc as PayoutDoc)) },
    );
    const now = result.doc as PayoutDoc;
    if (result.outcome !== 'stepped')
      throw new Refused(
        now.status === 'created' ? 'This payout is on its way already.' : `This payout is ${now.status}.`,
      );
    return presentPayout(now);
  }

  /** One payout of this merchant and mode; undefined for everybody else's. */
  async get(whose: Whose, id: string): Promise<Own<PayoutObject> | undefined> {
    const doc = await this.#reader.read(id);
    return doc && isOwn(whose, doc) ? fromOwn(doc, presentPayout) : undefined;
  }

  /** A page, newest first. The cursor is compared, never looked up. */
  async list(whose: Whose, query: PayoutQuery): Promise<{ data: Own<PayoutObject>[]; hasMore: boolean }> {
    const { limit, status, destinationId } = query;
    const filter: Filter<PayoutDoc> = {
      ...idsWithin('po', query),
      ...(status === undefined ? {} : { status }),
      ...(destinationId === undefined ? {} : { 'data.destinationId': { $eq: destinationId } }),
    };
    const found = await ownOf(this.#stored, whose)
      .find(filter)
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
    const page = await this.#options.actors.shown('payout', found.slice(0, limit));
    return { data: page.map((doc) => fromOwn(doc, presentPayout)), hasMore: found.length > limit };
  }

  /** Where this merchant's money may go, newest first; what was removed left out. */
  async destinations(
    whose: Whose,
    query: Pick<PayoutQuery, 'limit' | 'startingAfter'>,
  ): Promise<{ data: Own<DestinationObject>[]; hasMore: boolean }> {
    const { limit } = query;
    const found = await ownOf(this.#destinations, whose)
      .find({ state: { $ne: 'removed' }, ...idsWithin('dst', query) })
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
    return {
      data: found.slice(0, limit).map((doc) => fromOwn(doc, presentDestination)),
      hasMore: found.length > limit,
    };
  }

  /** One destination of this merchant and mode, a removed one too. */
  async destination(whose: Whose, id: string): Promise<Own<DestinationObject> | undefined> {
    const doc = await this.#destinations.findOne({ _id: { $eq: id } });
    return doc && isOwn(whose, doc) ? fromOwn(doc, presentDestination) : undefined;
  }

  get #destinations() {
    return this.#options.db.collection<DestinationDoc>(destinationsSpec.name);
  }

  get #stored() {
    return this.#options.db.collection<PayoutDoc>(payoutsSpec.name);
  }
}
