import { expect } from 'chai';
import type { Live } from './live.ts';
import type { Answer, CallOptions } from './service.ts';
import { until } from './until.ts';

/** What an operator does with a service in live mode, while time passes for it and for the network. */
export interface LiveOperator {
  call(method: string, path: string, more?: CallOptions): Promise<Answer>;
  stateOf(id: string): Promise<string>;
  /** Sends an actor an operator's event; `token`: as another person. */
  tell(id: string, type: string, more?: object, token?: string): Promise<Answer>;
  /** Lets time pass, so much for each look, until something holds. */
  passesUntil(what: () => Promise<boolean>, stepMs?: number): Promise<void>;
}

/** `live`: the service, once it runs. `usualStepMs`: how much time passes for each look where nothing else is said. */
export function liveOperator(live: () => Live, usualStepMs = 20_000): LiveOperator {
  const call: LiveOperator['call'] = (method, path, more = {}) => live().service.call(method, path, more);
  return {
    call,
    stateOf: async (id) => (await live().service.actor(id)).state,
    tell: (id, type, more = {}, token) =>
      call('POST', `/admin/actors/${id}/events`, {
        body: { type, reason: 'looked at', ...more },
        ...(token ? { token } : {}),
      }),
    passesUntil: async (what, stepMs = usualStepMs) => {
      const held = await until(async () => {
        if (await what()) return true;
        live().clock.advance(stepMs);
        await live().service.sweep();
        return false;
      }, 90_000);
      expect(held, `never: ${what}`).to.equal(true);
    },
  };
}
