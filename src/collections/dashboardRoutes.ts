import type { StepLine } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { forMerchants, listAnswer, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { isoTime } from '../time.ts';
import { testPhones } from './phone.ts';
import type { OwnCollections } from './routes.ts';

/** What became of a payment, as its merchant is told; the chart knows more. */
export const milestones = [
  'created',
  'prompted',
  'asking',
  'underReview',
  'succeeded',
  'failed',
  'expired',
  'paidLate',
  'returning',
  'returned',
  'reversed',
] as const;
export type Milestone = (typeof milestones)[number];

/** By the beginning of the state that a step leads to. */
const reached: readonly (readonly [state: string, milestone: Milestone])[] = [
  ['created.pushing', 'created'],
  ['created.awaitingApproval', 'prompted'],
  ['created.confirming', 'asking'],
  ['created.underReview', 'underReview'],
  ['succeeded.reversed', 'reversed'],
  ['succeeded', 'succeeded'],
  ...(['failed', 'expired'] as const).flatMap((end) => [
    [`${end}.latePaid.held`, 'paidLate'] as const,
    [`${end}.latePaid.returning`, 'returning'] as const,
    [`${end}.latePaid.returned`, 'returned'] as const,
    [end, end] as const,
  ]),
];

/** Steps of a payment that are looked at, from its first: a ladder of questions has some dozens. */
const stepsMax = 200;

interface TimeLineDeps {
  collections: OwnCollections;
  readHistory(actor: string, limit: number): Promise<StepLine[]>;
}

/** A payment's time line, for the dashboard's page of it, from within: what happened, the first time each. */
export function showTimeLine({ collections, readHistory }: TimeLineDeps) {
  const summary = 'What became of a payment, oldest first';
  return forMerchants({
    doc: {
      ...{ id: 'getTimeLine', summary, description: summary, tag: 'Dashboard' },
      answers: { 200: { description: summary } },
    },
    params: Type.Object({ id: Type.String({ maxLength: 30, pattern: idPattern('col') }) }),
    handler: async ({ principal, params }) => {
      const collection = await collections.get(principal, params.id);
      if (!collection) throw resourceNotFound();
      const lines = await readHistory(collection.id, stepsMax);
      return { status: 200, body: listAnswer(milestonesOf(lines), false) };
    },
  });
}

/** One line for each change of what a merchant can tell apart. */
export function milestonesOf(
  lines: readonly Pick<StepLine, 'at' | 'to'>[],
): { at: string; what: Milestone }[] {
  const told: { at: string; what: Milestone }[] = [];
  for (const { at, to } of lines) {
    const what = reached.find(([state]) => to === state || to.startsWith(`${state}.`))?.[1];
    if (what && told.at(-1)?.what !== what) told.push({ at: isoTime(at.getTime()), what });
  }
  return told;
}

/** The numbers that test mode knows, with what happens. */
export function listTestNumbers() {
  const summary = 'The phone numbers of test mode';
  return forMerchants({
    doc: {
      ...{ id: 'listTestNumbers', summary, description: summary, tag: 'Dashboard' },
      answers: { 200: { description: summary } },
    },
    handler: () => {
      const data = Object.entries(testPhones).map(([phone, outcome]) => ({ phone, outcome }));
      return { status: 200, body: listAnswer(data, false) };
    },
  });
}
