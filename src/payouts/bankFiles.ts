import {
  type Actors,
  type Clock,
  eachOf,
  type SendResult,
  StepRefused,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { csvLine } from '../csv.ts';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import {
  type BankFileDoc,
  type IsWithheld,
  type PayoutDoc,
  payoutFilesSpec,
  payoutsSpec,
  unclearStates,
} from './documents.ts';

/**
 * Files for the bank. A payout is written into one file and never into another: which one, its own step says, in its own
 * document. So the same file can be made again from the payouts whenever somebody lost it, and nobody is paid by two. A
 * file is read when it is closed: from then on no payout can join it, however late its step comes.
 */

interface BankFilesOptions {
  db: Db;
  actors: Actors;
  clock: Clock;
  isWithheld: IsWithheld;
}

/** Of one file: banks take no more lines at once, and a person reads them. */
export const linesMax = 500;
const stepsAtOnce = 16;

const columns = ['reference', 'amount', 'currency', 'kind', 'bank', 'number', 'name', 'merchant'] as const;

/** A file takes moments. One that is open for so long was left by a process that died. */
const writingMs = limits.minuteMs;

/** Sends an operator's event to one payout, with its line in the audit and further writes in its commit. */
type Tell = (doc: PayoutDoc, event: { type: string; file?: string }, writes?: Write[]) => Promise<SendResult>;

export interface BankFileSum {
  doc: BankFileDoc;
  count: number;
  amountTzs: number;
}

export class BankFiles {
  readonly #options: BankFilesOptions;

  constructor(options: BankFilesOptions) {
    this.#options = options;
  }

  /**
   * Writes what awaits it into a new file, the oldest first. One by one: whatever breaks off in the middle, each payout is
   * in this file or still awaits the next one. Undefined: nothing awaits it.
   */
  async make(mode: Mode, by: string, tell: Tell): Promise<BankFileSum | undefined> {
    const { actors, clock } = this.#options;
    await this.#closeLeft(mode);
    const withheld = await this.#withheldIn(mode);
    const waiting = await this.#stored
      .find({ mode, state: 'created.awaitingExport', merchantId: { $nin: withheld } })
      .sort({ _id: 1 })
      .limit(linesMax)
      .toArray();
    if (waiting.length === 0) return undefined;
    const at = clock.now();
    const doc: BankFileDoc = { _id: newId('bkf', at), mode, by, at: new Date(at), joined: 0, isOpen: true };
    await actors.commit([{ op: 'insert', into: payoutFilesSpec.name, doc, onDuplicate: 'race' }]);
    const joins: Write = {
      ...{ op: 'update', into: payoutFilesSpec.name, onMiss: 'refuse' },
      ...{ filter: { _id: doc._id, isOpen: true }, update: { $inc: { joined: 1 } } },
    };
    await eachOf(from(waiting), stepsAtOnce, async (payout) => {
      await tell(payout, { type: 'operator.exported', file: doc._id }, [joins]).catch((error) => {
        // Somebody closed it meanwhile: the payout awaits the next file.
        if (!(error instanceof StepRefused && error.write.into === payoutFilesSpec.name)) throw error;
      });
    });
    await this.#close(doc._id);
    const { isOpen: _over, ...closed } = doc;
    return this.#summed(closed);
  }

  /** From here on no payout can join it. */
  async #close(_id: string): Promise<void> {
    const update = { $unset: { isOpen: 1 as const } };
    await this.#options.actors.commit([
      { op: 'update', into: payoutFilesSpec.name, filter: { _id }, update, onMiss: 'race' },
    ]);
  }

  /** Files whose process died: what is in them stays, and what is not awaits the next. */
  async #closeLeft(mode: Mode): Promise<void> {
    const before = new Date(this.#options.clock.now() - writingMs);
    const left = await this.#bankFiles.find({ mode, isOpen: true, at: { $lt: before } }).toArray();
    for (const { _id } of left) await this.#close(_id);
  }

  /** Merchants of whom nothing may leave now. */
  async #withheldIn(mode: Mode): Promise<string[]> {
    const waiting = await this.#stored.distinct('merchantId', { mode, state: 'created.awaitingExport' });
    const isWithheld = await Promise.all(
      waiting.map((merchantId) => this.#options.isWithheld({ merchantId, mode })),
    );
    return waiting.filter((_, index) => isWithheld[index]);
  }

  /** Tells each payout of a closed file that the bank has it. Those that have gone on stay as they are. */
  async markSent(doc: BankFileDoc, by: string, tell: Tell): Promise<BankFileSum> {
    await eachOf(this.#linesOf(doc._id), stepsAtOnce, async (payout) => {
      if (awaitsSending(payout)) await tell(payout, { type: 'operator.sent' });
    });
    const sent = { sentAt: new Date(this.#options.clock.now()), sentBy: by };
    await this.#options.actors.commit([
      {
        ...{ op: 'update', into: payoutFilesSpec.name, onMiss: 'race' },
        ...{ filter: { _id: doc._id }, update: { $set: sent } },
      },
    ]);
    return this.#summed({ ...doc, ...sent });
  }

  async find(id: string): Promise<BankFileDoc | undefined> {
    return (await this.#bankFiles.findOne({ _id: { $eq: id } })) ?? undefined;
  }

  /** Files, newest first. */
  async list(
    mode: Mode,
    { limit, startingAfter }: { limit: number; startingAfter?: string | undefined },
  ): Promise<{ rows: BankFileSum[]; hasMore: boolean }> {
    const found = await this.#bankFiles
      .find({ mode, ...(startingAfter === undefined ? {} : { _id: { $lt: startingAfter } }) })
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
    const rows = await Promise.all(found.slice(0, limit).map((doc) => this.#summed(doc)));
    return { rows, hasMore: found.length > limit };
  }

  /** The file, as CSV: every payout that was ever written into it, in the order of their ids. */
  async *file(id: string): AsyncGenerator<string> {
    yield csvLine(columns);
    for await (const { _id, merchantId, data } of this.#linesOf(id)) {
      const { kind, bank = '', number, name } = data.account;
      yield csvLine([_id, Number(data.amountTzs), data.currency, kind, bank, number, name, merchantId]);
    }
  }

  async #summed(doc: BankFileDoc): Promise<BankFileSum> {
    const [sum] = await this.#stored
      .aggregate<{ count: number; tzs: number }>([
        { $match: { 'snapshot.context.file': { $eq: doc._id, $type: 'string' } } },
        { $group: { _id: null, count: { $sum: 1 }, tzs: { $sum: '$data.amountTzs' } } },
      ])
      .toArray();
    return { doc, count: sum?.count ?? 0, amountTzs: sum?.tzs ?? 0 };
  }

  #linesOf(id: string) {
    return this.#stored.find({ 'snapshot.context.file': { $eq: id, $type: 'string' } }).sort({ _id: 1 });
  }

  get #stored() {
    return this.#options.db.collection<PayoutDoc>(payoutsSpec.name);
  }

  get #bankFiles() {
    return this.#options.db.collection<BankFileDoc>(payoutFilesSpec.name);
  }
}

/** It lies in its file, perhaps for so long that a person has it. */
function awaitsSending({ state, snapshot }: PayoutDoc): boolean {
  return (
    state === 'created.exported' || (unclearStates.includes(state) && snapshot.context.wasTaken === false)
  );
}

async function* from<T>(all: readonly T[]): AsyncGenerator<T> {
  yield* all;
}
