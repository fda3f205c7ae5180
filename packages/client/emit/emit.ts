/**
 * Types and routes of the client from the OpenAPI document. Words in answers are open (`'created' | … | Other`),
 * because their lists may grow under a client that is older than its service; words in requests are closed, so that
 * a compiler finds a wrong one. A keyword of JSON Schema that is not known here throws: nothing is left out unseen.
 */
export interface ApiDocument {
  paths: Record<string, Record<string, OperationDoc>>;
  webhooks: Record<string, { post: { requestBody: BodyDoc } }>;
  components: { schemas: Record<string, SchemaDoc> };
}

interface OperationDoc {
  operationId: string;
  parameters?: ParameterDoc[];
  requestBody?: BodyDoc;
  responses: Record<string, { content?: BodyDoc['content'] }>;
}

interface BodyDoc {
  content: Record<string, { schema: SchemaDoc }>;
}

interface ParameterDoc {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: SchemaDoc;
}

export interface SchemaDoc {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: SchemaDoc[];
  description?: string;
  format?: string;
  properties?: Record<string, SchemaDoc>;
  required?: string[];
  items?: SchemaDoc;
  additionalProperties?: boolean | SchemaDoc;
  patternProperties?: Record<string, SchemaDoc>;
  [keyword: string]: unknown;
}

/** Of a request or of an answer. */
type Side = 'request' | 'answer';

/** `schemas.ts` and `routes.ts`. */
export interface Written {
  schemas: string;
  routes: string;
}

const head = '// Written by `npm run client` from openapi.json. Change the service, not this file.\n';

/** Names of components that mean something else in TypeScript. */
const renamed: Readonly<Record<string, string>> = { Error: 'ErrorBody' };

/** Keywords that say what a value may be beyond its type, and those that are read where they stand. */
const known =
  /^(\$ref|type|enum|const|anyOf|description|format|properties|required|items|additionalProperties|patternProperties|title|examples?|default|pattern|propertyNames|(min|max)(imum|Length|Items|Properties)|uniqueItems)$/;

/** What the client's files under `src/written` have to be for this document. */
export function emit(document: ApiDocument): Written {
  const sides = sidesOf(document);
  const isAlternative = alternativesOf(document);
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => {
    const side = sides.get(name);
    if (side === undefined) throw new TypeError(`${name} is neither sent nor answered`);
    return declaration(name, isAlternative.has(name) ? closedType(schema) : schema, side);
  });
  const bodies = Object.values(document.webhooks).map(({ post }) => schemaOf(post.requestBody));
  const received = [...new Set(bodies.map((schema) => typeOf(schema, 'answer', '')))];
  const operations = operationsOf(document);
  return {
    schemas: [
      head,
      '/** Any other word: the list may grow. */',
      'export type Other = string & Record<never, never>;\n',
      ...schemas,
      '/** What a webhook brings. */',
      `export type Webhook = ${received.join(' | ')};\n`,
    ].join('\n'),
    routes: [
      head,
      `import type { ${usedNames(operations, [...sides.keys()]).join(', ')} } from './schemas.ts';\n`,
      '/** Method and path of every operation. */',
      'export const routes = {',
      ...operations.map(({ id, method, path }) => `  ${id}: '${method} ${path}',`),
      '} as const;\n',
      '/** What every operation takes and answers. */',
      'export interface Operations {',
      ...operations.map(({ id, query, body, answer }) =>
        [`  ${id}: {`, `    query: ${query};`, `    body: ${body};`, `    answer: ${answer};`, '  };'].join(
          '\n',
        ),
      ),
      '}\n',
    ].join('\n'),
  };
}

interface Operation {
  id: string;
  method: string;
  path: string;
  query: string;
  body: string;
  answer: string;
}

function operationsOf({ paths }: ApiDocument): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([verb, doc]) => {
      const method = verb.toUpperCase();
      const parameters = doc.parameters ?? [];
      const needsKey = parameters.some(({ $ref }) => $ref === '#/components/parameters/IdempotencyKey');
      // The client asks for a key with every POST and with nothing else.
      if (needsKey !== (method === 'POST')) throw new TypeError(`${method} ${path}: key or no key?`);
      const [, good] = Object.entries(doc.responses).find(([status]) => status.startsWith('2')) ?? [];
      if (!good) throw new TypeError(`${method} ${path} has no good answer`);
      return {
        id: doc.operationId,
        method,
        path,
        query: queryOf(parameters),
        body: doc.requestBody ? typeOf(schemaOf(doc.requestBody), 'request', '    ') : 'undefined',
        answer: good.content ? typeOf(schemaOf(good), 'answer', '    ') : 'undefined',
      };
    }),
  );
}

/** `created_at[gte]` and its kin are one field, `created_at`, whose times may be Dates. */
function queryOf(parameters: readonly ParameterDoc[]): string {
  const properties: Record<string, SchemaDoc> = {};
  for (const { name, description, schema } of parameters.filter((each) => each.in === 'query')) {
    const [, field, relation] = /^(\w+)\[(\w+)\]$/.exec(name) ?? [];
    if (field === undefined || relation === undefined) {
      properties[name] = { ...schema, description };
      continue;
    }
    const others = properties[field]?.properties;
    properties[field] = { type: 'object', properties: { ...others, [relation]: { ...schema, description } } };
  }
  if (Object.keys(properties).length === 0) return 'undefined';
  return typeOf({ type: 'object', properties }, 'request', '    ');
}

