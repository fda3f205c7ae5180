import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock, Doc } from '@kusanya/durable-actors';
import type { Context } from 'koa';
import type { Db } from 'mongodb';
import { permissionDenied } from '../http/http.ts';

/** A session as it is stored: by its cookie's hash, so the database alone opens nothing. */
export interface SessionDoc extends Doc {
  createdAt: Date;
  expiresAt: Date;
}

const cookiePattern = /^[\w-]{43}$/;

/** Sessions that a cookie names. What else a session holds is its place's. */
export class StoredSessions<D extends SessionDoc> {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #name: string;

  constructor({ db, clock, name }: { db: Db; clock: Clock; name: string }) {
    this.#db = db;
    this.#clock = clock;
    this.#name = name;
  }

  /** Keeps a new session and gives its cookie. `make` is given that and the id of its document. */
  async begin(make: (cookie: string, _id: string, nowMs: number) => D): Promise<string> {
    const cookie = newCookie();
    await this.#db.collection(this.#name).insertOne(make(cookie, idOf(cookie), this.#clock.now()) as object);
    return cookie;
  }

  /** The session behind a cookie; undefined where it is over. */
  async find(cookie: string | undefined): Promise<D | undefined> {
    if (cookie === undefined || !cookiePattern.test(cookie)) return undefined;
    const doc = await this.#db.collection<SessionDoc>(this.#name).findOne<D>({ _id: idOf(cookie) });
    return doc && doc.expiresAt.getTime() > this.#clock.now() ? doc : undefined;
  }

  /** It is in use, and goes on until then. */
  async prolong({ _id }: D, expiresAt: Date): Promise<void> {
    await this.#db.collection<SessionDoc>(this.#name).updateOne({ _id }, { $max: { expiresAt } });
  }

  async end(cookie: string): Promise<void> {
    await this.#db.collection<SessionDoc>(this.#name).deleteOne({ _id: idOf(cookie) });
  }
}

export function newCookie(): string {
  return randomBytes(32).toString('base64url');
}

/** The id of the session that a cookie opens. */
export function idOf(cookie: string): string {
  return createHash('sha256').update(cookie).digest('hex');
}

/** What every form of this browser carries, and nobody without the cookie can know. */
export function formToken(cookie: string): string {
  return createHmac('sha256', cookie).update('form').digest('base64url');
}

/** @throws permission_denied when the form is not one of ours to this browser */
export function checkFormToken(form: URLSearchParams, cookie: string | undefined): void {
  const given = Buffer.from(form.get('form_token') ?? '');
  const expected = Buffer.from(formToken(cookie ?? ''));
  const isOurs = cookie !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
  if (!isOurs)
    throw permissionDenied('This form is out of date. Go back, reload the page and send it again.');
}

/** A cookie that scripts and other sites never see. */
export function keepCookie(ctx: Context, name: string, cookie: string, maxAgeMs: number): void {
  const isSecure = ctx.secure || ctx.get('X-Forwarded-Proto').split(',')[0] === 'https';
  ctx.cookies.secure = isSecure;
  const once = { httpOnly: true, sameSite: 'strict', path: '/', overwrite: true } as const;
  ctx.cookies.set(name, cookie, { ...once, secure: isSecure, maxAge: maxAgeMs });
}

/** To another page, which is then asked for by GET. */
export function seeOther(ctx: Context, address: string): void {
  ctx.redirect(address);
  ctx.status = 303;
}
