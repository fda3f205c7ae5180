import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import {
  BatchReader,
  type Clock,
  isOutage,
  type MongoCollectionSpec,
  StepReplayed,
  stopwatch,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { limits } from '../limits.ts';
import { seal, secretsKeyOf, unseal } from '../seal.ts';
import type { Whose } from '../whose.ts';
import { idempotencyKeyInUse, idempotencyKeyReused } from './errors.ts';
import type { Answer, Operation, RecordWrite } from './route.ts';

/**
 * A retried request is answered as the first one was, and does nothing again (CONTRACT 5). The stored answer is one of the writes of the commit that creates the resource, so it exists
 * if and only if the resource does.
 */
export interface IdempotencyRecord {
  /** `<merchant>.<mode>.<method> <path>.<key>`: not the API key, which may be rotated in the middle of a retry. */
  _id: string;
  fingerprint: string;
  status: number;
  /** The exact text of the body; where `isSealed` says so, sealed with SECRETS_KEY and bound to this record. */
  body: string;
  isSealed?: true;
  /** Of the request that was answered first. */
  requestId: string;
  createdAt: Date;
  expiresAt: Date;
}

export const idempotencySpec: MongoCollectionSpec = {
  name: 'idempotency',
  // Only tidies up, an hour late: whether a record has expired is judged by our clock, in the queries.
  indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: limits.hourMs / limits.secondMs }],
};

export function idempotencyId(
  who: { merchantId: string; mode: string },
  method: string,
  path: string,
  key: string,
): string {
  return `${who.merchantId}.${who.mode}.${method} ${path}.${key}`;
}

/** Deeper bodies are refused (body.ts) before anything recurses into them. */
export const bodyMaxDepth = 32;

/**
 * SHA-256 (hex) of a parsed body in canonical form: keys sorted, no white space. Two bodies that mean the same
 * have the same fingerprint. Throws RangeError beyond `bodyMaxDepth`.
 */
export function fingerprint(body: unknown): string {
  return hash('sha256', canonical(body, 0));
}

function canonical(value: unknown, depth: number): string {
  if (depth > bodyMaxDepth) throw new RangeError('nested too deep');
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(',')}]`;
  const fields = value as Record<string, unknown>;
  const members = Object.keys(fields)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(fields[key], depth + 1)}`);
  return `{${members.join(',')}}`;
}

/**
 * The write that claims the key. `expired`: the record that the look-up found past its end; it is taken over,
 * unless somebody else was faster. Either way a conflict means that the request was already answered.
 */
export function idempotencyWrite(record: IdempotencyRecord, expired?: IdempotencyRecord): Write {
  const into = idempotencySpec.name;
  if (!expired) return { op: 'insert', into, doc: { ...record }, onDuplicate: 'replay' };
  const { _id, ...fields } = record;
  const filter = { _id, expiresAt: { $lte: record.createdAt } };
  return { op: 'update', into, filter, update: { $set: fields }, onMiss: 'replay' };
}

export interface IdempotentRequest {
  id: string;
  fingerprint: string;
  requestId: string;
  /** The answer holds a secret, and is stored sealed. */
  isSealed?: boolean;
}

export interface ProducedAnswer {
  status: number;
  body: string;
}

/** Runs the request. Its commit must hold the write that `recordWrite` returns. */
export type Produce = (recordWrite: RecordWrite) => Promise<ProducedAnswer>;

type Stored = Pick<IdempotencyRecord, 'fingerprint' | 'status' | 'body' | 'isSealed'>;

const latelyMax = 10_000;

/** Keys in use, in this process and in the database. */
export class IdempotencyStore {
  readonly #clock: Clock;
  readonly #key: Buffer;
  readonly #waitMs: number;
  readonly #records: BatchReader<IdempotencyRecord>;
  /** What becomes of the request that is under way with a key; undefined: it stored nothing. Never rejects. */
  readonly #inFlight = new Map<string, Promise<Stored | undefined>>();
  /** Keys answered by this process, the latest last. */
  readonly #lately = new Set<string>();

