import type { Actors, Doc } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Archived } from '../archive/archive.ts';
import {
  described,
  found,
  type Histories,
  idParam,
  type Masking,
  maskingFor,
  presentArchived,
  readHistory,
} from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import {
  type CallbackDoc,
  type Callbacks,
  callbacksSpec,
  type RailAnswerDoc,
  type Rails,
  railAnswersSpec,
  readAnswers,
  readBreakers,
  readLastCallback,
} from './rails.ts';
import { answersIn, callbacksIn } from './testEvidence.ts';

/** The rails' health, and what they answered and called back about what moves money. */
export interface RailAdminDeps extends Histories {
  db: Db;
  actors: Actors;
  rails: Rails;
  callbacks: Callbacks;
}

/** More answers than one gathers in a day; the rest is in the database. */
const evidenceMax = 200;

export function listRails({ db, actors, rails }: RailAdminDeps) {
  return forOperators({
    doc: described('listRails', 'The rails and their breakers', 200),
    handler: async () => {
      const all = [
        { mode: 'test', rail: rails.test },
        { mode: 'live', rail: rails.live },
      ];
      const data = await Promise.all(
        all.map(async ({ mode, rail }) => ({
          object: 'rail',
          mode,
          name: rail?.name ?? null,
          configured: rail !== undefined,
          address: rail?.line?.address ?? null,
          sandbox: rail?.line?.isSandbox ?? null,
          answers: rail?.line?.answers ?? null,
          capabilities: rail?.capabilities ?? null,
          breakers: mode === 'live' && rail ? await readBreakers(actors, rail.name) : [],
          last_callback_at: rail ? await readLastCallback(db, rail.name) : null,
        })),
      );
      return { status: 200, body: { object: 'list', data, has_more: false } };
    },
  });
}

/** Whom rails are asked about. */
const evidenceOf = {
  collection: { prefix: 'col', operation: 'getEvidence' },
  payout: { prefix: 'po', operation: 'getPayoutEvidence' },
  refund: { prefix: 'rf', operation: 'getRefundEvidence' },
} as const;

export function showEvidence<Machine extends keyof typeof evidenceOf>(
  { db, actors, callbacks, archive }: RailAdminDeps,
  machine: Machine,
) {
  const { prefix, operation } = evidenceOf[machine];
  return forOperators({
    doc: described(
      operation,
      `What the rail answered about a ${machine}, and what called back`,
      200,
      `Verbatim, oldest first; for a viewer with phones masked. Callbacks decide nothing: nobody signs them. In test mode what the steps of the ${machine} tell of its rail.`,
    ),
    params: idParam(prefix),
    handler: async ({ params, principal }) => {
      const id = params.id;
      const masking = maskingFor(principal);
      const { mode } = await found(actors.read({ machine, id }));
      const [archived, kept, calledBack, past] = await Promise.all([
        archive.of('evidence', id),
        readAnswers(db, id, evidenceMax),
        callbacks.of(id, evidenceMax),
        mode === 'test' ? readHistory({ db, archive }, id, evidenceMax) : undefined,
      ]);
      const lines = past?.lines ?? [];
      const about = { [machine]: id } as Record<Machine, string>;
      const body = {
        ...{ object: 'evidence', ...about },
        answers: [...withArchived(archived, railAnswersSpec.name, kept), ...answersIn(machine, lines)].map(
          (each) => presentAnswer(each, masking),
        ),
        archive: presentArchived(archived),
        callbacks: [...withArchived(archived, callbacksSpec.name, calledBack), ...callbacksIn(lines)].map(
          (each) => presentCallback(each, masking),
        ),
      };
      return { status: 200, body };
    },
  });
}

/** With what is older before it; what is being removed just now is in both. */
function withArchived<D extends Doc & { at: Date }>(
  { docs }: Archived,
  from: string,
  stored: readonly D[],
): D[] {
  const older = docs.flatMap((each) => (each.in === from ? [each.doc as D] : []));
  const all = new Map([...older, ...stored].map((doc) => [doc._id, doc]));
  return [...all.values()].sort((a, b) => a.at.getTime() - b.at.getTime());
}

function presentAnswer(doc: Omit<RailAnswerDoc, '_id' | 'collectionId'>, masking: Masking) {
  return {
    operation: doc.operation,
    outcome: doc.kind,
    why: doc.why,
    code: doc.code,
    http_status: doc.httpStatus,
    text: masking.text(doc.text),
    asked_at: doc.askedAt.toISOString(),
    at: doc.at.toISOString(),
  };
}

function presentCallback(
  { hint, body, at, rungAt }: Pick<CallbackDoc, 'hint' | 'body' | 'at' | 'rungAt'>,
  masking: Masking,
) {
  return {
    hint: Object.fromEntries(Object.entries(hint).map(([name, value]) => [name, masking.text(value)])),
    text: masking.text(body),
    at: at.toISOString(),
    heard_at: rungAt?.toISOString() ?? null,
  };
}
