import { expect } from 'chai';
import {
  type AccountKind,
  accounts,
  type Fact,
  type FactName,
  facts,
  holdingOf,
  type MoneyChart,
  misplaced,
  moneyMap,
  places,
  shilling,
  standingOf,
} from '../../machines/money.ts';
import {
  bucketSettled,
  collectionSucceeded,
  type JournalEntry,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  payoutFoundPaid,
  payoutHeld,
  payoutPaid,
  payoutReleased,
  payoutReturned,
  refundFoundPaid,
  refundHeld,
  refundPaid,
  refundReleased,
  statementFollowed,
  statementReleased,
  successProvedFalse,
} from '../../src/ledger/ledger.ts';
import { parseAccount } from '../../src/ledger/postings.ts';
import { Chart, type Position } from '../support/charts.ts';
import { models } from '../support/every-chart.ts';
import type { Model, Move } from '../support/moves.ts';
import { survey } from '../support/paths.ts';

/** On every path of every chart that moves money, the money lies where the map says (machines/money.ts). */

const [amountTzs, feeTzs] = [10_000, 250];
const at = Date.parse('2026-11-22T09:00:00Z');
const source = (machine: string) => ({ machine, id: 'act_a', seq: 1 });
const terms = { mode: 'live', currency: 'TZS', merchantId: 'mer_a', providerReference: null } as const;
const times = { effectiveAtMs: at, postedAtMs: at };
const payment = { ...terms, ...times, channel: 'MPESA_TZ', collectionId: 'act_a', amountTzs, feeTzs };
const paid = { ...payment, feePlan: null, seq: 1 };
const payout = { ...terms, ...times, source: source('payout'), amountTzs, feeTzs };
const refund = { ...terms, ...times, source: source('refund'), amountTzs, channel: 'MPESA_TZ' };
const statement = {
  currency: 'TZS',
  rail: 'MPESA_TZ',
  source: source('difference'),
  receipt: null,
  ...times,
};
const bucket = { mode: 'live', currency: 'TZS', merchantId: 'mer_a', stripe: 1, date: '2026-11-22' } as const;

/** What of a walk decides about its postings beside the actions: the same for a whole walk. */
interface Setting {
  name: string;
  /** T+1, or T+0. */
  settlesOn?: string | null;
  channel?: string | null;
  feeReturnedTzs?: number;
  effectTzs?: number;
}

const settings: Readonly<Record<MoneyChart, readonly Setting[]>> = {
  collection: [
    { name: 'that settles tomorrow', settlesOn: '2026-11-22' },
    { name: 'that is available at once', settlesOn: null },
  ],
  settlement: [{ name: 'of a day' }],
  payout: [
    { name: 'from the bank', channel: null },
    { name: 'from a wallet', channel: 'MPESA_TZ' },
  ],
  refund: [
    { name: 'whose fee is kept', feeReturnedTzs: 0 },
    { name: 'with its fee', feeReturnedTzs: feeTzs },
  ],
  difference: [
    { name: 'of money too much', effectTzs: 700 },
    { name: 'of money too little', effectTzs: -700 },
  ],
};

/** The entry of each fact, as the effect of its action posts it. */
const postings: Partial<
  Record<FactName, (setting: Setting, position: Position, move: Move) => JournalEntry>
> = {
  'collection.succeeded': ({ settlesOn = null }) => collectionSucceeded(paid, { settlesOn, stripe: 1 }),
  'late.held': () => latePaymentHeld(paid),
  'late.accepted': ({ settlesOn = null }) => latePaymentAccepted(paid, { settlesOn, stripe: 1 }),
  'late.returned': () => latePaymentReturned(paid),
  'success.reversed': ({ settlesOn }, { context }) => {
    const left = amountTzs - Number(context.refundedTzs);
    const remainder = { ...paid, amountTzs: left, feeTzs: Math.min(feeTzs, left) };
    const from = settlesOn ? { bucket: settlesOn, stripe: 1 } : null;
    return successProvedFalse(remainder, 'live:act_a:succeeded', from);
  },
  'bucket.settled': (_, { context }, { event }) => {
    const part = Object.values(context.parts as Record<string, number>).reduce((sum, each) => sum + each, 0);
    return bucketSettled(
      { ...bucket, amountTzs: Number(event.amountTzs) },
      part,
      source('settlement'),
      times,
    );
  },
  'payout.held': ({ channel = null }) => payoutHeld({ ...payout, channel }),
  'payout.paid': ({ channel = null }) => payoutPaid({ ...payout, channel }),
  'payout.released': ({ channel = null }) => payoutReleased({ ...payout, channel }),
  'payout.returned': ({ channel = null }) => payoutReturned({ ...payout, channel }),
  'payout.found_paid': ({ channel = null }) => payoutFoundPaid({ ...payout, channel }),
  'refund.held': ({ feeReturnedTzs = 0 }) => refundHeld({ ...refund, feeReturnedTzs }),
  'refund.paid': ({ feeReturnedTzs = 0 }) => refundPaid({ ...refund, feeReturnedTzs }),
  'refund.released': ({ feeReturnedTzs = 0 }) => refundReleased({ ...refund, feeReturnedTzs }),
  'refund.found_paid': ({ feeReturnedTzs = 0 }) => refundFoundPaid({ ...refund, feeReturnedTzs }),
  'statement.followed': ({ effectTzs = 0 }) =>
    statementFollowed({ ...statement, fact: 'followed', amountTzs: Math.abs(effectTzs) }, effectTzs > 0),
  'statement.released': ({ effectTzs = 0 }) =>
    statementReleased({ ...statement, fact: 'released', amountTzs: Math.abs(effectTzs) }, effectTzs > 0),
};

