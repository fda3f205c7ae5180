import type { Clock } from '@kusanya/durable-actors';
import type { MpesaConfig } from '../../config.ts';
import { newId } from '../../ids.ts';
import { whyNot } from '../once.ts';
import type { Evidence, NotSent, Once } from '../port.ts';
import {
  evidenceOf,
  isExhausted,
  isGateRefusal,
  isTurnedAway,
  isWell,
  labelOf,
  withoutSession,
} from './answers.ts';
import { type Market, vodacomTanzania } from './codes.ts';
import { amountText, itemDescription } from './fields.ts';
import {
  Bearers,
  type Session,
  SessionKeeper,
  type SessionStore,
  type SessionTerms,
  type Trial,
  usualSessionTerms,
} from './session.ts';
import { type MpesaTimes, usualTimes } from './terms.ts';
import { Wire, type WireAnswer, type WireRequest } from './wire.ts';

/** That a question is tried with, twice each. */
const sessionsMax = 2;

/** Hears what the network said, for metrics. Must not throw. */
export interface MpesaWatch {
  /** `code`: the result code, or `none`. `operation`: push, payout, query, reversal or session. */
  answered(operation: string, code: string): void;
  /** The gate turned a call away. */
  refusedByGate(operation: string, httpStatus: number): void;
}

export interface ClientOptions {
  config: MpesaConfig;
  clock: Clock;
  sessions: SessionStore;
  times?: Partial<MpesaTimes>;
  watch?: MpesaWatch;
  sessionTerms?: Partial<SessionTerms>;
  /** The authority to trust instead of the system's, PEM. */
  ca?: string;
}

const methods = { push: 'POST', payout: 'POST', query: 'GET', reversal: 'PUT' } as const;

interface Ask {
  operation: keyof typeof methods;
  /** Behind the market's path. */
  path: string;
  fields: Record<string, string>;
  timeoutMs: number;
  /** Waiting for a session ends here, in time of the clock. */
  giveUpAtMs: number;
  beforeFirstByte?: () => Promise<NotSent | undefined>;
}

/** By which operation money is sent for, and how a payment is named there. */
interface Sending {
  operation: keyof typeof methods;
  path: string;
  references: { conversation: string; display: string };
  /** The field that says what it is for. */
  described: string;
}

/** What is sent: how much, and to or from whom. */
interface Sent extends Once {
  /** Whole shillings. */
  amountTzs: number;
  msisdn: string;
  description: string;
}

/** Calls to Vodacom's OpenAPI, whatever they are about: sessions, signing, and how far each call came. */
export class MpesaClient {
  readonly market: Market = vodacomTanzania;
  readonly times: MpesaTimes;
  readonly #config: MpesaConfig;
  readonly #clock: Clock;
  readonly #bearers: Bearers;
  readonly #sessions: SessionKeeper;
  /** Those wait for customers, so questions have sockets of their own. */
  readonly #pushes: Wire;
  readonly #questions: Wire;
  readonly #watch: MpesaWatch | undefined;
  /** The session that the gate last refused a push with. */
  #refusedPush: string | undefined;
  /** What the rail said when it last gave no session; undefined once it gave one. */
  #sessionRefused: WireAnswer | undefined;

