import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientSession, type Db, type MongoClient, MongoError, MongoServerError } from 'mongodb';
import { stopwatch } from './clock.ts';
import { type Command, commandsOf, isIncrement } from './commands.ts';
import { failpoint } from './failpoint.ts';
import type { Log } from './log.ts';
import { type Doc, durable, isLineFault, isOutage, type Write } from './mongo.ts';

/**
 * Group commit. Steps that become ready while others are on their way are written together, as one MongoDB
 * transaction, so the cost of a step falls as load rises. Callers only see `await commit(writes)`: theirs was written
 * whole, or it was not and they learn by what. Requests, for whose answer somebody waits, overtake what workers have
 * to write: thousands of payments may be on their way. They take no more than half of a batch where others wait.
 *
 * Two batches may be on their way at once, but only one that adds to counters: two would meet in the same documents
 * and abort each other.
 */
export type CommitOutcome = { ok: true } | { ok: false; write: Write };

interface Member {
  writes: Write[];
  /** It adds to counters. */
  adds: boolean;
  /** Somebody waits for the answer: a request, not a worker. */
  isAwaited: boolean;
  /** On the committer's watch. */
  sinceMs: number;
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

/** How an attempt to write a batch ended. */
type Ending =
  | { is: 'written' }
  /** By what the database holds; nothing was written. The write is named where MongoDB named it. */
  | { is: 'refused'; write: Write | undefined }
  /** It meets a transaction that somebody has open, and may have open for long: whoever began it may be dead. */
  | { is: 'contended' }
  /** MongoDB did not take it, or nobody knows: it is the same for all of them, and parting them would not help. */
  | { is: 'lost'; error: unknown }
  /** Something about one of them, such as bytes that cannot be encoded. */
  | { is: 'faulty'; error: unknown };

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

const duplicateKey = 11_000;
const writeConflict = 112;
/** So often a batch that meets another's transaction is tried as it is: as a rule that one ends within milliseconds. */
const conflictRounds = 5;
const lanesMax = 2;

export class Committer {
  readonly #client: MongoClient;
  readonly #db: Db;
  readonly #log: Log;
  readonly #largestBatch: number;
  readonly #patienceMs: number;
  readonly #observe: CommitterOptions['observe'];
  readonly #elapsed = stopwatch();
  #waiting: Member[] = [];
  /** Each takes one batch after the other until nothing waits that it may take. */
  readonly #lanes = new Set<Promise<void>>();
  readonly #onTheWay = new Set<readonly Member[]>();
  readonly #aside = new Set<Promise<void>>();
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
   * Writes all or none, with majority and journal; before others, if `isAwaited`.
   * @throws MongoDB's error when the database cannot be reached (nothing is known to be written), or
   *   `CommitUnknown` when the outcome could not be learnt: read again before repeating.
   */
  commit(writes: Write[], isAwaited = false): Promise<CommitOutcome> {
    return new Promise((settle, fail) => {
      const adds = writes.some(isIncrement);
      this.#waiting.push({ writes, adds, isAwaited, sinceMs: this.#elapsed(), settle, fail });
      if (this.#lanes.size < lanesMax) this.#open();
    });
  }

  /** Resolves when everything handed in so far has been answered. */
  async drain(): Promise<void> {
    while (this.#lanes.size + this.#aside.size > 0) await Promise.all([...this.#lanes, ...this.#aside]);
  }

  /**
   * How long the oldest commit has been waiting, in line or on its way; 0 where there is none. Those beside the line
   * do not count: they wait for one document, and nobody waits for them.
   */
  oldestMs(): number {
    const first = [this.#waiting, ...this.#onTheWay].flatMap((some) => some[0]?.sinceMs ?? []);
    return first.length > 0 ? this.#elapsed() - Math.min(...first) : 0;
  }

  #open(): void {
    const lane = this.#run().finally(() => this.#lanes.delete(lane));
    this.#lanes.add(lane);
  }

  async #run(): Promise<void> {
    // Whatever else became ready in this turn of the event loop joins the batch.
    await new Promise((resolve) => setImmediate(resolve));
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) {
      this.#onTheWay.add(batch);
      await this.#settle(batch, false);
      this.#onTheWay.delete(batch);
    }
  }

