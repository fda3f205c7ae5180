import type { Whose } from './whose.ts';

/** One merchant, as stored in `merchants` and read back. Plain audited record, not an actor. */
export interface Merchant {
  /** `mer_…` */
  _id: string;
  name: string;
  /** A suspended merchant can create nothing and can still read everything. */
  suspended: boolean;
  /** T+n; absent: the installation's default. */
  settlementDelayDays?: number;
  /** Absent: the installation's default plan. */
  feePlanId?: string;
  /** What becomes of a payment that arrives after its collection ended: held for an operator, or accepted. */
  latePayments: 'hold' | 'accept';
  /** Whether our fee goes back with a payment that is refunded whole; absent: it is kept. */
  refundFee?: 'keep' | 'return';
  limits: MerchantLimits;
  /** Whether its live keys may change its endpoints, as its test keys always may; absent: no. */
  managesLiveEndpoints?: boolean;
  createdAt: Date;
  /** Of changes since it was made; absent: none. Whoever changes it says which one they have read. */
  revision?: number;
}

/** Absent: the installation's default. Amounts are whole shillings, stored as 64-bit integers. */
export interface MerchantLimits {
  amountMinTzs?: number;
  amountMaxTzs?: number;
  /** Per mode; 0 switches the limit off. */
  rateLimitPerSecond?: number;
}

/** What a live key may do only where it was given (CONTRACT 2.9): all of it moves money that is the merchant's. */
export const keyScopes = ['payouts', 'refunds'] as const;
export type KeyScope = (typeof keyScopes)[number];

/** Who is behind an API key (CONTRACT 2.7), with the merchant's record. */
export interface Principal extends Whose {
  /** Of the key; in the dashboard of the session (`dsh_…`), which acts in the place of one. */
  readonly keyId: string;
  /** Of the key; a session of the dashboard has none. */
  readonly scopes: readonly KeyScope[];
  readonly merchant: Merchant;
}
