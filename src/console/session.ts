import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { Clock, Doc, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Authenticate, OperatorPrincipal } from '../http/http.ts';
import { limits } from '../limits.ts';
import { seal, unseal } from '../seal.ts';

/**
 * Who is signed in. A session is the operator's own token, sealed with a key that only the cookie gives: the
 * database alone opens nothing, and because the token is asked again on every request, an operator who is revoked
 * or given another role is so at once.
 */
interface SessionDoc extends Doc {
  sealed: string;
  createdAt: Date;
  expiresAt: Date;
}

export const sessionsSpec: MongoCollectionSpec = {
  name: 'console_sessions',
  indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
};

export const sessionCookie = 'kusanya_session';
export const sessionMs = 12 * limits.hourMs;

const cookiePattern = /^[\w-]{43}$/;

export class Sessions {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #authenticate: Authenticate<OperatorPrincipal>;

  constructor(options: { db: Db; clock: Clock; authenticate: Authenticate<OperatorPrincipal> }) {
    this.#db = options.db;
    this.#clock = options.clock;
    this.#authenticate = options.authenticate;
  }

  /** A new session's cookie; undefined when the token is nobody's. */
  async begin(token: string): Promise<string | undefined> {
    if (!(await this.#authenticate(token))) return undefined;
    const cookie = newCookie();
    const at = this.#clock.now();
    const _id = idOf(cookie);
    await this.#stored.insertOne({
      _id,
      sealed: seal(token, keyOf(cookie), _id),
      createdAt: new Date(at),
      expiresAt: new Date(at + sessionMs),
    });
    return cookie;
  }

  /** The operator behind a cookie, as the token's rights are now. */
  async find(cookie: string | undefined): Promise<OperatorPrincipal | undefined> {
    if (cookie === undefined || !cookiePattern.test(cookie)) return undefined;
    const doc = await this.#stored.findOne({ _id: idOf(cookie) });
    if (!doc || doc.expiresAt.getTime() <= this.#clock.now()) return undefined;
    const token = tokenIn(doc, cookie);
    return token === undefined ? undefined : this.#authenticate(token);
  }

  async end(cookie: string): Promise<void> {
    await this.#stored.deleteOne({ _id: idOf(cookie) });
  }

  get #stored() {
    return this.#db.collection<SessionDoc>(sessionsSpec.name);
  }
}

export function newCookie(): string {
  return randomBytes(32).toString('base64url');
}

/** What every form of this browser carries, and nobody without the cookie can know. */
export function formToken(cookie: string): string {
  return createHmac('sha256', cookie).update('form').digest('base64url');
}

function idOf(cookie: string): string {
  return createHash('sha256').update(cookie).digest('hex');
}

function keyOf(cookie: string): Buffer {
  return Buffer.from(hkdfSync('sha256', cookie, '', 'console session', 32));
}

/** Undefined: it was sealed by an earlier version, and is as good as ended. */
function tokenIn({ _id, sealed }: SessionDoc, cookie: string): string | undefined {
  try {
    return unseal(sealed, keyOf(cookie), _id);
  } catch {
    return undefined;
  }
}
