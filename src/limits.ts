/** Every number of the contract (docs/CONTRACT.md), with its unit in its name. */
const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export const limits = {
  secondMs,
  minuteMs,
  hourMs,
  dayMs,

  idempotencyKeyMaxChars: 255,
  idempotencyTtlMs: 24 * hourMs,
  /** Why a request was refused can be looked up for so long. */
  refusalsKeptMs: 7 * dayMs,
  /** How long a loser of a race waits to read the winner's answer before it says `idempotency_key_in_use`. */
  idempotencyWaitMs: 2 * secondMs,

  listMin: 1,
  listMax: 100,
  listDefault: 20,

  /** The longest wait for an event, well within what a request may take. */
  eventWaitMaxSeconds: 10,
  /** Requests of one key that wait for events in one process. */
  eventTailsPerKeyMax: 20,

  bodyMaxBytes: 32 * 1024,
  referenceMaxChars: 100,
  descriptionMaxChars: 255,
  metadataMaxKeys: 50,
  metadataKeyMaxChars: 40,
  metadataValueMaxChars: 500,
  metadataMaxBytes: 16 * 1024,
  amountMinTzs: 100,
  amountMaxTzs: 5_000_000,

  requestTimeoutMs: 15 * secondMs,
  /** For a network's statement to arrive. */
  uploadTimeoutMs: 15 * minuteMs,
  /** A line on which MongoDB is silent for so long is given up: a request can wait for two of them. */
  mongoSilenceMs: 6 * secondMs,
  /** The same for work on all that is stored, which may rightly take minutes. */
  mongoPatientSilenceMs: 10 * minuteMs,
  /** A commit or a command that waits for so long makes the process unready. */
  mongoWaitMs: 3 * secondMs,
  headersTimeoutMs: 10 * secondMs,

  webhookTimeoutMs: 10 * secondMs,
  webhookRetryDelaysMs: [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 6 * hourMs, 12 * hourMs],
  webhookDisableAfterMs: 3 * dayMs,
  webhookHeldForMs: 30 * dayMs,
  webhookAnswerExcerptBytes: 2 * 1024,
  webhookEndpointsMax: 16,
  /** Of a merchant in a mode. */
  resendsPerMinute: 30,
  /** Changes and tests of endpoints, of a merchant in a mode. */
  endpointChangesPerMinute: 60,
  /** A link into the dashboard is good for so long, and its session without anybody looking, and in all. */
  dashboardLinkMs: minuteMs,
  dashboardIdleMs: 30 * minuteMs,
  dashboardSessionMs: 12 * hourMs,
  /** Of links and of who used them. */
  dashboardLinksKeptMs: 90 * dayMs,
  /** Of a merchant in a mode. */
  dashboardLinksPerMinute: 30,
  /** Pages of one session. */
  dashboardPagesPerMinute: 300,
  signatureToleranceSeconds: 300,
  secretOverlapMs: dayMs,

  /** An unclaimed push is looked for this soon: whoever claims it sets the time for its answer. */
  pickupMs: 5 * secondMs,
  /** A prompt that could not be sent for so long after its collection was made is not sent any more, over any rail. */
  pushWindowMs: minuteMs,

  /**
   * One attempt to send a refund begins within this, or not at all. Shorter than any rail's wait for the answer: what is
   * asked about cannot be sent any more.
   */
  refundBeginMs: 30 * secondMs,

  keyCacheMs: 2 * secondMs,
  rateLimitRedisMs: 20,

  /** Counters of one balance: so many processes write it without waiting for each other. */
  stripesMax: 64,
  /** Of a debit that gathers every stripe, and of its own lines. */
  entryLinesMax: 80,

  settlementDelayDays: 1,
  settlementDelayMaxDays: 31,
  eatOffsetMs: 3 * hourMs,
} as const;
