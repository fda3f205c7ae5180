import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { isIsoTime } from '../../src/http/http.ts';
import type { OpenApiDocument } from '../../src/openapi.ts';

/** Checks real answers against an OpenAPI document, so that the document and the service cannot drift apart. */
export type CheckResponse = (
  method: string,
  /** As requested, with or without its query. */
  path: string,
  status: number,
  headers: Headers | Readonly<Record<string, string | string[] | undefined>>,
  /** Parsed JSON, or its text. */
  body: unknown,
) => void;

interface ResponseDoc {
  $ref?: string;
  headers?: Record<string, { $ref?: string; required?: boolean }>;
  content?: Record<string, { examples?: Record<string, unknown> }>;
}

interface OperationDoc {
  responses: Record<string, ResponseDoc>;
}

/** Codes that any address may answer, also one that the document does not name. */
const everywhere: Readonly<Record<number, readonly string[]>> = {
  400: ['request_malformed'],
  404: ['route_not_found'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  431: ['headers_too_large'],
  500: ['internal_error'],
};

/** Makes the check for a document. It throws an Error that says what is wrong. */
export function contractOf(document: OpenApiDocument): CheckResponse {
  const ajv = new Ajv2020({ strict: false, allErrors: true, coerceTypes: false });
  ajv.addFormat('date-time', isIsoTime);
  ajv.addFormat('uri', (text) => URL.canParse(text));
  ajv.addSchema(document, 'contract');
  const validators = new Map<string, ValidateFunction>();
  const conforms = (pointer: string, value: unknown) => {
    let validate = validators.get(pointer);
    if (!validate) {
      validate = ajv.compile({ $ref: `contract#${pointer}` });
      validators.set(pointer, validate);
    }
    if (!validate(value)) throw new Error(`${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`);
  };
  const templates = Object.keys(document.paths).map((template) => ({
    template,
    pattern: new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }));

  return (method, path, status, headers, body) => {
    const header = (name: string) => headerOf(headers, name);
    const where = `${method} ${path} → ${status}`;
    const plainPath = path.split('?')[0] ?? path;
    const template = templates.find(({ pattern }) => pattern.test(plainPath))?.template;
    const operation =
      template && (document.paths[template]?.[method.toLowerCase()] as unknown as OperationDoc);
    const response = operation ? operation.responses[String(status)] : undefined;
    const type = header('content-type')?.split(';', 1)[0] ?? '';
    const isText = typeof body === 'string' && body !== '';
    const parsed: unknown = isText && (type === '' || type.endsWith('json')) ? JSON.parse(body) : body;
    try {
      checkFixedHeaders(header, Object.keys(response?.content ?? {}));
      if (!response) {
        checkUndocumented(status, parsed, conforms, header);
        return;
      }
      for (const [name, doc] of Object.entries(response.headers ?? {})) {
        checkHeader(document, name, doc, header(name), conforms);
      }
      const base = [template, method.toLowerCase(), 'responses', String(status)].map((part) =>
        escaped(part!),
      );
      const documented = response.content?.['application/json'];
      if (!documented) return;
      conforms(`/paths/${base.join('/')}/content/application~1json/schema`, parsed);
      // A route may have a form of its own for a status; codes are an error's.
      if (status >= 400 && isError(parsed)) checkCode(status, parsed, Object.keys(documented.examples ?? {}));
    } catch (error) {
      throw new Error(`${where} breaks the contract: ${(error as Error).message}`);
    }
  };
}

function isError(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'error' in body;
}

let committed: CheckResponse | undefined;

/** The check for the committed `openapi.json`; a unit test keeps that file up to date with the routes. */
export const checkResponse: CheckResponse = (...answer) => {
  committed ??= contractOf(JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')));
  committed(...answer);
};

function headerOf(headers: Parameters<CheckResponse>[3], name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name] ?? headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** `types`: what the route answers; JSON, where the document does not say. */
function checkFixedHeaders(header: (name: string) => string | undefined, types: readonly string[]): void {
  const type = header('Content-Type') ?? '';
  const isMeant =
    types.length === 0 || types.includes('application/json')
      ? type === 'application/json'
      : types.some((each) => each === type || each === type.split(';', 1)[0]);
  if (!isMeant) throw new Error(`Content-Type is ${type}`);
  if (header('Cache-Control') !== 'no-store') throw new Error(`Cache-Control is ${header('Cache-Control')}`);
  if (!/^[\w-]{8,64}$/.test(header('Request-Id') ?? '')) throw new Error('Request-Id is missing');
}

function checkHeader(
  document: OpenApiDocument,
  name: string,
  doc: { $ref?: string; required?: boolean; schema?: { type?: string } },
  sent: string | undefined,
  conforms: (pointer: string, value: unknown) => void,
): void {
  const key = doc.$ref?.split('/').at(-1) ?? name.replaceAll('-', '');
  const shared = document.components.headers?.[key] as typeof doc | undefined;
  if (sent === undefined) {
    if (doc.required ?? shared?.required) throw new Error(`the header ${name} is missing`);
    return;
  }
  if (!shared) return;
  conforms(`/components/headers/${key}/schema`, shared.schema?.type === 'integer' ? Number(sent) : sent);
}

function checkUndocumented(
  status: number,
  body: unknown,
  conforms: (pointer: string, value: unknown) => void,
  header: (name: string) => string | undefined,
): void {
  if (!(status in everywhere)) throw new Error('this status is not documented');
  conforms('/components/schemas/Error', body);
  checkCode(status, body, []);
  if (status === 405 && !header('Allow')) throw new Error('the header Allow is missing');
}

function checkCode(status: number, body: unknown, documented: readonly string[]): void {
  const { code } = (body as { error: { code: string } }).error;
  if (![...documented, ...(everywhere[status] ?? [])].includes(code)) {
    throw new Error(`the code ${code} is not documented here`);
  }
}

function escaped(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}
