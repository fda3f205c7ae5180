import type { TObject, TSchema } from 'typebox';
import {
  type AnswerDoc,
  ErrorBody,
  type ErrorCode,
  errorTable,
  type OperationDoc,
  type Route,
} from './http/http.ts';

/**
 * The OpenAPI 3.1 document, made from the same table that serves the requests: what is not in the table is
 * neither served nor documented. 3.1 is JSON Schema 2020-12, so TypeBox schemas go in as they are; those with a
 * `title` become components.
 */
export interface OpenApiDocument {
  openapi: '3.1.0';
  info: Json;
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Json>>;
  webhooks: Record<string, Json>;
  components: { schemas: Record<string, Json>; [kind: string]: Record<string, Json> };
}

type Json = Record<string, unknown>;

export interface About {
  title: string;
  version: string;
  description: string;
  /** Where the service is reached; `/` when it does not know. */
  serverUrl?: string;
  tags: { name: string; description: string }[];
  webhooks?: readonly { type: string; description: string; schema: TSchema }[];
}

/** The document of a listener's routes. Throws when two schemas share a title but not their content. */
export function openApi(routes: readonly Route[], about: About): OpenApiDocument {
  const components = new Components();
  const paths: OpenApiDocument['paths'] = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operationOf(route, components);
  }
  const webhooks: OpenApiDocument['webhooks'] = {};
  for (const webhook of about.webhooks ?? []) {
    webhooks[webhook.type] = webhookItem(webhook, components);
  }
  const { title, version, description, serverUrl, tags } = about;
  return {
    openapi: '3.1.0',
    info: { title, version, description },
    servers: [{ url: serverUrl ?? '/' }],
    tags,
    paths,
    webhooks,
    components: {
      securitySchemes: securitySchemes(routes),
      parameters: { RequestId: requestIdParameter, IdempotencyKey: idempotencyKeyParameter },
      headers,
      examples: errorExamples(routes),
      schemas: components.schemas,
    },
  };
}

/** Collects the schemas with titles; everywhere else they are a `$ref`. */
class Components {
  readonly schemas: Record<string, Json> = {};

  /** A schema as it stands in the document. */
  place(schema: TSchema | Json): Json {
    const { title } = schema as { title?: string };
    if (title === undefined) return this.#inner(schema as Json);
    const placed = this.#inner(schema as Json);
    const known = this.schemas[title];
    if (known && JSON.stringify(known) !== JSON.stringify(placed)) {
      throw new TypeError(`two different schemas are called ${title}`);
    }
    this.schemas[title] = placed;
    return { $ref: `#/components/schemas/${title}` };
  }

  #inner(schema: Json): Json {
    return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, this.#value(key, value)]));
  }

  #value(key: string, value: unknown): unknown {
    // Data, not schemas: a `title` in there is somebody's field.
    if (key === 'examples' || key === 'default' || key === 'const' || key === 'enum') return value;
    if (key === 'properties' || key === 'patternProperties') {
      const properties = Object.entries(value as Json);
      return Object.fromEntries(properties.map(([name, inner]) => [name, this.place(inner as Json)]));
    }
    if (Array.isArray(value)) return value.map((item) => this.#value('', item));
    return typeof value === 'object' && value !== null ? this.place(value as Json) : value;
  }
}

function operationOf(route: Route, components: Components): Json {
  const { operation, auth } = route;
  const { id, summary, description, tag, answers } = operation.doc;
  const responses: Record<string, Json> = {};
  for (const [status, answer] of Object.entries(answers)) {
    const { schema, examples, contentType, links } = answer;
    responses[status] = {
      description: answer.description,
      headers: answerHeaders(route, Number(status)),
      ...(schema ? content(components.place(schema), examples, contentType) : {}),
      ...(links ? { links } : {}),
    };
  }
  for (const [status, response] of Object.entries(errorResponses(route, components))) {
    const own = answers[Number(status)];
    responses[status] = own ? eitherOf(own, response, components) : response;
  }
  return {
    operationId: id,
    summary,
    description,
    tags: [tag],
    security: auth === 'none' ? [] : [securityOf(route)],
    parameters: parameters(route, components),
    ...(operation.body ? { requestBody: requestBody(operation.doc, operation.body, components) } : {}),
    responses,
  };
}

/** What an operation wants of its credentials: in OpenAPI 3.1 the roles of a scheme stand beside its name. */
function securityOf({ auth, operation }: Route): Record<string, string[]> {
  if (auth !== 'merchant') return { operatorToken: [] };
  return { apiKey: operation.scope === undefined ? [] : [operation.scope] };
}

