import type { Db } from 'mongodb';
import type { ActorDoc, StepLine } from '../actors/actors.ts';
import { type EndpointDoc, endpointsSpec } from '../webhooks/webhooks.ts';
import { type AuditDoc, auditSpec } from './operators.ts';

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

  actors(plural: string, filter: Record<string, unknown>, limit: number): Promise<ActorDoc[]> {
    return this.#db.collection<ActorDoc>(plural).find(filter).sort({ _id: -1 }).limit(limit).toArray();
  }

  audit(filter: Record<string, unknown>, limit: number): Promise<AuditDoc[]> {
    return this.#db
      .collection<AuditDoc>(auditSpec.name)
      .find(filter)
      .sort({ _id: -1 })
      .limit(limit)
      .toArray();
  }
}
