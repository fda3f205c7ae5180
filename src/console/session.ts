import { hkdfSync } from 'node:crypto';
import type { Clock, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Authenticate, OperatorPrincipal } from '../http/http.ts';
import { limits } from '../limits.ts';
import { idOf, type SessionDoc, StoredSessions } from '../pages/pages.ts';
import { seal, unseal } from '../seal.ts';

/**
 * Who is signed in. A session is the operator's own token, sealed with a key that only the cookie gives: the
 * database alone opens nothing, and because the token is asked again on every request, an operator who is revoked
 * or given another role is so at once.
 */
interface OperatorSession extends SessionDoc {
  sealed: string;
  /** The operator's name, which is never given to two people. */
  operator: string;
  /** What the browser calls itself. */
  agent: string;
  /** True to a minute. */
  lastSeenAt: Date;
}

export const sessionsSpec: MongoCollectionSpec = {
  name: 'console_sessions',
  indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }, { key: { operator: 1, createdAt: -1 } }],
};

/** A session as its owner sees it. `id` opens nothing: it is a hash of the cookie. */
export interface ShownSession {
  id: string;
  agent: string;
  since: string;
  lastSeenAt: string;
  isThis: boolean;
}

export const sessionCookie = 'kusanya_session';
export const sessionMs = 12 * limits.hourMs;
const agentMax = 200;
const shownMax = 50;

export class Sessions {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #stored: StoredSessions<OperatorSession>;
  readonly #authenticate: Authenticate<OperatorPrincipal>;

  constructor(options: { db: Db; clock: Clock; authenticate: Authenticate<OperatorPrincipal> }) {
    this.#stored = new StoredSessions({ ...options, name: sessionsSpec.name });
    this.#authenticate = options.authenticate;
    this.#db = options.db;
    this.#clock = options.clock;
  }

  /** A new session's cookie; undefined when the token is nobody's. `agent`: the browser's User-Agent. */
  async begin(token: string, agent: string): Promise<string | undefined> {
    const operator = await this.#authenticate(token);
    if (!operator) return undefined;
    return this.#stored.begin((cookie, _id, nowMs) => ({
      _id,
      sealed: seal(token, keyOf(cookie), _id),
      operator: operator.name,
      agent: agent.slice(0, agentMax),
      createdAt: new Date(nowMs),
      lastSeenAt: new Date(nowMs),
      expiresAt: new Date(nowMs + sessionMs),
    }));
  }

  /** The operator behind a cookie, as the token's rights are now. */
  async find(cookie: string | undefined): Promise<OperatorPrincipal | undefined> {
    const doc = await this.#stored.find(cookie);
    const token = doc && cookie !== undefined ? tokenIn(doc, cookie) : undefined;
    const operator = token === undefined ? undefined : await this.#authenticate(token);
    if (doc && operator) await this.#seen(doc);
    return operator;
  }

  /** Where somebody is signed in, this browser first. */
  async of(operator: string, cookie: string): Promise<ShownSession[]> {
    const own = idOf(cookie);
    const docs = await this.#docs
      .find({ operator: { $eq: operator }, expiresAt: { $gt: new Date(this.#clock.now()) } })
      .sort({ createdAt: -1 })
      .limit(shownMax)
      .toArray();
    return docs
      .map(({ _id, agent, createdAt, lastSeenAt }) => ({
        ...{ id: _id, agent, isThis: _id === own },
        ...{ since: createdAt.toISOString(), lastSeenAt: lastSeenAt.toISOString() },
      }))
      .sort((one, other) => Number(other.isThis) - Number(one.isThis));
  }

  /** Ends every session of somebody but this one. No process remembers one, so they are over at once. */
  async endOthers(operator: string, cookie: string): Promise<void> {
    await this.#docs.deleteMany({ operator: { $eq: operator }, _id: { $ne: idOf(cookie) } });
  }

  async #seen({ _id, lastSeenAt }: OperatorSession): Promise<void> {
    const nowMs = this.#clock.now();
    if (nowMs - lastSeenAt.getTime() < limits.minuteMs) return;
    await this.#docs.updateOne({ _id }, { $max: { lastSeenAt: new Date(nowMs) } });
  }

  get #docs() {
    return this.#db.collection<OperatorSession>(sessionsSpec.name);
  }

  end(cookie: string): Promise<void> {
    return this.#stored.end(cookie);
  }
}

function keyOf(cookie: string): Buffer {
  return Buffer.from(hkdfSync('sha256', cookie, '', 'console session', 32));
}

/** Undefined: it is an earlier version's, sealed otherwise or without a name, and is as good as ended. */
function tokenIn({ _id, sealed, operator }: OperatorSession, cookie: string): string | undefined {
  if (operator === undefined) return undefined;
  try {
    return unseal(sealed, keyOf(cookie), _id);
  } catch {
    return undefined;
  }
}
