/**
 * What happened, counted by the hour: for pictures over time. Counted behind the payments from what they wrote anyway
 * (tallier.ts), read as rows of hours and days (reading.ts). In money matters the ledger is the truth, not this.
 */
export {
  hourOf,
  type Numbers,
  type TallyDoc,
  type TallyKind,
  talliesSpec,
  tallyKinds,
  tallyProgressSpec,
} from './documents.ts';
export {
  type Counted,
  dayOf,
  daysOf,
  hoursOf,
  ownTallies,
  partsOf,
  readTallies,
  readTallyState,
  type Stretch,
  sumOf,
  tookMs,
} from './reading.ts';
export { Tallier, tallyPoints } from './tallier.ts';
