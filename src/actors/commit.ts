import { type ClientSession, type Db, type MongoClient, MongoError, MongoNetworkError } from 'mongodb';
import { stopwatch } from '../clock.ts';
import { failpoint } from '../failpoint.ts';
import type { Log } from '../log.ts';
import { type Doc, durable, isBrokenLine, type Write } from '../mongo.ts';
import { type Plan, planOf } from './bulk.ts';

/**
 * Group commit. Steps that become ready while the last batch is on its way are written together, as one
 * MongoDB transaction of bulk writes, so the cost of a step falls as load rises. Callers only see
 * `await commit(writes)`: theirs was written whole, or it was not and they learn by what.
 *
 * One batch at a time. Two at once were measured and gave nothing: they are smaller, and each costs its commands.
 */
export type CommitOutcome = { ok: true } | { ok: false; write: Write };

interface Member {
  writes: Write[];
  settle(outcome: CommitOutcome): void;
  fail(error: unknown): void;
}

interface CommitterOptions {
  client: MongoClient;
  db: Db;
  log: Log;
  /** Steps in one transaction at the most. */
  largestBatch?: number;
  /** How long one batch may be retried before its members hear of the fault. */
  patienceMs?: number;
  /** Told of every committed batch, and how long it took. Must not throw and must not wait. */
  observe?: (batch: CommittedBatch) => void;
}

export interface CommittedBatch {
  members: readonly { writes: readonly Write[] }[];
  seconds: number;
}

/** A member's write was refused by the database's state; the whole transaction was rolled back. */
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

/** The batch meets a transaction that somebody has open, and may have open for long: whoever began it may be dead. */
class Contended extends Error {}

const duplicateKey = 11_000;
const writeConflict = 112;
/** So often a batch that meets another's transaction is tried as it is: as a rule that one ends within milliseconds. */
const conflictRounds = 5;

export class Committer {
  readonly #client: MongoClient;
  readonly #db: Db;
  readonly #log: Log;
  readonly #largestBatch: number;
  readonly #patienceMs: number;
  readonly #observe: CommitterOptions['observe'];
  #waiting: Member[] = [];
  #running: Promise<void> | undefined;
  readonly #aside = new Set<Promise<unknown>>();
  /** Batches and members so far, for the metrics. */
  readonly counts = { batches: 0, members: 0, documents: 0, retries: 0, splits: 0, refusals: 0, asides: 0 };

  constructor(options: CommitterOptions) {
    this.#client = options.client;
    this.#db = options.db;
    this.#log = options.log;
    this.#largestBatch = options.largestBatch ?? 128;
    this.#patienceMs = options.patienceMs ?? 10_000;
    this.#observe = options.observe;
  }

