import { Ajv2020 } from 'ajv/dist/2020.js';

/**
 * What OpenAPI 3.1 asks of a document, as far as ours goes: the fields each object may and must have, references
 * that lead somewhere, paths and parameters that agree, schemas that are JSON Schema 2020-12, examples that
 * conform. Written down here because no validator is among our packages.
 */

type Json = Record<string, unknown>;

interface Rule {
  must: readonly string[];
  may: readonly string[];
}

const rule = (must: string, may: string): Rule => ({ must: words(must), may: words(may) });
const words = (text: string) => text.split(' ').filter(Boolean);

/** Fields by kind of object; `x-…` is allowed everywhere. */
const rules = {
  document: rule(
    'openapi info',
    'servers paths webhooks components tags security externalDocs jsonSchemaDialect',
  ),
  info: rule('title version', 'summary description termsOfService contact license'),
  server: rule('url', 'description variables'),
  tag: rule('name', 'description externalDocs'),
  path: rule('', 'summary description servers parameters get put post delete options head patch trace'),
  operation: rule(
    '',
    'tags summary description externalDocs operationId parameters requestBody responses callbacks deprecated security servers',
  ),
  parameter: rule(
    'name in',
    'description required deprecated allowEmptyValue style explode allowReserved schema example examples content',
  ),
  header: rule('', 'description required deprecated style explode schema example examples content'),
  requestBody: rule('content', 'description required'),
  response: rule('description', 'headers content links'),
  media: rule('', 'schema example examples encoding'),
  example: rule('', 'summary description value externalValue'),
  components: rule(
    '',
    'schemas responses parameters examples requestBodies headers securitySchemes links callbacks pathItems',
  ),
  security: rule('type', 'description name in scheme bearerFormat flows openIdConnectUrl'),
} as const satisfies Record<string, Rule>;

const methods = words('get put post delete options head patch trace');

/** Every fault of a document, each with its place. */
export function faultsOf(document: Json): string[] {
  return new Checker(document).faults;
}

class Checker {
  readonly faults: string[] = [];
  readonly #document: Json;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  readonly #validators = new Map<string, ReturnType<Ajv2020['compile']>>();
  readonly #operationIds = new Set<string>();

