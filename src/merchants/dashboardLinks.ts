import { createHash, randomBytes } from 'node:crypto';
import type { Clock, Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import type { Merchant, Principal } from '../principal.ts';
import type { ApiKey } from './keys.ts';

/** What somebody may do in the dashboard: only look, or also send webhooks again and change endpoints. */
export const dashboardRoles = ['view', 'manage'] as const;
export type DashboardRole = (typeof dashboardRoles)[number];

/** Who may come in: the link, and then the session that it began, by one id. */
export interface DashboardEntry {
  /** `dsh_…` */
  _id: string;
  merchantId: string;
  mode: Mode;
  role: DashboardRole;
  /** The key, or the operator by name, that asked for it. */
  keyId?: string;
  operator?: string;
}

/** A link as it is stored: what is in its address is not, but for its hash. */
interface LinkDoc extends DashboardEntry, Doc {
  _id: string;
  hash: string;
  createdAt: Date;
  expiresAt: Date;
  usedAt?: Date;
}

export const dashboardLinksSpec: MongoCollectionSpec = {
  name: 'dashboard_links',
  indexes: [
    { key: { hash: 1 }, unique: true },
    // What a session changed is traced to who began it for as long.
    { key: { createdAt: 1 }, expireAfterSeconds: limits.dashboardLinksKeptMs / limits.secondMs },
  ],
};

/** A new link, what its address ends in (to be shown once), and the write that stores it. */
export function newDashboardLink(
  { atMs, ...entry }: Omit<DashboardEntry, '_id'> & { atMs: number },
  baseUrl: string,
): { record: LinkDoc; url: string; writes: Write[] } {
  const secret = randomBytes(32).toString('base64url');
  const record: LinkDoc = {
    _id: newId('dsh', atMs),
    ...entry,
    hash: hashOf(secret),
    createdAt: new Date(atMs),
    expiresAt: new Date(atMs + limits.dashboardLinkMs),
  };
  const url = `${baseUrl}/dashboard/in/${secret}`;
  return {
    record,
    url,
    writes: [{ op: 'insert', into: dashboardLinksSpec.name, doc: { ...record }, onDuplicate: 'race' }],
  };
}

interface Known {
  find(merchantId: string): Promise<Merchant | undefined>;
  findKey(id: string): Promise<ApiKey | undefined>;
}

interface Staff {
  isActive(name: string): Promise<boolean>;
}

/** Links into the dashboard, and who is behind a session that one of them began. */
export class DashboardLinks {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #merchants: Known;
  readonly #operators: Staff;

  constructor(deps: { db: Db; clock: Clock; merchants: Known; operators: Staff }) {
    this.#db = deps.db;
    this.#clock = deps.clock;
    this.#merchants = deps.merchants;
    this.#operators = deps.operators;
  }

  /** Takes a link, which is good for once. Undefined: it was taken, it is too old, or there never was one. */
  async take(secret: string): Promise<DashboardEntry | undefined> {
    const at = new Date(this.#clock.now());
    const taken = await this.#db
      .collection<LinkDoc>(dashboardLinksSpec.name)
      .findOneAndUpdate(
        { hash: hashOf(secret), usedAt: { $exists: false }, expiresAt: { $gt: at } },
        { $set: { usedAt: at } },
        { projection: { hash: 0, createdAt: 0, expiresAt: 0 } },
      );
    return taken ?? undefined;
  }

  /**
   * For whom a session acts: its own id stands in the place of a key's. Undefined where it is over: the merchant is
   * suspended, or the key or the operator that asked for the link is no more.
   */
  async principalOf({
    _id,
    merchantId,
    mode,
    keyId,
    operator,
  }: DashboardEntry): Promise<Principal | undefined> {
    const [merchant, isWelcome] = await Promise.all([
      this.#merchants.find(merchantId),
      operator === undefined ? this.#isGood(keyId) : this.#operators.isActive(operator),
    ]);
    if (!merchant || merchant.suspended || !isWelcome) return undefined;
    return { merchantId, mode, keyId: _id, scopes: [], merchant };
  }

  async #isGood(keyId: string | undefined): Promise<boolean> {
    const key = keyId === undefined ? undefined : await this.#merchants.findKey(keyId);
    if (!key || key.revokedAt) return false;
    return key.expiresAt === undefined || key.expiresAt.getTime() > this.#clock.now();
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
