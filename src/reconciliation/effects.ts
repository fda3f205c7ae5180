import type {
  CallEffect,
  MachineDefinition,
  Migration,
  NewActor,
  StepView,
  WriteEffect,
} from '@kusanya/durable-actors';
import { type differenceCalls, differenceMachine, type differenceWrites } from '../../machines/difference.ts';
import {
  type reconciliationCalls,
  reconciliationMachine,
  type reconciliationWrites,
} from '../../machines/reconciliation.ts';
import { alertOf } from '../alerts.ts';
import {
  floatMoved,
  post,
  type StatementFact,
  statementCharged,
  statementFollowed,
  statementReleased,
} from '../ledger/ledger.ts';
import { type AskDeps, askRail, readBooks, ruleCollection } from './asking.ts';
import { matchBooks } from './books.ts';
import { compareBalances } from './comparing.ts';
import {
  type DifferenceDoc,
  differencesSpec,
  planOfDifferences,
  type ReconciliationDoc,
  reconciliationsSpec,
} from './documents.ts';
import { importPage } from './importing.ts';
import type { MatchDeps } from './judging.ts';
import { type Charged, matchLines } from './matching.ts';

/** Pages go one after the other, beside live traffic; few differences are asked about at once. */
const usualPatienceMs = 60_000;

/** What an answer of a page brings beside its counts; no part of the history. */
interface PageDetail {
  differences?: NewActor[];
  charged?: Charged;
}

function detailOf({ event }: StepView): PageDetail {
  return (event.detail ?? {}) as PageDetail;
}

/** Made inside the commit that moves the cursor, in the order of the chart. */
export function reconciliationWriteEffects(): Record<(typeof reconciliationWrites)[number], WriteEffect> {
  return {
    postCharges: (step) => {
      const { charged } = detailOf(step);
      if (!charged) return [];
      const { _id: id, data, seq } = step.doc as ReconciliationDoc;
      const source = { machine: 'reconciliation', id, seq };
      const of = { rail: data.rail, currency: data.currency, source, postedAtMs: step.at };
      const { chargesTzs, bookedAtMs, n, sweeps } = charged;
      const all: StatementFact = {
        ...{ ...of, fact: `charges_${n}`, amountTzs: Math.abs(chargesTzs) },
        ...{ receipt: null, effectiveAtMs: bookedAtMs },
      };
      return [
        ...(chargesTzs === 0 ? [] : post(statementCharged(all, chargesTzs < 0))),
        ...sweeps.flatMap(({ receipt, amountTzs, bookedAtMs: effectiveAtMs, side }) =>
          post(
            floatMoved({
              ...{ mode: 'live', currency: data.currency, channel: data.rail, source, postedAtMs: step.at },
              ...{ amountTzs, effectiveAtMs, providerReference: receipt, fact: `float_${receipt}_${side}` },
              to: side === 'out' ? 'bank' : 'wallet',
            }),
          ),
        ),
      ];
    },
    openDifferences: (step) => ({ actors: detailOf(step).differences ?? [] }),
    raiseAlert: (step, { kind }) => [alertAbout(step, String(kind))],
  };
}

export function reconciliationCallEffects(
  deps: MatchDeps,
): Record<(typeof reconciliationCalls)[number], CallEffect> {
  const paged = { concurrency: 1, patienceMs: usualPatienceMs };
  return {
    importPage: { ...paged, run: (view) => importPage(deps, view) },
    matchLines: { ...paged, run: (view) => matchLines(deps, view) },
    matchBooks: { ...paged, run: (view) => matchBooks(deps, view) },
    compareBalances: { ...paged, run: (view) => compareBalances(deps, view) },
  };
}

/** Made inside the commit, in the order of the chart. */
export function differenceWriteEffects(): Record<(typeof differenceWrites)[number], WriteEffect> {
  return {
    followStatement: (step) => {
      const { effectTzs } = (step.doc as DifferenceDoc).data;
      return post(statementFollowed(factOf(step, 'followed'), effectTzs > 0));
    },
    releaseStatement: (step) => {
      const { effectTzs } = (step.doc as DifferenceDoc).data;
      return post(statementReleased(factOf(step, 'released'), effectTzs > 0));
    },
    raiseAlert: (step, { kind }) => {
      const { collection } = (step.doc as DifferenceDoc).data;
      return [alertAbout(step, String(kind), (kind === 'contradiction' && collection) || undefined)];
    },
  };
}

export function differenceCallEffects(deps: AskDeps): Record<(typeof differenceCalls)[number], CallEffect> {
  const few = { concurrency: 5, patienceMs: usualPatienceMs };
  return {
    askRail: { ...few, run: (view) => askRail(deps, view) },
    readBooks: { ...few, run: (view) => readBooks(deps, view) },
    ruleCollection: { ...few, run: (view) => ruleCollection(deps, view) },
  };
}

/** The fact that the network booked it then, as our books follow it or take that back. */
function factOf({ doc, event, at }: StepView, fact: string): StatementFact {
  const { _id: id, seq, data } = doc as DifferenceDoc;
  // What was taken for missing and comes later was posted at its own time: there the books are as they were.
  const isLater = typeof event.bookedAt === 'number' && data.kind !== 'missing_there';
  const bookedAtMs = isLater ? Number(event.bookedAt) : data.bookedAt.getTime();
  return {
    ...{ currency: data.currency, rail: data.rail, fact, receipt: data.receipt },
    ...{ source: { machine: 'difference', id, seq }, amountTzs: data.amountTzs },
    ...{ effectiveAtMs: bookedAtMs, postedAtMs: at },
  };
}

function alertAbout(step: StepView, kind: string, about = step.doc._id) {
  return alertOf(step, kind, { about, detail: { told_by: step.doc._id } });
}

/** What lifts stored differences to the present chart. */
export const differenceMigrations: Record<number, Migration> = {
  /** 2: some only say that a statement does not confirm what we have not posted either. */
  1: (doc) => {
    const { snapshot } = doc;
    const context = { ...snapshot.context, hasEffect: true };
    return { ...doc, machineVersion: 2, snapshot: { ...snapshot, context } };
  },
};

/** Networks' statements, and where they and the books do not agree. */
export function reconciliationDefinitions(deps: MatchDeps & AskDeps): MachineDefinition[] {
  return [
    {
      name: 'reconciliation',
      plural: reconciliationsSpec.name,
      machine: reconciliationMachine,
      ended: ['closed'],
      writes: reconciliationWriteEffects(),
      calls: reconciliationCallEffects(deps),
      migrations: {},
    },
    {
      name: 'difference',
      plural: differencesSpec.name,
      machine: differenceMachine,
      ended: ['explained', 'resolved'],
      idPrefix: 'dif',
      planOf: planOfDifferences,
      writes: differenceWriteEffects(),
      calls: differenceCallEffects(deps),
      migrations: differenceMigrations,
    },
  ];
}
