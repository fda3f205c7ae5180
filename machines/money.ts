/**
 * The money map: which charts may post which facts, what each fact moves between the accounts of the books, and where
 * the money of an actor lies while it is in a state. Whoever posts an entry is held to it, the auditor compares what is
 * stored with it, and docs/MONEY.md is made of it. A chart that moves money is not whole without its part here.
 */

/** Every kind of account of the books, whose money lies there, and on which side it grows. */
export const accounts = {
  provider_clearing: { grows: 'debit', whose: 'held for merchants, in our wallet at the network' },
  bank: { grows: 'debit', whose: 'held for merchants, at the bank' },
  merchant_pending: { grows: 'credit', whose: 'the merchant’s, until its settlement date' },
  merchant_available: { grows: 'credit', whose: 'the merchant’s, to pay out or to give back' },
  merchant_reserved: { grows: 'credit', whose: 'the merchant’s, set aside: late, or on its way out' },
  suspense: { grows: 'credit', whose: 'nobody’s yet' },
  fee_revenue: { grows: 'credit', whose: 'ours, earned' },
  provider_fee_expense: { grows: 'debit', whose: 'ours, paid to the network' },
} as const;
export type AccountKind = keyof typeof accounts;

/** One kind of entry. */
export interface Fact {
  /** The chart whose step posts it, and by which write. */
  chart: string;
  action: string;
  /**
   * The end of its posting key, after the mode and the actor's id: so each actor posts it once. Null where one actor may
   * post several, whose keys say which.
   */
  key: string | null;
  /** The same actor has posted one of these before. */
  after?: readonly string[];
  debit: readonly AccountKind[];
  credit: readonly AccountKind[];
}

const clearing = 'provider_clearing';
/** What payouts are paid from. */
const float = [clearing, 'bank'] as const;
const pending = 'merchant_pending';
const available = 'merchant_available';
const reserved = 'merchant_reserved';
/** A success is pending until its date; on T+0 it is available at once. */
const owed = [pending, available] as const;
const fees = 'fee_revenue';
/** Holding first gathers available money of several stripes on one: a line each way. */
const gathered = [reserved, available] as const;

