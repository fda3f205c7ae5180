import { type Actors, actorsSpec, BatchReader, type Clock, type Write } from '@kusanya/durable-actors';
import type { Db, Filter, IndexSpecification } from 'mongodb';
import { bornContext } from '../../machines/collection.ts';
import type { Config } from '../config.ts';
import { type IdBounds, idsWithin, newId } from '../ids.ts';
import { type FeePlan, feeFor } from '../ledger/ledger.ts';
import type { Log } from '../log.ts';
import { int64 } from '../mongo.ts';
import type { Principal } from '../principal.ts';
import { type Rails, type TestOutcome, testMishap } from '../rails/rails.ts';
import { crowdIndexes, storedPlaceOf } from '../standing.ts';
import { fromOwn, isOwn, type Own, ownOf, type Whose } from '../whose.ts';
import { Admission } from './admission.ts';
import { isSandbox, isTestPhone, parsePhone } from './phone.ts';
import { type CollectionData, type CollectionDoc, presentCollection, type Status } from './present.ts';
import type { CollectionObject, CreateCollection } from './schema.ts';

export { planOfCollections } from './lists.ts';
export { collectionMigrations, readable } from './migrations.ts';
export { isSandbox, parsePhone } from './phone.ts';
export { type CollectionDoc, type Status, sampleCollection } from './present.ts';

/** What a payment passes or rests in when all goes well. */
export const crowdedStates: readonly string[] = [
  'created.pushing.sending',
  'created.awaitingApproval.waiting',
  'created.awaitingApproval.noticed',
  'created.confirming.polling',
  'succeeded.standing',
];

/** Where a payment waits for a person: nobody can tell whether it was paid. */
export const reviewStates = ['created.underReview.polling', 'created.underReview.resting'];
/** A payment that came late, as lists are asked for it: each state with all that is in it. */
export const lateOuterStates = ['failed', 'expired'].flatMap((status) =>
  ['held', 'returning'].map((state) => `${status}.latePaid.${state}`),
);
export const lateStates = ['failed', 'expired'].flatMap((status) =>
  // A return that no newer code has touched has no inner states.
  ['held', 'returning', 'returning.polling'].map((state) => `${status}.latePaid.${state}`),
);
/** Where a payment has ended: no timer runs, and no money waits for anybody. */
export const endedStates: readonly string[] = [
  'succeeded.standing',
  'succeeded.reversed',
  ...['failed', 'expired'].flatMap((status) => [`${status}.resting`, `${status}.latePaid.returned`]),
];

/** Payment requests: made, read and listed (CONTRACT 8). Everything after that is the chart's. */
export const collectionsSpec = actorsSpec({
  name: 'collections',
  indexes: [
    ...crowdIndexes,
    // The reference first, so that operators find one without knowing whose it is.
    { key: { 'data.reference': 1, merchantId: 1, mode: 1, _id: -1 } },
    { key: { 'data.msisdn': 1, _id: -1 } },
    { key: { mode: 1, 'snapshot.context.failureCode': 1, _id: -1 }, partial: { status: 'failed' } },
    // The network's receipt: all that a customer can read from their phone.
    { key: { 'snapshot.context.receipt': 1 }, partial: { 'snapshot.context.receipt': { $type: 'string' } } },
  ],
  derived: { place: storedPlaceOf(crowdedStates) },
  retired: [
    'merchantId_1_mode_1__id_-1',
    'mode_1_state_1__id_-1',
    'mode_1_status_1__id_-1',
    'state_1_mode_1__id_-1',
  ],
});

const statuses: readonly Status[] = ['created', 'succeeded', 'failed', 'expired'];

/** No rail serves this mode now: none is configured, its breaker is not closed, or our own pushes come too late. */
export class NoRail extends Error {}

/** The fee would reach the amount. */
export class FeeTooHigh extends Error {
  readonly feeTzs: number;

  constructor(feeTzs: number) {
    super(`the fee is ${feeTzs}`);
    this.feeTzs = feeTzs;
  }
}

/** What merchants may ask of their list. */
export interface CollectionQuery extends IdBounds {
  limit: number;
  status?: Status;
  reference?: string;
  /** As it was sent. */
  phone?: string;
  /** The network's receipt. */
  providerReference?: string;
}

interface CollectionsOptions {
  db: Db;
  actors: Actors;
  clock: Clock;
  log: Log;
  config: Config;
  rails: Rails;
  /** The version in force of a merchant's fee plan; undefined: of the default. */
  feePlan(planId?: string): Promise<FeePlan>;
}

export class Collections {
  readonly #options: CollectionsOptions;
  readonly #reader: BatchReader<CollectionDoc>;
  readonly #admission: Admission;

  constructor(options: CollectionsOptions) {
    this.#options = options;
    this.#admission = new Admission({ ...options, plural: collectionsSpec.name });
    this.#reader = new BatchReader(async (ids) => {
      const found = await this.#stored.find({ _id: { $in: ids } }).toArray();
      return new Map((await this.#shown(found)).map((doc) => [doc._id, doc]));
    });
  }

