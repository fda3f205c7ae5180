import type { StepLine } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type EndpointDoc, endpointsSpec } from '../webhooks/webhooks.ts';

/** What operators look at. Reads only; every page is an indexed query. */
export class OperatorReader {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  endpointsOf(merchantId: string): Promise<EndpointDoc[]> {
    return this.#db
      .collection<EndpointDoc>(endpointsSpec.name)
      .find({ merchantId: { $eq: merchantId }, state: { $ne: 'deleted' } })
      .sort({ _id: -1 })
      .toArray();
  }

  /** An actor's history, oldest first. */
  history(actor: string, limit: number, afterSeq = 0): Promise<StepLine[]> {
    const bound = `${actor}/${String(afterSeq).padStart(8, '0')}`;
    return this.#db
      .collection<StepLine>('steps')
      .find({ _id: { $gt: bound, $lt: `${actor}0` } })
      .sort({ _id: 1 })
      .limit(limit)
      .toArray();
  }
}
