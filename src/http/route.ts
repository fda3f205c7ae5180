import type { Readable } from 'node:stream';
import type { Static, TObject, TSchema } from 'typebox';
import type { Principal } from '../merchants/merchants.ts';
import type { Write } from '../mongo.ts';
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
  requestId: string;
  /** Present on idempotent routes, and where it was sent on those that are carried out `once`. */
  idempotencyKey: string | undefined;
  /**
   * Idempotent routes only: the write that stores this answer under the caller's Idempotency-Key. It belongs in
   * the same commit as what the request creates; a conflict of kind `replay` in that commit must be thrown as
   * `ReplayConflict`.
   */
  recordWrite: RecordWrite;
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

/** The OpenAPI side of a route. Descriptions state units. */
export interface Operation {
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

/** A route without its address: schemas, documentation, handler. Rooms export functions that make these. */
export interface Endpoint<Who> {
  operation: Operation;
  /** A path that does not match is answered as an unknown id, never as a fault of the request. */
  params?: TObject;
  query?: TObject;
  body?: TObject;
  /** Takes the body as it is, of any type and at most so long; the handler finds it in `raw`. */
  rawMaxBytes?: number;
  /** Needs an Idempotency-Key, and replays (CONTRACT 5). */
  idempotent?: boolean;
  /** Takes an Idempotency-Key, need not have one, and refuses what comes again with it: a secret is shown once. */
  once?: boolean;
  /** Faults that a schema cannot say. Runs on any object, also where the schema already found faults. */
  check?: (body: Readonly<Record<string, unknown>>, principal: Who) => Fault[];
  handler: (request: HttpRequest<Who>) => Promise<Answer> | Answer;
}

type StaticOr<S, Otherwise> = S extends TSchema ? Static<S> : Otherwise;

interface EndpointSpec<
  Who,
  P extends TObject | undefined,
  Q extends TObject | undefined,
  B extends TObject | undefined,
> extends Omit<Endpoint<Who>, 'params' | 'query' | 'body' | 'handler'> {
  params?: P;
  query?: Q;
  body?: B;
  handler: (
    request: HttpRequest<
      Who,
      StaticOr<P, Record<string, never>>,
      StaticOr<Q, Record<string, never>>,
      StaticOr<B, undefined>
    >,
  ) => Promise<Answer> | Answer;
}

/** An endpoint for API keys; the handler's request is typed by the schemas. */
export function forMerchants<
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
>(spec: EndpointSpec<Principal, P, Q, B>): Endpoint<Principal> {
  // The stages in serve.ts have checked params, query and body by these very schemas.
  return spec as unknown as Endpoint<Principal>;
}

/** An endpoint for operators' tokens. */
export function forOperators<
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
>(spec: EndpointSpec<OperatorPrincipal, P, Q, B>): Endpoint<OperatorPrincipal> {
  return spec as unknown as Endpoint<OperatorPrincipal>;
}

/** An endpoint that asks for no credentials. */
export function forAnyone<
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
>(spec: EndpointSpec<undefined, P, Q, B>): Endpoint<undefined> {
  return spec as unknown as Endpoint<undefined>;
}

/** One line of the index in app.ts. */
export type Route = { method: Method; path: string } & (
  | { auth: 'merchant'; endpoint: Endpoint<Principal> }
  | { auth: Role; endpoint: Endpoint<OperatorPrincipal> }
  | { auth: 'none'; endpoint: Endpoint<undefined> }
);

/**
 * A route as one line: `route('GET', '/v1/collections/:id', 'merchant', readCollection(deps))`.
 * The endpoint must be made for the kind of credentials that `auth` names.
 */
export function route(method: Method, path: string, auth: 'merchant', endpoint: Endpoint<Principal>): Route;
export function route(method: Method, path: string, auth: Role, endpoint: Endpoint<OperatorPrincipal>): Route;
export function route(method: Method, path: string, auth: 'none', endpoint: Endpoint<undefined>): Route;
export function route(method: Method, path: string, auth: Auth, endpoint: unknown): Route {
  return { method, path, auth, endpoint } as Route;
}
