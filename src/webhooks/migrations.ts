import type { Migration } from '@kusanya/durable-actors';

/** What lifts stored deliveries to the present chart. */
export const deliveryMigrations: Record<number, Migration> = {
  /** 2: merchants send again too. Nothing that is stored differs. */
  1: (doc) => ({ ...doc, machineVersion: 2 }),
};

/** What lifts stored endpoints to the present chart. */
export const endpointMigrations: Record<number, Migration> = {
  /** 2: merchants change theirs too. Nothing that is stored differs. */
  1: (doc) => ({ ...doc, machineVersion: 2 }),
};