  /**
   * Makes a collection and answers 202 once its first snapshot is committed, together with the idempotency
   * record; a worker pushes the prompt afterwards. The body has passed the schema and `createFaults`.
   * @throws NoRail and FeeTooHigh (nothing was created), StepReplayed.
   */
  async create(
    principal: Principal,
    body: CreateCollection,
    requestId: string,
    recordWrite: (status: number, body: string) => Write,
  ): Promise<{ status: number; body: string }> {
    const { actors, clock, config, rails } = this.#options;
    const { merchantId, mode, merchant } = principal;
    const rail = rails[mode];
    if (!rail || (await rail.isDown?.()) || (await this.#admission.isLate(mode))) throw new NoRail();
    const plan = await this.#options.feePlan(merchant.feePlanId);
    const feeTzs = feeFor(body.amount, plan);
    if (feeTzs >= body.amount) {
      throw new FeeTooHigh(feeTzs);
    }
    const at = clock.now();
    const id = newId('col', at);
    const phone = parsePhone(body.phone, mode === 'live' && isSandbox(config));
    if ('fault' in phone) throw new Error('an unchecked phone reached the room');
    const data: CollectionData = {
      amountTzs: int64(body.amount),
      feeTzs: int64(feeTzs),
      feePlan: { id: plan.id, version: plan.version },
      currency: 'TZS',
      channel: rail.name,
      phone: body.phone,
      msisdn: phone.msisdn,
      reference: body.reference,
      ...(body.description === undefined ? {} : { description: body.description }),
      metadata: body.metadata ?? {},
      createdAt: new Date(at),
    };
    const isOvertaken = mode === 'test' && testMishap(phone.msisdn) === 'overtaken';
    const acceptsLate = merchant.latePayments === 'accept' || isOvertaken;
    const input = { at, terms: rail.terms, acceptsLate };
    // The commit stores the answer, so it is made before there is a document.
    const born = { status: 'created', snapshot: { context: bornContext(input) } } as const;
    const answer = { status: 202, body: JSON.stringify(presentCollection({ _id: id, mode, data, ...born })) };
    await actors.create(
      { machine: 'collection', id, input, merchantId, mode, data },
      {
        stepId: requestId,
        cause: { kind: 'merchant', id: requestId },
        writes: [recordWrite(answer.status, answer.body)],
      },
    );
    return answer;
  }

  /**
   * Test mode: has the network say this of a payment from now on, and rings its bell, both in one commit with `write`.
   * @throws StepReplayed
   */
  async tell(
    { id }: Own<CollectionObject>,
    testOutcome: TestOutcome,
    requestId: string,
    write: Write,
  ): Promise<void> {
    const { actors, clock } = this.#options;
    await actors.send(
      { machine: 'collection', id },
      { type: 'rail.noticed', at: clock.now() },
      {
        stepId: requestId,
        cause: { kind: 'merchant', id: requestId },
        data: () => ({ testOutcome }),
        writes: [write],
      },
    );
  }

  /** One collection of this merchant and mode; undefined for everybody else's. */
  async get(whose: Whose, id: string): Promise<Own<CollectionObject> | undefined> {
    const doc = await this.#reader.read(id);
    return doc && isOwn(whose, doc) ? fromOwn(doc, presentCollection) : undefined;
  }

  /** Those of these ids that are this merchant's and mode's, in the order of the ids; what cannot be shown left out. */
  async many(whose: Whose, ids: readonly string[]): Promise<Own<CollectionObject>[]> {
    const found = await Promise.all(ids.map((id) => this.#reader.read(id)));
    return this.#presented(found.flatMap((doc) => (doc && isOwn(whose, doc) ? [doc] : [])));
  }

  /**
   * A page, newest first. The cursor is compared, never looked up, so a foreign id reveals nothing. A document that
   * nobody can show (the auditor tells of it) is left out: it takes no other with it.
   */
  async list(
    whose: Whose,
    query: CollectionQuery,
  ): Promise<{ data: Own<CollectionObject>[]; hasMore: boolean }> {
    const filter: Filter<CollectionDoc> = idsWithin('col', query);
    const hint = narrow(filter, query);
    const found = await ownOf(this.#stored, whose)
      .find(filter, { hint })
      .sort({ _id: -1 })
      .limit(query.limit + 1)
      .toArray();
    const hasMore = found.length > query.limit;
    const page = await this.#shown(found.slice(0, query.limit));
    return { data: this.#presented(page), hasMore };
  }

  /** Documents outlive the code that wrote them: lifted before they are shown. */
  #shown<D extends CollectionDoc>(docs: readonly D[]): Promise<D[]> {
    return this.#options.actors.shown('collection', docs);
  }

  #presented(docs: readonly Own<CollectionDoc>[]): Own<CollectionObject>[] {
    return docs.flatMap((doc) => {
      try {
        return [fromOwn(doc, presentCollection)];
      } catch (error) {
        this.#options.log.error(
          { collection: doc._id, error: String(error) },
          'a collection cannot be shown',
        );
        return [];
      }
    });
  }

  get #stored() {
    return this.#options.db.collection<CollectionDoc>(collectionsSpec.name);
  }
}

/** Adds what is asked for beside the times, and says which index leaves the least to look for. */
function narrow(filter: Filter<CollectionDoc>, query: CollectionQuery): IndexSpecification {
  const { reference, phone, providerReference: receipt } = query;
  const parsed = phone === undefined ? undefined : parsePhone(phone);
  const msisdn = parsed && 'msisdn' in parsed ? parsed.msisdn : undefined;
  if (phone !== undefined) filter['data.msisdn'] = { $eq: msisdn ?? phone };
  if (reference !== undefined) filter['data.reference'] = { $eq: reference };
  if (receipt !== undefined) filter['snapshot.context.receipt'] = { $eq: receipt, $type: 'string' };
  if (query.status) filter.status = { $in: [query.status] };
  if (receipt !== undefined) return { 'snapshot.context.receipt': 1 };
  if (reference !== undefined) return { 'data.reference': 1, merchantId: 1, mode: 1, _id: -1 };
  // All merchants try with the same few numbers: among one's own they are found sooner.
  if (msisdn !== undefined && !isTestPhone(msisdn)) return { 'data.msisdn': 1, _id: -1 };
  // Naming every status lets the index by them give the order too.
  filter.status ??= { $in: [...statuses] };
  return { merchantId: 1, mode: 1, status: 1, _id: -1 };
}
