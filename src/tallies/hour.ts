import type { AnyBulkWriteOperation, Long } from 'mongodb';
import { int64 } from '../mongo.ts';
import {
  addTo,
  installation,
  moneyNames,
  type Numbers,
  placeOf,
  type TallyDoc,
  type TallyKind,
  tallyId,
} from './documents.ts';
import type { Tallied } from './sources.ts';

type Of = Pick<TallyDoc, 'mode' | 'merchantId' | 'of'>;

/** The documents of one hour as they are counted, in memory: of each merchant, endpoint and mode. */
export class HourCount {
  readonly kind: TallyKind;
  readonly hourMs: number;
  /** Everything before this moment is counted. */
  untilMs: number;
  /** How many documents. */
  n = 0;
  readonly #counted = new Map<string, { of: Of; numbers: Numbers; isNew: boolean }>();

  constructor(kind: TallyKind, hourMs: number) {
    this.kind = kind;
    this.hourMs = hourMs;
    this.untilMs = hourMs;
  }

  add({ mode, merchantId, also, numbers }: Tallied): void {
    this.n += 1;
    const each = { n: 1, ...numbers };
    this.#addTo({ mode, merchantId: '', of: installation }, each);
    if (merchantId) this.#addTo({ mode, merchantId, of: merchantId }, each);
    if (also) this.#addTo({ mode, merchantId, of: also }, each);
  }

  /**
   * Writes what has changed since the last time: whole hours, so that it does not matter how often one is written. Those
   * of the installation come last: their numbers tell whether the hour is whole.
   */
  writes(): { parts: AnyBulkWriteOperation<TallyDoc>[]; whole: AnyBulkWriteOperation<TallyDoc>[] } {
    const changed = [...this.#counted.values()].filter(({ isNew }) => isNew);
    const write = ({ of, numbers }: (typeof changed)[number]) => writeOf(this, of, numbers);
    return {
      parts: changed.filter(({ of: { of } }) => of !== installation).map(write),
      whole: changed.filter(({ of: { of } }) => of === installation).map(write),
    };
  }

  /** What `writes` gave is written. */
  written(): void {
    for (const each of this.#counted.values()) each.isNew = false;
  }

  #addTo(of: Of, numbers: Numbers): void {
    const key = `${of.mode}/${of.of}`;
    const known = this.#counted.get(key) ?? { of, numbers: {}, isNew: true };
    addTo(known.numbers, numbers);
    known.isNew = true;
    this.#counted.set(key, known);
  }
}

/**
 * A process that slept may write what it counted long ago: where more was counted meanwhile, it is refused (a duplicate
 * of the `_id`, since nothing matched). More is always righter: nothing that was counted ever goes.
 */
function writeOf({ kind, hourMs }: HourCount, of: Of, numbers: Numbers): AnyBulkWriteOperation<TallyDoc> {
  const { date, hour } = placeOf(hourMs);
  const stored = Object.fromEntries(
    Object.entries(numbers).map(([name, count]): [string, number | Long] => [
      name,
      moneyNames.includes(name) ? int64(count) : count,
    ]),
  );
  return {
    updateOne: {
      filter: {
        _id: tallyId({ kind, mode: of.mode, of: of.of, date }),
        [`hours.${hour}.n`]: { $not: { $gt: numbers.n } },
      },
      update: { $set: { [`hours.${hour}`]: stored }, $setOnInsert: { kind, ...of, date } },
      upsert: true,
    },
  };
}
