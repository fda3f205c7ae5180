import type { Collection, Document, Filter, FindCursor, FindOptions } from 'mongodb';
import type { Mode } from './mode.ts';

/**
 * The one place where a merchant and a mode enter a query. What a merchant's route answers must be `Own`, and only
 * what is read here is: a reader that forgets the merchant or the mode does not compile.
 */

/** One merchant in one mode: whose key it is, and whose data. */
export interface Whose {
  readonly merchantId: string;
  readonly mode: Mode;
}

declare const own: unique symbol;

/** Of the merchant and mode that it was read for. The mark is a type alone: nothing of it is there at run time. */
export type Own<T> = T & { readonly [own]: true };

/** The documents of one merchant in one mode. */
export function ownOf<D extends Document & Whose>(stored: Collection<D>, { merchantId, mode }: Whose) {
  return {
    find: (filter: Filter<D>, options?: FindOptions): FindCursor<Own<D>> =>
      stored.find<Own<D>>({ ...filter, merchantId: { $eq: merchantId }, mode }, options),
  };
}

/** Whether a document that was read by its id belongs to this merchant and mode. */
export function isOwn<D extends Whose>({ merchantId, mode }: Whose, doc: D): doc is Own<D> {
  return doc.merchantId === merchantId && doc.mode === mode;
}

/** The same for what only its owner was let near: anybody else's is a fault of ours. */
export function surelyOwn<D extends Whose>(whose: Whose, doc: Whose): Own<D> {
  if (!isOwn(whose, doc)) throw new TypeError('this is somebody else’s');
  return doc as Own<D>;
}

/** What is made of somebody's own documents is their own too. */
export function fromOwn<Source extends Own<unknown> | readonly Own<unknown>[], Made>(
  source: Source,
  make: (source: Source) => Made,
): Own<Made> {
  return make(source) as Own<Made>;
}
