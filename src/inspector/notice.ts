import type { Cause, Committed } from '@kusanya/durable-actors';
import { maskPhone, maskPhonesIn } from '../log.ts';
import type { Mode } from '../mode.ts';

/** One committed step, fit to be shown to any operator: phones are masked, metadata and secrets left out. */
export interface StepNotice {
  /** The actor's id. */
  actor: string;
  machine: string;
  machineVersion: number;
  merchantId: string;
  mode: Mode;
  /** The actor's own count of changes. Not every number is a step: claims of calls count too. */
  seq: number;
  /** Milliseconds since 1970. */
  at: number;
  event: { type: string; [field: string]: unknown };
  /** Null on the actor's first step. */
  from: string | null;
  to: string;
  cause: Cause;
  snapshot: { value: unknown; context: Record<string, unknown> };
}

/** Which steps somebody wants to see. Every field narrows; none at all means every step. */
export interface StepFilter {
  /** An actor's id. */
  actor?: string;
  machine?: string;
  /** A merchant's id. */
  merchant?: string;
  mode?: Mode;
}

/** What a filter looks at. */
export type StepAbout = Pick<StepNotice, 'actor' | 'machine' | 'merchantId' | 'mode'>;

export function aboutOf({ machine, doc: { _id, merchantId, mode } }: Committed): StepAbout {
  return { actor: _id, machine, merchantId, mode };
}

export function isWanted(filter: StepFilter, about: StepAbout): boolean {
  return (
    (filter.actor === undefined || filter.actor === about.actor) &&
    (filter.machine === undefined || filter.machine === about.machine) &&
    (filter.merchant === undefined || filter.merchant === about.merchantId) &&
    (filter.mode === undefined || filter.mode === about.mode)
  );
}

export function noticeOf(step: Committed): StepNotice {
  const { doc, event, cause, from } = step;
  const { value, context } = doc.snapshot;
  return {
    ...aboutOf(step),
    machineVersion: doc.machineVersion,
    seq: doc.seq,
    at: event.at,
    event: shown(event),
    from,
    to: doc.state,
    cause,
    snapshot: { value, context: shown(context) },
  };
}

/** What nobody sees here: a merchant's own data, a room's bulky records, whatever opens something. */
const hidden = /^(metadata|detail|secrets?|token|authorization)$/i;
const phoneField = /^(phone|msisdn)$/i;

/** A copy of an event's or a context's fields without what operators need not see. */
export function shown<Fields extends Record<string, unknown>>(fields: Fields): Fields {
  return copyOf(fields) as Fields;
}

function copyOf(value: unknown): unknown {
  if (typeof value === 'string') return maskPhonesIn(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  if (value instanceof Date) return value.toISOString();
  const copy: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    if (hidden.test(name)) continue;
    copy[name] = phoneField.test(name) && typeof inner === 'string' ? maskPhone(inner) : copyOf(inner);
  }
  return copy;
}
