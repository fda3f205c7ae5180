import { readFileSync } from 'node:fs';
import { type Clock, inTime } from '@kusanya/durable-actors';
import { type TSchema, Type } from 'typebox';
import { limits } from '../limits.ts';
import { forAnyone } from './route.ts';

/** What readiness looks at; every part is asked afresh and given two seconds. */
export interface Health {
  isStopping(): boolean;
  mongo(): Promise<unknown>;
  /** How long the oldest commit of this process has been waiting, in milliseconds; 0 where none does. */
  oldestCommitMs(): number;
  /** The same of the oldest command to MongoDB, whatever it is for. */
  oldestCommandMs(): number;
  redis(): boolean;
  /** Present where this process sweeps: when the last round ended. */
  sweeper?: { report: { at: number } } | undefined;
  clock: Clock;
}

const answerMs = 2_000;

const Waiting = (what: string) =>
  Type.Integer({
    minimum: 0,
    description: `How long the oldest ${what} has been waiting (ms); 0 where none is.`,
  });

const Any = Type.Object({}, { additionalProperties: true });

const Readiness = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded', 'unavailable']),
    mongo: Type.Boolean(),
    redis: Type.Boolean(),
    oldest_commit_ms: Waiting('commit of this process'),
    oldest_command_ms: Waiting('command of this process to MongoDB'),
    wrong: Type.Array(Type.String(), { description: 'What is wrong, for people. Empty when all is well.' }),
    swept_at: Type.Union([Type.Integer(), Type.Null()], {
      description: 'When this process last looked for forgotten work (ms); null where it does not.',
    }),
  },
  { title: 'Readiness', additionalProperties: false },
);

function about(id: string, summary: string, statuses: Record<number, string>, schema: TSchema = Any) {
  const answers = Object.fromEntries(
    Object.entries(statuses).map(([status, description]) => [status, { description, schema }]),
  );
  return { id, summary, description: summary, tag: 'About', answers };
}

/** GET /livez: the process runs. */
export function livez() {
  return forAnyone({
    doc: about('livez', 'The process runs', { 200: 'It does.' }),
    handler: () => ({ status: 200, body: { status: 'ok' } }),
  });
}

/**
 * GET /readyz: 200 while requests can be served, else 503 with what is wrong. Redis down is a degradation, not
 * a reason to take the process out: creates go on without it.
 */
export function readyz(health: Health) {
  return forAnyone({
    doc: about('readyz', 'Requests can be served', { 200: 'They can.', 503: 'They cannot.' }, Readiness),
    handler: async () => {
      const isMongoUp = await inTime(isAnswered(health.mongo()), answerMs, () => false);
      const isRedisUp = health.redis();
      const commitMs = Math.round(health.oldestCommitMs());
      const commandMs = Math.round(health.oldestCommandMs());
      const late = [
        // A line may be silent although MongoDB answers on others.
        ...(commitMs < limits.mongoWaitMs ? [] : [`a commit has been waiting for ${commitMs} ms`]),
        ...(commandMs < limits.mongoWaitMs
          ? []
          : [`a command to mongo has been waiting for ${commandMs} ms`]),
      ];
      const wrong = [
        ...(health.isStopping() ? ['stopping'] : []),
        ...(isMongoUp ? [] : ['mongo does not answer']),
        ...late,
        ...(isRedisUp ? [] : ['redis does not answer: timers fire late']),
      ];
      const isReady = isMongoUp && late.length === 0 && !health.isStopping();
      const status = isReady ? (isRedisUp ? 'ok' : 'degraded') : 'unavailable';
      const body = {
        status,
        mongo: isMongoUp,
        redis: isRedisUp,
        oldest_commit_ms: commitMs,
        oldest_command_ms: commandMs,
        wrong,
        swept_at: health.sweeper?.report.at ?? null,
      };
      return isReady ? { status: 200, body } : { status: 503, body, headers: { 'Retry-After': '2' } };
    },
  });
}

/** GET /version */
export function version() {
  const { name, version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as Record<string, string>;
  return forAnyone({
    doc: about('version', 'Which version runs', { 200: 'This one.' }),
    handler: () => ({ status: 200, body: { name, version, node: process.version } }),
  });
}

function isAnswered(question: Promise<unknown>): Promise<boolean> {
  return question.then(
    () => true,
    () => false,
  );
}
