import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Static, TObject } from 'typebox';
import { type Fault, faulty, resourceNotFound } from './errors.ts';
import { textFaults } from './json.ts';

/**
 * Schemas are compiled when the routes are made, equal ones once: that is most of what a start costs the processor.
 * Bodies are taken as they are; only the query, which is all text, is coerced. `$data` stays off: with it a schema's
 * pattern could come from the request.
 */
const compileBody = compiler(false);
const compileQuery = compiler(true);

function compiler(forQuery: boolean): (schema: object) => ValidateFunction {
  const ajv = new Ajv2020({
    strict: true,
    allErrors: true,
    verbose: true,
    coerceTypes: forQuery,
    useDefaults: forQuery,
  });
  ajv.addFormat('date-time', isIsoTime);
  ajv.addFormat('uri', (text) => URL.canParse(text));
  const compiled = new Map<string, ValidateFunction>();
  return (schema) => {
    const text = JSON.stringify(schema);
    const validate = compiled.get(text) ?? ajv.compile(schema);
    compiled.set(text, validate);
    return validate;
  };
}

/** More would only make the answer long. */
export const faultsMax = 50;

/** Throws every fault of a body at once. */
export type CheckBody<Who> = (body: Record<string, unknown>, principal: Who) => void;

/**
 * `check` finds what a schema cannot say; where it has something to say about a field, its words are used
 * instead of the schema's.
 */
export function bodyCheck<Who>(
  schema: TObject,
  check?: (body: Readonly<Record<string, unknown>>, principal: Who) => Fault[],
): CheckBody<Who> {
  const validate = compileBody(schema);
  return (body, principal) => {
    const checked = check ? check(body, principal) : [];
    const named = new Set(checked.map(({ param }) => param));
    const found = [...checked, ...textFaults(body).filter(({ param }) => !named.has(param))];
    const valid = validate(body);
    if (valid && found.length === 0) return;
    const better = new Set(found.map(({ param }) => topOf(param)));
    const faults = valid ? [] : schemaFaults(validate, 'a field of this request');
    // Unknown fields may be many; the field a merchant meant to send matters more.
    const all = [...faults.filter(({ param }) => !better.has(topOf(param))), ...found];
    throw faulty(all.slice(0, faultsMax));
  };
}

/** What a query is after it was checked. Without a schema there is nothing in it. */
type Read<Fields> = Fields extends TObject ? Static<Fields> : Record<string, never>;

/** Reads a query string into typed values; throws every fault at once. No schema: no parameter is known. */
export function queryReader<Fields extends TObject | undefined>(
  schema: Fields,
): (querystring: string) => Read<Fields> {
  const validate = compileQuery(schema ?? { type: 'object', additionalProperties: false });
  return (querystring) => {
    const query: Record<string, unknown> = {};
    const repeated: Fault[] = [];
    for (const [name, value] of new URLSearchParams(querystring)) {
      if (Object.hasOwn(query, name)) {
        repeated.push({ param: name, code: 'parameter_invalid', message: `${shown(name)} is given twice.` });
      } else {
        // Never by assignment: `__proto__` would set the prototype and go unseen.
        Object.defineProperty(query, name, { value, enumerable: true, writable: true, configurable: true });
      }
    }
    const faults = validate(query) ? [] : schemaFaults(validate, 'a query parameter of this path');
    if (repeated.length + faults.length > 0) throw faulty([...repeated, ...faults].slice(0, faultsMax));
    return query as Read<Fields>;
  };
}

/** A path whose parts do not match its schema names nothing: it is answered like an unknown id. */
export function paramsCheck(schema: TObject): (params: Record<string, string>) => void {
  const validate = compileBody(schema);
  return (params) => {
    if (!validate(params)) throw resourceNotFound();
  };
}

function topOf(param: string): string {
  const dot = param.indexOf('.');
  return dot < 0 ? param : param.slice(0, dot);
}