  /** @throws Error when the public key is none. */
  constructor({ config, clock, sessions, times, sessionTerms, ca, watch }: ClientOptions) {
    this.#watch = watch;
    this.#config = config;
    this.#clock = clock;
    this.times = { ...usualTimes, ...times };
    this.#pushes = new Wire(ca);
    this.#questions = new Wire(ca);
    this.#bearers = new Bearers(config.publicKey);
    this.#sessions = new SessionKeeper({
      clock,
      store: sessions,
      terms: { ...usualSessionTerms, lifeMs: config.sessionLifeMs, ...sessionTerms },
      make: () => this.#makeSession(),
      attempt: (session) => this.#trySession(session),
    });
  }

  /** Sends a payment, which may be sent once only: a push or a payout. */
  async sendPayment(
    { operation, path, references, described }: Sending,
    { amountTzs, msisdn, description, notAfterMs, claim }: Sent,
    signal: AbortSignal,
  ): Promise<WireAnswer> {
    const { isSynchronous, serviceProviderCode } = this.#config;
    const ask = {
      ...{ operation, path, timeoutMs: isSynchronous ? this.times.pushMs : this.times.queryMs },
      fields: {
        input_Amount: amountText(amountTzs),
        input_CustomerMSISDN: msisdn,
        input_Country: this.market.country,
        input_Currency: this.market.currency,
        input_ServiceProviderCode: serviceProviderCode,
        input_TransactionReference: references.display,
        input_ThirdPartyConversationID: references.conversation,
        [described]: itemDescription(description),
      },
    };
    return this.sendOnce(ask, { notAfterMs, claim }, signal);
  }

  /** Sends what may be sent once only: it waits for a session as long as it may, and is claimed by its first byte. */
  async sendOnce(
    ask: Pick<Ask, 'operation' | 'path' | 'fields' | 'timeoutMs'>,
    once: Once,
    signal: AbortSignal,
  ): Promise<WireAnswer> {
    const { notAfterMs: giveUpAtMs } = once;
    if (this.#clock.now() > giveUpAtMs)
      return { kind: 'notSent', why: 'too_late', text: 'its time was over' };
    const beforeFirstByte = () => whyNot(this.#clock, once);
    return this.#push({ ...ask, giveUpAtMs, beforeFirstByte }, signal);
  }

  /** Asks about a payment that does not exist, which moves nothing: the platform is up when it says so. */
  async probe(signal: AbortSignal): Promise<'up' | 'down'> {
    const answer = await this.call(this.#trial(this.#clock.now() + this.times.trialMs), signal);
    return isWell(this.market, answer) ? 'up' : 'down';
  }

  /** Keeps a live session at hand. */
  async tend(): Promise<void> {
    await this.#sessions.tend();
  }

  /** Closes idle connections. */
  close(): void {
    this.#pushes.close();
    this.#questions.close();
  }

  /**
   * A question, or what may be sent again, with the session's troubles settled. What the gate refused (401 or 403 without a code)
   * never reached the platform, so it goes again: once with the same session, for a gate errs, then with whatever
   * serves. 401 with INS-6 is an answer.
   */
  async call(ask: Ask, signal: AbortSignal): Promise<WireAnswer> {
    for (let sessions = 1; ; sessions += 1) {
      const session = await this.#sessions.serving(ask.giveUpAtMs, signal);
      if (!session) return this.#noSession(signal);
      const answer = await this.#twice(this.#questions, this.#request(ask, session, signal), ask);
      if (isExhausted(this.market, answer)) this.#sessions.exhaust(session);
      else if (!isTurnedAway(answer)) return answer;
      else if (sessions === sessionsMax) this.#sessions.renewSoon(session);
      else this.#sessions.doubt(session);
      if (sessions === sessionsMax) return answer;
    }
  }

  /** The refusal of a session may be a slip of the gate: the same again, at once and without any wait. */
  async #twice(wire: Wire, request: WireRequest, ask: Ask): Promise<WireAnswer> {
    for (let isFirst = true; ; isFirst = false) {
      const answer = await wire.send(request);
      this.#tell(ask.operation, answer);
      if (!isFirst || !isTurnedAway(answer)) return answer;
    }
  }

  /**
   * A push is claimed by its first byte, and what is claimed never waits: nobody would make it if this process died.
   * So one whose session has ended is told as not made, and is pushed anew, unclaimed, once the chart has backed off.
   * That is daily business; a session that the gate took again since and refuses again is not.
   */
  async #push(ask: Ask, signal: AbortSignal): Promise<WireAnswer> {
    const session = await this.#sessions.serving(ask.giveUpAtMs, signal);
    if (!session) return this.#noSession(signal);
    const wasRefused = this.#refusedPush === session.id;
    const answer = await this.#twice(this.#pushes, this.#request(ask, session, signal), ask);
    if (isExhausted(this.market, answer)) this.#sessions.exhaust(session);
    if (!isTurnedAway(answer)) {
      if (wasRefused && answer.kind === 'answered') this.#refusedPush = undefined;
      return answer;
    }
    this.#refusedPush = session.id;
    this.#sessions.doubt(session);
    if (!wasRefused) return { ...answer, kind: 'notSent', why: 'session_refused' };
    this.#sessions.renewSoon(session);
    return answer;
  }

  /** Nothing could be sent; what the rail said when it gave no session goes with it. */
  #noSession(signal: AbortSignal): WireAnswer {
    if (signal.aborted) return { kind: 'notSent', why: 'stopping', text: 'this process is stopping' };
    return withoutSession(this.#sessionRefused);
  }

  /** What became of a transaction, by any reference of ours to it. */
  query(reference: string, signal: AbortSignal): Promise<WireAnswer> {
    const ask = {
      ...this.#question(reference),
      timeoutMs: this.times.queryMs,
      giveUpAtMs: this.#clock.now() + this.times.queryMs,
    };
    return this.call(ask, signal);
  }

  #request(
    { operation, path, fields, timeoutMs, beforeFirstByte }: Ask,
    session: Session,
    signal: AbortSignal,
  ) {
    const method = methods[operation];
    const url = `${this.#config.baseUrl}/ipg/v2/${this.market.path}/${path}`;
    const isQuery = method === 'GET';
    return {
      method,
      url: isQuery ? `${url}?${new URLSearchParams(fields)}` : url,
      headers: this.#headers(this.#bearers.of(session.id)),
      ...(isQuery ? {} : { body: JSON.stringify(fields) }),
      timeoutMs,
      connectTimeoutMs: this.times.connectMs,
      signal,
      ...(beforeFirstByte ? { beforeFirstByte } : {}),
    };
  }

  #headers(bearer: string): Record<string, string> {
    return {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      Authorization: `Bearer ${bearer}`,
      Origin: this.#config.origin,
    };
  }

  async #makeSession(): Promise<string | undefined> {
    // Not the caller's signal: others wait for this session too.
    const answer = await this.#askSession(AbortSignal.timeout(this.times.queryMs));
    const isMade = answer.kind === 'answered' && answer.fields.output_ResponseCode === 'INS-0';
    const id = isMade ? answer.fields.output_SessionID : undefined;
    this.#tell('session', answer);
    this.#sessionRefused = id ? undefined : answer;
    return id || undefined;
  }

  async #trySession(session: Session): Promise<Trial> {
    const ask = this.#trial(this.#clock.now());
    const signal = AbortSignal.timeout(2 * this.times.trialMs);
    const answer = await this.#questions.send(this.#request(ask, session, signal));
    if (isGateRefusal(answer)) return isTurnedAway(answer) ? 'refused' : 'unknown';
    return answer.kind === 'answered' && answer.fields.output_ResponseCode ? 'taken' : 'unknown';
  }

  /** A question about a payment that does not exist. */
  #trial(giveUpAtMs: number): Ask {
    const { trialMs } = this.times;
    return { ...this.#question(newId('req', this.#clock.now()).slice(4)), timeoutMs: trialMs, giveUpAtMs };
  }

  #question(reference: string): Pick<Ask, 'operation' | 'path' | 'fields'> {
    return {
      operation: 'query',
      path: 'queryTransactionStatus/',
      fields: {
        input_QueryReference: reference,
        input_ServiceProviderCode: this.#config.serviceProviderCode,
        // The query's own id, a new one each time.
        input_ThirdPartyConversationID: newId('req', this.#clock.now()).slice(4),
        input_Country: this.market.country,
      },
    };
  }

  #askSession(signal: AbortSignal): Promise<WireAnswer> {
    return this.#questions.send({
      method: 'GET',
      url: `${this.#config.baseUrl}/ipg/v2/${this.market.path}/getSession/`,
      headers: this.#headers(new Bearers(this.#config.publicKey).of(this.#config.apiKey)),
      timeoutMs: this.times.queryMs / 2,
      connectTimeoutMs: this.times.connectMs,
      signal,
    });
  }

  #tell(operation: string, answer: WireAnswer): void {
    if (answer.kind !== 'answered') return;
    if (isGateRefusal(answer)) this.#watch?.refusedByGate(operation, answer.httpStatus);
    else this.#watch?.answered(operation, labelOf(answer));
  }

  /** What is kept of an answer. */
  evidence(answer: WireAnswer): Evidence {
    return evidenceOf(answer, this.#clock.now());
  }
}
