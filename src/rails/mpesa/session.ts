import { constants, createPublicKey, type KeyObject, publicEncrypt } from 'node:crypto';
import type { Clock } from '@kusanya/durable-actors';

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
  /** How often one that waits for a session looks; nothing is sent for it. */
  lookMs: number;
  /** How often this process tries a session of which it is not known whether the gate takes it. */
  tryMs: number;
}

export const usualSessionTerms: Omit<SessionTerms, 'lifeMs'> = {
  activationMs: 30_000,
  holdMs: 20_000,
  backOffMs: 1_000,
  lookMs: 50,
  tryMs: 1_000,
};

/** Part of its life after which a session is renewed. */
const renewedAt = 0.8;

/** What the gate made of a session: took it, refused it, or nothing is known (no answer, too many calls). */
export type Trial = 'taken' | 'refused' | 'unknown';

interface KeeperOptions {
  clock: Clock;
  store: SessionStore;
  terms: SessionTerms;
  /** Makes a session at the rail; undefined when it gives none. Never throws. */
  make: () => Promise<string | undefined>;
  /** Asks the gate with this session, by a question that moves nothing. Never throws. */
  attempt: (session: Session) => Promise<Trial>;
}

/**
 * Whether a session serves is found out once for all who wait for it: a single call tries, and while none serves no
 * other call is sent. A session is trusted when the gate took it, or when its time to become live is over and
 * nothing was heard against it; one that was refused twice is doubted, and serves again as soon as the gate takes it.
 */
