import type { TSchema } from 'typebox';

/** A JSON Schema as far as the pages read it. */
export interface Schema {
  title?: string;
  type?: string;
  description?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  patternProperties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  examples?: readonly unknown[];
  default?: unknown;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

export function readable(schema: TSchema): Schema {
  return schema;
}

/** One field of a request or an answer. Texts are Markdown. */
export interface Field {
  name: string;
  type: string;
  /** Bounds, words to choose from, the default. */
  limits: string;
  isRequired: boolean;
  description: string;
  /** The object that it is, or is a list of, by its title: described in its own place. */
  object: string | undefined;
  /** What is inside of it, where that has no place of its own. */
  fields: readonly Field[];
}

/** The fields of an object; of several alternatives those of the first. */
export function fieldsOf(schema: Schema | undefined): Field[] {
  const { properties = {}, required = [] } = firstOf(schema);
  return Object.entries(properties).map(([name, field]) => {
    const inner = firstOf(field.items ?? field);
    return {
      name,
      type: typeOf(field),
      limits: limitsOf(field)
        .filter((limit) => !says(field.description, limit))
        .join(', '),
      isRequired: required.includes(name),
      description: field.description ?? '',
      object: inner.title,
      fields: inner.title === undefined ? fieldsOf(inner) : [],
    };
  });
}

/** What stands for a schema with alternatives that are objects. */
export function firstOf(schema: Schema | undefined): Schema {
  const [first] = schema?.anyOf ?? [];
  return first?.type === 'object' ? first : (schema ?? {});
}

/** The titled objects that a schema is or holds, outer ones first; a list stands for what it lists. */
export function objectsIn(schema: Schema): Schema[] {
  const items = listed(schema);
  if (items) return objectsIn(items);
  const inner = [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])].flatMap(objectsIn);
  const fields = Object.values(schema.properties ?? {}).flatMap(objectsIn);
  return [...(schema.title !== undefined && schema.properties ? [schema] : []), ...inner, ...fields];
}

/** What a page of a list holds; undefined for what is no list. */
export function listed(schema: Schema): Schema | undefined {
  return schema.properties?.object?.const === 'list' ? schema.properties.data?.items : undefined;
}

function typeOf(schema: Schema): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' or ');
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  const values = Object.values(schema.patternProperties ?? {});
  if (values.length > 0) return `map of ${values.map(typeOf).join(' or ')}`;
  if (schema.format === 'date-time') return 'time';
  return schema.type ?? typeof (schema.const ?? schema.enum?.[0]);
}

const number = (value: number) => value.toLocaleString('en');

/** A description has said it already. */
function says(description: string | undefined, limit: string): boolean {
  return description?.toLowerCase().includes(limit) ?? false;
}

function limitsOf(schema: Schema): string[] {
  const { minimum, maximum, maxLength, format } = schema;
  const isBound = (value: number | undefined): value is number =>
    value !== undefined && Math.abs(value) < Number.MAX_SAFE_INTEGER;
  const words = schema.enum?.map((value) => `\`${String(value)}\``);
  const isId = idOf(schema) !== undefined;
  return [
    ...(schema.const === undefined ? [] : [`always \`${String(schema.const)}\``]),
    ...(words ? [words.length > 1 ? `one of ${words.join(', ')}` : `always ${words[0]}`] : []),
    ...(isBound(minimum) && isBound(maximum) ? [`${number(minimum)} to ${number(maximum)}`] : []),
    ...(isBound(minimum) && !isBound(maximum) ? [`at least ${number(minimum)}`] : []),
    ...(!isBound(minimum) && isBound(maximum) ? [`at most ${number(maximum)}`] : []),
    ...(isId ? [`\`${idOf(schema)}_…\``] : []),
    ...(maxLength !== undefined && !isId && format === undefined
      ? [`up to ${number(maxLength)} characters`]
      : []),
    ...(schema.default === undefined ? [] : [`default \`${String(schema.default)}\``]),
  ];
}

/** The prefix of the ids that a field holds. */
export function idOf({ pattern = '' }: Schema): string | undefined {
  return /^\^([a-z]+)_\[0-9A-HJKMNP-TV-Z\]\{26\}\$$/.exec(pattern)?.[1];
}

/**
 * A value that a schema allows: an example of its own, the first or the last, else one made of its parts. Of objects it
 * has what is required. What cannot be guessed needs an example of its own; a test compares.
 */
export function exampleOf(schema: Schema, which: 0 | -1): unknown {
  if (schema.examples && schema.examples.length > 0) return schema.examples.at(which);
  if (schema.const !== undefined) return schema.const;
  // A reader is in test mode.
  if (schema.enum) return schema.enum.includes('test') ? 'test' : schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.anyOf) return exampleOf(schema.anyOf[0]!, which);
  if (schema.items) return [exampleOf(schema.items, which)];
  if (schema.type === 'object') {
    const { properties = {}, required = [] } = schema;
    return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name]!, which)]));
  }
  if (schema.type === 'string') return exampleText(schema);
  return schema.type === 'boolean' ? false : (schema.minimum ?? 0);
}

function exampleText(schema: Schema): string {
  const prefix = idOf(schema);
  if (prefix !== undefined) return `${prefix}_01K5J8Q2R3S4T5V6W7X8Y9Z0AB`;
  if (schema.format === 'date-time') return '2026-11-21T09:00:00.000Z';
  return schema.format === 'uri' ? 'https://shop.example/hooks' : 'text';
}
