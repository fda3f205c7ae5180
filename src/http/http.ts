/**
 * What is true of any request. This door is the one that re-exports: rooms' `routes.ts` need a little of each
 * file here, and nothing else of them.
 */
export type { AccessLine, RequestState } from './access.ts';
export { type Authenticate, authenticateOperator, roleAllows } from './auth.ts';
export { leaveRest, streamOf } from './body.ts';
export {
  AppError,
  actionNotAllowed,
  balanceInsufficient,
  bodyTooLarge,
  channelUnavailable,
  type ErrorCode,
  errorTable,
  type Fault,
  type FaultCode,
  faulty,
  idempotencyKeyReused,
  permissionDenied,
  rateLimited,
  resourceNotFound,
  serviceUnavailable,
} from './errors.ts';
export { type Health, livez, readyz, version } from './health.ts';
export {
  fingerprint,
  IdempotencyStore,
  idempotencySpec,
  type ProducedAnswer,
} from './idempotency.ts';
export { type Inside, type InsideRoute, insideOf, insideOfMerchants } from './inside.ts';
export {
  type ArchivedBefore,
  archivedBefore,
  archivedNote,
  type CreatedBounds,
  createdBounds,
  createdFilters,
  endingBefore,
  listAnswer,
  listObject,
  listQuery,
  pageOf,
} from './list.ts';
export { type Listener, listen, refuseSocket } from './listen.ts';
export { pathMatcher } from './paths.ts';
export { limitPerMinute, RateLimiter, type RateTerms } from './rate.ts';
export { type RefusalDoc, Refusals, readOwnRefusals, readRefusals, refusalsSpec } from './refusals.ts';
export { loggable, toAppError } from './render.ts';
export {
  type Answer,
  type AnswerDoc,
  type Auth,
  forAnyone,
  forMerchants,
  forOperators,
  type HttpRequest,
  type Method,
  type Operation,
  type OperationDoc,
  type OperatorPrincipal,
  type RecordWrite,
  type Role,
  type Route,
  route,
} from './route.ts';
export { directions, ErrorBody, OwnReference, printable } from './schema.ts';
export { createKoa, type KoaOptions, withinTime } from './serve.ts';
export { WrongTries } from './tries.ts';
export { isIsoTime, queryReader } from './validate.ts';
