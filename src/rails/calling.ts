import type { CallAnswer, CallEffect, CallPostponed, CallView, Write } from '@kusanya/durable-actors';
import { alertOf } from '../alerts.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { answerWrite, type RailAnswerDoc } from './evidence.ts';
import type { Evidence, Fault } from './port.ts';

/** What the effects have in common by which a chart sends money over a network, or asks about it. */

type Untimed<Event> = Event extends { at: number } ? Omit<Event, 'at'> & Record<string, unknown> : never;
/** Answers of one kind of call: they carry when they were asked; the engine adds when they came (`at`). */
export type AnswersOf<Event, Kind extends string> = Untimed<Extract<Event, { type: `${Kind}.${string}` }>>;

/** This process has no such rail (its settings lack one): a worker that has it takes the call. */
export const forAnother: CallPostponed = { postponeMs: 2 * limits.secondMs };

type Run = CallEffect['run'];

/** Calls over the rail of their mode. `without`: what a process that has none answers. */
export function callsOver<Door>(doorOf: (mode: Mode) => Door | undefined) {
  return (
    work: (door: Door, view: CallView) => ReturnType<Run>,
    without: (view: CallView) => CallAnswer | CallPostponed = () => forAnother,
  ): Run =>
    async (view) => {
      const door = doorOf(view.doc.mode);
      return door ? work(door, view) : without(view);
    };
}

/** Of a call that sends: once, and what became of one whose process died is `unknown`, an event of this type. */
export function sentOnce(unknown: string): Pick<CallEffect, 'factual' | 'atMostOnce'> {
  return {
    factual: true,
    atMostOnce: {
      pickupMs: limits.pickupMs,
      lost: (call, at) => ({ type: unknown, at, askedAt: call.startedAt?.getTime() }),
    },
  };
}

/** Of a call that asks: when the chart says. */
export const asksWhenDue: Pick<CallEffect, 'factual' | 'notBefore'> = {
  factual: true,
  notBefore: (context) => context.askedAt as number,
};

interface Answered {
  kind: string;
  why?: string;
  code?: string;
  fault?: Fault;
  evidence?: Evidence;
}

/** Nothing was begun, and this process is about to end: one that goes on makes the call. */
export function isLeft({ claimedAt }: CallView, { kind, why }: Answered): boolean {
  return kind === 'notAttempted' && why === 'stopping' && claimedAt === undefined;
}

/** What is kept of a rail's answer: the evidence, and an alert where we or the rail have to act on it. */
export function kept(
  { doc, call, at, claimedAt }: CallView,
  operation: RailAnswerDoc['operation'],
  answer: Answered,
): Write[] {
  // What waits for a session, or for its phone, was asked when the first byte left.
  const askedAtMs = claimedAt ?? at;
  const writes = answerWrite({ id: call.id, collectionId: doc._id, operation, askedAtMs }, answer);
  if (answer.fault !== 'us' && answer.fault !== 'provider') return writes;
  const { code, httpStatus, text } = answer.evidence ?? {};
  const detail = { fault: answer.fault, why: answer.why, code, httpStatus, text };
  const kind = answer.code === 'float_insufficient' ? 'float_low' : 'rail_refused';
  return [...writes, alertOf({ doc, at }, kind, { detail })];
}
