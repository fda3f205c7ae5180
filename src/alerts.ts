import { newId } from './ids.ts';
import type { CollectionSpec, Doc, Write } from './mongo.ts';

/** Something a person must know about. Append-only; written in the commit of what caused it. */
export interface AlertDoc extends Doc {
  kind: string;
  at: Date;
  /** Id of the actor or record it is about. */
  about: string;
  merchantId?: string;
  mode?: 'live' | 'test';
  detail?: Record<string, unknown>;
}

export const alertsSpec: CollectionSpec = {
  name: 'alerts',
  indexes: [{ key: { at: -1 } }, { key: { about: 1 } }],
};

/** The write that raises an alert. `kind` is a stable code. */
export function raiseAlert(alert: Omit<AlertDoc, '_id' | 'at'> & { at: number }): Write {
  const doc = { ...alert, _id: newId('alr', alert.at), at: new Date(alert.at) };
  return { op: 'insert', into: alertsSpec.name, doc, onDuplicate: 'refuse' };
}
