import type { Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Evidence } from './port.ts';

/** Every answer of a live rail, verbatim; for operators only. Written in the commit of the step that it caused. */
export const railAnswersSpec: MongoCollectionSpec = {
  name: 'railAnswers',
  indexes: [{ key: { collectionId: 1, at: 1 } }],
};

export interface RailAnswerDoc extends Doc {
  /** What it is about: a collection, a payout or a refund. */
  collectionId: string;
  operation: 'push' | 'query' | 'reversal' | 'payout' | 'payout_query';
  /** What we made of it: the outcome's kind, and why where it decides nothing. */
  kind: string;
  why: string | null;
  code: string | null;
  httpStatus: number | null;
  text: string | null;
  askedAt: Date;
  at: Date;
}

interface Answer {
  kind: string;
  why?: string;
  evidence?: Evidence;
}

/** The write that keeps an answer; nothing for a rail that gives no evidence (test mode: testEvidence.ts). */
export function answerWrite(
  call: { id: string; collectionId: string; operation: RailAnswerDoc['operation']; askedAtMs: number },
  { kind, why, evidence }: Answer,
): Write[] {
  if (!evidence) return [];
  const doc: RailAnswerDoc = {
    // A call may be made again after a crash; each of its answers is kept.
    _id: `${call.id}.${evidence.atMs}`,
    collectionId: call.collectionId,
    operation: call.operation,
    kind,
    why: why ?? null,
    code: evidence.code ?? null,
    httpStatus: evidence.httpStatus ?? null,
    text: evidence.text ?? null,
    askedAt: new Date(call.askedAtMs),
    at: new Date(evidence.atMs),
  };
  return [{ op: 'insert', into: railAnswersSpec.name, doc, onDuplicate: 'race' }];
}

/** What a rail answered about a collection, a payout or a refund, oldest first. */
export function readAnswers(db: Db, id: string, limit: number): Promise<RailAnswerDoc[]> {
  return db
    .collection<RailAnswerDoc>(railAnswersSpec.name)
    .find({ collectionId: { $eq: id } })
    .sort({ at: 1 })
    .limit(limit)
    .toArray();
}
