import type { StepLine } from '@kusanya/durable-actors';
import type { CallbackDoc } from './callbacks.ts';
import type { RailAnswerDoc } from './evidence.ts';

/**
 * What the rail of test mode answered, read from the history: it is a function in this process, so nothing
 * else of its answers is kept. What changed nothing left no line.
 */
const operations: Readonly<Record<string, RailAnswerDoc['operation']>> = {
  'collection.push': 'push',
  'collection.ask': 'query',
  'collection.reverse': 'reversal',
  'payout.send': 'payout',
  'payout.ask': 'payout_query',
  'refund.reverse': 'reversal',
  'refund.ask': 'query',
};

export function answersIn(
  machine: string,
  lines: readonly StepLine[],
): Omit<RailAnswerDoc, '_id' | 'collectionId'>[] {
  return lines.flatMap(({ event, at }) => {
    const { type, askedAt, answer, ...rest } = event;
    const [asked = '', outcome = ''] = String(type).split('.');
    const operation = operations[`${machine}.${asked}`];
    if (!operation) return [];
    const kind = outcome === 'undecided' ? String(answer) : outcome;
    const said = { ...{ why: null, code: null, httpStatus: null }, text: JSON.stringify({ kind, ...rest }) };
    const askedAtMs = typeof askedAt === 'number' ? askedAt : at.getTime();
    return [{ operation, kind, ...said, askedAt: new Date(askedAtMs), at }];
  });
}

/** When it rang. Merchants ring too, with the test helpers: that is no callback. */
export function callbacksIn(
  lines: readonly StepLine[],
): Pick<CallbackDoc, 'hint' | 'body' | 'at' | 'rungAt'>[] {
  return lines
    .filter(({ event, cause }) => event.type === 'rail.noticed' && cause.kind === 'rail')
    .map(({ at, cause }) => ({ hint: {}, body: bellOf(cause.id), at, rungAt: at }));
}

/** `bell.0`: whose it is stands above it. */
function bellOf(causeId: string): string {
  return causeId.replace(/^[a-z]+_\w+\./, '');
}
