import fc from 'fast-check';
import { type Plant, plantKinds } from '../../tools/simulator/statement.ts';
import type { Desk, Driven, Person } from './desk.ts';
import { bringStatement, cancelPayout, payOut, refund, sendFile, takeBack, writeFile } from './outgoings.ts';
import type { Moment } from './till.ts';

/** Everything that may happen at a desk, as commands that fast-check makes in any order; and one walk through all of it. */

/** How many were asked for by now: what needs one is not tried before. */
type Model = { payments: number; payouts: number; refunds: number; statements: number };
type Command = fc.AsyncCommand<Model, Desk>;

export const stocked = (): Model => ({ payments: 3, payouts: 0, refunds: 0, statements: 0 });

interface Kind {
  /** There is one of these. */
  needs?: keyof Model;
  makes?: keyof Model;
}

function deed(name: string, run: (desk: Desk) => Promise<void> | void, { needs, makes }: Kind = {}): Command {
  return {
    check: (model) => needs === undefined || model[needs] > 0,
    run: async (model, desk) => {
      if (makes) model[makes] += 1;
      await run(desk);
    },
    toString: () => name,
  };
}

const { minuteMs, dayMs } = { minuteMs: 60_000, dayMs: 86_400_000 };
const nth = fc.nat(5);
const person = fc.constantFrom<Person>('ann', 'ben');

/** Stories of the simulated network: paid, refused, paid and the answer lost, paid late, never found, denied later. */
const payers = ['01', '01', '01', '02', '08', '12', '07', '15', '11'].map((end) => `2557400000${end}`);
const amounts = fc.oneof(fc.integer({ min: 1_000, max: 50_000 }), fc.constant(3_000_000_000));
const pays = fc
  .tuple(fc.nat(2), amounts, fc.constantFrom(...payers))
  .map(([m, amount, phone]) =>
    deed(`pay(${m}, ${amount}, ${phone})`, (desk) => desk.pay(m, amount, phone), { makes: 'payments' }),
  );
const earns = fc
  .tuple(fc.nat(2), fc.integer({ min: 5_000, max: 50_000 }))
  .map(([m, amount]) => deed(`earn(${m}, ${amount})`, (desk) => desk.earn(m, amount), { makes: 'payments' }));
const drives = fc.constant(deed('drive', (desk) => desk.drive()));
const jumps = fc
  .constantFrom(-5_000, 5_000, 20_000, 90_000, 10 * minuteMs, 2 * dayMs)
  .map((ms) => deed(`jump(${ms})`, (desk) => desk.advance(ms)));

/** Events without their fields' types: what a chart does not know it refuses. */
type Told = { type: string; [field: string]: unknown };

/** The network's word, which may come at any time and be of before. */
const heard = fc
  .tuple(
    nth,
    fc.constantFrom<Told>(
      ...Array.from({ length: 5 }, () => ({ type: 'ask.succeeded' })),
      { type: 'push.succeeded' },
      { type: 'ask.expired' },
      { type: 'ask.failed', code: 'declined' },
      { type: 'ask.expired' },
      { type: 'rail.noticed' },
    ),
  )
  .map(([n, event]) => deed(`${event.type}(${n})`, (desk) => desk.hear(n, event), { needs: 'payments' }));

/** Orders to actors of one kind, by one person, or agreed to by a second. */
function orders(stored: Driven, needs: keyof Model, events: readonly Told[]): fc.Arbitrary<Command> {
  return fc
    .tuple(nth, fc.constantFrom(...events), person, fc.boolean())
    .map(([n, event, by, isAgreed]) =>
      deed(
        `${stored}.${event.type}(${n}, ${isAgreed ? 'both' : by})`,
        (desk) => (isAgreed ? desk.orderByTwo(stored, n, event) : desk.order(by, stored, n, event)),
        { needs },
      ),
    );
}

