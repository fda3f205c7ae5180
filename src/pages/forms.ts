import { randomBytes } from 'node:crypto';
import type { Fault } from '../http/http.ts';
import { momentTyped } from '../time.ts';
import { type Html, html, type Part } from './html.ts';
import type { FormOperation, PageVisit, PieceWords, Trial } from './visit.ts';

/**
 * Forms are made from the schema of the route that they are sent to, and what they send is read back by it: what a
 * route takes, its form offers. A form is shown to whom the route is open.
 */
export interface FormSpec<To extends string = string> {
  /** Unique on its page. */
  id: string;
  to: To;
  /** The parts of the route's path. */
  params?: Readonly<Record<string, string>>;
  title: string;
  hint?: Part;
  /** The fields that are shown, in this order, before the reason; all of them when absent. */
  only?: readonly string[];
  /** Fields that are sent as they are. */
  fixed?: Readonly<Record<string, string>>;
  fields?: Readonly<Record<string, FieldWords>>;
  /** A file that the route takes as its body: what it is called, and which are offered. */
  file?: { label: string; hint?: string; accept: string };
  submit: string;
  isDangerous?: boolean;
}

interface FieldWords {
  label?: string;
  hint?: string;
  value?: string | number | boolean | null;
  /** To choose from, with what is read; where the schema itself has no list. */
  choices?: readonly (readonly [value: string, text: string])[];
}

/** The parts of a JSON Schema that forms understand. */
interface FieldSchema {
  type?: string;
  enum?: readonly string[];
  anyOf?: readonly FieldSchema[];
  items?: FieldSchema;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  description?: string;
}

interface ObjectSchema {
  properties: Readonly<Record<string, FieldSchema>>;
  required?: readonly string[];
}

/** `outlookOf`: what a rehearsal said, where routes have one. */
export function formOf(
  visit: PageVisit,
  spec: FormSpec,
  outlookOf: (outlook: NonNullable<Trial['outlook']>) => Part = () => '',
): Html {
  const operation = visit.operationOf(spec.to);
  if (!operation) return html``;
  const { pieces } = visit;
  const schema = schemaOf(operation);
  const trial = visit.trial?.form === spec.id ? visit.trial : undefined;
  const names = (spec.only ?? Object.keys(schema.properties)).filter(
    (name) =>
      name in schema.properties && name !== 'dry_run' && name !== 'reason' && !(name in (spec.fixed ?? {})),
  );
  const field = (name: string) => {
    const words = spec.fields?.[name] ?? {};
    const values = trial?.values.get(name) ?? (words.value == null ? [] : [String(words.value)]);
    const fault = faultOf(trial?.faults ?? [], name);
    return fieldOf(
      { id: `${spec.id}-${name}`, name, words, values, fault, isRequired: isNeeded(schema, name), pieces },
      schema.properties[name]!,
    );
  };
  // Sent a second time, by a reload of the answer, the same form makes nothing more.
  const once = randomBytes(16).toString('hex');
  const hidden = { form_token: visit.formToken, to: spec.to, back: visit.here, form: spec.id, once };
  return html`<details class="act${spec.isDangerous ? ' danger' : ''}" ${trial ? html`open` : ''}>
<summary>${spec.title}</summary>
<form method="post" action="${visit.place}/act" id="${spec.id}"${spec.file ? html` enctype="multipart/form-data"` : ''}>
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${Object.entries(spec.params ?? {}).map(([name, value]) => html`<input type="hidden" name="p.${name}" value="${value}">`)}
${Object.entries(spec.fixed ?? {}).map(([name, value]) => html`<input type="hidden" name="f.${name}" value="${value}">`)}
${spec.hint ? html`<p class="hint">${spec.hint}</p>` : ''}
${trial?.message ? html`<p class="fault" role="alert">${trial.message}</p>` : ''}
${names.map(field)}
${'reason' in schema.properties ? reasonField(spec, trial, pieces) : ''}
${spec.file ? fileField(spec.id, spec.file, trial, pieces) : ''}
${trial?.outlook ? outlookOf(trial.outlook) : ''}
<p class="buttons">
${'dry_run' in schema.properties ? html`<button name="f.dry_run" value="true" class="plain">${pieces.tryFirst}</button>` : ''}
<button class="${spec.isDangerous ? 'danger' : ''}">${spec.submit}</button>
</p>
</form>
</details>`;
}

function schemaOf(operation: FormOperation): ObjectSchema {
  return operation.body ?? operation.query ?? { properties: {} };
}

function isNeeded({ required }: ObjectSchema, name: string): boolean {
  return required?.includes(name) ?? false;
}

function faultOf(faults: readonly Fault[], name: string): Fault | undefined {
  return faults.find(({ param }) => param === name || param.startsWith(`${name}.`));
}

interface FieldState {
  id: string;
  name: string;
  words: FieldWords;
  values: readonly string[];
  fault: Fault | undefined;
  isRequired: boolean;
  pieces: PieceWords;
}

