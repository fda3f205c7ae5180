import { KusanyaError, StillPending } from '@kusanya/client';
import { Stopped } from './surroundings.ts';

/** What a script can tell a failure by. */
export const exits = {
  ok: 0,
  /** It was done and came out badly: a payment that failed, a webhook that is not genuine, something that needs you. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The service, or this program, says no. The same again is refused again. */
  refused: 3,
  /** No answer, or none that helps. The same again may be answered later. */
  unreachable: 4,
} as const;

export type Exit = (typeof exits)[keyof typeof exits];

/** A failure that this program found itself. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exit: Exit;
  readonly code: string;

  constructor(exit: Exit, code: string, message: string) {
    super(message);
    this.exit = exit;
    this.code = code;
  }
}

export function usage(message: string): Failure {
  return new Failure(exits.usage, 'usage', message);
}

/** What the client refuses before it sends anything (a TypeError of its own) is a fault of the command line. */
export async function asUsage<T>(task: () => T | Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    throw error instanceof TypeError ? usage(error.message) : error;
  }
}

/** A failure as it is told: to a program by its code, to a person in words, with what helps below. */
export interface Told {
  exit: Exit;
  type: string;
  code: string;
  message: string;
  more: string[];
  requestId?: string;
}

/** @throws what nobody foresaw: that is a fault of this program, and keeps its stack. */
export function toldOf(error: unknown): Told {
  if (error instanceof Failure) {
    const { exit, code, message } = error;
    return { exit, type: 'command_error', code, message, more: [] };
  }
  if (error instanceof KusanyaError) {
    const { type, code, message, requestId, errors = [] } = error;
    const fields = errors.length > 1 ? errors.map((each) => `${each.param}: ${each.message}`) : [];
    const ask = requestId && error.status !== undefined ? [`Request ${requestId}`] : [];
    const unknown = 'It may have been carried out: repeat it with the same idempotency key.';
    const more = [...fields, ...(error.outcome === 'unknown' ? [unknown] : []), ...ask];
    return { exit: exitOf(error), type, code, message, more, requestId };
  }
  if (error instanceof StillPending)
    return { exit: exits.failed, type: 'command_error', code: 'pending', message: error.message, more: [] };
  if (error instanceof Stopped)
    return { exit: exits.failed, type: 'command_error', code: 'stopped', message: 'stopped', more: [] };
  throw error;
}

function exitOf({ status, type }: KusanyaError): Exit {
  if (type === 'connection_error' || status === undefined) return exits.unreachable;
  return status === 408 || status === 429 || status >= 500 ? exits.unreachable : exits.refused;
}
