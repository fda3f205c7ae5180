import type { Document } from 'mongodb';
import type { ActorDoc } from './document.ts';
import type { MongoCollectionSpec } from './mongo.ts';

/**
 * The sweep is done by parts: each actor is in one of sixteen, by its id and so for ever, and workers share the parts.
 * What is due is therefore indexed by part.
 */
export const parts: readonly number[] = Array.from({ length: 16 }, (_, part) => part);

/** The part of a new actor: its id, spread evenly (FNV-1a). */
export function partOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return ((hash >>> 16) ^ hash) & (parts.length - 1);
}

/** The index of what is to happen. With `dueIn` and `sort: { dueAt: 1 }` it gives the order too. */
export const dueIndex = { part: 1, dueAt: 1 } as const;

/**
 * Actors that are due then, of all parts or of some. Those that were stored before there were parts go with the first,
 * until their next step gives them theirs.
 */
export function dueIn(
  when: { $gt?: Date; $lt?: Date; $lte?: Date },
  of: readonly number[] = parts,
): Document {
  return { part: { $in: of.includes(0) ? [null, ...of] : of }, dueAt: { ...when, $type: 'date' } };
}

/**
 * Actors in quarantine have a part of their own, which nobody sweeps, and are found there by when they came (`dueAt`):
 * an index for those few would cost every step of all the others.
 */
const quarantinePart = -1;

/** Those in quarantine; with `dueIndex` and `sort: { dueAt: 1 }`, the longest first. */
export const inQuarantine: Document = { part: quarantinePart, dueAt: { $type: 'date' } };

/** What is stored of an actor that is set aside. */
export function quarantinedAt(at: Date, why: string): Pick<ActorDoc, 'quarantined' | 'part' | 'dueAt'> {
  return { quarantined: { at, why }, part: quarantinePart, dueAt: at };
}

const isSetAside = { $eq: [{ $type: '$quarantined' }, 'object'] };
const wasLetGo = { $eq: ['$part', quarantinePart] };

/** Earlier versions gave them no part and no time, and left them the part of quarantine when they let them go. */
const partsPutRight = {
  part: { $cond: [isSetAside, quarantinePart, { $cond: [wasLetGo, null, '$part'] }] },
  dueAt: { $cond: [isSetAside, '$quarantined.at', '$dueAt'] },
};

/** A collection of actors: what the engine needs there, and what else is asked of it. */
export function actorsSpec({
  indexes = [],
  retired = [],
  derived = {},
  ...spec
}: MongoCollectionSpec): MongoCollectionSpec {
  return {
    ...spec,
    indexes: [{ key: dueIndex, partial: { dueAt: { $type: 'date' } } }, ...indexes],
    derived: { ...partsPutRight, ...derived },
    retired: ['dueAt_1', 'quarantined.at_1', ...retired],
  };
}
