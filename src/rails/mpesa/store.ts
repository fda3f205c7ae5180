import { createHash, randomUUID } from 'node:crypto';
import { type Clock, type Doc, isDuplicateKey, type MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { MpesaConfig } from '../../config.ts';
import { seal, secretsKeyOf, unseal } from '../../seal.ts';
import type { SessionStore, Sessions } from './session.ts';
import { mpesaChannel } from './terms.ts';

export const railSessionsSpec: MongoCollectionSpec = { name: 'railSessions' };

interface SessionsDoc extends Doc {
  /** The sessions, encrypted: whoever reads the database cannot call the rail with them. */
  sealed?: string;
  holder?: string;
  heldUntil?: Date;
}

interface StoredOptions {
  db: Db;
  clock: Clock;
  /** 32 bytes, base64 (`SECRETS_KEY`). */
  secretsKey: string;
  /** Whose sessions: the rail and the application, so that another application's are never taken. */
  name: string;
}

/**
 * Sessions that the processes of an installation share, sealed at rest. The turn to renew is a convenience, never a
 * lock: two sessions made by mistake both serve.
 */
export class StoredSessions implements SessionStore {
  readonly #options: StoredOptions;
  readonly #key: Buffer;
  readonly #me = randomUUID();

  /** @throws TypeError when the key is not 32 bytes. */
  constructor(options: StoredOptions) {
    this.#options = options;
    this.#key = secretsKeyOf(options.secretsKey);
  }

  async read(): Promise<Sessions | undefined> {
    const doc = await this.#stored.findOne({ _id: this.#options.name });
    if (!doc?.sealed) return undefined;
    try {
      return JSON.parse(unseal(doc.sealed, this.#key, this.#options.name)) as Sessions;
    } catch {
      return undefined; // sealed with another key, or by an earlier version: a new session is made
    }
  }

  async write(sessions: Sessions): Promise<void> {
    const sealed = seal(JSON.stringify(sessions), this.#key, this.#options.name);
    await this.#stored.updateOne({ _id: this.#options.name }, { $set: { sealed } }, { upsert: true });
  }

  async hold(forMs: number): Promise<boolean> {
    const now = this.#options.clock.now();
    const isFree = [{ holder: { $exists: false } }, { heldUntil: { $lte: new Date(now) } }];
    try {
      await this.#stored.updateOne(
        { _id: this.#options.name, $or: isFree },
        { $set: { holder: this.#me, heldUntil: new Date(now + forMs) } },
        { upsert: true },
      );
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  }

  async release(): Promise<void> {
    await this.#stored.updateOne(
      { _id: this.#options.name, holder: this.#me },
      { $unset: { holder: '', heldUntil: '' } },
    );
  }

  get #stored() {
    return this.#options.db.collection<SessionsDoc>(railSessionsSpec.name);
  }
}

/** The name under which the processes of an installation share sessions: another application has its own. */
export function sessionsName(config: MpesaConfig): string {
  const whose = createHash('sha256').update(`${config.baseUrl}\n${config.apiKey}`).digest('hex');
  return `${mpesaChannel}.${whose.slice(0, 16)}`;
}
