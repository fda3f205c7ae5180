import type { Clock, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { type SessionDoc, StoredSessions } from '../pages/pages.ts';
import type { Principal } from '../principal.ts';

/** Who may come in, as the link said that was taken. */
export interface Entry {
  /** `dsh_…` */
  _id: string;
  merchantId: string;
  mode: Mode;
  role: 'view' | 'manage';
  keyId?: string;
  operator?: string;
}

/** A session: what its link said, by the hash of its cookie. */
interface DashboardSession extends SessionDoc {
  entry: Entry;
}

export const dashboardSessionsSpec: MongoCollectionSpec = {
  name: 'dashboard_sessions',
  indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
};

export const sessionCookie = 'kusanya_dashboard';
const { dashboardIdleMs: idleMs, dashboardSessionMs: sessionMs, minuteMs } = limits;

export { sessionMs };

/** What the room needs to know of links. */
export interface Links {
  take(secret: string): Promise<Entry | undefined>;
  principalOf(entry: Entry): Promise<Principal | undefined>;
}

/** Somebody who is signed in. */
export interface Visitor {
  cookie: string;
  role: Entry['role'];
  principal: Principal;
}

/** Sessions of one merchant in one mode each; they end by themselves when nobody looks. */
export class Sessions {
  readonly #stored: StoredSessions<DashboardSession>;
  readonly #clock: Clock;
  readonly #links: Links;

  constructor({ db, clock, links }: { db: Db; clock: Clock; links: Links }) {
    this.#stored = new StoredSessions({ db, clock, name: dashboardSessionsSpec.name });
    this.#clock = clock;
    this.#links = links;
  }

  /** A new session's cookie; undefined where the link is good for nothing. */
  async begin(secret: string): Promise<string | undefined> {
    const entry = await this.#links.take(secret);
    if (!entry || !(await this.#links.principalOf(entry))) return undefined;
    return this.#stored.begin((_cookie, _id, nowMs) => ({
      ...{ _id, entry, createdAt: new Date(nowMs) },
      expiresAt: new Date(nowMs + idleMs),
    }));
  }

  /** Who is behind a cookie, as the merchant and its key are now. */
  async find(cookie: string | undefined): Promise<Visitor | undefined> {
    const session = await this.#stored.find(cookie);
    if (!session || cookie === undefined) return undefined;
    const principal = await this.#links.principalOf(session.entry);
    if (!principal) {
      await this.#stored.end(cookie);
      return undefined;
    }
    await this.#prolong(session);
    return { cookie, role: session.entry.role, principal };
  }

  end(cookie: string): Promise<void> {
    return this.#stored.end(cookie);
  }

  /** Once a minute at most. */
  async #prolong(session: DashboardSession): Promise<void> {
    const endMs = session.createdAt.getTime() + sessionMs;
    const expiresAt = Math.min(this.#clock.now() + idleMs, endMs);
    if (expiresAt - session.expiresAt.getTime() >= minuteMs)
      await this.#stored.prolong(session, new Date(expiresAt));
  }
}
