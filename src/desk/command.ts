import {
  type Actors,
  type Clock,
  type Doc,
  type NewActor,
  type SendOptions,
  type SendResult,
  StepReplayed,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { TObject } from 'typebox';
import {
  type Answer,
  actionNotAllowed,
  fingerprint,
  forOperators,
  type HttpRequest,
  idempotencyKeyReused,
  idempotencySpec,
  type Operation,
  type OperatorPrincipal,
} from '../http/http.ts';
import { limits } from '../limits.ts';
import { overtaken } from '../overtaken.ts';
import { type AuditDoc, auditLine } from './audit.ts';

/** What every route needs by which operators change something. */
export interface CommandDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
}

/** What the audit says of a change, beside who, when, why and by which request. */
interface About extends Pick<AuditDoc, 'action' | 'target' | 'merchantId' | 'before' | 'after'> {
  /** The id of what was made, where that is not what was changed. */
  made?: string;
}

/** What people decide on what they have just read. Without writes nothing is left to do, and that is the result. */
type Decided<Result> = { writes: Write[]; about: About; result: Result } | { result: Result };

/** An operator's change: its line in the audit is part of its commit, whichever way it is committed. */
export class Command {
  readonly at: number;
  /** The operator's name. */
  readonly by: string;
  readonly reason: string;
  readonly requestId: string;
  readonly #actors: Actors;
  readonly #claim: Claim;

  constructor(
    { actors, clock }: Pick<CommandDeps, 'actors' | 'clock'>,
    { principal, requestId }: Pick<HttpRequest<OperatorPrincipal>, 'principal' | 'requestId'>,
    reason: string,
    claim: Claim,
  ) {
    this.at = clock.now();
    this.by = principal.name;
    this.reason = reason;
    this.requestId = requestId;
    this.#actors = actors;
    this.#claim = claim;
  }

  /** The writes that tell of the change: the audit's line, and the claim of its Idempotency-Key. */
  told({ made, ...about }: About): Write[] {
    const { at, by, reason } = this;
    const line = auditLine({ ...about, at, by, reason, requestId: this.requestId });
    return [...this.#claim(made ?? about.target), line];
  }

  /** @throws StepRaced, StepRefused and their kin, as the writes say */
  commit(writes: readonly Write[], about: About): Promise<void> {
    return this.#actors.commit([...writes, ...this.told(about)]);
  }

  /**
   * Decides and commits. Whoever was overtaken reads again and decides again, so nothing of two changes is lost and
   * the audit's "before" is what the change met.
   */
  async change<Result>(decide: () => Promise<Decided<Result>>): Promise<Result> {
    return overtaken(async () => {
      const decided = await decide();
      if ('writes' in decided) await this.commit(decided.writes, decided.about);
      return decided.result;
    });
  }

  /** Sends an operator's event to an actor. `data`: what is to be set of the room's data in the same commit; `more`: further writes of it. */
  send(
    ref: { machine: string; id: string },
    event: { type: string; [field: string]: unknown },
    about: About,
    data?: SendOptions['data'],
    more: readonly Write[] = [],
  ): Promise<SendResult> {
    const { at, by, reason } = this;
    const writes = [...more, ...this.told(about)];
    return this.#actors.send(
      ref,
      { at, by, reason, ...event },
      { ...this.step, writes, ...(data ? { data } : {}) },
    );
  }

  /** Makes an actor. */
  create(actor: NewActor, about: About, writes: readonly Write[] = []) {
    return this.#actors.create(actor, { ...this.step, writes: [...writes, ...this.told(about)] });
  }

  /** The id and the cause of a step that this command takes. */
  get step() {
    return { stepId: this.requestId, cause: { kind: 'operator', id: this.by } } as const;
  }
}

type Fields = TObject | undefined;
type CommandOperation<
  Params extends Fields,
  Query extends Fields,
  Body extends Fields,
  Answered extends Answer,
> = Operation<OperatorPrincipal, Params, Query, Body, Answered>;

/**
 * An operation by which operators change something; its body or query has a `reason`. With `once` it is carried out
 * once per Idempotency-Key and operator.
 */
export function forCommands<
  Params extends Fields = undefined,
  Query extends Fields = undefined,
  Body extends Fields = undefined,
  Answered extends Answer = Answer,
>(
  deps: CommandDeps,
  operation: Omit<CommandOperation<Params, Query, Body, Answered>, 'handler'> & {
    handler(
      command: Command,
      request: Parameters<CommandOperation<Params, Query, Body, Answered>['handler']>[0],
    ): Promise<Answered>;
  },
) {
  const { handler, ...rest } = operation;
  return forOperators<Params, Query, Body, Answered>({
    ...rest,
    handler: (request) => {
      const carryOut = (claim: Claim) =>
        handler(new Command(deps, request, reasonOf(request), claim), request);
      return operation.once ? once(deps, request, operation.doc.id, carryOut) : carryOut(() => []);
    },
  });
}

function reasonOf({ body, query }: { body: unknown; query: unknown }): string {
  for (const part of [body, query]) {
    if (typeof part !== 'object' || part === null || !('reason' in part)) continue;
    if (typeof part.reason === 'string') return part.reason;
  }
  throw new TypeError('a command has no reason in its schema');
}

/** What was carried out with an operator's Idempotency-Key. Lies beside merchants' records, and ends with them. */
interface OnceDoc extends Doc {
  fingerprint: string;
  /** The id of what was made. */
  target: string;
  requestId: string;
  expiresAt: Date;
}

/** The write that a request's commit must hold, with the id of what it makes. */
type Claim = (target: string) => Write[];

/** What is said of a target whose answer showed a secret. */
function secretLost(target: string): string {
  if (!/^(key|we|opr)_/.test(target)) return '';
  return ' Its secret was shown once: where that answer was lost, revoke it and ask for another with a new Idempotency-Key.';
}

/**
 * Carries a request out once per Idempotency-Key and operator; without a key, each time. What comes again is
 * refused by naming what was made: a secret that was shown is not kept, so there is no answer to repeat.
 *
 * @throws idempotency_key_reused for another body, action_not_allowed for the same
 */
async function once<Result>(
  { db, clock }: CommandDeps,
  request: Pick<
    HttpRequest<OperatorPrincipal>,
    'principal' | 'idempotencyKey' | 'params' | 'body' | 'requestId'
  >,
  operationId: string,
  carryOut: (claim: Claim) => Promise<Result>,
): Promise<Result> {
  const { principal, idempotencyKey, params, body, requestId } = request;
  if (idempotencyKey === undefined) return carryOut(() => []);
  const _id = `operator.${principal.name}.${operationId}.${idempotencyKey}`;
  const print = fingerprint({ params, body });
  const refuseAgain = async () => {
    const done = await db.collection<OnceDoc>(idempotencySpec.name).findOne({ _id: { $eq: _id } });
    if (!done) return;
    if (done.fingerprint !== print) throw idempotencyKeyReused();
    throw actionNotAllowed(
      `This was carried out already, by the request ${done.requestId}: it made ${done.target}.${secretLost(done.target)}`,
    );
  };
  await refuseAgain();
  const expiresAt = new Date(clock.now() + limits.idempotencyTtlMs);
  try {
    return await carryOut((target) => {
      const doc: OnceDoc = { _id, fingerprint: print, target, requestId, expiresAt };
      return [{ op: 'insert', into: idempotencySpec.name, doc, onDuplicate: 'replay' }];
    });
  } catch (error) {
    if (error instanceof StepReplayed) await refuseAgain();
    throw error;
  }
}
