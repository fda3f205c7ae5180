import type { Readable } from 'node:stream';
import type { Write } from '@kusanya/durable-actors';
import type { Static, TObject, TSchema } from 'typebox';
import type { KeyScope, Principal } from '../principal.ts';
import type { ErrorCode, Fault } from './errors.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** What an operator's token allows, each including the ones before it. */
export type Role = 'viewer' | 'operator' | 'admin';

/** Who is behind an operator's token. */
export interface OperatorPrincipal {
  /** The name that goes into the audit. */
  name: string;
  role: Role;
}

/**
 * Who may call a route: `merchant` an API key, `none` everybody, and an operator's token with at least the
 * named role.
 */
export type Auth = 'merchant' | 'none' | Role;

/** What a handler is given. Everything in it has been checked. */
export interface HttpRequest<Who = unknown, Params = unknown, Query = unknown, Body = unknown> {
  principal: Who;
  /** Parts of the path, decoded. */
  params: Params;
  /** The query, coerced to its schema's types, defaults filled in. */
  query: Query;
  body: Body;
  /** The body's bytes, on routes with `rawMaxBytes`. */
  raw: Buffer | undefined;
  /** The body as it comes in, on routes that `streams`. */
  stream: AsyncIterable<Uint8Array> | undefined;
  requestId: string;
  /** Present on idempotent routes, and where it was sent on those that are carried out `once`. */
  idempotencyKey: string | undefined;
  /**
   * Idempotent routes only: the write that stores this answer under the caller's Idempotency-Key. It belongs in
   * the same commit as what the request creates, whose `StepReplayed` says that another request's came first.
   */
  recordWrite: RecordWrite;
  /** Called once when nobody waits for the answer any more: it is sent, or the caller went away. */
  onGone(callback: () => void): void;
}

/** `status` and the exact text of the body that a replay must send again. */
export type RecordWrite = (status: number, body: string) => Write;

/** What a handler returns. Handlers build no error bodies: they throw AppErrors. */
export interface Answer {
  status: number;
  /** An object is sent as JSON; a string is ready JSON (or what `headers` says); absent: no body. */
  body?: object | string | Readable;
  headers?: Readonly<Record<string, string>>;
}

/** What an answer looks like, for the OpenAPI document. */
export interface AnswerDoc {
  description: string;
  schema?: TSchema;
  /** Name → value, each a complete body. */
  examples?: Readonly<Record<string, unknown>>;
  /** Other than application/json. */
  contentType?: string;
  /** OpenAPI links: which operation to go on with, and by which part of this answer. */
  links?: Readonly<Record<string, { operationId: string; parameters: Readonly<Record<string, string>> }>>;
}

/** The OpenAPI side of an operation. Descriptions state units. */
export interface OperationDoc {
  id: string;
  summary: string;
  description: string;
  tag: string;
  answers: Readonly<Record<number, AnswerDoc>>;
  /** Codes beyond those every route of its kind can answer (openapi.ts adds those). */
  errors?: readonly ErrorCode[];
  /** Where the document can say more than `body`, because `check` is stricter. */
  requestSchema?: TSchema;
  requestExamples?: Readonly<Record<string, unknown>>;
}

type Schema = TObject | undefined;
type StaticOr<S extends Schema, Otherwise> = S extends TSchema ? Static<S> : Otherwise;

/** A route without its address: schemas, documentation, handler. Rooms export functions that make these. */
export interface Operation<
  Who,
  Params extends Schema = Schema,
  Query extends Schema = Schema,
  Body extends Schema = Schema,
  Answered extends Answer = Answer,
> {
  doc: OperationDoc;
  /** A path that does not match is answered as an unknown id, never as a fault of the request. */
  params?: Params;
  query?: Query;
  body?: Body;
  /** Takes the body as it is, of any type and at most so long; the handler finds it in `raw`. */
  rawMaxBytes?: number;
  /**
   * Takes the body as it comes in, of any length, and the handler reads it from `stream`. No limit of time: the caller's
   * sending is part of the work.
   */
  streams?: boolean;
  /** Needs an Idempotency-Key, and replays (CONTRACT 5). An answer that holds a secret is kept `sealed`. */
  idempotent?: boolean | 'sealed';
  /** Takes an Idempotency-Key, need not have one, and refuses what comes again with it: a secret is shown once. */
  once?: boolean;
  /** For test keys; a live one is refused before anything is looked at. */
  testOnly?: boolean;
  /** For keys that were given this; another one is refused before anything is looked at. */
  scope?: KeyScope;
  /** Faults that a schema cannot say. Runs on any object, also where the schema already found faults. */
  check?(body: Readonly<Record<string, unknown>>, principal: Who): Fault[];
  /** A method, so that an operation of known schemas is one of any: who calls it has checked by these very schemas. */
  handler(
    request: HttpRequest<
      Who,
      StaticOr<Params, Record<string, never>>,
      StaticOr<Query, Record<string, never>>,
      StaticOr<Body, undefined>
    >,
  ): Promise<Answered> | Answered;
}

/** Declares an operation; the handler's request is typed by the schemas. */
function operationFor<Who>() {
  return <
    Params extends Schema = undefined,
    Query extends Schema = undefined,
    Body extends Schema = undefined,
    Answered extends Answer = Answer,
  >(
    operation: Operation<Who, Params, Query, Body, Answered>,
  ) => operation;
}

/** An operation for API keys. */
export const forMerchants = operationFor<Principal>();
/** An operation for operators' tokens. */
export const forOperators = operationFor<OperatorPrincipal>();
/** An operation that asks for no credentials. */
export const forAnyone = operationFor<undefined>();

/** One line of the index in app.ts. */
export type Route = { method: Method; path: string } & (
  | { auth: 'merchant'; operation: Operation<Principal> }
  | { auth: Role; operation: Operation<OperatorPrincipal> }
  | { auth: 'none'; operation: Operation<undefined> }
);

/** A route to an operation whose schemas and answer are known. */
interface RouteTo<M extends Method, Path extends string, A extends Auth, Of> {
  method: M;
  path: Path;
  auth: A;
  operation: Of;
}

/**
 * A route as one line: `route('GET', '/v1/collections/:id', 'merchant', showCollection(deps))`.
 * The operation must be made for the kind of credentials that `auth` names.
 */
export function route<M extends Method, Path extends string, Of extends Operation<Principal>>(
  method: M,
  path: Path,
  auth: 'merchant',
  operation: Of,
): RouteTo<M, Path, 'merchant', Of>;
export function route<M extends Method, Path extends string, Of extends Operation<OperatorPrincipal>>(
  method: M,
  path: Path,
  auth: Role,
  operation: Of,
): RouteTo<M, Path, Role, Of>;
export function route<M extends Method, Path extends string, Of extends Operation<undefined>>(
  method: M,
  path: Path,
  auth: 'none',
  operation: Of,
): RouteTo<M, Path, 'none', Of>;
export function route(
  method: Method,
  path: string,
  auth: Auth,
  operation: unknown,
): RouteTo<Method, string, Auth, unknown> {
  return { method, path, auth, operation };
}
