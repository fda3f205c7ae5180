/** Faults on demand: what the line does to the next calls, whatever their story. */
export type Operation = 'session' | 'push' | 'payout' | 'query' | 'reversal';

export interface Fault {
  operation: Operation;
  /**
   * `resets` the connection, `hangs` without an answer, `fails` with an HTTP status and HTML, `garbles` the body,
   * `cuts` it in the middle, `refuses` as the gate does (401 without a code), `answers` with a result code.
   */
  does: 'resets' | 'hangs' | 'fails' | 'garbles' | 'cuts' | 'refuses' | 'answers';
  /** Before: the call never reached the network, no money moves. After: it did, and only the answer suffers. */
  when: 'before' | 'after';
  httpStatus?: number;
  code?: string;
  /** Only for this phone. */
  msisdn?: string;
  /** Only for this conversation id. */
  reference?: string;
  /** How many calls it meets. */
  times: number;
}

const operations: readonly string[] = ['session', 'push', 'payout', 'query', 'reversal'];
const deeds: readonly string[] = ['resets', 'hangs', 'fails', 'garbles', 'cuts', 'refuses', 'answers'];

/** A fault as it was asked for over HTTP; a text says what is wrong with it. */
export function readFault(body: unknown): Fault | string {
  const given = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const { operation, does, when = 'before', times = 1, httpStatus, code, msisdn, reference } = given;
  if (!operations.includes(String(operation))) return `operation must be one of ${operations.join(', ')}`;
  if (!deeds.includes(String(does))) return `does must be one of ${deeds.join(', ')}`;
  if (when !== 'before' && when !== 'after') return 'when must be before or after';
  if (!Number.isInteger(times) || Number(times) < 1) return 'times must be a whole number from 1';
  return {
    operation: operation as Operation,
    does: does as Fault['does'],
    when,
    times: Number(times),
    ...(httpStatus === undefined ? {} : { httpStatus: Number(httpStatus) }),
    ...(code === undefined ? {} : { code: String(code) }),
    ...(msisdn === undefined ? {} : { msisdn: String(msisdn) }),
    ...(reference === undefined ? {} : { reference: String(reference) }),
  };
}

export class Faults {
  #waiting: Fault[] = [];

  add(fault: Fault): void {
    this.#waiting.push({ ...fault });
  }

  clear(): void {
    this.#waiting = [];
  }

  list(): readonly Fault[] {
    return this.#waiting;
  }

  /** The fault that meets this call, used up by one. */
  take(operation: Operation, of: { msisdn?: string; reference?: string } = {}): Fault | undefined {
    const fault = this.#waiting.find(
      (each) =>
        each.operation === operation &&
        (each.msisdn === undefined || each.msisdn === of.msisdn) &&
        (each.reference === undefined || each.reference === of.reference),
    );
    if (!fault) return undefined;
    fault.times -= 1;
    if (fault.times === 0) this.#waiting = this.#waiting.filter((each) => each !== fault);
    return fault;
  }

  /** The call did not reach what the fault is about: it waits for the next one. */
  giveBack(fault: Fault): void {
    fault.times += 1;
    if (!this.#waiting.includes(fault)) this.#waiting.unshift(fault);
  }
}