const aboutPayments = orders('collections', 'payments', [
  { type: 'operator.acceptedLate' },
  { type: 'operator.returnedLate' },
  { type: 'operator.reversed' },
  { type: 'operator.resolved', outcome: 'succeeded' },
  { type: 'operator.resolved', outcome: 'succeeded', receipt: 'TYPED77' },
  { type: 'operator.confirmedReturn' },
  { type: 'operator.refunded', amount: 700 },
  { type: 'operator.asked' },
]);
const aboutPayouts = orders('payouts', 'payouts', [
  { type: 'operator.approved' },
  { type: 'operator.approved' },
  { type: 'operator.refused' },
  { type: 'operator.asked' },
  { type: 'operator.resolved', outcome: 'paid', receipt: 'FT0077' },
  { type: 'operator.resolved', outcome: 'failed', failureCode: 'rejected' },
  { type: 'operator.foundPaid' },
  { type: 'operator.returned' },
]);
const aboutRefunds = orders('refunds', 'refunds', [
  { type: 'operator.asked' },
  { type: 'operator.resolved', outcome: 'succeeded' },
  { type: 'operator.resolved', outcome: 'failed', failureCode: 'rejected' },
  { type: 'operator.foundPaid' },
]);
const aboutDifferences = orders('differences', 'statements', [
  { type: 'operator.asked' },
  { type: 'operator.ruled' },
  { type: 'operator.accepted' },
  { type: 'operator.accepted' },
  { type: 'operator.sentBack' },
]);
const givesAway = fc.tuple(nth, nth).map(([n, other]) =>
  deed(
    `gives difference ${n} to ${other}`,
    async (desk) => {
      const to = await desk.pick('collections', other);
      if (to) await desk.orderByTwo('differences', n, { type: 'operator.ruled', collection: to._id });
    },
    { needs: 'statements' },
  ),
);
const closes = orders('reconciliations', 'statements', [{ type: 'operator.closedDay' }]);
const removes = orders('destinations', 'payouts', [{ type: 'operator.removed' }]);
const keeps = orders('settlements', 'payments', [{ type: 'operator.held' }, { type: 'operator.released' }]);

const settles = fc.constantFrom(0, dayMs, 3 * dayMs).map((ms) =>
  deed(
    `settle(in ${ms})`,
    async (desk) => {
      await desk.advance(ms);
      await desk.settle();
    },
    { needs: 'payments' },
  ),
);

/** Stories of wallets: paid, refused, paid and the answer lost, never found, comes back, paid and only the statement says so. */
const wallets = ['60', '60', '61', '64', '66', '69', '70', '71'].map((end) => `2557400000${end}`);
const parts = [0.2, 0.5, 1, 1.05];
const payOuts = fc
  .tuple(fc.nat(2), fc.constantFrom(...parts), fc.constantFrom(...wallets, null, null, null))
  .map(([m, part, number]) =>
    deed(`payOut(${m}, ${part}, ${number})`, (desk) => payOut(desk, m, part, number), {
      needs: 'payments',
      makes: 'payouts',
    }),
  );
const cancels = nth.map((n) => deed(`cancel(${n})`, (desk) => cancelPayout(desk, n), { needs: 'payouts' }));
const files = fc
  .tuple(person, fc.boolean())
  .map(([by, isSent]) =>
    deed(
      isSent ? 'send the file' : 'write a file',
      (desk) => (isSent ? sendFile(desk, by) : writeFile(desk, by)),
      { needs: 'payouts' },
    ),
  );
const refunds = fc
  .tuple(nth, fc.constantFrom(0.3, 0.6, 1, 1.1, null))
  .map(([n, part]) =>
    deed(`refund(${n}, ${part})`, (desk) => refund(desk, n, part), { needs: 'payments', makes: 'refunds' }),
  );
const takes = fc
  .tuple(nth, fc.constantFrom(0.4, 1))
  .map(([n, part]) =>
    deed(`takes back(${n}, ${part})`, (desk) => takeBack(desk, n, part), { needs: 'payments' }),
  );
const sweeps = fc
  .integer({ min: -20_000, max: 20_000 })
  .filter((tzs) => tzs !== 0)
  .map((tzs) => deed(`sweep(${tzs})`, (desk) => desk.network.sweep(tzs)));
/** About which payment of the day, if it is about one. */
const plants = fc.array(fc.tuple(fc.constantFrom(...plantKinds), fc.nat(5)), { maxLength: 3 });
const statements = plants.map((planted) =>
  deed(
    `statement(${planted.map(([kind, n]) => `${kind} ${n}`)})`,
    async (desk) => {
      await bringStatement(desk, (references) => plantsOf(planted, references));
      await desk.drive();
      await desk.advance(2 * dayMs);
      await desk.drive();
    },
    { needs: 'payments', makes: 'statements' },
  ),
);

function plantsOf(planted: readonly (readonly [Plant['kind'], number])[], references: readonly string[]) {
  return planted.flatMap(([kind, n]): Plant[] => {
    if (kind === 'unclaimed' || kind === 'unknown_withdrawal') return [{ kind }];
    const reference = references[n % Math.max(1, references.length)];
    return reference === undefined ? [] : [{ kind, reference }];
  });
}

const losses = fc
  .integer({ min: 1, max: 3 })
  .map((n) => deed(`lose ${n} answers`, (desk) => desk.network.lose(n)));
const kills = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom<Moment>('before', 'after'))
  .map(([n, moment]) => deed(`kill(${moment} ${n})`, (desk) => desk.doom(n, moment), { needs: 'payments' }));
const cuts = fc
  .constantFrom<Moment>('before', 'after')
  .map((moment) =>
    deed(`kill(${moment} the network)`, (desk) => desk.network.doom(moment), { needs: 'payments' }),
  );

