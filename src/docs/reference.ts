import type { TSchema } from 'typebox';
import { type AnswerDoc, type ErrorCode, errorTable, type Method, type Route } from '../http/http.ts';
import type { Call } from './samples.ts';
import {
  exampleOf,
  type Field,
  fieldsOf,
  firstOf,
  listed,
  objectsIn,
  readable,
  type Schema,
} from './schema.ts';

/** What the documentation is made of: the index of the merchants' routes, and what is said about it as a whole. */
export interface Interface {
  routes: readonly Route[];
  title: string;
  /** Markdown. */
  description: string;
  tags: readonly { name: string; description: string }[];
  webhooks: readonly { type: string; description: string; schema: TSchema }[];
  /** Every code that a route can answer. */
  errorsOf(route: Route): readonly ErrorCode[];
}

/** The operations of one tag, and the objects that they are the first to answer: one page. */
export interface Chapter {
  /** The last part of its address. */
  slug: string;
  title: string;
  description: string;
  operations: readonly OperationView[];
  objects: readonly ObjectView[];
}

export interface OperationView {
  id: string;
  title: string;
  method: Method;
  /** `/v1/collections/{id}` */
  path: string;
  description: string;
  /** `Path`, `Query`, `Body`, `Header`; only those that have any. */
  groups: readonly { title: string; fields: readonly Field[] }[];
  call: Call;
  answers: readonly AnswerView[];
  errors: readonly ErrorView[];
}

export interface AnswerView {
  status: number;
  description: string;
  /** What it is, or is a page of: the title of an object. */
  object: string | undefined;
  isPage: boolean;
  example: unknown;
  schema: Schema | undefined;
}

export interface ErrorView {
  code: ErrorCode;
  status: number;
  type: string;
  message: string;
  remedy: string;
  /** Not every operation can answer it. */
  isSpecial: boolean;
}

export interface ObjectView {
  title: string;
  /** The end of its address: `collection-object`. */
  id: string;
  fields: readonly Field[];
  example: unknown;
  schema: Schema;
  /** What is said of it beside its fields: Markdown. */
  about: string;
}

/** The whole reference, in the order of the tags and of the index. */
export function chaptersOf({ routes, tags, webhooks, errorsOf }: Interface): Chapter[] {
  const everywhere = routes.filter(({ auth }) => auth !== 'none').map((route) => new Set(errorsOf(route)));
  const isSpecial = (code: ErrorCode) => !everywhere.every((codes) => codes.has(code));
  const seen = new Set<string>();
  const newObjects = (schemas: readonly Schema[]) =>
    schemas.filter(({ title = '' }) => !seen.has(title) && seen.add(title)).map((each) => objectOf(each));
  return tags.map(({ name, description }) => {
    const own = routes.filter(({ operation }) => operation.doc.tag === name);
    const answered = own.flatMap(({ operation }) =>
      Object.values(operation.doc.answers).flatMap(({ schema }) =>
        schema ? objectsIn(readable(schema)) : [],
      ),
    );
    const told = name === 'Events' ? webhooks : [];
    return {
      slug: slugOf(name),
      title: name,
      description: forReaders(description),
      operations: own.map((route) => operationOf(route, errorsOf(route), isSpecial)),
      objects: [...newObjects(answered), ...webhookObjects(told, newObjects)],
    };
  });
}

/** What is POSTed to endpoints: each shape once, with the types that have it. */
function webhookObjects(
  webhooks: Interface['webhooks'],
  newObjects: (schemas: readonly Schema[]) => ObjectView[],
): ObjectView[] {
  return newObjects(webhooks.map(({ schema }) => readable(schema))).map((object) => {
    const types = webhooks.filter(({ schema }) => readable(schema).title === object.title);
    const rows = types.map(({ type, description }) => `| \`${type}\` | ${description} |`);
    return { ...object, about: ['| type | |', '|---|---|', ...rows].join('\n') };
  });
}

