import type { Actors } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import type { CollectionDoc } from '../collections/collections.ts';
import { forOperators } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import {
  type BreakerDoc,
  breakerId,
  type CallbackDoc,
  type Callbacks,
  lastCallbackAt,
  type RailAnswerDoc,
  type Rails,
  railOperations,
  readAnswers,
} from '../rails/rails.ts';
import { listActors } from './lists.ts';
import { lateStates, reviewStates } from './needs.ts';
import { presentRow } from './paymentRoutes.ts';
import { listedAnswer, pageFields } from './queries.ts';
import { described, found, idParam, ModeField } from './routes.ts';
import { type Sight, sightOf } from './sight.ts';

/** The live rail's health, what it answered, and the payments that wait for a person. */
export interface RailAdminDeps {
  db: Db;
  actors: Actors;
  rails: Rails;
  callbacks: Callbacks;
}

/** More answers than a payment gathers in a day; the rest is in the database. */
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

export async function readLastCallback(db: Db, rail: string): Promise<string | null> {
  return (await lastCallbackAt(db, rail))?.toISOString() ?? null;
}

export async function readBreakers(actors: Actors, rail: string) {
  const found = await Promise.all(
    railOperations.map((each) => actors.read({ machine: 'breaker', id: breakerId(rail, each) })),
  );
  return (found.filter(Boolean) as BreakerDoc[]).map(({ _id, data, state, snapshot, updatedAt }) => ({
    id: _id,
    operation: data.operation,
    state,
    failures: snapshot.context.failures,
    opened_at: isoOrNull(snapshot.context.openedAt),
    updated_at: updatedAt.toISOString(),
  }));
}

export function showEvidence({ db, actors, callbacks }: RailAdminDeps) {
  return forOperators({
    doc: described(
      'getEvidence',
      'What the rail answered about a collection, and what called back',
      200,
      'Verbatim, oldest first; for a viewer with phones masked. Callbacks decide nothing: nobody signs them.',
    ),
    params: idParam('col'),
    handler: async ({ params, principal }) => {
      const id = String(params.id);
      const sight = sightOf(principal);
      await found(actors.read({ machine: 'collection', id }));
      const [answers, bells] = await Promise.all([
        readAnswers(db, id, evidenceMax),
        callbacks.of(id, evidenceMax),
      ]);
      const body = {
        object: 'evidence',
        collection: id,
        answers: answers.map((each) => presentAnswer(each, sight)),
        callbacks: bells.map((each) => presentCallback(each, sight)),
      };
      return { status: 200, body };
    },
  });
}

export function listReviews({ db, actors }: RailAdminDeps) {
  return forOperators({
    doc: described(
      'listReviews',
      'Payments that wait for a person, newest first',
      200,
      'Under review, late, or being returned. `operator.asked` and `operator.resolved` are sent to the actor.',
    ),
    query: Type.Object(
      { mode: Type.Optional(ModeField), ...pageFields(idPattern('col')) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const mode = query.mode as 'live' | 'test' | undefined;
      const filter = { mode, states: [...reviewStates, ...lateStates] };
      const page = { limit: query.limit ?? limits.listDefault, startingAfter: query.starting_after };
      const listed = await listActors<CollectionDoc>({ db, actors }, 'collection', filter, page);
      const body = listedAnswer(listed, (doc) => ({ ...presentRow(doc), object: 'review' }));
      return { status: 200, body };
    },
  });
}

function presentAnswer(doc: RailAnswerDoc, sight: Sight) {
  return {
    operation: doc.operation,
    outcome: doc.kind,
    why: doc.why,
    code: doc.code,
    http_status: doc.httpStatus,
    text: sight.text(doc.text),
    asked_at: doc.askedAt.toISOString(),
    at: doc.at.toISOString(),
  };
}

function presentCallback({ hint, body, at, rungAt }: CallbackDoc, sight: Sight) {
  return {
    hint: Object.fromEntries(Object.entries(hint).map(([name, value]) => [name, sight.text(value)])),
    text: sight.text(body),
    at: at.toISOString(),
    heard_at: rungAt?.toISOString() ?? null,
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
