import { setTimeout as wait } from 'node:timers/promises';
import type { World } from './world.ts';

/** Creates at an even rate, whatever becomes of each. */
export interface Steady {
  /** How many were begun. */
  readonly begun: number;
  /** How many answers were not 202, by status; `undefined` for those that never came. */
  readonly refused: ReadonlyMap<number | undefined, number>;
  /** The longest time in which no create was answered 202 (ms). */
  readonly longestGapMs: number;
  /** Ends it; each create that was begun is repeated until it is answered 202. */
  stop(): Promise<void>;
}

/** Begins `perSecond` creates a second. Each is repeated with its key until it is answered 202, as merchants do. */
export function startSteady(world: World, perSecond: number): Steady {
  const phone = '255700000000'; // its customer approves
  const refused = new Map<number | undefined, number>();
  const inHand = new Set<Promise<void>>();
  let begun = 0;
  let isOver = false;
  let [lastAt, longestGapMs] = [performance.now(), 0];
  const create = async (key: string) => {
    for (;;) {
      const body = { amount: 1_000, phone, reference: key };
      const answer = await world.ask('POST', '/v1/collections', { key, body });
      if (answer?.status === 202) {
        longestGapMs = Math.max(longestGapMs, performance.now() - lastAt);
        lastAt = performance.now();
        world.outside.accepted.set(key, new Set([answer.json.id]));
        return;
      }
      refused.set(answer?.status, (refused.get(answer?.status) ?? 0) + 1);
      await wait(100);
    }
  };
  const work = (async () => {
    const beganAt = performance.now();
    while (!isOver) {
      begun += 1;
      const one = create(`steady-${process.pid}-${begun}`).finally(() => inHand.delete(one));
      inHand.add(one);
      await wait(Math.max(0, beganAt + (begun * 1_000) / perSecond - performance.now()));
    }
  })();
  return {
    get begun() {
      return begun;
    },
    refused,
    get longestGapMs() {
      return longestGapMs;
    },
    stop: async () => {
      isOver = true;
      await work;
      await Promise.all(inHand);
    },
  };
}

/** The longest time between two of these moments (ms). */
export function longestGapOf(moments: readonly number[]): number {
  const inOrder = moments.toSorted((a, b) => a - b);
  return Math.max(0, ...inOrder.slice(1).map((at, index) => at - inOrder[index]!));
}
