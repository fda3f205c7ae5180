/**
 * XState charts made durable on MongoDB and woken by BullMQ (README.md). An actor's state changes only by `Actors`:
 * a step loads its document, asks the pure chart, and commits the new snapshot, the writes that the chart asked for,
 * the calls still to make and the timers, all at once or not at all.
 */
export { Actors } from './actors.ts';
export { BatchReader, eachOf } from './batch.ts';
export { type Clock, MovableClock, SystemClock, stopwatch } from './clock.ts';
export { type CommitOutcome, type CommittedBatch, Committer } from './commit.ts';
export * from './document.ts';
export { isDuplicateKey } from './duplicate.ts';
export { armFailpoint, enginePoints, failpoint } from './failpoint.ts';
export { type Handover, queueNames } from './handover.ts';
export type { Lanes } from './lanes.ts';
export { Lease, leasesSpec } from './lease.ts';
export type { Log } from './log.ts';
export {
  connectMongo,
  type Doc,
  isOutage,
  keepClock,
  type MongoCollectionSpec,
  prepareDatabase,
  putRight,
  type Write,
} from './mongo.ts';
export { actorsSpec, dueIn, dueIndex, inQuarantine, partOf, quarantinedAt } from './parts.ts';
export { stepId, stepRange, stepsSpec } from './plan.ts';
export { type NewJob, Queues } from './queue.ts';
export { isRedisUrl } from './redis.ts';
export { type OpenOptions, openRuntime, Runtime, type RuntimeOptions, type RuntimeWatch } from './runtime.ts';
export { sharedPartsSpec } from './shared.ts';
export { acceptedEvents, dueOf, restore, shown, stateText } from './step.ts';
export type { Chore, Sweeper } from './sweep.ts';
export { inTime } from './time-limit.ts';
export { CommitUnknown } from './transaction.ts';
