import type { Message } from './wire.ts';

/**
 * What one viewer is still to be sent. A viewer who reads slower than things happen loses the middle, never the
 * end: beyond a limit, of each actor only its announcement and its newest snapshot are kept.
 */
export interface Sink {
  /** `done` is called when the text has left, or never will. */
  send(text: string, done: () => void): void;
}

/** Handed to the connection and not yet gone. */
const underWayMaxBytes = 256 * 1024;
const waitingMax = 2_000;

export class Outbox {
  readonly #sink: Sink;
  readonly #forget: (actor: string) => void;
  #waiting: Message[] = [];
  #underWayBytes = 0;

  /** `forget` hears of actors whose announcement was lost: they have to be announced again. */
  constructor(sink: Sink, forget: (actor: string) => void) {
    this.#sink = sink;
    this.#forget = forget;
  }

  put(message: Message): void {
    this.#waiting.push(message);
    if (this.#waiting.length > waitingMax) this.#shorten();
    this.#pump();
  }

  #pump(): void {
    while (this.#waiting.length > 0 && this.#underWayBytes < underWayMaxBytes) {
      const text = JSON.stringify(this.#waiting.shift());
      this.#underWayBytes += text.length;
      this.#sink.send(text, () => {
        this.#underWayBytes -= text.length;
        this.#pump();
      });
    }
  }

  #shorten(): void {
    const latest = new Map<string, Message>();
    for (const message of this.#waiting) {
      if (message.type === '@xstate.snapshot') latest.set(message.sessionId, message);
    }
    const kept = this.#waiting.filter(
      (message) => message.type === '@xstate.actor' || latest.get(message.sessionId) === message,
    );
    // Those that moved last, each with its announcement if that still waits: a snapshot alone means nothing.
    const stay = new Set(kept.slice(-waitingMax / 2).map(({ sessionId }) => sessionId));
    this.#waiting = kept.filter(({ sessionId }) => stay.has(sessionId));
    for (const { type, sessionId } of kept) {
      if (type === '@xstate.actor' && !stay.has(sessionId)) this.#forget(sessionId);
    }
  }
}
