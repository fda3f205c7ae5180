import type { Actors, Clock, NewActor, Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { DifferenceTerms } from '../../machines/difference.ts';
import type { Config } from '../config.ts';
import { bankRail } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { dateDueAtMs } from '../time.ts';
import type { Whose } from '../whose.ts';
import { bankFormat } from './bankFormat.ts';
import {
  type DifferenceDoc,
  differencesSpec,
  endedStates,
  type ReconciliationDoc,
  reconciliationId,
  reconciliationsSpec,
  type StatementDoc,
  statementsSpec,
} from './documents.ts';
import { mpesaFormat, type StatementFormat, withColumns } from './format.ts';
import { youngMs } from './judging.ts';
import { dropLeftUploads, dropUpload, type Received, receiveStatement, statedEmpty } from './uploading.ts';

export { StatementFault } from './csv.ts';
export {
  type DifferenceDoc,
  differencesSpec,
  endedStates,
  type ReconciliationDoc,
  reconciliationsSpec,
  type SafeguardingDoc,
  safeguardingSpec,
  statementLinesSpec,
  statementPagesSpec,
  statementsSpec,
} from './documents.ts';
export { withColumns } from './format.ts';

const { secondMs, minuteMs, hourMs, dayMs } = limits;

/** How a difference asks, and how long it waits. */
export const differenceTerms: DifferenceTerms = {
  askLadderMs: [10 * secondMs, minuteMs, 5 * minuteMs, 15 * minuteMs, hourMs],
  silentMs: dayMs,
  fileMs: 3 * dayMs,
  lookMs: 15 * minuteMs,
};

/** Where a difference waits for a person. */
export const awaitingStates: readonly string[] = ['awaitingOperator.looking'];

interface ReconciliationsOptions {
  db: Db;
  clock: Clock;
  config: Pick<Config, 'mpesaStatementColumns' | 'bankStatementColumns' | 'mpesa'>;
}

/** A statement as it is to be reconciled. */
export interface Sent {
  rail: string;
  date: string;
}

/** Reads networks' and the bank's statements and lays them beside the books. */
export class Reconciliations {
  readonly #options: ReconciliationsOptions;
  readonly #formats: Readonly<Record<string, StatementFormat>>;

  constructor(options: ReconciliationsOptions) {
    this.#options = options;
    const { mpesaStatementColumns, bankStatementColumns } = options.config;
    this.#formats = {
      MPESA_TZ: withColumns(mpesaFormat, mpesaStatementColumns),
      [bankRail]: withColumns(bankFormat, bankStatementColumns),
    };
  }

  /** The rails whose statements can be read. */
  get rails(): string[] {
    return Object.keys(this.#formats);
  }

  /** Reads a file to its end. @throws StatementFault */
  receive(chunks: AsyncIterable<Uint8Array>, sent: Sent): Promise<Received> {
    const format = this.#formats[sent.rail];
    if (!format) throw new RangeError(`no statement of ${sent.rail} can be read`);
    const shortCode = format.isOfBank ? undefined : this.#options.config.mpesa?.serviceProviderCode;
    return receiveStatement(this.#options, chunks, {
      ...{ ...sent, format, currency: 'TZS' },
      ...(shortCode === undefined ? {} : { shortCode }),
    });
  }

  /** A day on which nothing moved, as an operator states it. @throws StatementFault */
  empty(sent: Sent): Promise<Received> {
    return statedEmpty(this.#options, sent);
  }

  /** What makes a received file a reconciliation: its actor, and the record of the file in the same commit. */
  begin(
    received: Received,
    { rail, date }: Sent,
    by: string,
    atMs: number,
  ): { actor: NewActor; writes: Write[] } {
    const { sha256, upload, pages, ...summary } = received;
    const id = reconciliationId(rail, date);
    const data = { ...summary, rail, date, currency: 'TZS', sha256, upload, pages, by };
    const judgeAtMs = dateDueAtMs(date) + dayMs + youngMs;
    const doc: StatementDoc = {
      ...summary,
      _id: sha256,
      rail,
      date,
      reconciliation: id,
      by,
      at: new Date(atMs),
    };
    return {
      actor: {
        ...{ machine: 'reconciliation', id, input: { at: atMs, judgeAtMs } },
        ...{ merchantId: 'house', mode: 'live', data },
      },
      writes: [{ op: 'insert', into: statementsSpec.name, doc, onDuplicate: 'replay' }],
    };
  }

  /** What was put by of a file that is not needed after all. */
  drop({ upload }: Pick<Received, 'upload'>): Promise<void> {
    return dropUpload(this.#options.db, upload);
  }

  /** The reconciliation of a file that was imported before, byte by byte the same. */
  async ofFile(sha256: string): Promise<string | undefined> {
    const stored = this.#options.db.collection<StatementDoc>(statementsSpec.name);
    return (await stored.findOne({ _id: sha256 }))?.reconciliation;
  }

  /** Reconciliations, the latest day first. */
  async list(
    filter: { rail?: string | undefined },
    page: { limit: number; startingAfter?: string | undefined },
  ): Promise<ReconciliationDoc[]> {
    const { rail } = filter;
    const after = page.startingAfter?.split('.').at(-1);
    const older = {
      $or: [{ 'data.date': { $lt: after } }, { 'data.date': after, _id: { $lt: page.startingAfter } }],
    };
    return this.#options.db
      .collection<ReconciliationDoc>(reconciliationsSpec.name)
      .find({
        'data.rail': rail === undefined ? { $in: this.rails } : { $eq: rail },
        ...(after === undefined ? {} : older),
      } as object)
      .sort({ 'data.date': -1, _id: -1 })
      .limit(page.limit)
      .toArray();
  }

  /**
   * Whether the network took back a payment of this merchant that stands in our books: nothing is paid out meanwhile. Test
   * mode has no statements, and so no differences.
   */
  readonly isWithheld = async ({ merchantId, mode }: Whose): Promise<boolean> => {
    if (mode !== 'live') return false;
    const open = { merchantId, mode, 'data.kind': 'reversed_there', state: { $nin: [...endedStates] } };
    const found = await this.#options.db
      .collection<DifferenceDoc>(differencesSpec.name)
      .findOne(open as object, { projection: { _id: 1 } });
    return found !== null;
  };

  /** Forgets files whose upload broke off. For the sweep. */
  async tidy(): Promise<void> {
    const { db, clock } = this.#options;
    await dropLeftUploads(db, clock.now());
  }
}

/** What a room that shows reconciliations needs. */
export interface ReconciliationDeps {
  actors: Actors;
  reconciliations: Reconciliations;
}
