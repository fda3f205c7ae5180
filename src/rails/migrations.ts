import type { Migration } from '@kusanya/durable-actors';

/** What lifts stored breakers to the present chart. */
export const breakerMigrations: Record<number, Migration> = {
  /** 2: on trial after a probe. One that was stored before is not. */
  1: (doc) => {
    const { snapshot } = doc;
    const context = { ...snapshot.context, isOnTrial: false };
    return { ...doc, machineVersion: 2, snapshot: { ...snapshot, context } };
  },
};
