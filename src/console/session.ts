import { hkdfSync } from 'node:crypto';
import type { Clock, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Authenticate, OperatorPrincipal } from '../http/http.ts';
import { limits } from '../limits.ts';
import { type SessionDoc, StoredSessions } from '../pages/pages.ts';
import { seal, unseal } from '../seal.ts';

/**
 * Who is signed in. A session is the operator's own token, sealed with a key that only the cookie gives: the
 * database alone opens nothing, and because the token is asked again on every request, an operator who is revoked
 * or given another role is so at once.
 */
interface OperatorSession extends SessionDoc {
  sealed: string;
}

export const sessionsSpec: MongoCollectionSpec = {
  name: 'console_sessions',
  indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
};

export const sessionCookie = 'kusanya_session';
export const sessionMs = 12 * limits.hourMs;

export class Sessions {
  readonly #stored: StoredSessions<OperatorSession>;
  readonly #authenticate: Authenticate<OperatorPrincipal>;

  constructor(options: { db: Db; clock: Clock; authenticate: Authenticate<OperatorPrincipal> }) {
    this.#stored = new StoredSessions({ ...options, name: sessionsSpec.name });
    this.#authenticate = options.authenticate;
  }

  /** A new session's cookie; undefined when the token is nobody's. */
  async begin(token: string): Promise<string | undefined> {
    if (!(await this.#authenticate(token))) return undefined;
    return this.#stored.begin((cookie, _id, nowMs) => ({
      _id,
      sealed: seal(token, keyOf(cookie), _id),
      createdAt: new Date(nowMs),
      expiresAt: new Date(nowMs + sessionMs),
    }));
  }

  /** The operator behind a cookie, as the token's rights are now. */
  async find(cookie: string | undefined): Promise<OperatorPrincipal | undefined> {
    const doc = await this.#stored.find(cookie);
    const token = doc && cookie !== undefined ? tokenIn(doc, cookie) : undefined;
    return token === undefined ? undefined : this.#authenticate(token);
  }

  end(cookie: string): Promise<void> {
    return this.#stored.end(cookie);
  }
}

function keyOf(cookie: string): Buffer {
  return Buffer.from(hkdfSync('sha256', cookie, '', 'console session', 32));
}

/** Undefined: it was sealed by an earlier version, and is as good as ended. */
function tokenIn({ _id, sealed }: OperatorSession, cookie: string): string | undefined {
  try {
    return unseal(sealed, keyOf(cookie), _id);
  } catch {
    return undefined;
  }
}