function schemaOf({ content }: { content?: BodyDoc['content'] }): SchemaDoc {
  const json = content?.['application/json'];
  if (!json) throw new TypeError('a body is not JSON');
  return json.schema;
}

/** Where the components are used; what a request and an answer share is as open as the answer. */
function sidesOf({ paths, webhooks, components }: ApiDocument): Map<string, Side> {
  const sides = new Map<string, Side>();
  const mark = (value: unknown, side: Side): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      const name = key === '$ref' ? /^#\/components\/schemas\/(\w+)$/.exec(String(inner))?.[1] : undefined;
      if (name === undefined) {
        mark(inner, key === 'requestBody' ? 'request' : side);
      } else if (sides.get(name) !== side && sides.get(name) !== 'answer') {
        sides.set(name, side);
        mark(components.schemas[name], side);
      }
    }
  };
  mark(paths, 'answer');
  // Here we are the receiver: what they call a request is an answer to us.
  for (const { post } of Object.values(webhooks)) mark(post.requestBody.content, 'answer');
  return sides;
}

/** The components that stand beside others: an event is one of several, told apart by its `type`. */
function alternativesOf({ paths, webhooks, components }: ApiDocument): Set<string> {
  const found = new Set<string>();
  const add = (schema: SchemaDoc) => void found.add(schema.$ref?.replace('#/components/schemas/', '') ?? '');
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { anyOf } = value as SchemaDoc;
    if (Array.isArray(anyOf)) anyOf.forEach(add);
    Object.values(value).forEach(visit);
  };
  visit([paths, components]);
  for (const { post } of Object.values(webhooks)) add(schemaOf(post.requestBody));
  return found;
}

/** TypeScript tells alternatives apart only by closed words. */
function closedType(schema: SchemaDoc): SchemaDoc {
  const type = schema.properties?.type;
  if (!type?.enum) return schema;
  const alternatives = { anyOf: type.enum.map((word) => ({ const: word })) };
  const description = 'Others may come: have a branch for what you do not know.';
  return { ...schema, properties: { ...schema.properties, type: { ...alternatives, description } } };
}

function declaration(name: string, schema: SchemaDoc, side: Side): string {
  const text = typeOf(schema, side, '');
  const comment = commentOf(schema.description, '');
  const called = nameOf(name);
  return text.startsWith('{')
    ? `${comment}export interface ${called} ${text}\n`
    : `${comment}export type ${called} = ${text};\n`;
}

/** A schema as a type; lines after the first begin with the margin. */
function typeOf(schema: SchemaDoc, side: Side, margin: string): string {
  const strange = Object.keys(schema).find((keyword) => !known.test(keyword));
  if (strange !== undefined) throw new TypeError(`the emitter does not know the keyword ${strange}`);
  if (schema.$ref !== undefined) return nameOf(schema.$ref.replace('#/components/schemas/', ''));
  if (schema.anyOf) return [...new Set(schema.anyOf.map((each) => typeOf(each, side, margin)))].join(' | ');
  if ('const' in schema) return literal(schema.const);
  if (schema.enum) {
    const words = schema.enum.map(literal);
    // One word alone tells a type from its neighbours, as a `const` does.
    return [...words, ...(side === 'answer' && words.length > 1 ? ['Other'] : [])].join(' | ');
  }
  switch (schema.type) {
    case 'string':
      return side === 'request' && schema.format === 'date-time' ? 'string | Date' : 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
    case 'null':
      return schema.type;
    case 'array': {
      const item = typeOf(schema.items!, side, margin);
      return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
    }
    case 'object':
      return objectOf(schema, side, margin);
    default:
      throw new TypeError(`the emitter does not know the type ${JSON.stringify(schema.type)}`);
  }
}

function objectOf(schema: SchemaDoc, side: Side, margin: string): string {
  const { properties = {}, required = [], patternProperties, additionalProperties } = schema;
  const inner = `${margin}  `;
  const rest = patternProperties ? Object.values(patternProperties)[0] : additionalProperties;
  if (typeof rest === 'object') return `Record<string, ${typeOf(rest, side, margin)}>`;
  if (Object.keys(properties).length === 0) return 'Record<string, unknown>';
  const lines = Object.entries(properties).map(([name, property]) => {
    const mark = required.includes(name) ? '' : '?';
    return `${commentOf(property.description, inner)}${inner}${name}${mark}: ${typeOf(property, side, inner)};`;
  });
  return `{\n${lines.join('\n')}\n${margin}}`;
}

function commentOf(text: string | undefined, margin: string): string {
  return text === undefined ? '' : `${margin}/** ${text.replaceAll('*/', '* /').replaceAll('\n', ' ')} */\n`;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);
}

function nameOf(component: string): string {
  return renamed[component] ?? component;
}

/** The components that the operations name. */
function usedNames(operations: readonly Operation[], components: readonly string[]): string[] {
  const text = operations.map(({ query, body, answer }) => `${query} ${body} ${answer}`).join(' ');
  const names = [...components.map(nameOf), 'Other'];
  return names.filter((name) => new RegExp(`\\b${name}\\b(?!['?:])`).test(text)).sort();
}
