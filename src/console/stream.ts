import { PassThrough } from 'node:stream';
import { limits } from '../limits.ts';

/** Calls back after each committed step of an actor, until it is told to stop. */
export interface StepFeed {
  watch(filter: { actor: string }, heard: () => void): Promise<() => void>;
}

const heartbeatMs = 15 * limits.secondMs;
const lookMs = limits.secondMs / 2;

/**
 * The streams of the actors’ pages that are open (server-sent events). A stream says only that something moved: the page
 * reads itself anew, by its own address. So there is one way to show things, with and without a script.
 */
export class Streams {
  readonly #feed: StepFeed;
  readonly #health: { isStopping(): boolean };
  readonly #open = new Set<PassThrough>();
  #look: NodeJS.Timeout | undefined;

  constructor(feed: StepFeed, health: { isStopping(): boolean }) {
    this.#feed = feed;
    this.#health = health;
  }

  /** `isAllowed` is asked again with every heartbeat: a stream ends with its session. */
  async open(actor: string, isAllowed: () => Promise<boolean>): Promise<PassThrough> {
    const stream = new PassThrough();
    const say = (text: string) => {
      // A reader that is too slow misses a notice and hears the next one: each means the same.
      if (!stream.writableNeedDrain && !stream.writableEnded) stream.write(text);
    };
    const unwatch = await this.#feed.watch({ actor }, () => say(`event: step\ndata: ${actor}\n\n`));
    const heartbeat = setInterval(() => {
      isAllowed().then(
        (allowed) => (allowed ? say(': still here\n\n') : stream.end()),
        () => say(': the store is away\n\n'),
      );
    }, heartbeatMs);
    this.#open.add(stream);
    this.#look ??= setInterval(() => this.#endIfStopping(), lookMs);
    stream.once('close', () => {
      clearInterval(heartbeat);
      unwatch();
      this.#open.delete(stream);
      if (this.#open.size > 0) return;
      clearInterval(this.#look);
      this.#look = undefined;
    });
    say('retry: 2000\n: listening\n\n');
    return stream;
  }

  /** A listener that closes waits for what is open: streams end as soon as the service is to stop. */
  #endIfStopping(): void {
    if (this.#health.isStopping()) for (const stream of this.#open) stream.end();
  }
}