/** Everything that may happen; what matters most is there more than once, since all are drawn alike. */
export const deeds: fc.Arbitrary<Command>[] = [
  ...[pays, pays, earns, earns, earns, earns, drives, drives, drives, drives, jumps, jumps],
  ...[heard, heard, heard, aboutPayments, aboutPayments, settles, settles, keeps, kills, cuts, losses],
  ...[payOuts, payOuts, payOuts, aboutPayouts, aboutPayouts, cancels, files, files, removes],
  ...[refunds, refunds, aboutRefunds, takes],
  ...[statements, statements, aboutDifferences, aboutDifferences, givesAway, closes, sweeps],
];

/** Those by which a fault in the commit shows soonest. */
export const deadly: fc.Arbitrary<Command>[] = [earns, payOuts, refunds, kills];

/** What each walk begins with: every merchant has something, and two of them at hand. */
export async function stock(desk: Desk): Promise<void> {
  for (const m of [0, 1, 2]) await desk.earn(m, 40_000);
  await desk.advance(dayMs);
  await desk.settle();
}

/** The same over and over for long enough that whatever waits has been asked about, or waits for a person. */
async function pass(desk: Desk, stepMs: number, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    await desk.advance(stepMs);
    await desk.drive();
  }
}

/** Payments, late ones and false ones down every way that money can go. */
async function tourIn(desk: Desk): Promise<void> {
  const nobody = '255740000007';
  for (let i = 0; i < 6; i += 1) await desk.pay(0, 10_000, nobody);
  const [accepted, returned, held, unpaid, false1, false2] = [3, 4, 5, 6, 7, 8];
  for (const n of [accepted, returned, held, unpaid]) await desk.hear(n, { type: 'ask.expired' });
  for (const n of [accepted, returned, held, false1, false2]) await desk.hear(n, { type: 'ask.succeeded' });
  await desk.order('ann', 'collections', accepted, { type: 'operator.acceptedLate' });
  await desk.order('ann', 'collections', returned, { type: 'operator.returnedLate' });
  await desk.drive();
  await desk.order('ann', 'collections', false1, { type: 'operator.reversed' });
  await desk.advance(2 * dayMs);
  await desk.settle();
  for (const n of [false2, accepted])
    await desk.order('ann', 'collections', n, { type: 'operator.reversed' });
  await desk.hear(false2, { type: 'ask.failed', code: 'declined' });
}

/** Payouts by the network and by hand, and refunds: made, given up by a person, found made all the same, and come back. */
async function tourOut(desk: Desk): Promise<void> {
  const [byNetwork, byHand] = [0, 1];
  await payOut(desk, 2, 0.2, '255740000060');
  await pass(desk, 10_000, 2);
  await payOut(desk, 2, 0.2, null);
  await writeFile(desk, 'ann');
  await sendFile(desk, 'ben');
  await desk.order('ann', 'payouts', byHand, { type: 'operator.resolved', outcome: 'failed' });
  await desk.order('ann', 'payouts', byHand, { type: 'operator.foundPaid' });
  await desk.order('ben', 'payouts', byHand, { type: 'operator.returned' });
  await desk.order('ann', 'payouts', byNetwork, { type: 'operator.asked' });
  const paid = 2;
  await refund(desk, paid, 0.3);
  await desk.drive();
  // Ids of one moment are in no order: the second refund is to be the later one.
  await desk.advance(1_000);
  await refund(desk, paid, 0.3);
  desk.network.lose(1_000);
  await pass(desk, 90_000, 2);
  desk.network.lose(0);
  const verdict = { type: 'operator.resolved', outcome: 'failed', failureCode: 'rejected' };
  await desk.order('ann', 'refunds', 1, verdict);
  await desk.order('ann', 'refunds', 1, { type: 'operator.foundPaid' });
}

/** A statement with money of nobody, which two people give to a payment; a process dies while the day is gone through. */
async function tourStatement(desk: Desk): Promise<void> {
  await desk.pay(1, 7_000, '255740000007');
  await desk.hear(9, { type: 'ask.expired' });
  await bringStatement(desk, () => [{ kind: 'unclaimed' }]);
  await desk.doom(2, 'after');
  await pass(desk, minuteMs, 3);
  await pass(desk, 2 * dayMs, 2);
  const to = await desk.pick('collections', 9);
  await desk.orderByTwo('differences', 0, { type: 'operator.ruled', collection: to!._id });
  await pass(desk, minuteMs, 1);
  await desk.checkDays();
  await desk.order('ann', 'reconciliations', 0, { type: 'operator.closedDay' });
  await desk.drive();
  await desk.checkDays();
}

/** Every way that money can go, in one walk, since a short run of random ones may miss a few. */
export async function tour(desk: Desk): Promise<void> {
  await desk.network.sweep(5_000);
  await stock(desk);
  await tourIn(desk);
  await tourOut(desk);
  await tourStatement(desk);
}