/** The closed list of facts. */
export const facts = {
  'collection.succeeded': {
    ...{ chart: 'collection', action: 'postCapture', key: 'succeeded' },
    ...{ debit: [clearing], credit: [...owed, fees] },
  },
  'bucket.settled': {
    ...{ chart: 'settlement', action: 'settleBucket', key: null },
    ...{ debit: [pending], credit: [available] },
  },
  'late.held': {
    ...{ chart: 'collection', action: 'postLateReceipt', key: 'late_held' },
    ...{ debit: [clearing], credit: [reserved, 'suspense'] },
  },
  'late.accepted': {
    ...{ chart: 'collection', action: 'releaseLate', key: 'late_accepted', after: ['late.held'] },
    ...{ debit: [reserved, 'suspense'], credit: [...owed, fees] },
  },
  'late.returned': {
    ...{ chart: 'collection', action: 'postReturn', key: 'late_returned', after: ['late.held'] },
    ...{ debit: [reserved, 'suspense'], credit: [clearing] },
  },
  'success.reversed': {
    ...{
      chart: 'collection',
      action: 'reverseCapture',
      key: 'reversed',
      after: ['collection.succeeded', 'late.accepted'],
    },
    ...{ debit: [...owed, fees], credit: [clearing] },
  },
  'payout.held': {
    ...{ chart: 'payout', action: 'holdMoney', key: 'held' },
    ...{ debit: [available], credit: gathered },
  },
  'payout.paid': {
    ...{ chart: 'payout', action: 'postPaid', key: 'paid', after: ['payout.held'] },
    ...{ debit: [reserved], credit: [...float, fees] },
  },
  'payout.released': {
    ...{ chart: 'payout', action: 'releaseMoney', key: 'released', after: ['payout.held'] },
    ...{ debit: [reserved], credit: [available] },
  },
  'payout.returned': {
    ...{
      chart: 'payout',
      action: 'postReturned',
      key: 'returned',
      after: ['payout.paid', 'payout.found_paid'],
    },
    ...{ debit: float, credit: [available] },
  },
  'payout.found_paid': {
    ...{ chart: 'payout', action: 'postFoundPaid', key: 'found_paid', after: ['payout.released'] },
    ...{ debit: [available], credit: [...float, fees] },
  },
  'refund.held': {
    ...{ chart: 'refund', action: 'holdMoney', key: 'held' },
    ...{ debit: [available], credit: gathered },
  },
  'refund.paid': {
    ...{ chart: 'refund', action: 'postPaid', key: 'paid', after: ['refund.held'] },
    ...{ debit: [reserved, fees], credit: [clearing] },
  },
  'refund.released': {
    ...{ chart: 'refund', action: 'releaseMoney', key: 'released', after: ['refund.held'] },
    ...{ debit: [reserved], credit: [available] },
  },
  'refund.found_paid': {
    ...{ chart: 'refund', action: 'postFoundPaid', key: 'found_paid', after: ['refund.released'] },
    ...{ debit: [available, fees], credit: [clearing] },
  },
  'float.moved': {
    ...{ chart: 'reconciliation', action: 'postCharges', key: null },
    ...{ debit: float, credit: float },
  },
  'statement.charged': {
    ...{ chart: 'reconciliation', action: 'postCharges', key: null },
    ...{ debit: ['provider_fee_expense', clearing], credit: ['provider_fee_expense', clearing] },
  },
  'statement.followed': {
    ...{ chart: 'difference', action: 'followStatement', key: 'followed' },
    ...{ debit: [...float, 'suspense'], credit: [...float, 'suspense'] },
  },
  'statement.released': {
    ...{ chart: 'difference', action: 'releaseStatement', key: 'released', after: ['statement.followed'] },
    ...{ debit: [...float, 'suspense'], credit: [...float, 'suspense'] },
  },
} as const satisfies Readonly<Record<string, Fact>>;
export type FactName = keyof typeof facts;

/** Where money lies as the map names it: mostly one kind of account, sometimes one of two. */
export const places = {
  clearing: { kinds: [clearing], words: 'clearing' },
  float: { kinds: float, words: 'clearing or bank' },
  pending: { kinds: [pending], words: 'pending' },
  owed: { kinds: owed, words: 'pending, and available from its settlement date on' },
  available: { kinds: [available], words: 'available' },
  reserved: { kinds: [reserved], words: 'reserved' },
  suspense: { kinds: ['suspense'], words: 'suspense' },
  fees: { kinds: [fees], words: 'fee revenue' },
} as const satisfies Readonly<Record<string, { kinds: readonly AccountKind[]; words: string }>>;
export type Place = keyof typeof places;

/** What the entries of an actor have changed at each place: by an amount that the chart's part names, or less it. */
type Holding<Amount extends string> = Readonly<Partial<Record<Place, Amount | `-${Amount}`>>>;

/** The states at or below `states`, in which the actor's money lies so. */
interface Standing<Amount extends string> {
  states: readonly string[];
  /** Only where this of the context is true, or with `!` is not. */
  where?: string;
  holds: Holding<Amount>;
  words: string;
}

interface Part<Amount extends string> {
  /** What is called how, for people. */
  amounts: Readonly<Record<Amount, string>>;
  /** Each state is found in one of them; the most exact name of a state counts. */
  standings: readonly Standing<Amount>[];
}

function part<Amount extends string>(amounts: Record<Amount, string>, standings: Standing<Amount>[]) {
  return { amounts, standings } satisfies Part<Amount>;
}