function fieldOf(state: FieldState, schema: FieldSchema): Html {
  const { id, name, words, values, fault, isRequired, pieces } = state;
  const kind = plain(schema);
  const said = pieces.hint ? pieces.hint(name) : kind.description;
  const about = isNullable(schema) ? pieces.restores : said;
  const hint = words.hint ?? (words.choices ? undefined : about);
  const attributes = html`id="${id}" name="f.${name}" ${isRequired ? html`required` : ''} ${described(id, hint, fault)}`;
  const text = words.label ?? pieces.label(name);
  const notes = html`${hint ? html`<small id="${id}-hint">${hint}</small>` : ''}${faultLine(id, fault, pieces)}`;
  if (kind.type === 'array') {
    const boxes = (kind.items?.enum ?? []).map(
      (each) =>
        html`<label class="box"><input type="checkbox" name="f.${name}" value="${each}" ${values.includes(each) ? html`checked` : ''}> ${each}</label>`,
    );
    return html`<fieldset class="field"><legend>${text}</legend>${boxes}${notes}</fieldset>`;
  }
  return html`<div class="field"><label for="${id}">${text}</label>${inputOf(kind, { value: values[0] ?? '', attributes, isRequired, words, pieces })}${notes}</div>`;
}

function inputOf(
  schema: FieldSchema,
  {
    value,
    attributes,
    isRequired,
    words,
    pieces,
  }: { value: string; attributes: Html; isRequired: boolean; words: FieldWords; pieces: PieceWords },
): Html {
  const choices = words.choices ?? choicesOf(schema, pieces);
  if (choices) {
    const options = choices.map(
      ([each, text]) =>
        html`<option value="${each}" ${each === value ? html`selected` : ''}>${text}</option>`,
    );
    return html`<select ${attributes}>${isRequired && value ? '' : html`<option value="">–</option>`}${options}</select>`;
  }
  const isWhole = schema.type === 'integer';
  return html`<input type="text" ${attributes} value="${value}" autocomplete="off" spellcheck="false" ${isWhole ? html`inputmode="numeric"` : ''} ${schema.maxLength ? html`maxlength="${schema.maxLength}"` : ''} ${schema.format === 'date-time' ? html`placeholder="2026-11-21 12:00"` : ''}>`;
}

function choicesOf(
  schema: FieldSchema,
  { yes, no }: PieceWords,
): readonly (readonly [string, string])[] | undefined {
  if (schema.type === 'boolean')
    return [
      ['true', yes],
      ['false', no],
    ];
  return schema.enum?.map((each) => [each, each] as const);
}

/** It comes last: what stands before it is read before the file comes in. */
function fileField(
  form: string,
  { label, hint, accept }: NonNullable<FormSpec['file']>,
  trial: Trial | undefined,
  pieces: PieceWords,
): Html {
  const id = `${form}-file`;
  const fault = faultOf(trial?.faults ?? [], 'file');
  return html`<div class="field"><label for="${id}">${label}</label><input type="file" id="${id}" name="file" required accept="${accept}" ${described(id, hint, fault)}>${hint ? html`<small id="${id}-hint">${hint}</small>` : ''}${faultLine(id, fault, pieces)}</div>`;
}

function reasonField({ id: form, fields }: FormSpec, trial: Trial | undefined, pieces: PieceWords): Html {
  const id = `${form}-reason`;
  const value = trial?.values.get('reason')?.[0] ?? fields?.reason?.value ?? '';
  const fault = faultOf(trial?.faults ?? [], 'reason');
  return html`<div class="field"><label for="${id}">${pieces.reason}</label><textarea id="${id}" name="f.reason" rows="2" required maxlength="500" ${described(id, pieces.kept, fault)}>${value}</textarea><small id="${id}-hint">${pieces.kept}</small>${faultLine(id, fault, pieces)}</div>`;
}

function described(id: string, hint: string | undefined, fault: Fault | undefined): Html {
  const by = [hint ? `${id}-hint` : '', fault ? `${id}-fault` : ''].filter(Boolean).join(' ');
  return html`${by ? html`aria-describedby="${by}"` : ''} ${fault ? html`aria-invalid="true"` : ''}`;
}

function faultLine(id: string, fault: Fault | undefined, { fault: said }: PieceWords): Part {
  if (!fault) return '';
  return html`<small class="fault" id="${id}-fault">${said ? said(fault) : fault.message}</small>`;
}

/** A form's fields as the route's schema types them; what was left empty is not sent. */
export function fieldsFrom(
  operation: FormOperation,
  form: URLSearchParams,
  byDefault: string,
): Record<string, unknown> {
  const entries = Object.entries(schemaOf(operation).properties).flatMap(([name, schema]) => {
    const texts = form.getAll(`f.${name}`).filter((text) => text !== '');
    return texts.length === 0 ? [] : [[name, typedValue(schema, texts, byDefault)] as const];
  });
  return Object.fromEntries(entries);
}

function typedValue(schema: FieldSchema, texts: readonly string[], byDefault: string): unknown {
  const kind = plain(schema);
  const text = texts[0]!;
  if (kind.type === 'array') return texts;
  if (isNullable(schema) && text.trim() === byDefault) return null;
  if (kind.type === 'integer' && /^\s*-?[\d,]+\s*$/.test(text)) return Number(text.replaceAll(',', ''));
  if (kind.type === 'boolean') return text === 'true';
  if (kind.format === 'date-time') return momentTyped(text);
  return text;
}

function isNullable({ anyOf }: FieldSchema): boolean {
  return anyOf?.some(({ type }) => type === 'null') ?? false;
}

function plain(schema: FieldSchema): FieldSchema {
  return schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
}