/** A status that a route answers in a form of its own, and that every route can answer as an error. */
function eitherOf(own: AnswerDoc, error: Json, components: Components): Json {
  const { 'application/json': json } = error.content as Record<string, Json>;
  const schema = { anyOf: [own.schema ? components.place(own.schema) : {}, json!.schema] };
  const description = `${own.description}\n\n${String(error.description)}`;
  return { ...error, description, content: { 'application/json': { ...json, schema } } };
}

function content(
  schema: Json,
  examples?: OperationDoc['requestExamples'],
  contentType = 'application/json',
): Json {
  return { content: { [contentType]: { schema, ...(examples ? { examples: named(examples) } : {}) } } };
}

function named(examples: Readonly<Record<string, unknown>>): Json {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}

function requestBody(doc: OperationDoc, body: TObject, components: Components): Json {
  const schema = components.place(doc.requestSchema ?? body);
  // No body is taken as `{}`.
  const required = Boolean(body.required?.length);
  return { required, ...content(schema, doc.requestExamples) };
}

function parameters({ operation }: Route, components: Components): Json[] {
  const listed: Json[] = [];
  const add = (place: 'path' | 'query', schema: TObject | undefined) => {
    for (const [name, field] of Object.entries(schema?.properties ?? {})) {
      const { description, ...rest } = components.place(field as TSchema) as { description?: string };
      const required = place === 'path' || Boolean(schema?.required?.includes(name));
      listed.push({ name, in: place, required, ...(description ? { description } : {}), schema: rest });
    }
  };
  add('path', operation.params);
  add('query', operation.query);
  if (operation.idempotent) listed.push({ $ref: '#/components/parameters/IdempotencyKey' });
  if (operation.once) listed.push(onceParameter);
  listed.push({ $ref: '#/components/parameters/RequestId' });
  return listed;
}

/** The codes a route can answer: those of its kind, plus its own. */
export function errorCodesOf({ method, auth, operation }: Route): ErrorCode[] {
  const codes: ErrorCode[] = [
    'parameter_unknown',
    'parameter_invalid',
    'internal_error',
    'service_unavailable',
  ];
  if (auth !== 'none') codes.push('api_key_missing', 'api_key_invalid', 'rate_limited');
  if (auth === 'merchant' && method !== 'GET') codes.push('merchant_suspended');
  if (auth !== 'none' && auth !== 'merchant') codes.push('permission_denied');
  if (operation.testOnly || operation.scope) codes.push('permission_denied');
  if (operation.params) codes.push('resource_not_found');
  if ((operation.query as { required?: string[] } | undefined)?.required?.length)
    codes.push('parameter_missing');
  if (operation.body) {
    codes.push('invalid_json', 'request_malformed', 'parameter_missing', 'metadata_invalid');
    codes.push('body_too_large', 'unsupported_media_type');
  }
  if (operation.idempotent) {
    codes.push('idempotency_key_missing', 'idempotency_key_invalid');
    codes.push('idempotency_key_reused', 'idempotency_key_in_use');
  }
  if (operation.once) codes.push('idempotency_key_invalid', 'idempotency_key_reused', 'action_not_allowed');
  return [...new Set([...codes, ...(operation.doc.errors ?? [])])];
}

function errorResponses(route: Route, components: Components): Record<string, Json> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodesOf(route)) {
    const { httpStatus } = errorTable[code];
    byStatus.set(httpStatus, [...(byStatus.get(httpStatus) ?? []), code]);
  }
  const responses: Record<string, Json> = {};
  for (const [status, codes] of byStatus) {
    responses[status] = {
      description: codes.map((code) => `\`${code}\`: ${errorTable[code].message}`).join('\n\n'),
      headers: answerHeaders(route, status, codes),
      content: {
        'application/json': {
          schema: components.place(ErrorBody),
          examples: Object.fromEntries(
            codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
          ),
        },
      },
    };
  }
  return responses;
}

/** One example per code that some route can answer. */
function errorExamples(routes: readonly Route[]): Record<string, Json> {
  const codes = [...new Set(routes.flatMap(errorCodesOf))].sort();
  return Object.fromEntries(
    codes.map((code) => {
      const { type, message } = errorTable[code];
      const error = { type, code, message, request_id: 'req_01K5J8Q2R3S4T5V6W7X8Y9Z0AB' };
      return [code, { value: { error } }];
    }),
  );
}

const header = (name: string, required?: true): Json =>
  required ? { ...headers[name], required } : { $ref: `#/components/headers/${name}` };

