import { constants, createPublicKey, type KeyObject, publicEncrypt } from 'node:crypto';
import type { Clock } from '../../clock.ts';

/**
 * M-Pesa's sessions. A session id, encrypted with the portal's public key, is the bearer of every call; a new one
 * may take 30 s to become live. So it is renewed early and in the background while the old one serves, by one
 * process at a time, and "unauthorised" from the gate is the truth about its end, not our clock.
 */
export interface Session {
  id: string;
  madeAtMs: number;
  /** From now on a refusal means that it is over; before, that it is not live yet. */
  liveAtMs: number;
}

/** What the processes of an installation share: the newest session, and the one that serves until that is live. */
export interface Sessions {
  newest: Session;
  older?: Session;
}

/** Where sessions are kept and who may renew them. In memory for one process, in MongoDB for many. */
export interface SessionStore {
  read(): Promise<Sessions | undefined>;
  write(sessions: Sessions): Promise<void>;
  /** Takes the turn to renew, for so long at most; false while somebody else has it. */
  hold(forMs: number): Promise<boolean>;
  release(): Promise<void>;
}

export interface SessionTerms {
  /** How long a session lives, as set in the portal. */
  lifeMs: number;
  /** How long a new one may take to become live. */
  activationMs: number;
  /** How long one renewal may take; another process may try after it. */
  holdMs: number;
  /** The least time between two failed attempts of this process. */
  backOffMs: number;
  /** How often a process that waits for another's renewal looks. */
  lookMs: number;
}

export const usualSessionTerms: Omit<SessionTerms, 'lifeMs'> = {
  activationMs: 30_000,
  holdMs: 20_000,
  backOffMs: 1_000,
  lookMs: 100,
};

/** Part of its life after which a session is renewed. */
const renewedAt = 0.8;

interface KeeperOptions {
  clock: Clock;
  store: SessionStore;
  terms: SessionTerms;
  /** Makes a session at the rail; undefined when it gives none. Never throws. */
  make: () => Promise<string | undefined>;
}

export class SessionKeeper {
  readonly #options: KeeperOptions;
  #known: Sessions | undefined;
  #renewing: Promise<Session | undefined> | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** The session to call with; undefined when none can be had. Renews in the background when it is time. */
  async serving(): Promise<Session | undefined> {
    const { clock, terms, store } = this.#options;
    this.#known ??= await store.read().catch(() => undefined);
    const now = clock.now();
    if (!this.#known || now >= this.#known.newest.madeAtMs + terms.lifeMs) {
      const fresh = await this.#renew(this.#known?.newest.id);
      // Its life is our assumption: while no new one can be had, the gate may still take the old one.
      return fresh ?? this.#known?.newest;
    }
    const { newest, older } = this.#known;
    if (now >= newest.madeAtMs + renewedAt * terms.lifeMs) void this.#renew(newest.id);
    const olderServes = older && now < newest.liveAtMs && now < older.madeAtMs + terms.lifeMs;
    return olderServes ? older : newest;
  }

  /** The gate refused this session although it should be live: the one to go on with, if there is any. */
  async replace(refused: Session): Promise<Session | undefined> {
    if (this.#known?.older?.id === refused.id) {
      this.#known = { newest: this.#known.newest };
      return this.#known.newest;
    }
    if (this.#known && this.#known.newest.id !== refused.id) return this.serving();
    const { clock, terms } = this.#options;
    // One that was made just now would only be refused again: sessions are not minted in a storm.
    if (clock.now() < refused.madeAtMs + terms.activationMs) return undefined;
    const fresh = await this.#renew(refused.id);
    if (fresh && this.#known?.older?.id === refused.id) this.#known = { newest: fresh };
    return fresh;
  }

  /** The session's own limits are used up: a new one, at most one per activation time. */
  renewSoon(session: Session): void {
    const { clock, terms } = this.#options;
    if (clock.now() >= session.madeAtMs + terms.activationMs) void this.replace(session);
  }

  /** One renewal at a time in this process, whoever asks. */
  #renew(unwanted: string | undefined): Promise<Session | undefined> {
    if (this.#renewing) return this.#renewing;
    const { clock, terms } = this.#options;
    if (clock.now() < this.#failedAtMs + terms.backOffMs) return Promise.resolve(undefined);
    this.#renewing = this.#renewShared(unwanted)
      .catch(() => undefined)
      .then((session) => {
        if (!session) this.#failedAtMs = clock.now();
        this.#renewing = undefined;
        return session;
      });
    return this.#renewing;
  }

  /** One renewal at a time in the whole installation: the others wait for what the first one stores. */
  async #renewShared(unwanted: string | undefined): Promise<Session | undefined> {
    const { store, terms } = this.#options;
    const looksMax = Math.ceil(terms.holdMs / terms.lookMs);
    for (let looks = 0; looks <= looksMax; looks += 1) {
      if (await store.hold(terms.holdMs)) return this.#renewHolding(unwanted);
      const stored = await this.#takeOver(unwanted);
      if (stored) return stored;
      await new Promise((resolve) => setTimeout(resolve, terms.lookMs));
    }
    return undefined;
  }

  async #renewHolding(unwanted: string | undefined): Promise<Session | undefined> {
    const { clock, store, terms, make } = this.#options;
    try {
      const stored = await this.#takeOver(unwanted);
      if (stored) return stored;
      const id = await make();
      if (id === undefined) return undefined;
      const madeAtMs = clock.now();
      const newest = { id, madeAtMs, liveAtMs: madeAtMs + terms.activationMs };
      const older = this.#known?.newest;
      this.#known = { newest, ...(older ? { older } : {}) };
      // A session that cannot be stored still serves this process.
      await store.write(this.#known).catch(() => undefined);
      return newest;
    } finally {
      await store.release().catch(() => undefined);
    }
  }

  /** What another process has stored meanwhile, if it is not what we want to be rid of. */
  async #takeOver(unwanted: string | undefined): Promise<Session | undefined> {
    const { clock, store, terms } = this.#options;
    const stored = await store.read().catch(() => undefined);
    if (!stored || stored.newest.id === unwanted) return undefined;
    if (clock.now() >= stored.newest.madeAtMs + renewedAt * terms.lifeMs) return undefined;
    this.#known = stored;
    return stored.newest;
  }
}

/** Encrypts what M-Pesa wants as a bearer: RSA, PKCS1 v1.5, base64 (the portal's odd trick, used twice). */
export class Bearers {
  readonly #key: KeyObject;
  #last: { text: string; bearer: string } | undefined;

  /** @param publicKey base64 of a SPKI DER, as the portal shows it. @throws when it is no RSA key. */
  constructor(publicKey: string) {
    const der = Buffer.from(publicKey.replace(/\s|-----[^-]*-----/g, ''), 'base64');
    this.#key = createPublicKey({ key: der, format: 'der', type: 'spki' });
    if (this.#key.asymmetricKeyType !== 'rsa') throw new TypeError('the public key of M-Pesa is no RSA key');
  }

  /** The same text gives the same bearer while it is the latest: encrypting 1,200 times a second costs a core. */
  of(text: string): string {
    if (this.#last?.text !== text) {
      const padded = { key: this.#key, padding: constants.RSA_PKCS1_PADDING };
      this.#last = { text, bearer: publicEncrypt(padded, Buffer.from(text)).toString('base64') };
    }
    return this.#last.bearer;
  }
}
