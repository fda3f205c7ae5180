export { Bells, bellQueue } from './bells.ts';
export {
  type BreakerDoc,
  Breakers,
  breakerId,
  breakersSpec,
  healthOf,
  type RailOperation,
  railOperations,
} from './breakers.ts';
export { type CallbackDoc, Callbacks, callbacksSpec, claimedCodes, lastCallbackAt } from './callbacks.ts';
export { type AnswersOf, asksWhenDue, callsOver, forAnother, isLeft, kept, sentOnce } from './calling.ts';
export { type Channel, channels } from './channels.ts';
export { answerWrite, type RailAnswerDoc, railAnswersSpec, readAnswers } from './evidence.ts';
export { GuardedRail } from './guarded.ts';
export { breakerMigrations } from './migrations.ts';
export {
  actorOfConversation,
  MpesaRail,
  type MpesaWatch,
  mpesaTerms,
  railSessionsSpec,
  StoredSessions,
  sessionsName,
} from './mpesa/mpesa.ts';
export { quickPayoutTerms, usualPayoutTerms } from './payoutTerms.ts';
export { PhoneTurns, phoneTurnsSpec } from './phoneTurns.ts';
export type { PayoutAnswer, PayoutQuery, PayoutRail, SendOutcome, SendRequest } from './port.ts';
export {
  type CallbackParse,
  type CallbackReply,
  type Capabilities,
  checkApart,
  type Evidence,
  type Fault,
  type NotSent,
  type PushOutcome,
  type PushRequest,
  type Rail,
  type RailLine,
  type Rails,
  type RawCallback,
  type ReverseOutcome,
  type ReverseRequest,
  type StatusAnswer,
  type StatusQuery,
  type TestOutcome,
  type Unclear,
} from './port.ts';
export { readBreakers, readLastCallback } from './reading.ts';
export {
  busyPhone,
  debitMs,
  drawnMs,
  type NetworkStatus,
  type NetworkStory,
  networkScenario,
  networkStories,
  type PushLine,
  promptMs,
  receiptOf,
  type Scenario,
  type SimulatorTimes,
  statusAt,
  testScenario,
} from './simulator.ts';
export { testPayoutNumbers } from './testPayouts.ts';
export { TestRail, testMishap } from './testRail.ts';
