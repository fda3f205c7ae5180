import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { earOf } from '../ear.ts';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import type { Whose } from '../whose.ts';
import type { EventDoc } from './documents.ts';

/**
 * Requests that wait for an event. A commit tells the news of its events, in its own process directly and in the others
 * through Redis, once for each batch; who is woken reads MongoDB. Nothing is read for those who wait, and news that is
 * lost is made good by the next request.
 */
interface TailsOptions {
  events: { onCommitted(listener: (committed: readonly EventDoc[]) => void): void };
  /** Fails at once where it cannot answer; its settings are also those of the connection that listens. */
  redis: Redis;
  /** What the channel's name begins with. */
  prefix: string;
  log: Log;
}

/** What is told of an event. */
type News = Pick<EventDoc, 'merchantId' | 'mode' | 'type' | 'collectionId'>;

/** Who waits, and for what; every field that is there narrows. */
export interface Wanted extends Whose {
  keyId: string;
  type?: News['type'] | undefined;
  collectionId?: string | undefined;
}

/** One that waits. News counts from when it was opened, so that nothing falls between a look and the waiting. */
export interface Tail {
  /** Resolves with true at the first news; with false after so long, and when nobody waits for the answer any more. */
  hasNews(withinMs: number): Promise<boolean>;
  /** Waits no longer. */
  end(): void;
}

/** The key has as many requests waiting as it may. */
export class TooManyTails extends Error {}

/** A Redis that takes this many messages late gets no more of them for now. */
const underWayMax = 100;

interface Waiting {
  wanted: Wanted;
  settle(isTold: boolean): void;
}

export class Tails {
  readonly #options: TailsOptions;
  readonly #id = randomUUID();
  readonly #channel: string;
  readonly #waiting = new Map<string, Set<Waiting>>();
  readonly #ofKeys = new Map<string, number>();
  #ear: Redis | undefined;
  #underWay = 0;
  #isClosed = false;

  constructor(options: TailsOptions) {
    this.#options = options;
    this.#channel = `${options.prefix}:events`;
    options.events.onCommitted((committed) => {
      const news = committed.map(({ merchantId, mode, type, collectionId }) => ({
        ...{ merchantId, mode, type, collectionId },
      }));
      this.#tell(news);
      this.#publish(news);
    });
  }

  /** Begins to hear of other processes' events. Does not wait for Redis. */
  start(): void {
    const { redis, log } = this.#options;
    this.#ear = earOf(redis, log, (_channel, text) => {
      const { from, news } = JSON.parse(text) as { from: string; news: News[] };
      if (from !== this.#id) this.#tell(news);
    });
    this.#ear
      .subscribe(this.#channel)
      .catch((error) => log.debug({ error: String(error) }, 'events of other processes are not heard of'));
  }

  /** @throws TooManyTails */
  open(wanted: Wanted): Tail {
    const { keyId } = wanted;
    const ofKey = this.#ofKeys.get(keyId) ?? 0;
    if (ofKey >= limits.eventTailsPerKeyMax) throw new TooManyTails();
    this.#ofKeys.set(keyId, ofKey + 1);
    let settle: (isTold: boolean) => void = () => {};
    const outcome = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const waiting: Waiting = { wanted, settle };
    const owner = ownerOf(wanted);
    this.#waiting.set(owner, (this.#waiting.get(owner) ?? new Set()).add(waiting));
    if (this.#isClosed) settle(false);
    let timer: NodeJS.Timeout | undefined;
    let isOpen = true;
    return {
      hasNews: (withinMs) => {
        timer ??= setTimeout(() => settle(false), withinMs);
        return outcome;
      },
      end: () => {
        if (!isOpen) return;
        isOpen = false;
        clearTimeout(timer);
        settle(false);
        this.#forget(owner, waiting);
      },
    };
  }

  /** Lets everybody go: a listener that closes waits for what is open. */
  close(): void {
    this.#isClosed = true;
    for (const each of this.#waiting.values()) for (const { settle } of each) settle(false);
    this.#ear?.disconnect();
    this.#ear = undefined;
  }

  #forget(owner: string, waiting: Waiting): void {
    const others = this.#waiting.get(owner);
    others?.delete(waiting);
    if (others?.size === 0) this.#waiting.delete(owner);
    const { keyId } = waiting.wanted;
    const left = (this.#ofKeys.get(keyId) ?? 1) - 1;
    if (left > 0) this.#ofKeys.set(keyId, left);
    else this.#ofKeys.delete(keyId);
  }

  #tell(news: readonly News[]): void {
    if (this.#waiting.size === 0) return;
    for (const one of news)
      for (const { wanted, settle } of this.#waiting.get(ownerOf(one)) ?? [])
        if (isWanted(wanted, one)) settle(true);
  }

  #publish(news: readonly News[]): void {
    const { redis, log } = this.#options;
    if (redis.status !== 'ready' || this.#underWay >= underWayMax) return;
    this.#underWay += 1;
    redis
      .publish(this.#channel, JSON.stringify({ from: this.#id, news }))
      .catch((error) => log.debug({ error: String(error) }, 'news of events is lost'))
      .finally(() => {
        this.#underWay -= 1;
      });
  }
}

function ownerOf({ merchantId, mode }: Whose): string {
  return `${merchantId}.${mode}`;
}

function isWanted({ type, collectionId }: Wanted, one: News): boolean {
  return (
    (type === undefined || type === one.type) &&
    (collectionId === undefined || collectionId === one.collectionId)
  );
}
