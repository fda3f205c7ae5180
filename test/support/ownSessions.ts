import type { SessionStore, Sessions } from '../../src/rails/mpesa/session.ts';

/** Sessions of one process. */
export class OwnSessions implements SessionStore {
  #sessions: Sessions | undefined;
  #isHeld = false;

  async read(): Promise<Sessions | undefined> {
    return this.#sessions;
  }

  async write(sessions: Sessions): Promise<void> {
    this.#sessions = sessions;
  }

  async hold(): Promise<boolean> {
    if (this.#isHeld) return false;
    this.#isHeld = true;
    return true;
  }

  async release(): Promise<void> {
    this.#isHeld = false;
  }
}
