import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Doc, type MongoCollectionSpec, stopwatch, type Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { OperatorPrincipal, Role } from '../http/http.ts';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { checksum, hashKey } from '../merchants/merchants.ts';

export { readNeeds } from './needs.ts';
export { proposalsSpec } from './secondPerson.ts';
export { tellWrongTokens } from './wrongTokens.ts';

/** People who run the service, each with a name, a role and a token. `OPERATOR_TOKEN` is the first admin. */
export interface OperatorDoc extends Doc {
  /** Unique for good: the audit knows people by their names. */
  name: string;
  role: Role;
  /** HMAC-SHA256 of the token, hex; the token itself is nowhere. */
  hash: string;
  createdBy: string;
  createdAt: Date;
  revokedAt?: Date;
  revokedBy?: string;
}

export const operatorsSpec: MongoCollectionSpec = {
  name: 'operators',
  indexes: [{ key: { name: 1 }, unique: true }],
};

/** The name of whoever holds `OPERATOR_TOKEN`. */
export const firstAdmin = 'admin';

/** `kusanya_op_<id><secret><checksum>`: the id finds the record, the checksum refuses typing errors unasked. */
const tokenPattern = /^kusanya_op_([0-9A-HJKMNP-TV-Z]{26})_[0-9a-f]{48}[0-9A-Za-z]{6}$/;
const checksumChars = 6;

/** A new operator, the token (to be shown once and kept nowhere), and the write that stores the record. */
export function newOperator(
  input: { name: string; role: Role; by: string; hashSecret: string },
  atMs: number,
): { record: OperatorDoc; token: string; writes: Write[] } {
  const _id = newId('opr', atMs);
  const start = `kusanya_op_${_id.slice('opr_'.length)}_${randomBytes(24).toString('hex')}`;
  const token = start + checksum(start);
  const { name, role, by, hashSecret } = input;
  const hash = hashKey(token, hashSecret);
  const record: OperatorDoc = { _id, name, role, hash, createdBy: by, createdAt: new Date(atMs) };
  return {
    record,
    token,
    writes: [{ op: 'insert', into: operatorsSpec.name, doc: record, onDuplicate: 'race' }],
  };
}

/** Ends an operator's token for good. Committing it for a revoked one is a `race`. */
export function revokeOperator(
  operator: OperatorDoc,
  by: string,
  atMs: number,
): { record: OperatorDoc; writes: Write[] } {
  const change = { revokedAt: new Date(atMs), revokedBy: by };
  const filter = { _id: operator._id, revokedAt: { $exists: false } };
  const update = { $set: change };
  return {
    record: { ...operator, ...change },
    writes: [{ op: 'update', into: operatorsSpec.name, filter, update, onMiss: 'race' }],
  };
}

/** Ids that are asked about are remembered for two seconds, not more of them than this. */
const knownMax = 1_000;

/** Recognises operators by their tokens, for the API and for the console's sessions. */
export class Operators {
  readonly #db: Db;
  readonly #hashSecret: string;
  readonly #first: Buffer;
  readonly #cacheMs: number;
  /** Monotonic: a clock that steps back must not revive a revoked token. */
  readonly #elapsed = stopwatch();
  readonly #known = new Map<string, { untilMs: number; operator: OperatorDoc | undefined }>();

  constructor(deps: { db: Db; operatorToken: string; keyHashSecret: string; cacheMs?: number }) {
    this.#db = deps.db;
    this.#hashSecret = deps.keyHashSecret;
    this.#first = digest(deps.operatorToken);
    this.#cacheMs = deps.cacheMs ?? limits.keyCacheMs;
  }

  /**
   * The operator behind a token; undefined for a malformed, unknown or revoked one. Compared in constant time. A
   * revocation takes effect within `limits.keyCacheMs` in every process.
   */
  readonly authenticate = async (token: string): Promise<OperatorPrincipal | undefined> => {
    if (timingSafeEqual(digest(token), this.#first)) return { name: firstAdmin, role: 'admin' };
    const id = tokenPattern.exec(token)?.[1];
    if (!id || checksum(token.slice(0, -checksumChars)) !== token.slice(-checksumChars)) return undefined;
    const operator = await this.#lookUp(`opr_${id}`);
    if (!operator || operator.revokedAt) return undefined;
    const hash = Buffer.from(hashKey(token, this.#hashSecret), 'hex');
    if (!timingSafeEqual(Buffer.from(operator.hash, 'hex'), hash)) return undefined;
    return { name: operator.name, role: operator.role };
  };

  /** One operator, fresh from the database; in this process a change of it holds from now on. */
  async find(id: string): Promise<OperatorDoc | undefined> {
    this.#known.delete(id);
    return (await this.#stored.findOne({ _id: { $eq: id } })) ?? undefined;
  }

  /** Whether the name is taken, be it by somebody who was revoked. */
  async isTaken(name: string): Promise<boolean> {
    return name === firstAdmin || (await this.#stored.findOne({ name: { $eq: name } })) !== null;
  }

  /** Whether somebody of that name is an operator now. */
  async isActive(name: string): Promise<boolean> {
    if (name === firstAdmin) return true;
    return (await this.#stored.findOne({ name: { $eq: name }, revokedAt: { $exists: false } })) !== null;
  }

  /** Operators, newest first, below a cursor. */
  async list(limit: number, startingAfter?: string): Promise<OperatorDoc[]> {
    const filter = startingAfter ? { _id: { $lt: startingAfter } } : {};
    return this.#stored.find(filter).sort({ _id: -1 }).limit(limit).toArray();
  }

  /** What this process remembers of an operator is no longer so. */
  forget(id: string): void {
    this.#known.delete(id);
  }

  get #stored() {
    return this.#db.collection<OperatorDoc>(operatorsSpec.name);
  }

  async #lookUp(id: string): Promise<OperatorDoc | undefined> {
    const known = this.#known.get(id);
    if (known && known.untilMs > this.#elapsed()) return known.operator;
    const askedMs = this.#elapsed();
    const operator = (await this.#stored.findOne({ _id: { $eq: id } })) ?? undefined;
    if (this.#known.size >= knownMax) this.#known.clear();
    this.#known.set(id, { untilMs: askedMs + this.#cacheMs, operator });
    return operator;
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
