import { type TProperties, Type } from 'typebox';
import { type ErrorCode, type OperationDoc, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';

/** What the operators' routes have in common: fields, documentation, and the 404. */

export const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  pattern: '\\S',
  description: 'Why; kept in the audit.',
});

export const ModeField = Type.Enum(['test', 'live']);

export function idParam(prefix: Parameters<typeof idPattern>[0]) {
  return Type.Object({ id: Type.String({ maxLength: 40, pattern: idPattern(prefix) }) });
}

/** The body of a command: its fields, and why. */
export function commandBody<Fields extends TProperties>(title: string, fields: Fields) {
  return Type.Object({ ...fields, reason: Reason }, { title, additionalProperties: false });
}

/** The query of a command that has no body. */
export const CommandQuery = Type.Object({ reason: Reason }, { additionalProperties: false });

/** The documentation of an operators' route. `errors`: codes beyond those of every route of its kind. */
export function described(
  id: string,
  summary: string,
  status: number,
  description = summary,
  errors: readonly ErrorCode[] = [],
): OperationDoc {
  return {
    id,
    summary,
    description,
    tag: 'Operators',
    errors,
    answers: { [status]: { description: 'Done.', schema: Type.Object({}, { additionalProperties: true }) } },
  };
}

/** The record, or the 404 that says no more than that. */
export async function found<T>(record: Promise<T | undefined>): Promise<T> {
  const value = await record;
  if (value === undefined) throw resourceNotFound();
  return value;
}