export class SessionKeeper {
  readonly #options: KeeperOptions;
  #known: Sessions | undefined;
  #renewing: Promise<Session | undefined> | undefined;
  #settling: Promise<void> | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #taken: string | undefined;
  readonly #doubted = new Set<string>();
  readonly #exhausted = new Set<string>();

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /**
   * The session to call with. Waits for one that activates, until `giveUpAtMs` (ms) or `signal`; undefined when none
   * could be had. Renews in the background when it is time.
   */
  async serving(giveUpAtMs: number, signal: AbortSignal): Promise<Session | undefined> {
    const { clock, terms } = this.#options;
    const failures = this.#failures;
    await this.tend();
    for (;;) {
      const session = this.#trusted();
      if (session) return session;
      // None could be made: one whose end nobody told us of is better than none, and nobody need wait.
      const isNoneComing = !this.#renewing && (!this.#known || this.#isOver(this.#known.newest));
      if (this.#failures > failures || isNoneComing) return this.#last();
      if (signal.aborted || clock.now() + terms.lookMs > giveUpAtMs) return undefined;
      this.#settle();
      await pause(terms.lookMs);
    }
  }

  /** Sees to it that there is a session and that it is renewed in time. Called by every call, and while none comes. */
  async tend(): Promise<void> {
    const { clock, terms, store } = this.#options;
    this.#known ??= await store.read().catch(() => undefined);
    const now = clock.now();
    const newest = this.#known?.newest;
    if (!newest || now >= newest.madeAtMs + terms.lifeMs) await this.#renew(newest?.id);
    else if (now >= newest.madeAtMs + renewedAt * terms.lifeMs) void this.#renew(newest.id);
    if (this.#known && !this.#isTrusted(this.#known.newest)) this.#settle();
  }

  /** The gate refused it twice in a row: it is tried, and another one is made, before more calls go out with it. */
  doubt(session: Session): void {
    this.#doubted.add(session.id);
    if (this.#taken === session.id) this.#taken = undefined;
    this.#settleAnew();
  }

  /** The session's own limits are used up: nothing more is sent with it, and a new one is made. */
  exhaust(session: Session): void {
    this.#exhausted.add(session.id);
    this.#settleAnew();
  }

  /** It is refused where it should serve, although the gate takes it elsewhere: a new one takes its place. */
  renewSoon(session: Session): void {
    if (this.#known?.newest.id === session.id && this.#mayReplace(session)) void this.#renew(session.id);
  }

  /** One that was made just now would only be refused again: sessions are not minted in a storm. */
  #mayReplace({ madeAtMs }: Session): boolean {
    const { clock, terms } = this.#options;
    return clock.now() >= madeAtMs + terms.activationMs;
  }

  #isTrusted(session: Session): boolean {
    if (this.#doubted.has(session.id) || this.#exhausted.has(session.id)) return false;
    return this.#taken === session.id || this.#options.clock.now() >= session.liveAtMs;
  }

  /** The newest that serves. */
  #trusted(): Session | undefined {
    if (!this.#known) return undefined;
    const { newest, older } = this.#known;
    if (this.#isTrusted(newest) && !this.#isOver(newest)) return newest;
    // The older one was live when it was succeeded: only a refusal tells against it.
    const isServing = older && !this.#isOver(older) && !this.#doubted.has(older.id);
    return isServing && !this.#exhausted.has(older.id) ? older : undefined;
  }

  #isOver({ madeAtMs }: Session): boolean {
    return this.#options.clock.now() >= madeAtMs + this.#options.terms.lifeMs;
  }

  /** When no new one can be had: the gate may still take the old one, for its life is our assumption. */
  #last(): Session | undefined {
    const newest = this.#known?.newest;
    return newest && this.#isTrusted(newest) ? newest : undefined;
  }

  /** Finds out which session serves: one at a time in this process, however many wait. */
  #settle(): void {
    this.#settling ??= this.#tryAll()
      .catch(() => undefined)
      .then(() => {
        this.#settling = undefined;
      });
  }

  /** Something changed: also one that is at it now has to look again. */
  #settleAnew(): void {
    if (!this.#settling) this.#settle();
    else void this.#settling.then(() => this.#settle());
  }

  async #tryAll(): Promise<void> {
    const { terms, attempt } = this.#options;
    const { newest, older } = this.#known ?? {};
    for (const session of [newest, older]) {
      if (!session || (this.#isTrusted(session) && session === newest)) continue;
      if (session === older && !this.#doubted.has(session.id)) continue;
      if (this.#exhausted.has(session.id)) {
        if (session === newest && this.#mayReplace(session)) await this.#renew(session.id);
        continue;
      }
      // By when it was sent: a refusal that was under way while the session became live says nothing of it.
      const mayReplace = this.#mayReplace(session);
      const trial = await attempt(session);
      if (trial === 'taken') {
        this.#doubted.delete(session.id);
        if (session.id === this.#known?.newest.id) this.#taken = session.id;
        if (session === newest) return;
      } else if (trial === 'refused' && session === newest && mayReplace) {
        this.#doubted.add(session.id);
        await this.#renew(session.id);
      }
    }
    await pause(terms.tryMs);
  }

  /** One renewal at a time in this process, whoever asks. */
  #renew(unwanted: string | undefined): Promise<Session | undefined> {
    if (this.#renewing) return this.#renewing;
    const { clock, terms } = this.#options;
    if (clock.now() < this.#failedAtMs + terms.backOffMs) return Promise.resolve(undefined);
    this.#renewing = this.#renewShared(unwanted)
      .catch(() => undefined)
      .then((session) => {
        if (!session) {
          this.#failedAtMs = clock.now();
          this.#failures += 1;
        }
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
      await pause(terms.lookMs);
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
      this.#know({ newest, ...(older ? { older } : {}) });
      // A session that cannot be stored still serves this process.
      await store.write(this.#known!).catch(() => undefined);
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
    this.#know(stored);
    return stored.newest;
  }

  #know(sessions: Sessions): void {
    this.#known = sessions;
    const ids = new Set([sessions.newest.id, sessions.older?.id]);
    for (const forgotten of [this.#doubted, this.#exhausted])
      for (const id of forgotten) if (!ids.has(id)) forgotten.delete(id);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Encrypts what M-Pesa wants as a bearer: RSA, PKCS1 v1.5, base64 (the portal's odd trick, used twice). */
export class Bearers {
  readonly #key: KeyObject;
  #last: { text: string; bearer: string } | undefined;

  /** @param publicKey base64 of a SPKI DER, as the portal shows it. @throws TypeError when it is no RSA key. */
  constructor(publicKey: string) {
    this.#key = readPublicKey(publicKey);
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

/** The portal's public key. @throws TypeError, in words for whoever configured it. */
function readPublicKey(publicKey: string): KeyObject {
  const der = Buffer.from(publicKey.replace(/\s|-----[^-]*-----/g, ''), 'base64');
  let key: KeyObject;
  try {
    key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    throw new TypeError(notAKey);
  }
  if (key.asymmetricKeyType !== 'rsa') throw new TypeError(notAKey);
  return key;
}

const notAKey =
  "is no public key. Copy the portal's, whole: base64 of an RSA key, some 700 characters that begin with MII.";