/** Where the money of each chart's actors lies. */
export const moneyMap = {
  collection: part(
    {
      amount: 'what the customer pays',
      fee: 'our fee',
      net: 'the amount without the fee',
      refunded: 'what refunds gave back before it proved false',
      refundedNet: 'the merchant’s part of that',
      refundedFee: 'what of that exceeds the net',
    },
    [
      {
        states: ['created', 'failed', 'expired'],
        holds: {},
        words: 'No money came, as far as anybody knows.',
      },
      {
        states: ['succeeded.standing'],
        holds: { clearing: 'amount', owed: 'net', fees: 'fee' },
        words: 'The network has it for us, and the merchant is owed the net.',
      },
      {
        states: ['succeeded.reversed'],
        holds: { clearing: 'refunded', owed: 'refundedNet', fees: 'refundedFee' },
        words: 'It proved false and was taken back, but for what refunds had given back before.',
      },
      {
        states: [
          ...['failed.latePaid.held', 'failed.latePaid.returning'],
          ...['expired.latePaid.held', 'expired.latePaid.returning'],
        ],
        holds: { clearing: 'amount', reserved: 'net', suspense: 'fee' },
        words: 'It came late: set aside until it is accepted, or has gone back.',
      },
      {
        states: ['failed.latePaid.returned', 'expired.latePaid.returned'],
        holds: {},
        words: 'It came late and went back.',
      },
    ],
  ),
  settlement: part({ settled: 'what was settled so far, of all stripes and parts' }, [
    { states: ['due', 'held'], holds: {}, words: 'The money of its date is pending.' },
    {
      states: ['settled'],
      holds: { pending: '-settled', available: 'settled' },
      words: 'What was pending is available.',
    },
  ]),
  payout: part(
    {
      amount: 'what the merchant is paid',
      fee: 'the payout’s fee',
      held: 'the amount and the fee',
    },
    [
      {
        states: ['created'],
        holds: { available: '-held', reserved: 'held' },
        words: 'Set aside, whether or not anything was sent.',
      },
      {
        states: ['paid'],
        holds: { available: '-held', float: '-amount', fees: 'fee' },
        words: 'The merchant has it, and the fee is earned.',
      },
      { states: ['failed', 'cancelled'], holds: {}, words: 'It did not leave, and is available again.' },
      {
        states: ['returned'],
        holds: { available: '-fee', fees: 'fee' },
        words: 'It came back; the fee stays earned.',
      },
    ],
  ),
  refund: part(
    {
      amount: 'what the customer gets back',
      feeReturned: 'what of that is our fee',
      held: 'the merchant’s part',
    },
    [
      {
        states: ['created'],
        holds: { available: '-held', reserved: 'held' },
        words: 'The merchant’s part is set aside, whether or not anything was sent.',
      },
      {
        states: ['succeeded'],
        holds: { available: '-held', clearing: '-amount', fees: '-feeReturned' },
        words: 'The customer has it back.',
      },
      { states: ['failed'], holds: {}, words: 'It did not leave, and is available again.' },
    ],
  ),
  difference: part({ effect: 'what the statement has more than our books; below zero where it has less' }, [
    {
      states: ['found', 'asking', 'awaitingFile', 'explained'],
      holds: {},
      words: 'Our books are as they were; where they followed the statement, that was taken back.',
    },
    {
      states: ['awaitingOperator', 'ruling', 'returning', 'resolved'],
      where: 'isFollowed',
      holds: { float: 'effect', suspense: 'effect' },
      words: 'Our books follow the statement; nobody’s money lies in suspense.',
    },
    {
      states: ['awaitingOperator', 'ruling', 'resolved'],
      where: '!isFollowed',
      holds: {},
      words: 'Our books are as they were, or the collection has posted it.',
    },
  ]),
} as const;
export type MoneyChart = keyof typeof moneyMap;

