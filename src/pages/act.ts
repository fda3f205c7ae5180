import { type Answer, AppError, type Inside, resourceNotFound, toAppError } from '../http/http.ts';
import { fieldsFrom } from './forms.ts';
import { anyHost } from './pieces.ts';
import type { PieceWords, Trial } from './visit.ts';

/** What became of a form. */
export type Outcome =
  /** Done: the page to go to. */
  | { kind: 'done'; address: string }
  /** The page of the form again, with what was wrong or what a rehearsal said. */
  | { kind: 'again'; back: string; trial: Trial; status: number }
  /** Done, and something to be shown this once. */
  | { kind: 'secret'; back: string; made: Record<string, unknown> };

/** What forms are sent from, and how what became of them is told. */
export interface ActPlace {
  /** Its address: `/console`. */
  place: string;
  pieces: Pick<PieceWords, 'byDefault' | 'sayWhy'>;
  /** Where what a form did is looked at; undefined: back at the form's page. */
  madeAt(made: Record<string, unknown>, about: { isNew: boolean; back: string }): string | undefined;
  /** Whether an answer shows what is shown this once. */
  isSecret(made: Record<string, unknown>): boolean;
}

/** Sends a form, and the file that came with it, to its route, which checks role, schema and state as for anybody. */
export async function act<Who, Needed>(
  inside: Inside<Who, Needed>,
  form: URLSearchParams,
  visitor: { principal: Who; requestId: string },
  at: ActPlace,
  file?: AsyncIterable<Uint8Array>,
): Promise<Outcome> {
  const back = backOf(at.place, form.get('back'));
  const name = form.get('to') ?? '';
  const route = name.startsWith('GET ') ? undefined : inside.find(name);
  if (!route) throw resourceNotFound();
  const { operation } = route;
  const fields = fieldsFrom(operation, form, at.pieces.byDefault);
  try {
    const needsReason = 'reason' in ((operation.body ?? operation.query)?.properties ?? {});
    if (needsReason && (typeof fields.reason !== 'string' || fields.reason.trim() === '')) {
      const message = at.pieces.sayWhy;
      const faults = [{ param: 'reason', code: 'parameter_missing', message } as const];
      throw new AppError('parameter_missing', { message, param: 'reason', errors: faults });
    }
    const sent = operation.body
      ? { body: fields }
      : { query: new URLSearchParams(fields as Record<string, string>) };
    const answer = await inside.call({
      ...{ route: name, params: paramsFrom(form), ...sent, ...visitor },
      ...(file ? { stream: file } : {}),
      idempotencyKey: onceOf(form),
    });
    return outcomeOf(answer, { form, back, id: operation.doc.id, at });
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
  { form, back, id, at }: { form: URLSearchParams; back: string; id: string; at: ActPlace },
): Outcome {
  const made = overWire(body ?? {});
  if (made.dry_run === true) {
    return { kind: 'again', back, status: 200, trial: trialOf(form, { faults: [], outlook: made }) };
  }
  if (at.isSecret(made)) return { kind: 'secret', back, made };
  const isNew = status === 201 || status === 202;
  const address = new URL(at.madeAt(made, { isNew, back }) ?? back, anyHost);
  address.searchParams.set('done', made.object === 'proposal' ? 'proposed' : id);
  return { kind: 'done', address: `${address.pathname}${address.search}` };
}

/** As it would have come over the wire: times are text there. */
function overWire(body: NonNullable<Answer['body']>): Record<string, unknown> {
  return JSON.parse(typeof body === 'string' ? body : JSON.stringify(body));
}

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

/** A page of this place, and nothing else, whatever a form says. */
export function backOf(place: string, text: string | null): string {
  const isOurs =
    text !== null &&
    (text === place || text.startsWith(`${place}/`) || text.startsWith(`${place}?`)) &&
    /^(?:\/(?!\/)[\w.~%/-]*)?(?:\?[\w.~%&=+:,;@!*'()-]*)?$/.test(text.slice(place.length));
  return isOurs ? text : place;
}
