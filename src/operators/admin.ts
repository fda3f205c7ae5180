import { StepRaced } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import type { Config } from '../config.ts';
import {
  type CommandDeps,
  CommandQuery,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  pageFields,
} from '../desk/desk.ts';
import { faulty, forOperators, listAnswer } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import { newOperator, type OperatorDoc, type Operators, revokeOperator } from './operators.ts';

/** Who may do what here. Admins only; the token is shown once. */
interface PeopleAdminDeps extends CommandDeps {
  operators: Operators;
  config: Pick<Config, 'keyHashSecret'>;
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
  const { operators, config } = deps;
  return forCommands(deps, {
    doc: described(
      'createOperator',
      'Let somebody in',
      201,
      'A viewer reads, an operator acts, an admin also issues keys and lets people in. The token is shown once.',
    ),
    once: true,
    body: commandBody('NewOperator', {
      name: Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: '^[\\p{L}\\p{N}][\\p{L}\\p{N} ._@-]*$',
        description: 'As in the audit; never given to two people.',
      }),
      role: Type.Enum(['viewer', 'operator', 'admin']),
    }),
    handler: async (command, { body: { name, role } }) => {
      const { at, by } = command;
      if (await operators.isTaken(name)) throw nameTaken(name);
      const hashSecret = config.keyHashSecret;
      const { record, token, writes } = newOperator({ name, role, by, hashSecret }, at);
      const after = presentOperator(record);
      await command
        .commit(writes, { action: 'operator.created', target: record._id, after })
        .catch((error) => {
          throw error instanceof StepRaced ? nameTaken(name) : error;
        });
      return { status: 201, body: { ...after, token } };
    },
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

export function removeOperator(deps: PeopleAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'revokeOperator',
      'Revoke somebody’s token',
      200,
      'Takes effect everywhere within 2 seconds, in the console too.',
    ),
    params: idParam('opr'),
    query: CommandQuery,
    handler: async (command, { params: { id } }) => {
      const after = await command.change(async () => {
        const current = await found(deps.operators.find(id));
        const before = presentOperator(current);
        if (current.revokedAt) return { result: before };
        const { record, writes } = revokeOperator(current, command.by, command.at);
        const result = presentOperator(record);
        return { writes, about: { action: 'operator.revoked', target: id, before, after: result }, result };
      });
      deps.operators.forget(id);
      return { status: 200, body: after };
    },
  });
}