  constructor(document: Json) {
    this.#document = document;
    this.#references(document, '#');
    this.#fields('document', document, '#');
    this.#ajv.addSchema(this.#document, 'document');
    // The rest follows references and compiles schemas: both have to be sound.
    if (this.faults.some((fault) => fault.includes('leads nowhere'))) return;
    for (const [name, schema] of entriesOf((document.components as Json).schemas)) this.#schema(schema, name);
    if (this.faults.some((fault) => fault.includes('JSON Schema'))) return;
    this.#fields('info', document.info as Json, 'info');
    for (const server of listOf(document.servers)) this.#fields('server', server, 'servers');
    for (const tag of listOf(document.tags)) this.#fields('tag', tag, 'tags');
    this.#components(document.components as Json);
    for (const [path, item] of entriesOf(document.paths)) {
      if (!path.startsWith('/')) this.#fault(path, 'a path begins with /');
      this.#path(
        item,
        path,
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!),
      );
    }
    for (const [name, item] of entriesOf(document.webhooks)) this.#path(item, name, []);
  }

  #fault(where: string, what: string): void {
    this.faults.push(`${where}: ${what}`);
  }

  #fields(kind: keyof typeof rules, value: Json, where: string): void {
    const { must, may } = rules[kind];
    for (const name of must) if (value[name] === undefined) this.#fault(where, `${name} is missing`);
    for (const name of Object.keys(value)) {
      if (!must.includes(name) && !may.includes(name as never) && !name.startsWith('x-'))
        this.#fault(where, `unknown field ${name}`);
    }
  }

  /** The object itself, or what its reference leads to. */
  #resolved(value: Json): Json {
    return typeof value.$ref === 'string' ? this.#resolved(this.#at(value.$ref) as Json) : value;
  }

  #at(reference: string): unknown {
    const parts = reference.split('/').slice(1);
    return parts.reduce<unknown>(
      (inner, part) => (inner as Json | undefined)?.[unescaped(part)],
      this.#document,
    );
  }

  #references(value: unknown, where: string): void {
    if (typeof value !== 'object' || value === null) return;
    const { $ref } = value as Json;
    if (typeof $ref === 'string' && this.#at($ref) === undefined) this.#fault(where, `${$ref} leads nowhere`);
    for (const [key, inner] of Object.entries(value)) this.#references(inner, `${where}/${key}`);
  }

  #schema(schema: Json, where: string): void {
    if (!this.#ajv.validateSchema(schema))
      this.#fault(where, `not a valid JSON Schema: ${this.#ajv.errorsText()}`);
  }

  #components(components: Json): void {
    this.#fields('components', components, 'components');
    for (const [name, header] of entriesOf(components.headers)) this.#fields('header', header, name);
    for (const [name, example] of entriesOf(components.examples)) this.#fields('example', example, name);
    for (const [name, parameter] of entriesOf(components.parameters))
      this.#fields('parameter', parameter, name);
    for (const [name, scheme] of entriesOf(components.securitySchemes)) {
      this.#fields('security', scheme, name);
      if (scheme.type === 'http' && !scheme.scheme) this.#fault(name, 'scheme is missing');
    }
    for (const [name, schema] of entriesOf(components.schemas)) {
      const validate = this.#validatorOf(schema);
      for (const example of (schema.examples as unknown[] | undefined) ?? []) {
        if (!validate(example)) this.#fault(name, `example ${JSON.stringify(example)} does not conform`);
      }
    }
  }

  #path(item: Json, where: string, names: string[]): void {
    this.#fields('path', item, where);
    for (const method of methods) {
      if (item[method]) this.#operation(item[method] as Json, `${where}/${method}`, names);
    }
  }

  #operation(operation: Json, where: string, names: string[]): void {
    this.#fields('operation', operation, where);
    const { operationId } = operation as { operationId: string };
    if (this.#operationIds.has(operationId)) this.#fault(where, `operationId ${operationId} is taken`);
    this.#operationIds.add(operationId);
    const tags = listOf(this.#document.tags).map(({ name }) => name);
    for (const tag of (operation.tags as string[]) ?? [])
      if (!tags.includes(tag)) this.#fault(where, `tag ${tag} is not declared`);
    const schemes = ((this.#document.components as Json).securitySchemes ?? {}) as Json;
    for (const name of listOf(operation.security).flatMap((each) => Object.keys(each)))
      if (!schemes[name]) this.#fault(where, `no security scheme ${name}`);
    this.#parameters(listOf(operation.parameters), where, names);
    if (operation.requestBody)
      this.#content(operation.requestBody as Json, 'requestBody', `${where}/requestBody`);
    const responses = entriesOf(operation.responses);
    if (responses.length === 0) this.#fault(`${where}/responses`, 'no answer at all');
    for (const [status, response] of responses) {
      const place = `${where}/responses/${status}`;
      if (!/^([1-5](\d\d|XX)|default)$/.test(status)) this.#fault(place, 'no status');
      this.#content(response, 'response', place);
      for (const [name, header] of entriesOf(response.headers))
        this.#fields('header', this.#resolved(header), `${place}/headers/${name}`);
    }
  }

  #parameters(listed: Json[], where: string, names: string[]): void {
    const parameters = listed.map((each) => this.#resolved(each));
    for (const parameter of parameters) {
      const place = `${where}/parameters/${parameter.name}`;
      this.#fields('parameter', parameter, place);
      if (!['path', 'query', 'header', 'cookie'].includes(String(parameter.in)))
        this.#fault(place, 'in nothing');
      if (!parameter.schema === !parameter.content)
        this.#fault(place, 'needs a schema or a content, one of them');
      if (parameter.in === 'path' && parameter.required !== true)
        this.#fault(place, 'a path’s part is required');
      if (parameter.schema) this.#schema(parameter.schema as Json, place);
    }
    const inPath = parameters.filter((each) => each.in === 'path').map(({ name }) => String(name));
    for (const name of names) if (!inPath.includes(name)) this.#fault(where, `{${name}} is no parameter`);
    for (const name of inPath) if (!names.includes(name)) this.#fault(where, `${name} is not in the path`);
    const keys = parameters.map((each) => `${each.in} ${each.name}`);
    if (new Set(keys).size < keys.length) this.#fault(where, 'a parameter is listed twice');
  }

  #content(holder: Json, kind: 'requestBody' | 'response', where: string): void {
    this.#fields(kind, holder, where);
    for (const [type, media] of entriesOf(holder.content)) {
      const place = `${where}/content/${type}`;
      this.#fields('media', media, place);
      if (!media.schema) continue;
      const validate = this.#validatorOf(media.schema as Json);
      for (const [name, example] of entriesOf(media.examples)) {
        const { value } = this.#resolved(example);
        this.#fields('example', this.#resolved(example), `${place}/examples/${name}`);
        if (!validate(value))
          this.#fault(place, `example ${name} does not conform: ${this.#ajv.errorsText(validate.errors)}`);
      }
    }
  }

  /** References inside are the document's own, so they are made absolute. */
  #validatorOf(schema: Json): ReturnType<Ajv2020['compile']> {
    const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"document#/');
    const validate = this.#validators.get(text) ?? this.#ajv.compile(JSON.parse(text));
    this.#validators.set(text, validate);
    return validate;
  }
}

function listOf(value: unknown): Json[] {
  return (value as Json[] | undefined) ?? [];
}

function entriesOf(value: unknown): [string, Json][] {
  return Object.entries((value ?? {}) as Record<string, Json>);
}

function unescaped(part: string): string {
  return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
}
