import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientSession, type Db, type MongoClient, MongoError, MongoServerError } from 'mongodb';
import { stopwatch } from './clock.ts';
import { type Command, commandsOf, type Look, looksOf } from './commands.ts';
import { isDuplicateCode } from './duplicate.ts';
import { failpoint } from './failpoint.ts';
import type { Log } from './log.ts';
import { durable, isLineFault, isOutage, type Write } from './mongo.ts';

/** How an attempt to write a batch as one transaction ended. */
export type Ending =
  | { is: 'written' }
  /** By what the database holds; nothing was written. The write is named where MongoDB named it. */
  | { is: 'refused'; write: Write | undefined }
  /** It meets a transaction that somebody has open, and may have open for long: whoever began it may be dead. */
  | { is: 'contended' }
  /** MongoDB did not take it, or nobody knows: it is the same for all of them, and parting them would not help. */
  | { is: 'lost'; error: unknown }
  /** Something about one of them, such as bytes that cannot be encoded. */
  | { is: 'faulty'; error: unknown };

/** Nothing is written, by a fault that passes: it may be tried again. */
interface Passing {
  is: 'passing';
  error: unknown;
}

/** A write was refused by the database's state; the whole transaction is rolled back. */
class Refused extends Error {
  readonly write: Write | undefined;

  constructor(write: Write | undefined) {
    super('refused');
    this.write = write;
  }
}

/** The commit's outcome could not be learnt: it may or may not have been applied. */
export class CommitUnknown extends MongoError {
  constructor(cause: unknown) {
    super(`the commit's outcome is unknown: ${String(cause)}`, { cause: cause as Error });
    this.addErrorLabel('UnknownTransactionCommitResult');
  }

  override get name(): string {
    return 'CommitUnknown';
  }
}

const writeConflict = 112;
/** So often a batch that meets another's transaction is tried as it is: as a rule that one ends within milliseconds. */
const conflictRounds = 5;

interface TransactionsOptions {
  client: MongoClient;
  db: Db;
  log: Log;
  /** How long one batch may be retried before its members hear of the fault. */
  patienceMs: number;
}

/** Batches of writes as MongoDB transactions: all of a batch or nothing, with majority and journal. */
export class Transactions {
  readonly #options: TransactionsOptions;
  /** So far, for the metrics. */
  readonly counts = { documents: 0, retries: 0 };

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /** Writes a batch, again and again while the fault is one that passes. `isAside`: nobody waits behind it. */
  async write(batch: readonly { writes: Write[] }[], isAside: boolean): Promise<Ending> {
    const { log, patienceMs } = this.#options;
    const elapsedMs = stopwatch();
    const isOver = () => elapsedMs() > patienceMs;
    for (let round = 0; ; round += 1) {
      const ending = await this.#attempt(batch, isOver);
      if (ending.is !== 'passing') return ending;
      const { error } = ending;
      if (isOver()) return { is: 'lost', error };
      const isConflict = (error as MongoError).code === writeConflict;
      if (isConflict && !isAside && round >= conflictRounds) return { is: 'contended' };
      this.counts.retries += 1;
      log.debug({ round, error: String(error) }, 'batch retried');
      await sleep(Math.random() * Math.min(isAside ? 500 : 200, 4 * 2 ** Math.min(round, 7)));
    }
  }

  async #attempt(batch: readonly { writes: Write[] }[], isOver: () => boolean): Promise<Ending | Passing> {
    try {
      await this.#transact(batch, isOver);
      return { is: 'written' };
    } catch (error) {
      if (error instanceof Refused) return { is: 'refused', write: error.write };
      if (isTransient(error)) return { is: 'passing', error };
      return { is: isOutage(error) ? 'lost' : 'faulty', error };
    }
  }

  /** @throws Refused, CommitUnknown, or whatever the driver says; then nothing is written, unless that is unknown */
  async #transact(batch: readonly { writes: Write[] }[], isOver: () => boolean): Promise<void> {
    const looks = looksOf(batch);
    const commands = commandsOf(batch, looks);
    const session = this.#options.client.startSession();
    try {
      failpoint('beforeTransaction');
      session.startTransaction({ readConcern: { level: 'snapshot' }, writeConcern: durable });
      for (const look of looks) await this.#look(session, look);
      for (const command of commands) await this.#execute(session, command);
      await commitOf(session, isOver);
    } catch (error) {
      if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
      throw error;
    } finally {
      await session.endSession();
    }
  }

  /** @throws Refused, where an actor is not, or not any more, what its step was decided on */
  async #look(session: ClientSession, { command, steps }: Look): Promise<void> {
    const { cursor } = await this.#options.db.command(command, { session });
    const found = new Map(
      (cursor.firstBatch as { _id: string; seq?: number }[]).map((doc) => [doc._id, doc.seq]),
    );
    for (const [id, step] of steps) if (found.get(id) !== step.filter.seq) throw new Refused(step);
  }

  /** @throws Refused, or whatever the driver says */
  async #execute(session: ClientSession, { command, writes, mustMatch }: Command): Promise<void> {
    // The driver lets a plain command inherit nothing.
    const answer = await this.#options.db.command(command, { session, ignoreUndefined: true });
    const fault = (answer.writeErrors as WriteFault[] | undefined)?.[0];
    if (fault && isDuplicateCode(fault)) throw new Refused(writes[fault.index]);
    if (fault) throw new MongoServerError(fault);
    if (answer.n < mustMatch) throw new Refused(writes.length === 1 ? writes[0] : undefined);
    this.counts.documents += writes.length;
  }
}

interface WriteFault {
  index: number;
  code: number;
  errmsg: string;
}

/** Commits, and repeats that alone until MongoDB says how it ended. @throws CommitUnknown, or why it was rolled back */
async function commitOf(session: ClientSession, isOver: () => boolean): Promise<void> {
  for (;;) {
    try {
      failpoint('beforeCommit');
      await session.commitTransaction();
      failpoint('afterCommit');
      return;
    } catch (error) {
      if (hasLabel(error, 'TransientTransactionError')) throw error; // it was rolled back
      const mayRepeat = hasLabel(error, 'UnknownTransactionCommitResult') || isLineFault(error);
      if (!mayRepeat || isOver()) throw new CommitUnknown(error);
      await sleep(50);
    }
  }
}

/** Also under a line that failed before the commit began: nothing can have been committed then. */
function isTransient(error: unknown): boolean {
  return hasLabel(error, 'TransientTransactionError') || isLineFault(error);
}

function hasLabel(error: unknown, label: string): boolean {
  return error instanceof MongoError && error.hasErrorLabel(label);
}
