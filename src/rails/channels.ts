/**
 * The networks, by the names that merchants see as a payment's `channel`. Stored with every payment and in the accounts
 * of the books, so a name that was used once stays. Every rail has one of them for its name.
 */
export const channels = ['MPESA_TZ'] as const;
export type Channel = (typeof channels)[number];
