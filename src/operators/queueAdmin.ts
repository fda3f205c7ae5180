import { type Queues, queueNames } from '@kusanya/durable-actors';
import type { Job } from 'bullmq';
import { described, type Masking, maskingFor } from '../desk/desk.ts';
import { forOperators, listAnswer, serviceUnavailable } from '../http/http.ts';
import { bellQueue } from '../rails/rails.ts';
import { midnightQueue } from '../settlement/settlement.ts';
import { isoTime } from '../time.ts';

/**
 * What BullMQ holds, to be looked at and nothing else: a job that somebody promotes by hand could ring at a phone too
 * late. Jobs only wake us up; what is due is in MongoDB.
 */
interface QueueAdminDeps {
  queues: Queues;
  actors: { definitions: Parameters<typeof queueNames>[0] };
}

/** Jobs of each kind that are shown of a queue, and actors that are named of a job. */
const jobsShown = 10;
const actorsShown = 5;

export function listQueues({ queues, actors }: QueueAdminDeps) {
  return forOperators({
    doc: described(
      'listQueues',
      'The queues in Redis: how much is in them, what comes next, what failed and why',
      200,
      `Of each queue the next ${jobsShown} jobs that wait for their time, and the latest ${jobsShown} that failed.`,
      ['service_unavailable'],
    ),
    handler: async ({ principal }) => {
      const names = [...queueNames(actors.definitions), bellQueue, midnightQueue];
      const masking = maskingFor(principal);
      if (!queues.ready) throw serviceUnavailable();
      const rows = await Promise.all(names.map((name) => readQueue(queues, name, masking))).catch((cause) => {
        throw serviceUnavailable(cause);
      });
      return { status: 200, body: listAnswer(rows, false) };
    },
  });
}

async function readQueue(queues: Queues, name: string, masking: Masking) {
  const queue = queues.queue(name);
  const [counts, next, failed] = await Promise.all([
    queue.getJobCounts('waiting', 'active', 'delayed', 'failed'),
    queue.getDelayed(0, jobsShown - 1),
    queue.getFailed(0, jobsShown - 1),
  ]);
  return {
    object: 'queue',
    queue: name,
    waiting: counts.waiting ?? 0,
    active: counts.active ?? 0,
    delayed: counts.delayed ?? 0,
    failed: counts.failed ?? 0,
    next: next.map((job) => ({ ...presentJob(job), due_at: isoTime(job.timestamp + job.delay) })),
    failures: failed.map((job) => ({
      ...presentJob(job),
      reason: masking.text(job.failedReason),
      at: isoTime(job.finishedOn ?? job.timestamp),
    })),
  };
}

function presentJob({ id, data, attemptsMade }: Job) {
  // A job of another version may hold anything.
  const { errands, bells } = (data ?? {}) as { errands?: unknown; bells?: unknown };
  const parts: unknown[] = [errands, bells].find(Array.isArray) ?? [data];
  const actors = new Set(parts.flatMap((part) => actorOf(part) ?? []));
  return {
    id: id ?? null,
    attempts: attemptsMade,
    parts: parts.length,
    actors: [...actors].slice(0, actorsShown),
  };
}

/** Jobs of every version name their actors so. */
function actorOf(part: unknown): string | undefined {
  if (typeof part !== 'object' || part === null || !('actor' in part)) return undefined;
  return typeof part.actor === 'string' ? part.actor : undefined;
}