/** Every code, those of the front door too, in the order of the table. */
export function errorViews(): ErrorView[] {
  return (Object.keys(errorTable) as ErrorCode[]).map((code) => errorOf(code, true));
}

function errorOf(code: ErrorCode, isSpecial: boolean): ErrorView {
  const { httpStatus: status, type, message, remedy } = errorTable[code];
  return { code, status, type, message, remedy, isSpecial };
}

function operationOf(
  route: Route,
  errors: readonly ErrorCode[],
  isSpecial: (code: ErrorCode) => boolean,
): OperationView {
  const { method, operation, auth } = route;
  const { id, summary, description, answers, requestSchema, requestExamples } = operation.doc;
  const body = operation.body && readable(requestSchema ?? operation.body);
  // What begins is shown as it begins; what is read, as it ended.
  const which = method === 'GET' ? -1 : 0;
  const views = Object.entries(answers).map(([status, answer]) => answerOf(Number(status), answer, which));
  const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
  const params = operation.params && readable(operation.params);
  const query = operation.query && readable(operation.query);
  const sent = body && (Object.values(requestExamples ?? {})[0] ?? exampleOf(body, 0));
  const groups = [
    { title: 'Header', fields: operation.idempotent ? [idempotencyKey] : [] },
    { title: 'Path', fields: fieldsOf(params) },
    { title: 'Query', fields: fieldsOf(query) },
    { title: 'Body', fields: fieldsOf(body) },
  ];
  return {
    ...{ id, title: summary, method, path, description: forReaders(description) },
    groups: groups.filter(({ fields }) => fields.length > 0),
    call: {
      method,
      path: pathOf(path, params) + (query?.properties?.limit ? '?limit=3' : ''),
      hasKey: auth !== 'none',
      idempotencyKey: operation.idempotent ? keyOf(id, sent) : undefined,
      body: sent,
      isAnswered: views.some(({ schema }) => schema !== undefined),
    },
    answers: views,
    errors: errors.map((code) => errorOf(code, isSpecial(code))).sort((a, b) => a.status - b.status),
  };
}

const idempotencyKey: Field = {
  name: 'Idempotency-Key',
  type: 'string',
  limits: '1 to 255 printable ASCII characters',
  isRequired: true,
  description:
    'One per operation. Store it **before** you send, and send the same again when you retry. Kept 24 hours.',
  object: undefined,
  fields: [],
};

/** An order's number where the body has one, for that is what a shop should take. */
function keyOf(id: string, body: unknown): string {
  const { reference } = (body ?? {}) as { reference?: unknown };
  return typeof reference === 'string' ? reference : `${slugOf(id.replaceAll(/[A-Z]/g, ' $&'))}-1`;
}

function pathOf(path: string, params: Schema | undefined): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    String(exampleOf(params?.properties?.[name] ?? {}, 0)),
  );
}

function answerOf(
  status: number,
  { description, schema: given, examples = {} }: AnswerDoc,
  which: 0 | -1,
): AnswerView {
  const schema = given && readable(given);
  const items = schema && listed(schema);
  const [object] = schema ? objectsIn(schema) : [];
  return {
    ...{ status, description, schema, isPage: items !== undefined, object: object?.title },
    example: Object.values(examples)[0] ?? (schema && exampleOf(schema, which)),
  };
}

function objectOf(schema: Schema): ObjectView {
  const title = schema.title!;
  return {
    title,
    id: `${slugOf(title.replaceAll(/(?<=[a-z])[A-Z]/g, ' $&'))}-object`,
    fields: fieldsOf(firstOf(schema)),
    example: exampleOf(schema, -1),
    schema,
    about: schema.description ?? '',
  };
}

export function slugOf(text: string): string {
  return text.trim().toLowerCase().replaceAll(/\W+/g, '-');
}

/** Which parts came with which version is for people who have the contract. */
function forReaders(description: string): string {
  const text = description.replace(/^(An addition|Additions) to the interface[.:,]\s+/, '');
  return text.replace(/^[a-z]/, (letter) => letter.toUpperCase());
}
