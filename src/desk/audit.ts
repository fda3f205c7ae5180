import type { Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import { newId } from '../ids.ts';

/** Every change that operators make leaves one audit line, in the commit of the change. */
export interface AuditDoc extends Doc {
  at: Date;
  /** The operator's name. */
  by: string;
  action: string;
  /** Id of what was changed. */
  target: string;
  merchantId?: string;
  reason: string;
  requestId: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
}

export const auditSpec: MongoCollectionSpec = {
  name: 'audit',
  indexes: ['target', 'merchantId', 'action', 'by'].map((field) => ({ key: { [field]: 1, _id: -1 } })),
};

/** The append-only line of a change. Secrets never go into `before` or `after`. */
export function auditLine(line: Omit<AuditDoc, '_id' | 'at'> & { at: number }): Write {
  const doc = { ...line, _id: newId('aud', line.at), at: new Date(line.at) };
  return { op: 'insert', into: auditSpec.name, doc, onDuplicate: 'refuse' };
}