/** What the map says of an actor: by how many shillings its entries have changed each place, those of zero left out. */
export function holdingOf(
  chart: MoneyChart,
  state: string,
  context: Readonly<Record<string, unknown>>,
  amounts: Readonly<Record<string, number>>,
): Partial<Record<Place, number>> | undefined {
  const { holds } = standingOf(chart, state, context) ?? {};
  if (!holds) return undefined;
  const tzs = Object.entries(holds).map(([place, amount]) => {
    const isLess = amount.startsWith('-');
    const known = amounts[isLess ? amount.slice(1) : amount] ?? Number.NaN;
    return [place, isLess ? 0 - known : known] as const;
  });
  return Object.fromEntries(tzs.filter(([, each]) => each !== 0));
}

/** The part of the map that a state belongs to; undefined: none, and the map is not whole. */
export function standingOf(
  chart: MoneyChart,
  state: string,
  context: Readonly<Record<string, unknown>>,
): Standing<string> | undefined {
  const standings: readonly Standing<string>[] = moneyMap[chart].standings;
  const named = standings.flatMap((standing) =>
    standing.states
      .filter((name) => state === name || state.startsWith(`${name}.`))
      .map((name) => ({ standing, exactness: name.length })),
  );
  const isThere = ({ where }: Standing<string>) =>
    where === undefined || (where.startsWith('!') ? !context[where.slice(1)] : Boolean(context[where]));
  return named.filter(({ standing }) => isThere(standing)).sort((a, b) => b.exactness - a.exactness)[0]
    ?.standing;
}

/** By how much entries have changed each kind of account, in the way that it grows. */
export type Changes = ReadonlyMap<AccountKind, number>;

/** Where what was changed is not what the map says, in words; empty where all is right. */
export function misplaced(expected: Partial<Record<Place, number>>, changes: Changes): string[] {
  const left = new Map<AccountKind, number>([...changes].filter(([, tzs]) => tzs !== 0));
  const wrong: string[] = [];
  for (const [name, tzs = 0] of Object.entries(expected)) {
    const { kinds, words } = places[name as Place];
    const found = kinds.reduce((sum, kind) => sum + (left.get(kind) ?? 0), 0);
    for (const kind of kinds) left.delete(kind);
    if (found !== tzs) wrong.push(`${words} changed by ${found} and not by ${tzs}`);
  }
  for (const [kind, tzs] of left) wrong.push(`${kind} changed by ${tzs} and not at all`);
  return wrong;
}

/** One fact on the way of a shilling: what happens, which chart is then in which state, and where the shilling lies. */
interface Mile {
  words: string;
  chart: string;
  state: string;
  fact: FactName;
  /** What of ours it is in, and what we owe it as; null: it is no longer ours, or nobody is owed it. */
  held: AccountKind | null;
  owed: AccountKind | null;
}

/** One shilling's path, from the customer's PIN to the merchant's bank. The fee's shillings stay with us. */
export const shilling = [
  {
    words: 'The customer types the PIN, and the network says that it was paid.',
    ...{ chart: 'collection', state: 'succeeded.standing', fact: 'collection.succeeded' },
    ...{ held: clearing, owed: pending },
  },
  {
    words: 'At midnight its date begins.',
    ...{ chart: 'settlement', state: 'settled', fact: 'bucket.settled' },
    ...{ held: clearing, owed: available },
  },
  {
    words: 'The network’s statement shows that the wallet was swept to our bank.',
    ...{ chart: 'reconciliation', state: 'matching', fact: 'float.moved' },
    ...{ held: 'bank', owed: available },
  },
  {
    words: 'The merchant is to be paid: what leaves is set aside in the commit of the 202.',
    ...{ chart: 'payout', state: 'created', fact: 'payout.held' },
    ...{ held: 'bank', owed: reserved },
  },
  {
    words: 'The bank has paid, by its statement or a person’s word: it lies in the merchant’s own account.',
    ...{ chart: 'payout', state: 'paid', fact: 'payout.paid' },
    ...{ held: null, owed: null },
  },
] as const satisfies readonly Mile[];
