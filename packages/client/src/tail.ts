import type { List } from './list.ts';
import { sleep } from './time.ts';
import { type CallOptions, isPassing } from './transport.ts';
import type { Operations } from './written/routes.ts';

/** An event as the service answers it. */
export type AnyEvent = Operations['getEvent']['answer'];

export type EventFilters = NonNullable<Operations['listEvents']['query']>;

/** Where events are read. */
interface Source {
  list(filters?: EventFilters, options?: CallOptions): List<AnyEvent, EventFilters>;
  retrieve(id: string, options?: CallOptions): Promise<AnyEvent>;
}

export interface TailOptions {
  /**
   * The id of the last event that was handled; without one the tail begins with what happens from now on, and with null
   * with the first event that there is.
   */
  after?: string | null;
  type?: EventFilters['type'];
  /** Only of this collection. */
  collection?: string;
  /** Ends the tail; it then throws the signal's reason. */
  signal?: AbortSignal;
}

/** An event becomes visible with its commit, at most so long after the time in its id (CONTRACT 12.8). */
const lateMs = 120_000;
const pageSize = 100;
/** Between empty answers that came at once, as from a service that is stopping. */
const shortestTurnMs = 500;
const longestPauseMs = 15_000;

/**
 * Events as they happen, over broken lines and sleeping machines, each once: the list is asked for what is newer than a
 * cursor, and each time also for what was committed late behind it. That second look is at the time before the cursor
 * that was asked with, not before the one it becomes: a machine that slept has moved on by more than lateMs.
 */
export async function* tail(
  events: Source,
  waitSeconds: number,
  { after, signal, ...filters }: TailOptions,
): AsyncGenerator<AnyEvent, void, undefined> {
  const options = { signal };
  const known = new Map<string, number>();
  let cursor: AnyEvent | undefined;
  /** When the cursor was reached and when it was last looked behind, by a clock that nobody sets. */
  let reachedAt = 0;
  let lookedAt = 0;

  const reach = (event: AnyEvent): void => {
    cursor = event;
    reachedAt = performance.now();
    for (const [id, atMs] of known) if (atMs < timeOf(event) - lateMs) known.delete(id);
  };
  const know = (event: AnyEvent) => void known.set(event.id, timeOf(event));
  const all = async (query: EventFilters): Promise<AnyEvent[]> => {
    const found: AnyEvent[] = [];
    for await (const event of events.list({ ...filters, ...query }, options)) found.push(event);
    return found;
  };
  const behind = (event: AnyEvent): Promise<AnyEvent[]> => {
    const gte = new Date(timeOf(event) - lateMs);
    return all({ created_at: { gte, lte: new Date(timeOf(event)) } });
  };
  const begin = async (): Promise<void> => {
    if (after === null) return;
    const first = after === undefined ? undefined : await events.retrieve(after, options);
    const newest = first ?? (await events.list({ ...filters, limit: 1 }, options)).data[0];
    if (!newest) return;
    // Whoever resumes may have missed what was committed late; it can get again what it knew.
    if (first) know(first);
    else for (const event of await behind(newest)) know(event);
    reach(newest);
  };
  /** What is new, oldest first, and the next cursor. */
  const turn = async (): Promise<{ fresh: AnyEvent[]; next: AnyEvent | undefined }> => {
    const from = cursor;
    const query = { ...filters, limit: pageSize, wait: waitSeconds, ending_before: from?.id };
    const page = await events.list(query, options);
    // Where there was none before, all are new.
    const newer = !from && page.has_more ? await all({}) : page.data;
    const mayBeLate = from !== undefined && lookedAt - reachedAt <= lateMs;
    const late = mayBeLate ? await behind(from) : [];
    lookedAt = performance.now();
    const fresh = new Map([...late, ...newer].map((event) => [event.id, event]));
    for (const id of known.keys()) fresh.delete(id);
    return { fresh: [...fresh.values()].sort((a, b) => (a.id < b.id ? -1 : 1)), next: newer[0] };
  };

  let hasBegun = false;
  for (let failures = 0; ; ) {
    const turnedAt = performance.now();
    let found: Awaited<ReturnType<typeof turn>>;
    try {
      if (!hasBegun) await begin();
      hasBegun = true;
      found = await turn();
      failures = 0;
    } catch (error) {
      if (!isPassing(error)) throw error;
      failures += 1;
      await sleep(Math.min(shortestTurnMs * 2 ** failures, longestPauseMs), signal);
      continue;
    }
    for (const event of found.fresh) {
      know(event);
      yield event;
    }
    if (found.next) reach(found.next);
    const tookMs = performance.now() - turnedAt;
    if (found.fresh.length === 0 && tookMs < shortestTurnMs) await sleep(shortestTurnMs - tookMs, signal);
  }
}

function timeOf({ created_at }: AnyEvent): number {
  return Date.parse(created_at);
}
