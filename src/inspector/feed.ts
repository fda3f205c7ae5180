import { randomUUID } from 'node:crypto';
import { type Actors, type Committed, inTime } from '@kusanya/durable-actors';
import type { Redis } from 'ioredis';
import { earOf } from '../ear.ts';
import type { Log } from '../log.ts';
import { aboutOf, isWanted, noticeOf, type StepFilter, type StepNotice } from './notice.ts';

/**
 * Tells watchers of every step, whichever process took it. Watchers of the same process hear of it directly; those
 * of other processes through Redis, and only while there are some: a process that watches says so every two
 * seconds, and nothing is published about steps that nobody asked for.
 *
 * Redis only wakes here too. Without it the steps of other processes are missed; whoever must miss none looks
 * for gaps in `seq` and asks MongoDB.
 */
interface FeedOptions {
  actors: Pick<Actors, 'onStep'>;
  /** Fails at once where it cannot answer; its settings are also those of the connection that listens. */
  redis: Redis;
  /** What the channels' names begin with. */
  prefix: string;
  log: Log;
  beatMs?: number;
}

type Listener = (notice: StepNotice) => void;

interface Watch {
  filter: StepFilter;
  listener: Listener;
}

/** What processes tell each other: `hello` asks who watches, `watches` answers (none: no longer). */
interface Announcement {
  from: string;
  hello?: true;
  watches?: StepFilter[];
}

const defaultBeatMs = 2_000;
/** Beats of a watching process that may get lost before it counts as gone. */
const beatsLostMax = 3;
/** A Redis that takes this many notices late gets no more of them for now. */
const underWayMax = 1_000;
/** How long `watch` waits for Redis. */
const patienceMs = 1_000;

export class StepFeed {
  readonly #options: FeedOptions;
  readonly #id = randomUUID();
  readonly #beatMs: number;
  readonly #channels: { steps: string; watchers: string };
  readonly #here = new Set<Watch>();
  /** What other processes want to see, and until when we believe them. */
  readonly #elsewhere = new Map<string, { filters: StepFilter[]; until: number }>();
  #ear: Redis | undefined;
  #beat: NodeJS.Timeout | undefined;
  #underWay = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#beatMs = options.beatMs ?? defaultBeatMs;
    const name = `${options.prefix}:inspector`;
    this.#channels = { steps: `${name}:steps`, watchers: `${name}:watchers` };
    options.actors.onStep((step) => this.#told(step));
  }

  /** Begins to hear who watches elsewhere. Does not wait for Redis. */
  start(): void {
    const { redis, log } = this.#options;
    const ear = earOf(redis, log, (channel, text) => this.#received(channel, text));
    this.#ear = ear;
    // Those who watch say so at once, not only at their next beat.
    void this.#quietly(ear.subscribe(this.#channels.watchers).then(() => this.#announce({ hello: true })));
  }

  /** Shows the steps that match from now on; the listener must not wait. Returns what ends it. */
  async watch(filter: StepFilter, listener: Listener): Promise<() => void> {
    const watch = { filter, listener };
    this.#here.add(watch);
    this.#beat ??= setInterval(() => this.#announceWatches(), this.#beatMs);
    if (this.#ear) {
      const listening = this.#ear.subscribe(this.#channels.steps).then(() => this.#announceWatches());
      await inTime(this.#quietly(listening), patienceMs);
    }
    return () => this.#unwatch(watch);
  }

  close(): void {
    const isWatching = this.#here.size > 0;
    this.#here.clear();
    if (isWatching) this.#rest();
    this.#ear?.disconnect();
    this.#ear = undefined;
  }

  #unwatch(watch: Watch): void {
    if (!this.#here.delete(watch)) return;
    if (this.#here.size === 0) this.#rest();
    else this.#announceWatches();
  }

  #rest(): void {
    clearInterval(this.#beat);
    this.#beat = undefined;
    if (this.#ear) void this.#quietly(this.#ear.unsubscribe(this.#channels.steps));
    this.#announceWatches();
  }

  /** A step of this process. While nobody watches this is two comparisons. */
  #told(step: Committed): void {
    if (this.#here.size === 0 && this.#elsewhere.size === 0) return;
    const about = aboutOf(step);
    const here = [...this.#here].filter(({ filter }) => isWanted(filter, about));
    const isWantedElsewhere = this.#filtersElsewhere().some((filter) => isWanted(filter, about));
    if (here.length === 0 && !isWantedElsewhere) return;
    const notice = noticeOf(step);
    for (const watch of here) this.#tell(watch, notice);
    if (isWantedElsewhere && this.#underWay < underWayMax) {
      this.#underWay += 1;
      const published = this.#publish(this.#channels.steps, { from: this.#id, notice });
      void published.then(() => {
        this.#underWay -= 1;
      });
    }
  }

  #filtersElsewhere(): StepFilter[] {
    const now = performance.now();
    for (const [id, { until }] of this.#elsewhere) if (until < now) this.#elsewhere.delete(id);
    return [...this.#elsewhere.values()].flatMap(({ filters }) => filters);
  }

  #received(channel: string, text: string): void {
    if (channel === this.#channels.watchers) this.#heardOf(JSON.parse(text) as Announcement);
    else this.#heard(JSON.parse(text) as { from: string; notice: StepNotice });
  }

  #heardOf({ from, hello, watches }: Announcement): void {
    if (from === this.#id) return;
    if (hello && this.#here.size > 0) this.#announceWatches();
    if (!watches) return;
    if (watches.length === 0) this.#elsewhere.delete(from);
    else
      this.#elsewhere.set(from, { filters: watches, until: performance.now() + beatsLostMax * this.#beatMs });
  }

  #heard({ from, notice }: { from: string; notice: StepNotice }): void {
    if (from === this.#id) return;
    for (const watch of this.#here) if (isWanted(watch.filter, notice)) this.#tell(watch, notice);
  }

  #tell({ listener }: Watch, notice: StepNotice): void {
    try {
      listener(notice);
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'a watcher threw');
    }
  }

  #announceWatches(): void {
    this.#announce({ watches: [...this.#here].map(({ filter }) => filter) });
  }

  #announce(what: Omit<Announcement, 'from'>): void {
    void this.#publish(this.#channels.watchers, { from: this.#id, ...what });
  }

  #publish(channel: string, message: object): Promise<void> {
    const { redis } = this.#options;
    if (redis.status !== 'ready') return Promise.resolve();
    return this.#quietly(redis.publish(channel, JSON.stringify(message)));
  }

  async #quietly(work: Promise<unknown>): Promise<void> {
    await work.catch((error) => this.#options.log.debug({ error: String(error) }, 'inspector'));
  }
}
