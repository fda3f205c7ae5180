/**
 * The operators' kit: what every room's `admin.ts` is made of. This door re-exports, as that of `http` does.
 */

export { presentArchived } from './archived.ts';
export { type AuditDoc, auditLine, auditSpec } from './audit.ts';
export { Command, type CommandDeps, forCommands } from './command.ts';
export { CommandQuery, commandBody, described, found, idParam, ModeField, Reason } from './fields.ts';
export {
  countMax,
  idRange,
  type Listed,
  lateMs,
  listActors,
  readPage,
} from './lists.ts';
export { type Masking, maskingFor } from './masking.ts';
export { Moment, momentMs, periodOf } from './moments.ts';
export {
  ageFields,
  listedAnswer,
  madeBounds,
  pageFields,
  StateFilter,
} from './queries.ts';
export { type Histories, type History, readHistory, readTrail, type Trail } from './trail.ts';