function answerHeaders({ auth, operation }: Route, status: number, codes: readonly ErrorCode[] = []): Json {
  const listed: Json = { 'Request-Id': header('RequestId'), 'Cache-Control': header('CacheControl') };
  // A 429 is also what becomes of too many wrong keys, of which nobody is known.
  if (auth === 'merchant' && status !== 401) {
    listed['RateLimit-Limit'] = header('RateLimitLimit');
    listed['RateLimit-Remaining'] = header('RateLimitRemaining');
    listed['RateLimit-Reset'] = header('RateLimitReset');
  }
  if (status === 401) listed['WWW-Authenticate'] = header('WWWAuthenticate');
  if (status === 429 || status === 503) listed['Retry-After'] = header('RetryAfter', true);
  else if (codes.includes('idempotency_key_in_use')) listed['Retry-After'] = header('RetryAfter');
  if (operation.idempotent && status < 300) listed['Idempotent-Replayed'] = header('IdempotentReplayed');
  return listed;
}

const headers: Record<string, Json> = {
  RequestId: {
    description: 'The id of this request, as in our log: `req_…`, or your own `X-Request-Id`.',
    required: true,
    schema: { type: 'string', pattern: '^[\\w-]{8,64}$' },
  },
  CacheControl: { description: 'Always `no-store`.', required: true, schema: { const: 'no-store' } },
  RateLimitLimit: {
    description: 'Requests that may come at once. Absent where there is no limit.',
    schema: { type: 'integer', minimum: 1 },
  },
  RateLimitRemaining: {
    description: 'Requests left of them now.',
    schema: { type: 'integer', minimum: 0 },
  },
  RateLimitReset: {
    description: 'Seconds until all of them are there again.',
    schema: { type: 'integer', minimum: 0 },
  },
  RetryAfter: { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
  WWWAuthenticate: { description: '`Bearer`', required: true, schema: { const: 'Bearer' } },
  IdempotentReplayed: {
    description: '`true` when this is the answer to an earlier request with the same key and body.',
    schema: { const: 'true' },
  },
};

const requestIdParameter: Json = {
  name: 'X-Request-Id',
  in: 'header',
  required: false,
  description: 'Your own id for this request: 8 to 64 of `[A-Za-z0-9_-]`. One of another form is ignored.',
  schema: { type: 'string' },
};

const idempotencyKeyParameter: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description:
    'Unique per operation, and the same again when you retry: 1 to 255 printable ASCII characters. Kept 24 hours.',
  // Spaces at the ends are lost on the way, as in every header.
  schema: { type: 'string', maxLength: 255, pattern: '^[\\x21-\\x7E]([\\x20-\\x7E]*[\\x21-\\x7E])?$' },
};

const onceParameter: Json = {
  ...idempotencyKeyParameter,
  required: false,
  description: 'Sent again with the same, the request is refused, and the refusal names what it had made.',
};

function securitySchemes(routes: readonly Route[]): Record<string, Json> {
  const schemes: Record<string, Json> = {};
  for (const { auth } of routes) {
    if (auth === 'merchant') {
      schemes.apiKey = {
        type: 'http',
        scheme: 'bearer',
        description:
          'A secret API key: `kusanya_test_sk_…` acts in test mode, `kusanya_live_sk_…` in live mode.',
      };
    } else if (auth !== 'none') {
      schemes.operatorToken = { type: 'http', scheme: 'bearer', description: 'An operator’s token.' };
    }
  }
  return schemes;
}

const text = (description: string, required = true): Json => ({
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
});

/** CONTRACT 13 */
function webhookItem(
  { type, description, schema }: { type: string; description: string; schema: TSchema },
  components: Components,
): Json {
  return {
    post: {
      operationId: `on.${type}`,
      summary: type,
      description:
        `${description} Delivered at least once and in any order: store the event’s \`id\` and ignore repeats. ` +
        'Answer 2xx within 10 seconds; anything else, a redirect too, is tried again after 1 min, 5 min, ' +
        '30 min, 2 h, 6 h and 12 h.',
      tags: ['Events'],
      security: [],
      parameters: [
        {
          name: 'Service-Signature',
          in: 'header',
          required: true,
          description:
            '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<raw body>` with the endpoint’s whole `whsec_…` ' +
            'secret. Refuse a `t` more than 300 seconds away. While secrets are being rotated there is one `v1` for each.',
          schema: { type: 'string', pattern: '^t=\\d+(,v1=[0-9a-f]{64})+$' },
        },
        { name: 'webhook-id', ...text('The event’s id (Standard Webhooks).') },
        { name: 'webhook-timestamp', ...text('Unix seconds (Standard Webhooks).') },
        { name: 'webhook-signature', ...text('`v1,<base64>` (Standard Webhooks), with the same secret.') },
        { name: 'Webhook-Attempt', ...text('1 for the first attempt.') },
      ],
      requestBody: { required: true, ...content(components.place(schema)) },
      responses: { '2XX': { description: 'Received.' } },
    },
  };
}