function schemaFaults(validate: ValidateFunction, kind: string): Fault[] {
  const faults = new Map<string, Fault>();
  for (const error of validate.errors ?? []) {
    // Each branch of a choice complains; the choice itself says it once.
    if (/\/(anyOf|oneOf)\//.test(error.schemaPath)) continue;
    const fault = toFault(error, kind);
    if (!faults.has(fault.param)) faults.set(fault.param, fault);
  }
  return [...faults.values()];
}

function toFault(error: ErrorObject, kind: string): Fault {
  const path = error.instancePath.split('/').slice(1).map(unescaped);
  const inner = error.params.missingProperty ?? error.params.additionalProperty;
  const param = shown([...path, ...(inner === undefined ? [] : [String(inner)])].join('.'));
  switch (error.keyword) {
    case 'required': {
      const about = error.parentSchema?.properties?.[String(inner)]?.description;
      return {
        param,
        code: 'parameter_missing',
        message: `${param} is required.${about ? ` ${about}` : ''}`,
      };
    }
    case 'additionalProperties':
      return { param, code: 'parameter_unknown', message: unknownMessage(error, param, kind) };
    default:
      return { param, code: 'parameter_invalid', message: `${param || 'The body'} ${demand(error)}.` };
  }
}

function unknownMessage(error: ErrorObject, param: string, kind: string): string {
  const known = Object.keys(error.parentSchema?.properties ?? {});
  const meant = known.find((name) => isSlip(String(error.params.additionalProperty), name));
  if (meant) return `${param} is not ${kind}. Did you mean ${meant}?`;
  return `${param} is not ${kind}. ${known.length ? `Known: ${known.join(', ')}.` : 'It takes none.'}`;
}

/** What a value must be, as the end of a sentence that begins with its name. */
function demand(error: ErrorObject): string {
  const { params, keyword, schema } = error;
  switch (keyword) {
    case 'type':
      return `must be ${article(String(params.type))}, not ${kindOf(error.data)}`;
    case 'enum':
      return `must be one of: ${(schema as unknown[]).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(schema)}`;
    case 'minimum':
      return `must be at least ${params.limit}`;
    case 'maximum':
      return `must be at most ${params.limit}`;
    case 'minLength':
      return params.limit === 1 ? 'may not be empty' : `must have at least ${params.limit} characters`;
    case 'maxLength':
      return `may have at most ${params.limit} characters`;
    case 'pattern':
      return `must match ${params.pattern}`;
    case 'format':
      return params.format === 'date-time'
        ? 'must be a time such as 2026-11-21T09:00:00Z (in a query write + as %2B)'
        : `must be ${article(String(params.format))}`;
    case 'minProperties':
      return 'may not be empty';
    case 'minItems':
      return `must have at least ${params.limit} items`;
    case 'maxItems':
      return `may have at most ${params.limit} items`;
    default:
      return 'has a value that is not allowed';
  }
}

function article(type: string): string {
  return /^[aeiou]/.test(type) && type !== 'uri' ? `an ${type}` : `a ${type}`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'number' && !Number.isInteger(value) ? 'a fraction' : article(typeof value);
}

/** JSON pointers write `/` as `~1` and `~` as `~0`. */
function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** A name from the request as it may stand in an answer: short, and valid Unicode. */
function shown(name: string): string {
  return (name.length > 80 ? `${name.slice(0, 80)}…` : name).replace(/\p{Cs}/gu, '\u{FFFD}');
}

/** Whether `sent` is `known` with one letter more, less or other, or two neighbours swapped (`amuont`). */
function isSlip(sent: string, known: string): boolean {
  if (sent.toLowerCase() === known.toLowerCase()) return true;
  if (known.length < 4 || Math.abs(sent.length - known.length) > 1) return false;
  let start = 0;
  while (start < sent.length && sent[start] === known[start]) start++;
  const restSent = sent.slice(start);
  const restKnown = known.slice(start);
  return (
    restSent.slice(1) === restKnown ||
    restSent === restKnown.slice(1) ||
    restSent.slice(1) === restKnown.slice(1) ||
    (restSent[0] === restKnown[1] && restSent[1] === restKnown[0] && restSent.slice(2) === restKnown.slice(2))
  );
}

const isoPattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](\d\d):(\d\d))$/;

/** An ISO 8601 time with a zone that names a day that exists: `Date.parse` takes the 30th of February. */
export function isIsoTime(text: string): boolean {
  const match = text.length <= 40 ? isoPattern.exec(text) : null;
  if (!match) return false;
  const [year, month, day, hour, minute, second, zoneHour, zoneMinute] = match.slice(1).map(Number);
  const daysInMonth = new Date(Date.UTC(year!, month!, 0)).getUTCDate();
  return (
    month! >= 1 &&
    month! <= 12 &&
    day! >= 1 &&
    day! <= daysInMonth &&
    hour! <= 23 &&
    minute! <= 59 &&
    second! <= 59 &&
    !(zoneHour! > 23) &&
    !(zoneMinute! > 59)
  );
}
