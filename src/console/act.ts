import { timingSafeEqual } from 'node:crypto';
import {
  type Answer,
  AppError,
  type Inside,
  type OperatorPrincipal,
  permissionDenied,
  resourceNotFound,
  toAppError,
} from '../http/http.ts';
import type { Mode } from '../mode.ts';
import { fieldsFrom } from './forms.ts';
import type { Outlook, Trial } from './page.ts';
import { formToken } from './session.ts';

/** What became of a form. */
export type Outcome =
  /** Done: the page to go to. */
  | { kind: 'done'; address: string }
  /** The page of the form again, with what was wrong or what a rehearsal said. */
  | { kind: 'again'; back: string; trial: Trial; status: number }
  /** Done, and something to be shown this once. */
  | { kind: 'secret'; back: string; made: Record<string, unknown> };

/** Sends a form to its operators' route, which checks role, schema and state as for anybody. */
export async function act(
  inside: Inside,
  form: URLSearchParams,
  visitor: { principal: OperatorPrincipal; requestId: string },
): Promise<Outcome> {
  const back = backOf(form.get('back'));
  const name = form.get('to') ?? '';
  const route = name.startsWith('GET ') ? undefined : inside.find(name);
  if (!route) throw resourceNotFound();
  const fields = fieldsFrom(route.operation, form);
  try {
    if (typeof fields.reason !== 'string' || fields.reason.trim() === '') {
      const message = 'Say why; it is kept in the audit.';
      const faults = [{ param: 'reason', code: 'parameter_missing', message } as const];
      throw new AppError('parameter_missing', { message, param: 'reason', errors: faults });
    }
    const sent = route.operation.body
      ? { body: fields }
      : { query: new URLSearchParams(fields as Record<string, string>) };
    const answer = await inside.call({
      ...{ route: name, params: paramsFrom(form), ...sent, ...visitor },
      idempotencyKey: onceOf(form),
    });
    return outcomeOf(answer, { form, back, id: route.operation.doc.id });
  } catch (error) {
    const known = toAppError(error);
    if (known.httpStatus >= 500 || known.code === 'permission_denied') throw error;
    const faults = known.errors ?? [];
    const message = faults.length > 0 ? undefined : known.message;
    return { kind: 'again', back, status: known.httpStatus, trial: trialOf(form, { message, faults }) };
  }
}

/** The parts of the route's path. */
function paramsFrom(form: URLSearchParams): Record<string, string> {
  const parts = [...form].flatMap(([name, value]) => (name.startsWith('p.') ? [[name.slice(2), value]] : []));
  return Object.fromEntries(parts);
}

/** Names this showing of the form: what is done once is not done again by a reload. */
function onceOf(form: URLSearchParams): string | undefined {
  const once = form.get('once') ?? '';
  return /^[0-9a-f]{32}$/.test(once) ? once : undefined;
}

function outcomeOf(
  { status, body }: Answer,
  { form, back, id }: { form: URLSearchParams; back: string; id: string },
): Outcome {
  // As it would have come over the wire: times are text there.
  const made: Outlook = JSON.parse(JSON.stringify(body ?? {}));
  if (made.dry_run === true) {
    return { kind: 'again', back, status: 200, trial: trialOf(form, { faults: [], outlook: made }) };
  }
  if (typeof made.secret === 'string' || typeof made.token === 'string')
    return { kind: 'secret', back, made };
  const page = madePages[String(made.object)];
  const mode = /^\/console\/(test|live)/.exec(back)?.[1] as Mode | undefined;
  const isNew = status === 201 || status === 202;
  const to = isNew && page && mode ? `/console/${mode}${page}/${made.id}` : back;
  const address = new URL(to, 'http://console');
  address.searchParams.set('done', made.object === 'proposal' ? 'proposed' : id);
  return { kind: 'done', address: `${address.pathname}${address.search}` };
}

/** Where what a form made is looked at. */
const madePages: Readonly<Record<string, string>> = {
  merchant: '/merchants',
  replay: '/actors',
  delivery: '/actors',
};

function trialOf(form: URLSearchParams, about: Partial<Trial>): Trial {
  const values = new Map<string, string[]>();
  for (const name of new Set(form.keys())) {
    if (name.startsWith('f.')) values.set(name.slice(2), form.getAll(name));
  }
  return {
    form: form.get('form') ?? '',
    values,
    message: undefined,
    faults: [],
    outlook: undefined,
    ...about,
  };
}

/** A page of the console, and nothing else, whatever a form says. */
export function backOf(text: string | null): string {
  return text !== null && /^\/console(?:\/(?!\/)[\w.~%/-]*)?(?:\?[\w.~%&=+:,;@!*'()-]*)?$/.test(text)
    ? text
    : '/console';
}

/** @throws permission_denied when the form is not one of ours to this browser */
export function checkFormToken(form: URLSearchParams, cookie: string | undefined): void {
  const given = Buffer.from(form.get('form_token') ?? '');
  const expected = Buffer.from(formToken(cookie ?? ''));
  const isOurs = cookie !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
  if (!isOurs)
    throw permissionDenied('This form is out of date. Go back, reload the page and send it again.');
}
