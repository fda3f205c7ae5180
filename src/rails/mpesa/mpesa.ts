import { createHash } from 'node:crypto';
import type { RailTerms } from '../../../machines/collection.ts';
import type { Clock } from '../../clock.ts';
import type { MpesaConfig } from '../../config.ts';
import { newId } from '../../ids.ts';
import { limits } from '../../limits.ts';
import type {
  CallbackParse,
  Capabilities,
  Evidence,
  NotSent,
  PushOutcome,
  PushRequest,
  Rail,
  RawCallback,
  ReverseOutcome,
  ReverseRequest,
  StatusAnswer,
  StatusQuery,
} from '../rails.ts';
import { answeredPush, answeredReversal, reasonedStatus } from './answers.ts';
import { parseMpesaCallback } from './callback.ts';
import { type Market, vodacomTanzania } from './codes.ts';
import { amountText, itemDescription, referencesOf } from './fields.ts';
import {
  Bearers,
  type Session,
  SessionKeeper,
  type SessionStore,
  type SessionTerms,
  usualSessionTerms,
} from './session.ts';
import { Wire, type WireAnswer } from './wire.ts';

export { OwnSessions, railSessionsSpec, StoredSessions } from './store.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** M-Pesa's times. */
export const mpesaTerms: RailTerms = {
  pushWindowMs: limits.pushWindowMs,
  promptLifeMs: 120 * secondMs,
  answerTimeoutMs: 150 * secondMs,
  pushRetryMs: 5 * secondMs,
  pollLadderMs: [5, 10, 20, 30, 45, 60, 90, 120].map((seconds) => seconds * secondMs),
  notFoundGraceMs: 300 * secondMs,
  notFoundSpacingMs: 30 * secondMs,
  confirmDeadlineMs: hourMs,
  askSpacingMs: 5 * secondMs,
  reviewPollMs: hourMs,
  reviewAsksMax: 720,
  watchLadderMs: [5 * minuteMs, 15 * minuteMs, hourMs, 6 * hourMs, 24 * hourMs],
  failureWatchMs: hourMs,
};

export interface MpesaTimes {
  connectMs: number;
  /** Synchronous push: the call stays open while the customer types. */
  pushMs: number;
  /** Everything that waits for no customer. */
  queryMs: number;
  /** How often a call is tried again while a new session is not live yet. */
  notLiveYetMs: number;
}

const usualTimes: MpesaTimes = {
  connectMs: 10 * secondMs,
  pushMs: 120 * secondMs,
  queryMs: 30 * secondMs,
  notLiveYetMs: secondMs,
};

interface MpesaOptions {
  config: MpesaConfig;
  clock: Clock;
  sessions: SessionStore;
  terms?: RailTerms;
  times?: Partial<MpesaTimes>;
  sessionTerms?: Partial<SessionTerms>;
  /** The authority to trust instead of the system's, PEM. */
  ca?: string;
}

interface Ask {
  method: 'GET' | 'POST' | 'PUT';
  /** Behind the market's path. */
  path: string;
  fields: Record<string, string>;
  timeoutMs: number;
  /** Waiting for a session ends here, in time of the clock. */
  giveUpAtMs: number;
  beforeFirstByte?: () => Promise<NotSent | undefined>;
}

/** M-Pesa Tanzania over Vodacom's OpenAPI (docs/RAILS.md). */
export class MpesaRail implements Rail {
  readonly name = 'MPESA_TZ';
  readonly terms: RailTerms;
  readonly capabilities: Capabilities;
  readonly addresses: readonly string[];
  readonly #config: MpesaConfig;
  readonly #clock: Clock;
  readonly #market: Market = vodacomTanzania;
  readonly #times: MpesaTimes;
  readonly #bearers: Bearers;
  readonly #sessions: SessionKeeper;
  readonly #pushes: Wire;
  readonly #questions: Wire;