  /**
   * Writes all or none, with majority and journal.
   * @throws MongoDB's error when the database cannot be reached (nothing is known to be written), or
   *   `CommitUnknown` when the outcome could not be learnt: read again before repeating.
   */
  commit(writes: Write[]): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ writes, settle: resolve, fail: reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when everything handed in so far has been answered. */
  async drain(): Promise<void> {
    while (this.#running || this.#aside.size > 0) await Promise.all([this.#running, ...this.#aside]);
  }

  async #run(): Promise<void> {
    // Whatever else became ready in this turn of the event loop joins the batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#largestBatch);
      await this.#settle(batch);
    }
    this.#running = undefined;
  }

  /** Answers every member of the batch. Returns the fault if MongoDB did not answer at all. */
  async #settle(batch: Member[], isAside = false): Promise<unknown> {
    if (batch.length === 0) return undefined;
    const elapsedMs = stopwatch();
    try {
      await this.#attempt(batch, isAside);
      this.#observe?.({ members: batch, seconds: elapsedMs() / 1_000 });
      this.counts.batches += 1;
      this.counts.members += batch.length;
      for (const member of batch) member.settle({ ok: true });
      return undefined;
    } catch (error) {
      return this.#divide(batch, error);
    }
  }

  /** One member's bad luck or bad bytes must not be the others': the batch is parted until it stands alone. */
  async #divide(batch: Member[], error: unknown): Promise<unknown> {
    const alone = batch[0]!;
    if (error instanceof Contended && batch.length === 1) {
      this.#setAside(alone);
      return undefined;
    }
    if (error instanceof CommitUnknown || isOutage(error)) {
      for (const member of batch) member.fail(error);
      if (error instanceof CommitUnknown || typeof (error as MongoError).code === 'number') return undefined;
      // Nobody is there: those who wait need not find out again, one patience after the other.
      for (const member of this.#waiting.splice(0)) member.fail(error);
      return error;
    }
    if (batch.length > 1) {
      this.counts.splits += 1;
      const [first, second] = error instanceof Refused ? await this.#part(batch, error) : halves(batch);
      const outage = await this.#settle(first);
      if (!outage) return this.#settle(second);
      for (const member of second) member.fail(outage);
      return outage;
    }
    if (error instanceof Refused && error.write) {
      this.counts.refusals += 1;
      alone.settle({ ok: false, write: error.write });
    } else alone.fail(error);
    return undefined;
  }

  /** What a dead process has locked may stay so for seconds: who needs it waits beside the line, and nobody with him. */
  #setAside(member: Member): void {
    this.counts.asides += 1;
    const waiting = this.#settle([member], true).finally(() => this.#aside.delete(waiting));
    this.#aside.add(waiting);
  }

  /**
   * A refused batch in two: those that may go together, then those that must stand alone to learn by which write they
   * are refused. Whoever lost a race is found by one look at the sequence numbers, which never go back, and is
   * answered here: where processes compete, halving would take a transaction for every second loser.
   */
  async #part(batch: Member[], { write }: Refused): Promise<[Member[], Member[]]> {
    const guilty = batch.find(({ writes }) => write && writes.includes(write));
    if (guilty) return [batch.filter((member) => member !== guilty), [guilty]];
    const rest: Member[] = [];
    // Where MongoDB does not answer, the halves will find that out.
    const found = await this.#sequences(batch).catch(() => new Map<string, number>());
    for (const member of batch) {
      const lost = member.writes.find((each) => isBehind(each, found));
      if (lost) {
        this.counts.refusals += 1;
        member.settle({ ok: false, write: lost });
      } else rest.push(member);
    }
    return rest.length < batch.length ? [rest, []] : halves(batch);
  }

  /** The sequence numbers of the actors that a batch would change, as they are now. */
  async #sequences(batch: Member[]): Promise<Map<string, number>> {
    const ids = new Map<string, string[]>();
    for (const { writes } of batch) {
      for (const write of writes) {
        if (isStep(write)) ids.set(write.into, [...(ids.get(write.into) ?? []), write.filter._id as string]);
      }
    }
    const found = new Map<string, number>();
    for (const [name, some] of ids) {
      const docs = this.#db.collection<Doc & { seq: number }>(name).find({ _id: { $in: some } });
      for await (const { _id, seq } of docs.project<{ _id: string; seq: number }>({ seq: 1 }))
        found.set(_id, seq);
    }
    return found;
  }

  /** Runs the transaction, repeating it for as long as MongoDB calls the fault transient. */
  async #attempt(batch: Member[], isAside: boolean): Promise<void> {
    const plan = planOf(batch);
    const giveUpAt = performance.now() + this.#patienceMs;
    for (let round = 0; ; round += 1) {
      const session = this.#client.startSession();
      try {
        await this.#transact(session, plan, giveUpAt);
        return;
      } catch (error) {
        if (!hasLabel(error, 'TransientTransactionError') || performance.now() > giveUpAt) throw error;
        const isConflict = (error as MongoError).code === writeConflict;
        if (isConflict && !isAside && round >= conflictRounds) throw new Contended();
        this.counts.retries += 1;
        this.#log.debug({ round, error: String(error) }, 'batch retried');
        const pauseMs = Math.random() * Math.min(isAside ? 500 : 200, 4 * 2 ** Math.min(round, 7));
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      } finally {
        await session.endSession();
      }
    }
  }

  async #transact(session: ClientSession, plan: Plan[], giveUpAt: number): Promise<void> {
    failpoint('beforeTransaction');
    session.startTransaction({ readConcern: { level: 'snapshot' }, writeConcern: durable });
    try {
      for (const part of plan) await this.#write(session, part);
    } catch (error) {
      await session.abortTransaction().catch(() => undefined);
      throw error;
    }
    for (;;) {
      try {
        failpoint('beforeCommit');
        await session.commitTransaction();
        failpoint('afterCommit');
        return;
      } catch (error) {
        if (hasLabel(error, 'TransientTransactionError')) throw error; // it was rolled back
        const mayRepeat = hasLabel(error, 'UnknownTransactionCommitResult') || isBrokenLine(error);
        if (!mayRepeat || performance.now() > giveUpAt) {
          throw new CommitUnknown(error);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  async #write(session: ClientSession, part: Plan): Promise<void> {
    const collection = this.#db.collection<Doc>(part.into);
    let matched: number;
    try {
      const result = await collection.bulkWrite(part.operations, { session, ordered: true });
      matched = result.matchedCount;
      this.counts.documents += part.operations.length;
    } catch (error) {
      const failure = error as { code?: number; writeErrors?: { index?: number; code?: number }[] };
      const first = Array.isArray(failure.writeErrors) ? failure.writeErrors[0] : undefined;
      if ((first?.code ?? failure.code) !== duplicateKey) throw labelled(error);
      throw new Refused(part.writes[first?.index ?? 0]);
    }
    if (matched < part.mustMatch) throw new Refused(part.writes.length === 1 ? part.writes[0] : undefined);
  }
}

function halves(batch: Member[]): [Member[], Member[]] {
  const half = batch.length >> 1;
  return [batch.slice(0, half), batch.slice(half)];
}

/** The guarded update of an actor. */
function isStep(write: Write): write is Extract<Write, { op: 'update' }> {
  return (
    write.op === 'update' && typeof write.filter.seq === 'number' && typeof write.filter._id === 'string'
  );
}

function isBehind(write: Write, found: ReadonlyMap<string, number>): boolean {
  return isStep(write) && (found.get(write.filter._id as string) ?? 0) > (write.filter.seq as number);
}

function hasLabel(error: unknown, label: string): boolean {
  const labelled = error as { hasErrorLabel?: (label: string) => boolean };
  return typeof labelled?.hasErrorLabel === 'function' && labelled.hasErrorLabel(label);
}

/**
 * A bulk write wraps the driver's error, and its name is lost. "No server found" is known by the description
 * it carries, a cut connection by a field of its own; nothing was written either way.
 */
function labelled(error: unknown): unknown {
  const isLine = isBrokenLine(error);
  const named = isLine ? new MongoNetworkError(String(error), { cause: error as Error }) : error;
  if (!(named instanceof MongoError)) return named;
  const wrapped = error as { reason?: { servers?: unknown }; beforeHandshake?: boolean };
  if (wrapped.reason?.servers) named.addErrorLabel('RetryableWriteError');
  if (isLine || wrapped.beforeHandshake !== undefined) named.addErrorLabel('TransientTransactionError');
  return named;
}

/** MongoDB cannot be reached or does not take writes: dividing the batch would only ask it more often. */
export function isOutage(error: unknown): boolean {
  const name = (error as { name?: string })?.name ?? '';
  return (
    /^Mongo(ServerSelection|Network|NetworkTimeout|PoolClear|ConnectionPool|NotConnected|TopologyClosed|WaitQueueTimeout)/.test(
      name,
    ) ||
    isBrokenLine(error) ||
    hasLabel(error, 'TransientTransactionError') ||
    hasLabel(error, 'RetryableWriteError')
  );
}
