import type { Db, MongoClient, MongoError } from 'mongodb';
import { stopwatch } from './clock.ts';
import { isIncrement, isStep } from './commands.ts';
import type { Log } from './log.ts';
import type { Doc, Write } from './mongo.ts';
import { CommitUnknown, type Ending, Transactions } from './transaction.ts';

/**
 * Group commit. Steps that become ready while others are on their way are written together, as one MongoDB
 * transaction, so the cost of a step falls as load rises. Callers only see `await commit(writes)`: theirs was written
 * whole, or it was not and they learn by what. Requests, for whose answer somebody waits, overtake what workers have
 * to write: thousands of actors may be on their way.
 *
 * Two batches may be on their way at once. A second one sets out only if it is large, if it is a crowd of requests alone,
 * or if the first takes long: each transaction costs MongoDB about as much as twenty of its members, and as a rule there
 * is other work meanwhile. Only one of them adds to counters: two would meet in the same documents and abort each other.
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
  /** A small batch waits for so long for the one on its way (100 ms); longer, a line may have fallen silent. */
  longMs?: number;
  /** How long one batch may be retried before its members hear of the fault. */
  patienceMs?: number;
  /** Told of every committed batch, and how long it took. Must not throw and must not wait. */
  observe?: (batch: CommittedBatch) => void;
}

export interface CommittedBatch {
  members: readonly { writes: readonly Write[] }[];
  seconds: number;
}

const lanesMax = 2;
/** So many requests at once are a crowd: what workers write waits for them. */
const crowd = 16;
/** For so long after a crowd its next wave is expected. */
const waveMs = 100;

export class Committer {
  readonly #db: Db;
  readonly #largestBatch: number;
  readonly #longMs: number;
  readonly #transactions: Transactions;
  readonly #observe: CommitterOptions['observe'];
  readonly #elapsed = stopwatch();
  #waiting: Member[] = [];
  #crowdedAtMs = Number.NEGATIVE_INFINITY;
  #setOutMs = Number.NEGATIVE_INFINITY;
  #lookAgain: NodeJS.Timeout | undefined;
  /** Each takes one batch after the other until nothing waits that it may take. */
  readonly #lanes = new Set<Promise<void>>();
  readonly #onTheWay = new Set<readonly Member[]>();
  readonly #aside = new Set<Promise<void>>();
  readonly #counts = { batches: 0, members: 0, splits: 0, refusals: 0, asides: 0 };

