import {
  type Actors,
  type Clock,
  type Doc,
  StepRaced,
  StepReplayed,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import {
  actionNotAllowed,
  fingerprint,
  type HttpRequest,
  idempotencyKeyReused,
  idempotencySpec,
  type OperatorPrincipal,
} from '../http/http.ts';
import { limits } from '../limits.ts';

/** What people decide on what they have just read: the writes of one commit, and what is answered. */
export interface Decided<Result> {
  writes: Write[];
  result: Result;
}

/** More have to be faster, one after the other, than there are operators. */
const attemptsMax = 10;

/**
 * Decides and commits. Whoever was overtaken reads again and decides again, so nothing of two changes is lost and
 * the audit's "before" is what the change met. No writes: nothing is left to do, and that is the result.
 */
export async function change<Result>(
  actors: Actors,
  decide: () => Promise<Decided<Result>>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    const { writes, result } = await decide();
    if (writes.length === 0) return result;
    try {
      await actors.commit(writes);
      return result;
    } catch (error) {
      if (!(error instanceof StepRaced)) throw error;
      if (attempt === attemptsMax)
        throw actionNotAllowed('Others are changing this at the same moment; look at it again.');
    }
  }
}

/** What was carried out with an operator's Idempotency-Key. Lies beside merchants' records, and ends with them. */
interface OnceDoc extends Doc {
  fingerprint: string;
  /** The id of what was made. */
  target: string;
  requestId: string;
  expiresAt: Date;
}

/** The write that a request's commit must hold, with the id of what it makes. */
export type Claim = (target: string) => Write[];

/**
 * Carries a request out once per Idempotency-Key and operator; without a key, each time. What comes again is
 * refused by naming what was made: a secret that was shown is not kept, so there is no answer to repeat.
 *
 * @throws idempotency_key_reused for another body, action_not_allowed for the same
 */
export async function once<Result>(
  { db, clock }: { db: Db; clock: Clock },
  request: Pick<
    HttpRequest<OperatorPrincipal>,
    'principal' | 'idempotencyKey' | 'params' | 'body' | 'requestId'
  >,
  operationId: string,
  carryOut: (claim: Claim) => Promise<Result>,
): Promise<Result> {
  const { principal, idempotencyKey, params, body, requestId } = request;
  if (idempotencyKey === undefined) return carryOut(() => []);
  const _id = `operator.${principal.name}.${operationId}.${idempotencyKey}`;
  const print = fingerprint({ params, body });
  const refuseAgain = async () => {
    const done = await db.collection<OnceDoc>(idempotencySpec.name).findOne({ _id: { $eq: _id } });
    if (!done) return;
    if (done.fingerprint !== print) throw idempotencyKeyReused();
    throw actionNotAllowed(
      `This was carried out already, by the request ${done.requestId}: it made ${done.target}. A secret is ` +
        'shown once; where its answer was lost, revoke that one and ask for another with a new Idempotency-Key.',
    );
  };
  await refuseAgain();
  const expiresAt = new Date(clock.now() + limits.idempotencyTtlMs);
  try {
    return await carryOut((target) => {
      const doc: OnceDoc = { _id, fingerprint: print, target, requestId, expiresAt };
      return [{ op: 'insert', into: idempotencySpec.name, doc, onDuplicate: 'replay' }];
    });
  } catch (error) {
    if (error instanceof StepReplayed) await refuseAgain();
    throw error;
  }
}