  /**
   * The oldest of those that wait, requests first; without counters while a batch with counters is on its way. Half of
   * the batch is kept for the others, as far as they fill it.
   */
  #take(): Member[] {
    const mayAdd = ![...this.#onTheWay].some((batch) => batch.some(({ adds }) => adds));
    const fit = this.#waiting.filter(({ adds }) => mayAdd || !adds);
    const others = fit.filter(({ isAwaited }) => !isAwaited);
    const kept = Math.min(others.length, this.#largestBatch >> 1);
    const first = fit.filter(({ isAwaited }) => isAwaited).slice(0, this.#largestBatch - kept);
    const batch = new Set([...first, ...others.slice(0, this.#largestBatch - first.length)]);
    this.#waiting = this.#waiting.filter((member) => !batch.has(member));
    return [...batch];
  }

  /** Answers every member of a batch. One member's bad luck or bad bytes must not be the others': it is parted. */
  async #settle(batch: readonly Member[], isAside: boolean): Promise<void> {
    const parts = [batch];
    for (let part = parts.shift(); part; part = parts.shift()) {
      const ending = await this.#write(part, isAside);
      const member = part[0]!;
      if (ending.is === 'written') {
        for (const each of part) each.settle({ ok: true });
      } else if (ending.is === 'lost') {
        const sharers = isNobodyThere(ending.error)
          ? [...part, ...parts.splice(0).flat(), ...this.#waiting.splice(0)]
          : part;
        for (const each of sharers) each.fail(ending.error);
      } else if (part.length > 1) {
        this.counts.splits += 1;
        parts.unshift(...(await this.#part(part, ending)));
      } else if (ending.is === 'contended') {
        this.#setAside(member);
      } else if (ending.is === 'refused' && ending.write) {
        this.counts.refusals += 1;
        member.settle({ ok: false, write: ending.write });
      } else {
        member.fail(ending.is === 'faulty' ? ending.error : new Error('refused by no write'));
      }
    }
  }

  /** What a dead process has locked may stay so for seconds: who needs it waits beside the line, and nobody with him. */
  #setAside(member: Member): void {
    this.counts.asides += 1;
    const waiting = this.#settle([member], true).finally(() => this.#aside.delete(waiting));
    this.#aside.add(waiting);
  }

  /**
   * A batch in two: those that may go together, then those that must stand alone to learn by which write they are
   * refused. Whoever has lost already is found by one look and answered here: where processes compete, or a merchant
   * repeats what was answered, halving would take a transaction for every second one.
   */
  async #part(batch: readonly Member[], ending: Ending): Promise<Member[][]> {
    if (ending.is !== 'refused') return halves(batch);
    // Where MongoDB does not answer, the parts will find that out.
    const found = await this.#look(batch).catch(() => new Map<string, number>());
    const rest: Member[] = [];
    for (const member of batch) {
      const write = member.writes.find((each) => hasLost(each, found));
      if (write) {
        this.counts.refusals += 1;
        member.settle({ ok: false, write });
      } else rest.push(member);
    }
    if (rest.length < batch.length) return rest.length > 0 ? [rest] : [];
    const { write } = ending;
    const guilty = write && batch.find(({ writes }) => writes.includes(write));
    return guilty ? [batch.filter((member) => member !== guilty), [guilty]] : halves(batch);
  }

  /** What is there by now of the actors that a batch would step and of the records it would claim: sequence numbers by id. */
  async #look(batch: readonly Member[]): Promise<Map<string, number>> {
    const ids = new Map<string, string[]>();
    for (const write of batch.flatMap(({ writes }) => writes)) {
      const id = isStep(write) ? String(write.filter._id) : isRecord(write) ? write.doc._id : undefined;
      if (id !== undefined) ids.set(write.into, [...(ids.get(write.into) ?? []), id]);
    }
    const found = new Map<string, number>();
    for (const [name, some] of ids) {
      const docs = this.#db.collection<Doc & { seq?: number }>(name).find({ _id: { $in: some } });
      for await (const { _id, seq } of docs.project<{ _id: string; seq?: number }>({ seq: 1 }))
        found.set(_id, seq ?? 0);
    }
    return found;
  }

  /** Writes a batch as one transaction, repeated for as long as the fault is one that passes. */
  async #write(batch: readonly Member[], isAside: boolean): Promise<Ending> {
    const elapsedMs = stopwatch();
    const isOver = () => elapsedMs() > this.#patienceMs;
    try {
      const commands = commandsOf(batch);
      for (let round = 0; ; round += 1) {
        const fault = await this.#transact(commands, isOver);
        if (!fault) break;
        if (isOver()) return { is: 'lost', error: fault };
        const isConflict = (fault as MongoError).code === writeConflict;
        if (isConflict && !isAside && round >= conflictRounds) return { is: 'contended' };
        this.counts.retries += 1;
        this.#log.debug({ round, error: String(fault) }, 'batch retried');
        await sleep(Math.random() * Math.min(isAside ? 500 : 200, 4 * 2 ** Math.min(round, 7)));
      }
    } catch (error) {
      if (error instanceof Refused) return { is: 'refused', write: error.write };
      return isOutage(error) ? { is: 'lost', error } : { is: 'faulty', error };
    }
    this.#observe?.({ members: batch, seconds: elapsedMs() / 1_000 });
    this.counts.batches += 1;
    this.counts.members += batch.length;
    return { is: 'written' };
  }

  /** One transaction. Returns the fault where nothing is written and it may be tried again. */
  async #transact(commands: readonly Command[], isOver: () => boolean): Promise<unknown> {
    const session = this.#client.startSession();
    try {
      failpoint('beforeTransaction');
      session.startTransaction({ readConcern: { level: 'snapshot' }, writeConcern: durable });
      for (const command of commands) await this.#execute(session, command);
      await commitOf(session, isOver);
      return undefined;
    } catch (error) {
      if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
      // Under a line that failed before its commit began nothing can have been committed.
      if (hasLabel(error, 'TransientTransactionError') || isLineFault(error)) return error;
      throw error;
    } finally {
      await session.endSession();
    }
  }

  /** @throws Refused, or whatever the driver says */
  async #execute(session: ClientSession, { command, writes, mustMatch }: Command): Promise<void> {
    // The driver lets a plain command inherit nothing.
    const answer = await this.#db.command(command, { session, ignoreUndefined: true });
    const fault = (answer.writeErrors as WriteFault[] | undefined)?.[0];
    if (fault?.code === duplicateKey) throw new Refused(writes[fault.index]);
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

function halves<T>(batch: readonly T[]): T[][] {
  const half = batch.length >> 1;
  return [batch.slice(0, half), batch.slice(half)];
}

/** The guarded update of an actor. */
function isStep(write: Write): write is Extract<Write, { op: 'update' }> {
  return (
    write.op === 'update' && typeof write.filter.seq === 'number' && typeof write.filter._id === 'string'
  );
}

/** The record that a request was answered. */
function isRecord(write: Write): write is Extract<Write, { op: 'insert' }> {
  return write.op === 'insert' && write.onDuplicate === 'replay';
}

/** Whether a write can only be refused by what was found; sequence numbers never go back. */
function hasLost(write: Write, found: ReadonlyMap<string, number>): boolean {
  if (isStep(write)) return (found.get(write.filter._id as string) ?? 0) > (write.filter.seq as number);
  return isRecord(write) && found.has(write.doc._id);
}

function hasLabel(error: unknown, label: string): boolean {
  return error instanceof MongoError && error.hasErrorLabel(label);
}

/** Nobody took the command: those who wait need not find that out again, one patience after the other. */
function isNobodyThere(error: unknown): boolean {
  return !(error instanceof CommitUnknown) && typeof (error as MongoError).code !== 'number';
}
