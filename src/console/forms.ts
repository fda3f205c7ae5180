import { randomBytes } from 'node:crypto';
import { type Fault, type Operation, type OperatorPrincipal, roleAllows } from '../http/http.ts';
import { type Html, html, type Part } from '../pages/pages.ts';
import { rehearsedEntries } from './entries.ts';
import type { CommandRoute, Outlook, Visit } from './page.ts';
import { label, momentTyped } from './words.ts';

/**
 * Forms are made from the schema of the operators' route that they are sent to, and what they send is read back by
 * it: what a route takes, its form offers. A form is shown to whom the route is open.
 */
export interface FormSpec {
  /** Unique on its page. */
  id: string;
  to: CommandRoute;
  /** The parts of the route's path. */
  params?: Readonly<Record<string, string>>;
  title: string;
  hint?: Part;
  /** The fields that are shown, in this order, before the reason; all of them when absent. */
  only?: readonly string[];
  /** Fields that are sent as they are. */
  fixed?: Readonly<Record<string, string>>;
  fields?: Readonly<Record<string, FieldWords>>;
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

/** A word in a field that may be null. */
const asDefault = 'default';

export function formOf(visit: Visit, spec: FormSpec): Html {
  const route = visit.routeOf(spec.to);
  if (!route || !roleAllows(visit.operator.role, route.role)) return html``;
  const schema = schemaOf(route.operation);
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
      { id: `${spec.id}-${name}`, name, words, values, fault, isRequired: isNeeded(schema, name) },
      schema.properties[name]!,
    );
  };
  // Sent a second time, by a reload of the answer, the same form makes nothing more.
  const once = randomBytes(16).toString('hex');
  const hidden = { form_token: visit.formToken, to: spec.to, back: visit.here, form: spec.id, once };
  return html`<details class="act${spec.isDangerous ? ' danger' : ''}" ${trial ? html`open` : ''}>
<summary>${spec.title}</summary>
<form method="post" action="/console/act" id="${spec.id}">
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${Object.entries(spec.params ?? {}).map(([name, value]) => html`<input type="hidden" name="p.${name}" value="${value}">`)}
${Object.entries(spec.fixed ?? {}).map(([name, value]) => html`<input type="hidden" name="f.${name}" value="${value}">`)}
${spec.hint ? html`<p class="hint">${spec.hint}</p>` : ''}
${trial?.message ? html`<p class="fault" role="alert">${trial.message}</p>` : ''}
${names.map(field)}
${reasonField(spec.id, trial?.values.get('reason')?.[0] ?? '', faultOf(trial?.faults ?? [], 'reason'))}
${trial?.outlook ? outlookOf(visit, trial.outlook) : ''}
<p class="buttons">
${'dry_run' in schema.properties ? html`<button name="f.dry_run" value="true" class="plain">Try it first</button>` : ''}
<button class="${spec.isDangerous ? 'danger' : ''}">${spec.submit}</button>
</p>
</form>
</details>`;
}

function schemaOf(operation: Operation<OperatorPrincipal>): ObjectSchema {
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
}

function fieldOf({ id, name, words, values, fault, isRequired }: FieldState, schema: FieldSchema): Html {
  const kind = plain(schema);
  const about = isNullable(schema) ? `“${asDefault}” restores the default.` : kind.description;
  const hint = words.hint ?? (words.choices ? undefined : about);
  const attributes = html`id="${id}" name="f.${name}" ${isRequired ? html`required` : ''} ${described(id, hint, fault)}`;
  const text = words.label ?? label(name);
  const notes = html`${hint ? html`<small id="${id}-hint">${hint}</small>` : ''}${faultLine(id, fault)}`;
  if (kind.type === 'array') {
    const boxes = (kind.items?.enum ?? []).map(
      (each) =>
        html`<label class="box"><input type="checkbox" name="f.${name}" value="${each}" ${values.includes(each) ? html`checked` : ''}> ${each}</label>`,
    );
    return html`<fieldset class="field"><legend>${text}</legend>${boxes}${notes}</fieldset>`;
  }
  return html`<div class="field"><label for="${id}">${text}</label>${inputOf(kind, { value: values[0] ?? '', attributes, isRequired, words })}${notes}</div>`;
}

function inputOf(
  schema: FieldSchema,
  {
    value,
    attributes,
    isRequired,
    words,
  }: { value: string; attributes: Html; isRequired: boolean; words: FieldWords },
): Html {
  const choices = words.choices ?? choicesOf(schema);
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

function choicesOf(schema: FieldSchema): readonly (readonly [string, string])[] | undefined {
  if (schema.type === 'boolean')
    return [
      ['true', 'yes'],
      ['false', 'no'],
    ];
  return schema.enum?.map((each) => [each, each] as const);
}

function reasonField(form: string, value: string, fault: Fault | undefined): Html {
  const id = `${form}-reason`;
  const hint = 'Kept in the audit.';
  return html`<div class="field"><label for="${id}">reason</label><textarea id="${id}" name="f.reason" rows="2" required maxlength="500" ${described(id, hint, fault)}>${value}</textarea><small id="${id}-hint">${hint}</small>${faultLine(id, fault)}</div>`;
}

function described(id: string, hint: string | undefined, fault: Fault | undefined): Html {
  const by = [hint ? `${id}-hint` : '', fault ? `${id}-fault` : ''].filter(Boolean).join(' ');
  return html`${by ? html`aria-describedby="${by}"` : ''} ${fault ? html`aria-invalid="true"` : ''}`;
}

function faultLine(id: string, fault: Fault | undefined): Part {
  return fault ? html`<small class="fault" id="${id}-fault">${fault.message}</small>` : '';
}

/** What a rehearsal said: where it would lead, or how many it would touch. */
function outlookOf(visit: Visit, { entries, ...outlook }: Outlook): Html {
  const unsaid = ['object', 'dry_run', 'accepted', 'replayed'];
  const rows = Object.entries(outlook).filter(([name]) => !unsaid.includes(name));
  const names: Readonly<Record<string, string>> = { total: 'deliveries sent again' };
  return html`<div class="outlook" role="status"><strong>Nothing was done. It would be:</strong><dl>${rows.map(
    ([name, value]) =>
      html`<div><dt>${names[name] ?? label(name)}</dt><dd>${Array.isArray(value) ? value.join(', ') || '–' : String(value)}</dd></div>`,
  )}</dl>${entries ? rehearsedEntries(visit, entries) : ''}</div>`;
}

/** A form's fields as the route's schema types them; what was left empty is not sent. */
export function fieldsFrom(
  operation: Operation<OperatorPrincipal>,
  form: URLSearchParams,
): Record<string, unknown> {
  const entries = Object.entries(schemaOf(operation).properties).flatMap(([name, schema]) => {
    const texts = form.getAll(`f.${name}`).filter((text) => text !== '');
    return texts.length === 0 ? [] : [[name, typedValue(schema, texts)] as const];
  });
  return Object.fromEntries(entries);
}

function typedValue(schema: FieldSchema, texts: readonly string[]): unknown {
  const kind = plain(schema);
  const text = texts[0]!;
  if (kind.type === 'array') return texts;
  if (isNullable(schema) && text.trim() === asDefault) return null;
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
