import type { Migration } from '@kusanya/durable-actors';

/** What lifts stored settlements to the present chart. */
export const settlementMigrations: Record<number, Migration> = {
  /** 2: those of test mode can be settled before their date. */
  1: (doc) => {
    const { snapshot, mode } = doc;
    const context = { ...snapshot.context, isTest: mode === 'test' };
    return { ...doc, machineVersion: 2, snapshot: { ...snapshot, context } };
  },
};