  constructor(options: CommitterOptions) {
    const { client, db, log, patienceMs = 10_000 } = options;
    this.#db = db;
    this.#transactions = new Transactions({ client, db, log, patienceMs });
    this.#largestBatch = options.largestBatch ?? 128;
    this.#longMs = options.longMs ?? 100;
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

  /** What became of batches so far, for the metrics. */
  get counts() {
    return { ...this.#counts, ...this.#transactions.counts };
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
      this.#setOutMs = this.#elapsed();
      await this.#settle(batch);
      this.#onTheWay.delete(batch);
    }
  }

  /**
   * The oldest of those that wait, requests first; without counters while a batch with counters is on its way. In a
   * crowd of requests the others have a quarter of the batch, between two of its waves three eighths, and otherwise
   * whatever room is left. Nothing, where it is not worth a transaction beside the one on its way.
   */
  #take(): Member[] {
    const onTheWay = [...this.#onTheWay].flat();
    const mayAdd = !onTheWay.some(({ adds }) => adds);
    const fit = this.#waiting.filter(({ adds }) => mayAdd || !adds);
    const awaited = fit.filter(({ isAwaited }) => isAwaited);
    const others = fit.filter(({ isAwaited }) => !isAwaited);
    const requests = awaited.length + onTheWay.filter(({ isAwaited }) => isAwaited).length;
    if (requests >= crowd) this.#crowdedAtMs = this.#elapsed();
    const isBetweenWaves = requests < crowd && this.#elapsed() - this.#crowdedAtMs < waveMs;
    const share = this.#largestBatch >> 2;
    const kept = Math.min(others.length, share);
    const first = awaited.slice(0, this.#largestBatch - kept);
    const most = isBetweenWaves ? share + (share >> 1) : this.#largestBatch;
    const room = requests >= crowd ? share : Math.max(0, most - first.length);
    const batch = new Set([...first, ...others.slice(0, room)]);
    if (batch.size === 0 || !this.#isWorthIt(batch.size, others.length > 0)) return [];
    this.#waiting = this.#waiting.filter((member) => !batch.has(member));
    return [...batch];
  }

  /** Whether so many may set out, beside what is on its way. If not, they are looked at again before they wait long. */
  #isWorthIt(size: number, hasOthers: boolean): boolean {
    const waitedMs = this.#elapsed() - this.#setOutMs;
    const isLarge = size >= (hasOthers ? this.#largestBatch >> 1 : crowd);
    if (this.#onTheWay.size === 0 || isLarge || waitedMs >= this.#longMs) return true;
    this.#lookAgain ??= setTimeout(() => {
      this.#lookAgain = undefined;
      if (this.#waiting.length > 0 && this.#lanes.size < lanesMax) this.#open();
    }, this.#longMs - waitedMs).unref();
    return false;
  }

  /** Answers every member of a batch. One that cannot be written whole is divided, and its parts take its place. */
  async #settle(batch: readonly Member[], isAside = false): Promise<void> {
    const parts = [batch];
    for (let part = parts.shift(); part; part = parts.shift()) {
      const elapsedMs = stopwatch();
      const ending = await this.#transactions.write(part, isAside);
      if (ending.is === 'written') this.#written(part, elapsedMs() / 1_000);
      else if (ending.is === 'lost') this.#fail(part, parts, ending.error);
      else if (part.length > 1) parts.unshift(...(await this.#divide(part, ending)));
      else this.#answerAlone(part[0]!, ending);
    }
  }

  #written(members: readonly Member[], seconds: number): void {
    this.#observe?.({ members, seconds });
    this.#counts.batches += 1;
    this.#counts.members += members.length;
    for (const member of members) member.settle({ ok: true });
  }

  /** Where nobody is there to write to, those who wait hear it too, rather than find it out one patience after another. */
  #fail(batch: readonly Member[], others: (readonly Member[])[], error: unknown): void {
    const isForAll = isNobodyThere(error);
    const sharers = isForAll ? [...others.splice(0).flat(), ...this.#waiting.splice(0)] : [];
    for (const member of [...batch, ...sharers]) member.fail(error);
  }

  /**
   * What is left of a batch that was not written whole, in parts that may go together. One member's bad luck or bad
   * bytes must not be the others': who is guilty stands alone in the end, and learns by what.
   */
  async #divide(batch: readonly Member[], ending: Ending): Promise<(readonly Member[])[]> {
    this.#counts.splits += 1;
    if (ending.is !== 'refused') return halves(batch);
    const rest = await this.#answerLosers(batch);
    if (rest.length === 0) return [];
    if (rest.length < batch.length) return [rest];
    const { write } = ending;
    const guilty = write && batch.find(({ writes }) => writes.includes(write));
    return guilty ? [batch.filter((member) => member !== guilty), [guilty]] : halves(batch);
  }

  /**
   * Whoever has lost already is found by one look and answered here: where processes compete, or requests repeat what
   * was answered, halving would take a transaction for every second one. Returns the others.
   */
  async #answerLosers(batch: readonly Member[]): Promise<Member[]> {
    // Where MongoDB does not answer, the parts will find that out.
    const found = await this.#look(batch).catch(() => new Map<string, number>());
    return batch.filter((member) => {
      const write = member.writes.find((each) => hasLost(each, found));
      if (write) this.#refuse(member, write);
      return !write;
    });
  }

  #refuse(member: Member, write: Write): void {
    this.#counts.refusals += 1;
    member.settle({ ok: false, write });
  }

  /** What is there by now of the actors that a batch would step and of the records it would claim: sequence numbers by id. */
  async #look(batch: readonly Member[]): Promise<Map<string, number>> {
    const ids = new Map<string, string[]>();
    for (const write of batch.flatMap(({ writes }) => writes)) {
      const id = isStep(write) ? write.filter._id : isRecord(write) ? write.doc._id : undefined;
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

  /** Of a member that stood alone the meaning is plain. */
  #answerAlone(member: Member, ending: Exclude<Ending, { is: 'written' | 'lost' }>): void {
    if (ending.is === 'contended') this.#setAside(member);
    else if (ending.is === 'faulty') member.fail(ending.error);
    else if (ending.write) this.#refuse(member, ending.write);
    else member.fail(new Error('refused by no write'));
  }

  /** What a dead process has locked may stay so for seconds: the one who needs it waits beside the line, alone. */
  #setAside(member: Member): void {
    this.#counts.asides += 1;
    const waiting = this.#settle([member], true).finally(() => this.#aside.delete(waiting));
    this.#aside.add(waiting);
  }
}

function halves<T>(batch: readonly T[]): T[][] {
  const half = batch.length >> 1;
  return [batch.slice(0, half), batch.slice(half)];
}

/** The record that a request was answered. */
function isRecord(write: Write): write is Extract<Write, { op: 'insert' }> {
  return write.op === 'insert' && write.onDuplicate === 'replay';
}

/** Whether a write can only be refused by what was found; sequence numbers never go back. */
function hasLost(write: Write, found: ReadonlyMap<string, number>): boolean {
  if (isStep(write)) return (found.get(write.filter._id) ?? 0) > write.filter.seq;
  return isRecord(write) && found.has(write.doc._id);
}

/** Nobody took the command: those who wait need not find that out again, one patience after the other. */
function isNobodyThere(error: unknown): boolean {
  return !(error instanceof CommitUnknown) && typeof (error as MongoError).code !== 'number';
}