  /** @throws Error when the address is neither https nor loopback, or the public key is none. */
  constructor({ config, clock, sessions, terms = mpesaTerms, times, sessionTerms, ca }: MpesaOptions) {
    this.addresses = [checkedAddress(config.baseUrl)];
    this.terms = terms;
    this.#config = config;
    this.#clock = clock;
    this.#times = { ...usualTimes, ...times };
    this.#pushes = new Wire(ca);
    this.#questions = new Wire(ca);
    this.#bearers = new Bearers(config.publicKey);
    this.#sessions = new SessionKeeper({
      clock,
      store: sessions,
      terms: { ...usualSessionTerms, lifeMs: config.sessionLifeMs, ...sessionTerms },
      make: () => this.#makeSession(),
    });
    this.capabilities = {
      queryableBy: ['reference', 'receipt', 'conversation'],
      referenceIsIdempotent: true,
      promptLifeMs: terms.promptLifeMs,
      notFoundGraceMs: terms.notFoundGraceMs,
      producedFailureCodes: this.#market.producedFailureCodes,
      callbacks: config.isSynchronous ? 'maybe' : 'always',
    };
  }

  async requestPayment(
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<PushOutcome & { evidence?: Evidence }> {
    const { conversation, display } = referencesOf(request.collectionId);
    const isTooLate = () => this.#clock.now() > request.notAfterMs;
    if (isTooLate()) return { kind: 'notAttempted', why: 'too_late' };
    const beforeFirstByte = async () => {
      if (isTooLate()) return 'too_late';
      if (!(await request.claim())) return 'taken';
      return isTooLate() ? 'too_late' : undefined; // a claim can take its time
    };
    const { answer, session } = await this.#call(
      this.#pushes,
      {
        method: 'POST',
        path: 'c2bPayment/singleStage/',
        fields: {
          input_Amount: amountText(request.amountTzs),
          input_CustomerMSISDN: request.msisdn,
          input_Country: this.#market.country,
          input_Currency: this.#market.currency,
          input_ServiceProviderCode: this.#config.serviceProviderCode,
          input_TransactionReference: display,
          input_ThirdPartyConversationID: conversation,
          input_PurchasedItemsDesc: itemDescription(request.description),
        },
        timeoutMs: this.#config.isSynchronous ? this.#times.pushMs : this.#times.queryMs,
        giveUpAtMs: request.notAfterMs,
        beforeFirstByte,
      },
      signal,
    );
    const { outcome, renewsSession } = answeredPush(this.#market, answer, conversation);
    if (renewsSession && session) this.#sessions.renewSoon(session);
    return { ...outcome, evidence: this.#evidence(answer) };
  }

  async queryStatus(
    query: StatusQuery,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }> {
    const { conversation } = referencesOf(query.collectionId);
    const { answer } = await this.#call(
      this.#questions,
      {
        method: 'GET',
        path: 'queryTransactionStatus/',
        fields: {
          input_QueryReference: conversation,
          input_ServiceProviderCode: this.#config.serviceProviderCode,
          // The query's own id, a new one each time.
          input_ThirdPartyConversationID: newId('req', this.#clock.now()).slice(4),
          input_Country: this.#market.country,
        },
        timeoutMs: this.#times.queryMs,
        giveUpAtMs: this.#clock.now() + this.#times.queryMs,
      },
      signal,
    );
    const status = await reasonedStatus(this.#market, answer, query.claims ?? (async () => []));
    return { ...status, evidence: this.#evidence(answer) };
  }

  async reversePayment(
    request: ReverseRequest,
    signal: AbortSignal,
  ): Promise<ReverseOutcome & { evidence?: Evidence }> {
    const { answer } = await this.#call(
      this.#questions,
      {
        method: 'PUT',
        path: 'reversal/',
        fields: {
          input_TransactionID: request.receipt,
          input_ReversalAmount: amountText(request.amountTzs),
          input_Country: this.#market.country,
          input_ServiceProviderCode: this.#config.serviceProviderCode,
          input_ThirdPartyConversationID: referencesOf(request.collectionId).reversal,
        },
        timeoutMs: this.#times.pushMs,
        giveUpAtMs: this.#clock.now() + this.#times.queryMs,
      },
      signal,
    );
    return { ...answeredReversal(this.#market, answer), evidence: this.#evidence(answer) };
  }

  parseCallback(raw: RawCallback): CallbackParse {
    return parseMpesaCallback(raw);
  }

  /** Asks for a session, which moves nothing. What it gets is thrown away: sessions are renewed by their keeper. */
  async probe(signal: AbortSignal): Promise<'up' | 'down'> {
    const answer = await this.#askSession(signal);
    return answer.kind === 'answered' && answer.fields.output_ResponseCode === 'INS-0' ? 'up' : 'down';
  }

  /** Closes idle connections. */
  close(): void {
    this.#pushes.close();
    this.#questions.close();
  }

  /**
   * One call, with the session's troubles settled: the gate's refusal (401 or 403 without a code) never reached the
   * platform, so the same call goes again, with a new session at most once. 401 with INS-6 is an answer.
   */
  async #call(wire: Wire, ask: Ask, signal: AbortSignal): Promise<{ answer: WireAnswer; session?: Session }> {
    let session = await this.#sessions.serving();
    let hasReplaced = false;
    while (session) {
      // By when it was sent: a refusal that was under way while the session became live says nothing of it.
      const isLive = this.#clock.now() >= session.liveAtMs;
      const answer = await wire.send(this.#request(ask, session, signal));
      if (!isGateRefusal(answer)) return { answer, session };
      if (!isLive && this.#clock.now() + this.#times.notLiveYetMs < ask.giveUpAtMs && !signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, this.#times.notLiveYetMs));
      } else if (isLive && !hasReplaced && !isRateRefusal(answer)) {
        hasReplaced = true;
        session = await this.#sessions.replace(session);
      } else return { answer, session };
    }
    return { answer: { kind: 'notSent', why: 'no_session', text: 'no session could be had' } };
  }

  #request({ method, path, fields, timeoutMs, beforeFirstByte }: Ask, session: Session, signal: AbortSignal) {
    const url = `${this.#config.baseUrl}/ipg/v2/${this.#market.path}/${path}`;
    const isQuery = method === 'GET';
    return {
      method,
      url: isQuery ? `${url}?${new URLSearchParams(fields)}` : url,
      headers: this.#headers(this.#bearers.of(session.id)),
      ...(isQuery ? {} : { body: JSON.stringify(fields) }),
      timeoutMs,
      connectTimeoutMs: this.#times.connectMs,
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
    const answer = await this.#askSession(AbortSignal.timeout(this.#times.queryMs));
    if (answer.kind !== 'answered' || answer.fields.output_ResponseCode !== 'INS-0') return undefined;
    return answer.fields.output_SessionID || undefined;
  }

  #askSession(signal: AbortSignal): Promise<WireAnswer> {
    return this.#questions.send({
      method: 'GET',
      url: `${this.#config.baseUrl}/ipg/v2/${this.#market.path}/getSession/`,
      headers: this.#headers(new Bearers(this.#config.publicKey).of(this.#config.apiKey)),
      timeoutMs: this.#times.queryMs / 2,
      connectTimeoutMs: this.#times.connectMs,
      signal,
    });
  }

  #evidence(answer: WireAnswer): Evidence {
    const code = answer.kind === 'answered' ? answer.fields.output_ResponseCode : undefined;
    const httpStatus = answer.kind === 'notSent' ? undefined : answer.httpStatus;
    return {
      ...(code ? { code } : {}),
      ...(httpStatus === undefined ? {} : { httpStatus }),
      text: answer.text.slice(0, 2_048),
      atMs: this.#clock.now(),
    };
  }
}

/** The name under which the processes of an installation share sessions: another application has its own. */
export function sessionsName(config: MpesaConfig): string {
  const whose = createHash('sha256').update(`${config.baseUrl}\n${config.apiKey}`).digest('hex');
  return `MPESA_TZ.${whose.slice(0, 16)}`;
}

function isGateRefusal(answer: WireAnswer): boolean {
  return (
    answer.kind === 'answered' &&
    !answer.fields.output_ResponseCode &&
    [401, 403, 429].includes(answer.httpStatus)
  );
}

function isRateRefusal(answer: WireAnswer): boolean {
  return answer.kind === 'answered' && answer.httpStatus === 429;
}

/** https, or http on this machine. @throws Error */
function checkedAddress(baseUrl: string): string {
  const { protocol, hostname, host } = new URL(baseUrl);
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback))
    throw new Error('MPESA_BASE_URL must begin with https://; http:// is for a simulator on this machine.');
  return host;
}
