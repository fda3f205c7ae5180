import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { type BankFault, SimulatedBank } from '../../tools/simulator/bank.ts';
import { type Live, openLive } from '../support/live.ts';
import { liveOperator } from '../support/liveOperator.ts';
import { untilNoonMs } from '../support/noon.ts';

const { dayMs, hourMs, minuteMs } = limits;
const amount = 1_000;

/** Payouts by hand, a bank that does something wrong with most of them, and what its own statements make of it. */
describe('a bank’s statement', function () {
  this.timeout(300_000);
  let live: Live;
  let second: string;
  let days: string[];
  const bank = new SimulatedBank(1_000_000_050);
  const ids: Record<string, string> = {};

  const { call, stateOf, tell, passesUntil } = liveOperator(() => live, 0);
  const db = () => live.service.service.wired.db;
  const entriesOf = async (id: string): Promise<string[]> =>
    (await call('GET', `/admin/ledger/entries?mode=live&source=${id}`)).json.data
      .map(({ type }: { type: string }) => type)
      .reverse();
  const recOf = (date: string) => `rec.BANK.${date}`;
  const read = async (date: string) => (await call('GET', `/admin/reconciliations/${recOf(date)}`)).json;
  // biome-ignore lint/suspicious/noExplicitAny: differences as the API answers them
  const differences = async (date: string): Promise<any[]> =>
    (await call('GET', `/admin/differences?reconciliation=${recOf(date)}&limit=100`)).json.data;
  const send = (text: string, date: string) =>
    call('POST', `/admin/reconciliations?rail=BANK&date=${date}&reason=today`, {
      body: text,
      headers: { 'content-type': 'text/csv' },
    });
  /** Brings a day's statement, and waits until nothing of it is too young any more. */
  const bring = async (text: string, date: string) => {
    const brought = await send(text, date);
    expect(brought.status, brought.text).to.equal(202);
    await passesUntil(async () => (await read(date)).state === 'open.resting', 6 * hourMs);
  };
  const pay = async (destination: string): Promise<string> => {
    const { status, json, text } = await call('POST', `/admin/merchants/${live.merchantId}/payouts`, {
      body: { mode: 'live', amount, destination, reason: 'pay them' },
    });
    expect(status, text).to.equal(202);
    return json.id;
  };
  /** All that awaits it, in a file that the bank has. */
  const fileForBank = async (): Promise<string> => {
    const body = { mode: 'live', reason: 'today' };
    const { json } = await call('POST', '/admin/payout-files', { body });
    const { text } = await call('GET', `/admin/payout-files/${json.id}/file.csv`);
    const sent = await call('POST', `/admin/payout-files/${json.id}/sent`, { body: { reason: 'sent' } });
    expect(sent.status, sent.text).to.equal(200);
    return text;
  };
  const differenceAbout = async (date: string, id: string) => {
    const found = (await differences(date)).filter(({ details }) =>
      details.toUpperCase().includes(id.toUpperCase()),
    );
    expect(found, id).to.have.length(1);
    return found[0];
  };

  before(async () => {
    live = await openLive({
      env: {
        SETTLEMENT_DELAY_DAYS: '0',
        PAYOUT_DESTINATION_REST: '1m',
        BANK_STATEMENT_COLUMNS: 'details=Maelezo',
      },
    });
    live.clock.advance(untilNoonMs(live.clock.now()));
    days = [0, 1, 2, 3].map((n) => eatDate(live.clock.now() + n * dayMs));
    const made = await call('POST', '/admin/operators', {
      body: { name: 'zuri', role: 'operator', reason: 'a second person' },
    });
    second = made.json.token;
    for (let n = 0; n < 3; n += 1) {
      const { json } = await live.create('255740000001');
      expect((await live.final(json.id, 60_000)).status).to.equal('succeeded');
    }
    const account = { kind: 'bank_account', name: 'Acme Ltd', number: '0150123456789', bank: 'CRDB' };
    const entered = await call('POST', `/admin/merchants/${live.merchantId}/destinations`, {
      body: { mode: 'live', ...account, rail: 'manual', reason: 'theirs' },
    });
    expect(entered.status, entered.text).to.equal(201);
    expect((await tell(entered.json.id, 'operator.confirmed', {}, second)).status).to.equal(200);
    await passesUntil(async () => (await stateOf(entered.json.id)) === 'active', minuteMs);
    const faults: Record<string, BankFault> = {};
    const planned: Record<string, BankFault | undefined> = {
      ...{
        plain: undefined,
        byHand: undefined,
        more: 'amount_differs',
        twice: 'paid_twice',
        back: 'returned',
      },
      ...{ twiceAndBack: 'twice_and_back', stray: 'unknown_payout', taken: 'missing_there' },
    };
    for (const [name, fault] of Object.entries(planned)) {
      ids[name] = await pay(entered.json.id);
      if (fault) faults[ids[name]!] = fault;
    }
    bank.move(days[0]!, 'Salaries November', -25_000_000);
    bank.pay(await fileForBank(), days[0]!, faults);
    bank.move(days[0]!, 'Ledger fee', -35_424);
    bank.move(days[0]!, 'Settlement MPESA 000000', 100_000_000);
    // A second file, of which the bank pays one a day later, and one the day after that.
    for (const name of ['late', 'later']) ids[name] = await pay(entered.json.id);
    bank.pay(await fileForBank(), days[1]!, { [ids.later!]: 'missing_there' });
    for (const name of ['byHand', 'taken'])
      expect((await tell(ids[name]!, 'operator.resolved', { outcome: 'paid' })).status, name).to.be.oneOf([
        200, 202,
      ]);
    for (const name of ['byHand', 'taken'])
      if (!/^paid/.test(await stateOf(ids[name]!)))
        await tell(ids[name]!, 'operator.resolved', { outcome: 'paid' }, second);
  });
  after(() => live?.close());

  it('is refused whole where it is unfit, with the line and what to do', async () => {
    const [day] = days as [string];
    // One o'clock in the morning after it: all of the day is young.
    live.clock.advance(13 * hourMs);
    const good = bank.statement(day);
    const changed = (from: RegExp | string, to: string) => good.replace(from, to);
    const unfit: [string, RegExp][] = [
      [
        changed('Narration', 'Story'),
        /^Line 3: the column "Narration" is missing; the column "Story" is not known.*BANK_STATEMENT_COLUMNS/,
      ],
      [changed('Currency,TZS', 'Currency,USD'), /^Line 2: this is in USD/],
      [changed(`${day} 10`, '2020-01-01 10'), /^Line 4: 2020-01-01 .* is not on /],
      [changed('"1,000.00"', '"1,000.01"'), /^Line 5: the balance is [\d.]+, and [\d.]+ follows from line 4/],
      [changed('"250,000.00"', '"many"'), /^Line 4: "many" is no amount/],
    ];
    for (const [text, message] of unfit) {
      const { status, json } = await send(text, day);
      expect(status).to.equal(400);
      expect(json.error.message).to.match(message);
    }
    expect(await db().collection('statements').countDocuments()).to.equal(0);
  });

  it('confirms each payout that a line names with its very amount, and is read once', async () => {
    const [day] = days as [string];
    const text = bank.statement(day).replace('Narration', 'Maelezo');
    const brought = await send(text, day);
    expect([brought.status, brought.json.id], brought.text).to.deep.equal([202, recOf(day)]);
    await passesUntil(async () => (await read(day)).state === 'matching.waiting');
    const ends = { plain: 'paid', byHand: 'paid', twice: 'paid', twiceAndBack: 'paid', back: 'returned' };
    for (const [name, status] of Object.entries(ends))
      expect((await stateOf(ids[name]!)).split('.')[0], name).to.equal(status);
    for (const name of ['more', 'stray', 'late', 'later'])
      expect(await stateOf(ids[name]!), `${name}: nothing is proved`).to.equal('created.awaitingBank');
    expect(await entriesOf(ids.plain!)).to.deep.equal(['payout.held', 'payout.paid']);
    expect(await entriesOf(ids.back!)).to.deep.equal(['payout.held', 'payout.paid', 'payout.returned']);
    const paid = await db()
      .collection('journal_entries')
      .findOne({ _id: `live:${ids.plain}:paid` } as object);
    expect(eatDate(paid!.effectiveAt.getTime()), 'booked when the bank did').to.equal(day);
    expect(paid!.providerReference, 'the bank’s own number').to.match(/^FT/);
    const again = await send(text, day);
    expect([again.status, again.json.id]).to.deep.equal([200, recOf(day)]);
    expect((await send(bank.statement(day, 'signed'), day)).status, 'other bytes').to.equal(409);
  });

  it('finds a difference of each kind that was planted, and nothing else; what is not ours is counted', async () => {
    const [day] = days as [string];
    expect(await differences(day), 'nothing younger than a day').to.deep.equal([]);
    await passesUntil(async () => (await read(day)).state === 'open.resting', 6 * hourMs);
    const found = (await differences(day)).map((row) => [row.class, row.effect, row.merchant_id]);
    const of = live.merchantId;
    expect(found.sort()).to.deep.equal(
      [
        ['unknown_withdrawal', -1_500, of],
        ['unknown_withdrawal', -1_000, of],
        ['unknown_withdrawal', -1_000, of],
        ['unknown_withdrawal', -1_000, 'house'],
        ['missing_there', 1_000, of],
      ].sort(),
    );
    const { classes, agreement, opening } = await read(day);
    expect(opening, 'of cents, whole shillings are shown').to.equal(10_000_000);
    const sums = Object.fromEntries(
      classes.map((each: { class: string; count: number; amount: number }) => [
        each.class,
        [each.count, each.amount],
      ]),
    );
    expect(sums).to.deep.include({ not_ours_in: [1, 1_000_000], not_ours_out: [2, 250_354] });
    expect(agreement).to.include({ unexplained: 0 });
    const posted = await db().collection('journal_entries').countDocuments({ type: 'statement.followed' });
    expect(posted, 'nothing is booked by itself').to.equal(0);
  });

  it('what came back of a payout that was paid twice answers the second time', async () => {
    const [day] = days as [string];
    const states = await Promise.all(
      (await differences(day))
        .filter(({ details }) => details.includes(ids.twiceAndBack!.toUpperCase()))
        .map(async ({ id }) => {
          await passesUntil(async () => (await stateOf(id)) === 'explained');
          return stateOf(id);
        }),
    );
    expect(states).to.deep.equal(['explained']);
    expect(await entriesOf(ids.twiceAndBack!)).to.deep.equal(['payout.held', 'payout.paid']);
  });

  it('a day later: one is paid, and what the bank has had for a day and never paid is asked about once', async () => {
    const [, day] = days as [string, string];
    await bring(bank.statement(day, 'signed', true), day);
    expect((await stateOf(ids.late!)).split('.')[0]).to.equal('paid');
    const found = await differences(day);
    expect(found.map((row) => [row.class, row.amount, row.effect])).to.deep.equal([
      ['missing_there', 1_000, 0],
      ['missing_there', 1_000, 0],
    ]);
    const { id } = await differenceAbout(day, ids.later!);
    await passesUntil(async () => (await stateOf(id)) === 'awaitingFile');
    expect((await read(day)).agreement).to.include({ unexplained: 0 });
  });

  it('what a person decides about such a one explains it, and the books have nothing to follow', async () => {
    const [, day] = days as [string, string];
    const { id } = await differenceAbout(day, ids.stray!);
    await passesUntil(async () => (await stateOf(id)) === 'awaitingOperator.looking', 12 * hourMs);
    for (const token of [undefined, second])
      expect((await tell(id, 'operator.accepted', {}, token)).status, 'nothing was posted').to.equal(409);
    const failed = { outcome: 'failed', failureCode: 'rejected' };
    await tell(ids.stray!, 'operator.resolved', failed);
    if (!/^failed/.test(await stateOf(ids.stray!)))
      await tell(ids.stray!, 'operator.resolved', failed, second);
    await passesUntil(async () => (await stateOf(id)) === 'explained', hourMs);
    expect(await entriesOf(id)).to.deep.equal([]);
  });

  it('taken for missing by two people, it is joined by its line when that comes, in a file without times', async () => {
    const [first, second_, third] = days as [string, string, string];
    const { id } = await differenceAbout(first, ids.taken!);
    await passesUntil(async () => (await stateOf(id)) === 'awaitingOperator.looking', 12 * hourMs);
    expect((await tell(id, 'operator.accepted')).status).to.equal(202);
    expect((await tell(id, 'operator.accepted', {}, second)).status).to.equal(200);
    expect(await stateOf(id)).to.equal('resolved');
    const waiting = (await differenceAbout(second_, ids.later!)).id;
    for (const name of ['taken', 'later']) bank.move(third, `TRF/${ids[name]}/TISS`, -100_000);
    await bring(bank.statement(third, 'dates_only'), third);
    await passesUntil(async () => (await stateOf(waiting)) === 'explained');
    expect(await entriesOf(id)).to.deep.equal(['statement.followed', 'statement.released']);
    expect((await stateOf(ids.later!)).split('.')[0]).to.equal('paid');
    expect(await differences(third)).to.deep.equal([]);
    for (const day of [first, second_, third]) {
      expect((await tell(recOf(day), 'operator.closedDay')).status).to.equal(200);
      await passesUntil(async () => (await read(day)).state === 'closed');
    }
  });

  it('nobody is paid twice by it, and the books are right', async () => {
    const posted = await db()
      .collection('journal_entries')
      .aggregate([
        { $match: { type: { $in: ['payout.paid', 'payout.found_paid'] } } },
        { $group: { _id: '$source.id', times: { $sum: 1 } } },
      ])
      .toArray();
    expect(posted.map(({ times }) => times).sort()).to.deep.equal(posted.map(() => 1));
    const { breaches } = await auditAll(db(), live.clock.now() + minuteMs);
    expect(breaches).to.deep.equal([]);
  });
});
