import type { CallEffect, WriteEffect } from '@kusanya/durable-actors';
import type { breakerCalls, breakerWrites } from '../../machines/breaker.ts';
import { raiseAlert } from '../alerts.ts';
import type { BreakerDoc } from './breakers.ts';
import type { Rail } from './port.ts';

/** What the effects of a breaker need. */
export interface BreakerDeps {
  /** The rail of that name; undefined when it is no longer configured. */
  railNamed(name: string): Rail | undefined;
}

/** Made inside the commit, in the order of the chart. */
export function breakerWriteEffects(): Record<(typeof breakerWrites)[number], WriteEffect> {
  return {
    raiseAlert: (step, params) => {
      const { rail, operation } = (step.doc as BreakerDoc).data;
      const detail = { rail, operation };
      return [
        raiseAlert({ kind: String(params.kind), at: step.at, about: step.doc._id, mode: 'live', detail }),
      ];
    },
  };
}

/** Made after the commit. */
export function breakerCallEffects(deps: BreakerDeps): Record<(typeof breakerCalls)[number], CallEffect> {
  return {
    probeRail: {
      concurrency: 5,
      patienceMs: 60_000,
      run: async ({ doc, signal }) => {
        const rail = deps.railNamed((doc as BreakerDoc).data.rail);
        const isUp = rail !== undefined && (await rail.probe(signal)) === 'up';
        return { event: { type: isUp ? 'probe.succeeded' : 'probe.failed' } };
      },
    },
  };
}