  /** `secretsKey`: SECRETS_KEY. `waitMs`: how long the loser of a race looks for the winner's answer. */
  constructor(deps: { db: Db; clock: Clock; secretsKey: string; waitMs?: number }) {
    const stored = deps.db.collection<IdempotencyRecord>(idempotencySpec.name);
    this.#records = new BatchReader(async (ids) => {
      const found = await stored.find({ _id: { $in: ids } }).toArray();
      return new Map(found.map((record) => [record._id, record]));
    });
    this.#clock = deps.clock;
    this.#key = secretsKeyOf(deps.secretsKey);
    this.#waitMs = deps.waitMs ?? limits.idempotencyWaitMs;
  }

  /** The record of an id, expired or not. Concurrent look-ups share one query. */
  find(id: string): Promise<IdempotencyRecord | undefined> {
    return this.#records.read(id);
  }

  /**
   * Answers a request once: by `produce`, or by replaying what the first request with this key was answered.
   * Errors: `idempotency_key_reused` when the body differs, `idempotency_key_in_use` when another process
   * committed the key but its answer cannot be read in time; whatever `produce` throws stores nothing.
   */
  async run(request: IdempotentRequest, produce: Produce): Promise<ProducedAnswer & { replayed: boolean }> {
    for (;;) {
      const ahead = this.#inFlight.get(request.id);
      if (!ahead) break;
      const stored = await ahead;
      if (stored) return this.#replay(stored, request);
      // The one ahead ended in an error: this request, or whichever wakes first, goes on by itself.
    }
    let finish: (stored: Stored | undefined) => void = () => {};
    this.#inFlight.set(request.id, new Promise((resolve) => (finish = resolve)));
    let stored: Stored | undefined;
    try {
      const first = await this.#answer(request, produce);
      stored = first.stored;
      if (stored) this.#remember(request.id);
      if (first.replayed) return this.#replay(first.stored, request);
      return { ...first.answer, replayed: false };
    } finally {
      this.#inFlight.delete(request.id);
      finish(stored);
    }
  }

  /**
   * Nothing is looked up before the commit: it refuses a key that was answered. Only one that this process answered
   * lately is looked up at once, so that a client in a loop does not part the commits of all others.
   */
  async #answer(request: IdempotentRequest, produce: Produce): Promise<Outcome> {
    const { id } = request;
    let known = this.#lately.has(id) ? await this.find(id) : undefined;
    for (;;) {
      if (known && this.#isAlive(known)) return { replayed: true, stored: known };
      const outcome = await this.#make(request, produce, known);
      if (outcome) return outcome;
      known = await this.#inTheWay(id, known !== undefined);
    }
  }

  /** Undefined: another request's record stood in the way. */
  async #make(
    request: IdempotentRequest,
    produce: Produce,
    expired: IdempotencyRecord | undefined,
  ): Promise<Outcome | undefined> {
    let made: IdempotencyRecord | undefined;
    try {
      const answer = await produce((status, body) => {
        made = this.#record(request, status, body);
        return idempotencyWrite(made, expired);
      });
      return { replayed: false, stored: made, answer };
    } catch (error) {
      if (error instanceof StepReplayed) return undefined;
      // Refused by whatever else, be it today's schema: a repetition is answered as the first was.
      const stored = isOutage(error) ? undefined : await this.find(request.id);
      if (stored && this.#isAlive(stored)) return { replayed: true, stored };
      throw error;
    }
  }

  /**
   * The record that a commit ran into: normally there at the first look. One past its end is to be taken over;
   * undefined: that was tried (`wasExpired`), and the database has cleaned it up meanwhile.
   */
  async #inTheWay(id: string, wasExpired: boolean): Promise<IdempotencyRecord | undefined> {
    const elapsedMs = stopwatch();
    for (let pauseMs = 5; ; pauseMs *= 2) {
      const found = await this.find(id);
      if (found ? !wasExpired || this.#isAlive(found) : wasExpired) return found;
      const leftMs = this.#waitMs - elapsedMs();
      if (leftMs <= 0) throw idempotencyKeyInUse();
      await wait(Math.min(pauseMs, leftMs));
    }
  }

  #remember(id: string): void {
    this.#lately.delete(id);
    this.#lately.add(id);
    for (const oldest of this.#lately) {
      if (this.#lately.size <= latelyMax) break;
      this.#lately.delete(oldest);
    }
  }

  #record(request: IdempotentRequest, status: number, body: string): IdempotencyRecord {
    const nowMs = this.#clock.now();
    return {
      _id: request.id,
      fingerprint: request.fingerprint,
      status,
      ...(request.isSealed ? { body: seal(body, this.#key, request.id), isSealed: true } : { body }),
      requestId: request.requestId,
      createdAt: new Date(nowMs),
      expiresAt: new Date(nowMs + limits.idempotencyTtlMs),
    };
  }

  #replay(stored: Stored, { id, fingerprint }: IdempotentRequest): ProducedAnswer & { replayed: boolean } {
    if (stored.fingerprint !== fingerprint) throw idempotencyKeyReused();
    const { status, body, isSealed } = stored;
    return { status, body: isSealed ? unseal(body, this.#key, id) : body, replayed: true };
  }

  #isAlive(record: IdempotencyRecord): boolean {
    return record.expiresAt.getTime() > this.#clock.now();
  }
}

type Outcome =
  | { replayed: true; stored: Stored }
  | { replayed: false; stored: Stored | undefined; answer: ProducedAnswer };

/** A request to an idempotent route; `path` is whole, not its pattern. */
interface AskedOnce {
  operation: Pick<Operation<never>, 'idempotent'>;
  principal: Whose;
  method: string;
  path: string;
  key: string;
  body: unknown;
  requestId: string;
}

/** Answers by the handler, or as the first request with this key was answered. @throws as `IdempotencyStore.run` */
export function producedOnce(
  store: IdempotencyStore,
  { operation, principal, method, path, key, body, requestId }: AskedOnce,
  produce: (recordWrite: RecordWrite) => Promise<Answer>,
): Promise<ProducedAnswer & { replayed: boolean }> {
  const once = {
    id: idempotencyId(principal, method, path, key),
    fingerprint: fingerprint(body),
    requestId,
    isSealed: operation.idempotent === 'sealed',
  };
  return store.run(once, async (recordWrite) => asText(await produce(recordWrite)));
}

function asText({ status, body }: Answer): ProducedAnswer {
  if (body instanceof Readable) throw new TypeError('an idempotent answer cannot be a stream');
  return { status, body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) };
}