const charts = Object.keys(moneyMap) as MoneyChart[];
const modelOf = (chart: MoneyChart): Model => models.find(({ name }) => name === chart)!;

/** Where the money of one actor lies after a walk, and what the walk has posted. */
interface Purse {
  changes: ReadonlyMap<AccountKind, number>;
  posted: readonly FactName[];
  /** What refunds had given back when a success proved false. */
  refundedTzs: number;
}
const empty: Purse = { changes: new Map(), posted: [], refundedTzs: 0 };

function afterStep(chart: MoneyChart, setting: Setting, purse: Purse, position: Position, move: Move): Purse {
  const changes = new Map(purse.changes);
  const posted = [...purse.posted];
  let { refundedTzs } = purse;
  for (const { type: action } of position.asked) {
    for (const type of factsOf(chart, action)) {
      posted.push(type);
      if (type === 'success.reversed') refundedTzs = Number(position.context.refundedTzs);
      for (const { account, debit, credit } of postings[type]!(setting, position, move).lines) {
        const kind = parseAccount(account).kind as AccountKind;
        const grown = debit.sub(credit).toNumber() * (accounts[kind].grows === 'debit' ? 1 : -1);
        changes.set(kind, (changes.get(kind) ?? 0) + grown);
      }
    }
  }
  return { changes, posted, refundedTzs };
}

function factsOf(chart: MoneyChart, action: string): FactName[] {
  const names = Object.keys(facts) as FactName[];
  return names.filter((name) => facts[name].chart === chart && facts[name].action === action);
}

function amountsOf(setting: Setting, { context }: Position, { refundedTzs }: Purse): Record<string, number> {
  const { feeReturnedTzs = 0, effectTzs = 0 } = setting;
  const net = amountTzs - feeTzs;
  const refundedNet = Math.min(refundedTzs, net);
  const isRefund = setting.feeReturnedTzs !== undefined;
  return {
    ...{ amount: amountTzs, fee: feeTzs, net, effect: effectTzs, settled: Number(context.settledTzs ?? 0) },
    ...{ refunded: refundedTzs, refundedNet, refundedFee: refundedTzs - refundedNet },
    ...{ feeReturned: feeReturnedTzs, held: isRefund ? amountTzs - feeReturnedTzs : amountTzs + feeTzs },
  };
}

/** Every position of a chart with what the way to it has posted. */
function* walked(
  chart: MoneyChart,
  setting: Setting,
): Generator<{ position: Position; purse: Purse; way: string }> {
  const { chart: drawn, edges, model } = survey(modelOf(chart));
  const purses = new Map<readonly Move[], Purse>();
  const born = new Map(
    model.variants.map((variant) => {
      const position = drawn.begin(variant.input);
      const move = { type: 'created', event: { type: 'created', at: variant.input.at } };
      return [variant, { position, purse: afterStep(chart, setting, empty, position, move) }] as const;
    }),
  );
  for (const each of born.values()) yield { ...each, way: 'created' };
  for (const { variant, from, path, move, after } of edges) {
    const before = purses.get(from) ?? born.get(variant)!.purse;
    const purse = afterStep(chart, setting, before, after, move);
    purses.set(path, purse);
    yield { position: after, purse, way: path.map(({ type }) => type).join(' → ') };
  }
}

/** More has gone back than came in: what no amount of a single refund can do, and the collection's effect refuses. */
const isOverdrawn = (chart: MoneyChart, { context }: Position) =>
  chart === 'collection' && Number(context.refundedTzs) >= amountTzs;

