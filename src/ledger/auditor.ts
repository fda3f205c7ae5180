import type { Db, Timestamp } from 'mongodb';
import type { Mode } from './postings.ts';

export type Breach = { kind: string; mode: Mode };
export type AuditCursor = { untilMs: number; snapshotAt: Timestamp | null };
export type AuditReport = { breaches: Breach[]; truncated: boolean; next: AuditCursor };
export async function auditAll(_db: Db, _nowMs: number): Promise<AuditReport> {
  throw new Error('not yet');
}
export async function auditRecent(_db: Db, _nowMs: number, _cursor?: AuditCursor): Promise<AuditReport> {
  throw new Error('not yet');
}
