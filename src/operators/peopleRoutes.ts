import { type Actors, type Clock, StepRaced } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { faulty, forOperators, listAnswer, type Role } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import { change, once } from './change.ts';
import { auditLine } from './operators.ts';
import { newOperator, type OperatorDoc, type Operators, revokeOperator } from './people.ts';
import { pageFields } from './queries.ts';
import { bodyOf, described, found, idParam, Reason } from './routes.ts';

/** Who may do what here. Admins only; the token is shown once. */
export interface PeopleAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  operators: Operators;
  keyHashSecret: string;
}

function presentOperator(operator: OperatorDoc) {
  return {
    id: operator._id,
    object: 'operator',
    name: operator.name,
    role: operator.role,
    created_by: operator.createdBy,
    created_at: isoTime(operator.createdAt.getTime()),
    revoked_at: operator.revokedAt ? isoTime(operator.revokedAt.getTime()) : null,
    revoked_by: operator.revokedBy ?? null,
  };
}

export function createOperator(deps: PeopleAdminDeps) {
  const { actors, clock, operators, keyHashSecret: hashSecret } = deps;
  return forOperators({
    doc: described(
      'createOperator',
      'Let somebody in',
      201,
      'A viewer reads, an operator acts, an admin also issues keys and lets people in. The token is shown once.',
    ),
    once: true,
    body: bodyOf('NewOperator', {
      name: Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: '^[\\p{L}\\p{N}][\\p{L}\\p{N} ._@-]*$',
        description: 'As in the audit; never given to two people.',
      }),
      role: Type.Enum(['viewer', 'operator', 'admin']),
      reason: Reason,
    }),
    handler: (request) =>
      once(deps, request, 'createOperator', async (claim) => {
        const { principal, body, requestId } = request;
        const [at, by] = [clock.now(), principal.name];
        const { name, reason } = body;
        if (await operators.isTaken(name)) throw nameTaken(name);
        const role = body.role as Role;
        const { record, token, writes } = newOperator({ name, role, by, hashSecret }, at);
        const after = presentOperator(record);
        const about = { target: record._id, reason, requestId, after };
        const line = auditLine({ at, by, action: 'operator.created', ...about });
        await actors.commit([...writes, ...claim(record._id), line]).catch((error) => {
          throw error instanceof StepRaced ? nameTaken(name) : error;
        });
        return { status: 201, body: { ...after, token } };
      }),
  });
}

function nameTaken(name: string) {
  const message = `${name} is or was somebody else’s name.`;
  return faulty([{ param: 'name', code: 'parameter_invalid', message }]);
}

export function listOperators({ operators }: PeopleAdminDeps) {
  return forOperators({
    doc: described('listOperators', 'Who was let in, newest first', 200),
    query: Type.Object({ ...pageFields(idPattern('opr')) }, { additionalProperties: false }),
    handler: async ({ query }) => {
      const limit = query.limit ?? limits.listDefault;
      const rows = await operators.list(limit + 1, query.starting_after);
      return {
        status: 200,
        body: listAnswer(rows.slice(0, limit).map(presentOperator), rows.length > limit),
      };
    },
  });
}

export function removeOperator({ actors, clock, operators }: PeopleAdminDeps) {
  return forOperators({
    doc: described(
      'revokeOperator',
      'Revoke somebody’s token',
      200,
      'Takes effect everywhere within 2 seconds, in the console too.',
    ),
    params: idParam('opr'),
    query: Type.Object({ reason: Reason }, { additionalProperties: false }),
    handler: async ({ principal, params, query, requestId }) => {
      const [at, by, { reason }] = [clock.now(), principal.name, query];
      const id = params.id as string;
      const after = await change(actors, async () => {
        const current = await found(operators.find(id));
        const before = presentOperator(current);
        if (current.revokedAt) return { writes: [], result: before };
        const { record, writes } = revokeOperator(current, by, at);
        const result = presentOperator(record);
        const about = { target: id, reason, requestId, before, after: result };
        return { writes: [...writes, auditLine({ at, by, action: 'operator.revoked', ...about })], result };
      });
      operators.forget(id);
      return { status: 200, body: after };
    },
  });
}