describe('the money map', function () {
  this.timeout(300_000);

  for (const chart of charts) {
    for (const setting of settings[chart]) {
      it(`has the money of a ${chart} ${setting.name} where each of its paths leaves it`, () => {
        const met = new Set<object>();
        for (const { position, purse, way } of walked(chart, setting)) {
          if (isOverdrawn(chart, position)) continue;
          const { state, context } = position;
          const expected = holdingOf(chart, state, context, amountsOf(setting, position, purse));
          expect(expected, `the map knows ${state} (after ${way})`).not.to.equal(undefined);
          expect(misplaced(expected!, purse.changes), `in ${state} (after ${way})`).to.deep.equal([]);
          met.add(standingOf(chart, state, context)!);
        }
        expect([...met], 'what the map says and no path comes to').to.have.members([
          ...moneyMap[chart].standings,
        ]);
      });
    }

    it(`names every state of a ${chart}, and none that is not there`, () => {
      const drawn = new Chart(modelOf(chart).machine);
      const states = drawn.nodes.map(({ path }) => path.join('.')).filter(Boolean);
      const leaves = drawn.nodes.filter(({ type }) => type === 'atomic').map(({ path }) => path.join('.'));
      for (const { states: named } of moneyMap[chart].standings)
        expect(states).to.include.members([...named]);
      for (const leaf of leaves) {
        const either = [{}, { isFollowed: true }].map((context) => standingOf(chart, leaf, context));
        expect(either.some(Boolean), `${leaf} is on the map`).to.equal(true);
      }
    });

    it(`posts each fact of a ${chart} once at most, and every one of them`, () => {
      const once = Object.entries(facts).filter(([, { chart: by, key }]) => by === chart && key !== null);
      const all = new Set<string>();
      for (const { purse, way } of walked(chart, settings[chart][0]!)) {
        for (const type of purse.posted) all.add(type);
        for (const [at, type] of purse.posted.entries()) {
          const { after = [] }: Fact = facts[type];
          const isFollowing =
            after.length === 0 || purse.posted.slice(0, at).some((each) => after.includes(each));
          expect(isFollowing, `${type} follows on ${after.join(' or ')} (after ${way})`).to.equal(true);
        }
        for (const [type] of once) {
          const times = purse.posted.filter((each) => each === type).length;
          expect(times, `${type} (after ${way})`).to.be.at.most(1);
        }
      }
      expect([...all]).to.include.members(once.map(([type]) => type));
    });
  }

  it('knows every action that posts, and every chart that has one', () => {
    for (const { chart, action } of Object.values(facts)) {
      expect(models.find(({ name }) => name === chart)!.writes, chart).to.include(action);
    }
    const posting = new Set<string>(Object.values(facts).map(({ chart }) => chart));
    // What a reconciliation posts is the house's and comes page by page, in whatever state it is.
    expect([...posting].sort()).to.deep.equal([...charts, 'reconciliation'].sort());
  });

  it('adds nothing and loses nothing: what is held grows as what is owed, in each of its states', () => {
    const amounts = { amount: 10_000, fee: 250, net: 9_750, settled: 500, effect: 700 };
    const back = { refunded: 9_900, refundedNet: 9_750, refundedFee: 150, feeReturned: 100 };
    for (const chart of charts) {
      const held = chart === 'refund' ? 9_900 : 10_250;
      for (const { states, where } of moneyMap[chart].standings as readonly {
        states: readonly string[];
        where?: string;
      }[]) {
        const context = { isFollowed: where === 'isFollowed' };
        const holding = holdingOf(chart, states[0]!, context, { ...amounts, ...back, held })!;
        const sum = Object.entries(holding).reduce((total, [place, tzs]) => {
          const [kind] = places[place as keyof typeof places].kinds;
          return total + (accounts[kind].grows === 'debit' ? tzs! : -tzs!);
        }, 0);
        expect(sum, `${chart} in ${states[0]}`).to.equal(0);
      }
    }
  });

  it('leads one shilling from the PIN to the merchant’s bank, each mile by an entry of its chart', () => {
    let [held, owed]: (AccountKind | null)[] = [null, null];
    for (const mile of shilling) {
      const { chart, state, fact } = mile;
      const { debit, credit, action } = facts[fact];
      expect(facts[fact].chart, fact).to.equal(chart);
      const { edges, chart: drawn, model } = survey(models.find(({ name }) => name === chart)!);
      const positions = [
        ...edges.map(({ after }) => after),
        ...model.variants.map(({ input }) => drawn.begin(input)),
      ];
      const arrives = positions.some(
        (position) =>
          `${position.state}.`.startsWith(`${state}.`) && position.asked.some(({ type }) => type === action),
      );
      expect(arrives, `a ${chart} comes to ${state} by ${action}`).to.equal(true);
      // What is held grows by debits and leaves by credits; what is owed the other way round.
      if (mile.held !== held) {
        if (mile.held) expect(debit, fact).to.include(mile.held);
        if (held) expect(credit, fact).to.include(held);
      }
      if (mile.owed !== owed) {
        if (mile.owed) expect(credit, fact).to.include(mile.owed);
        if (owed) expect(debit, fact).to.include(owed);
      }
      [held, owed] = [mile.held, mile.owed];
    }
    expect([held, owed], 'it has arrived').to.deep.equal([null, null]);
  });

  it('says what is not where it belongs', () => {
    const changes = new Map<AccountKind, number>([
      ['merchant_reserved', 0],
      ['merchant_available', -10_250],
      ['bank', -10_000],
      ['suspense', 250],
    ]);
    const wrong = misplaced({ available: -10_250, float: -10_000, fees: 250 }, changes);
    expect(wrong).to.deep.equal([
      'fee revenue changed by 0 and not by 250',
      'suspense changed by 250 and not at all',
    ]);
  });
});
