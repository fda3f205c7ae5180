import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import type { Plant } from '../../tools/simulator/statement.ts';
import { type Live, openLive } from '../support/live.ts';
import { liveOperator } from '../support/liveOperator.ts';
import { untilNoonMs } from '../support/noon.ts';
import { until } from '../support/until.ts';

const { dayMs, hourMs, minuteMs } = limits;

/** A statement of the simulated network with a difference of each class planted, and what becomes of each. */
describe('reconciliation', function () {
  this.timeout(300_000);
  let live: Live;
  let date: string;
  let colleague: string;
  const paid: Record<string, string> = {};
  let rec: string;

  const { call, stateOf, tell, passesUntil } = liveOperator(() => live);
  const bring = (text: string, day: string, token?: string) =>
    call('POST', `/admin/reconciliations?rail=MPESA_TZ&date=${day}&reason=today`, {
      body: text,
      headers: { 'content-type': 'text/csv' },
      ...(token ? { token } : {}),
    });
  const reconciliation = async (id = rec) => (await call('GET', `/admin/reconciliations/${id}`)).json;
  // biome-ignore lint/suspicious/noExplicitAny: differences as the API answers them
  const differences = async (of = rec): Promise<any[]> =>
    (await call('GET', `/admin/differences?reconciliation=${of}&limit=100`)).json.data;
  const difference = async (
    kind: string,
    isMeant: (row: Record<string, unknown>) => boolean = () => true,
  ) => {
    const found = (await differences()).filter((row) => row.class === kind && isMeant(row));
    expect(found, kind).to.have.length(1);
    return found[0];
  };
  const reference = (id: string) => id.slice('col_'.length);
  const payment = (id: string) => live.simulator.network.find(reference(id))!;
  const stored = (name: string) => live.service.service.wired.db.collection(name);
  const entriesOf = async (id: string) =>
    (await call('GET', `/admin/ledger/entries?mode=live&source=${id}`)).json.data;
  const create = async (phone: string) => {
    const answer = await live.create(phone);
    expect(answer.status, answer.text).to.equal(202);
    return answer.json.id as string;
  };
  const plants = (): Plant[] => [
    { kind: 'missing_there', reference: reference(paid.missing!) },
    { kind: 'amount_differs', reference: reference(paid.more!) },
    { kind: 'duplicate_receipt', reference: reference(paid.twice!) },
    { kind: 'unclaimed', msisdn: '255711000001', amountTzs: 7_000 },
    { kind: 'unclaimed', msisdn: '255740000003', amountTzs: 5_000 },
    { kind: 'unknown_withdrawal' },
  ];

  before(async () => {
    live = await openLive();
    live.clock.advance(untilNoonMs(live.clock.now()));
    date = eatDate(live.clock.now());
    const made = await call('POST', '/admin/operators', {
      body: { name: 'zuri', role: 'operator', reason: 'a second person' },
    });
    colleague = made.json.token;
    for (const name of ['plain', 'missing', 'reversed', 'more', 'twice'] as const) {
      paid[name] = await create('255740000001');
      expect((await live.final(paid[name]!)).status).to.equal('succeeded');
    }
    // Refused, and paid all the same; of the second the network will say nothing.
    for (const name of ['after', 'silent'] as const) {
      paid[name] = await create('255740000002');
      expect((await live.final(paid[name]!)).status).to.equal('failed');
    }
    // Refused; somebody of the same phone pays the same by hand a little later.
    paid.byHand = await create('255740000003');
    expect((await live.final(paid.byHand)).status).to.equal('failed');
    await passesUntil(async () => (await stateOf(paid.byHand!)) === 'failed.resting', 10 * minuteMs);
    date = eatDate(live.clock.now());
  });
  after(() => live?.close());

  it('refuses a file whole, with the line and what to do', async () => {
    for (const name of ['after', 'silent'] as const)
      await live.simulator.network.payAfterAll(payment(paid[name]!));
    await live.simulator.network.reverse(payment(paid.reversed!), 'by the customer');
    await live.simulator.network.move('withdrawal', '000000', 3_000);
    const good = live.simulator.statement({ date, plants: plants() });
    const { faults: network } = live.simulator;
    network.add({
      operation: 'query',
      does: 'answers',
      code: 'INS-1',
      when: 'before',
      times: 1_000,
      reference: reference(paid.silent!),
    });
    expect((await bring(good, date)).status, 'the day is not over').to.equal(400);
    live.clock.advance(14 * hourMs);
    const lines = good.split('\n');
    const changed = (at: number, from: RegExp, to: string) =>
      lines.map((line, index) => (index + 1 === at ? line.replace(from, to) : line)).join('\n');
    const faults: [string, RegExp][] = [
      ['nothing,at,all\n1,2,3\n', /^Line 2: no header was found/],
      [
        changed(6, /Paid In/, 'Money In'),
        /^Line 6: the column "Paid In" is missing; the column "Money In" is not known/,
      ],
      [changed(3, /TZS/, 'KES'), /^Line 3: this is in KES/],
      [
        changed(2, /000000/, '123456'),
        /^Line 2: this is the statement of short code 123456, and ours is 000000/,
      ],
      [
        lines.filter((_, index) => index !== 8).join('\n'),
        /^Line 9: the balance is \d+, and \d+ follows from line 8/,
      ],
      [changed(9, /\d{4}-\d\d-\d\d/, '2020-01-01'), /^Line 9: 2020-01-01 .* is not on /],
      [changed(7, /"[\d,]+\.00"/, '"5,000.50"'), /^Line 7: "5,000.50" is no amount in whole shillings/],
      [`${good}"`, /^Line \d+: this line does not end, or a quotation mark is not closed/],
    ];
    for (const [text, message] of faults) {
      const { status, json, text: said } = await bring(text, date);
      expect(status, `${message} ${said}`).to.equal(400);
      expect([status, json.error.param], text.slice(0, 200)).to.deep.equal([400, 'file']);
      expect(json.error.message).to.match(message);
    }
    expect(await stored('statements').countDocuments()).to.equal(0);
    expect(await stored('statement_pages').countDocuments(), 'nothing is left of them').to.equal(0);
    expect((await bring(good, '2026-02-30')).json.error.param).to.equal('date');
    const other = await call('POST', `/admin/reconciliations?rail=AIRTEL_TZ&date=${date}&reason=today`, {
      body: good,
    });
    expect(other.json.error.param).to.equal('rail');
  });

  it('imports a statement once, whatever the order of its lines', async () => {
    const text = live.simulator.statement({ date, plants: plants(), newestFirst: true });
    const brought = await bring(text, date);
    expect(brought.status, brought.text).to.equal(202);
    rec = brought.json.id;
    expect(rec).to.equal(`rec.MPESA_TZ.${date}`);
    const again = await bring(text, date);
    expect([again.status, again.json.id]).to.deep.equal([200, rec]);
    const other = await bring(live.simulator.statement({ date, plants: plants() }), date);
    expect([other.status, other.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
    expect(
      await until(async () => !/^(importing|matching\.(lines|books))/.test((await reconciliation()).state)),
    ).to.equal(true);
    expect(await stored('statement_pages').countDocuments(), 'of this file alone').to.equal(1);
    expect(await stored('audit').countDocuments({ action: 'statement.brought' })).to.equal(1);
  });

  it('does not judge what is younger than a day, and then does by itself', async () => {
    const waiting = await reconciliation();
    expect(waiting.state).to.equal('matching.waiting');
    expect(waiting.classes.map((each: { class: string }) => each.class)).to.deep.equal([
      'charge',
      'matched',
      'not_judged',
      'sweep',
    ]);
    expect(await differences()).to.deep.equal([]);
    await passesUntil(async () => (await reconciliation()).state === 'open.resting', 6 * hourMs);
  });

  it('finds a difference of each class that was planted, and nothing else', async () => {
    const found = await differences();
    const of = (row: Record<string, unknown>) => [row.class, row.collection_id, row.effect];
    expect(found.map(of).sort()).to.deep.equal(
      [
        ['amount_differs', paid.more, 500],
        ['duplicate_receipt', null, 5_000],
        ['missing_here', paid.after, 5_000],
        ['missing_here', paid.silent, 5_000],
        ['missing_there', paid.missing, -5_000],
        ['reversed_there', paid.reversed, -5_000],
        ['unclaimed', null, 5_000],
        ['unclaimed', null, 7_000],
        ['unknown_withdrawal', null, -1_000],
      ].sort(),
    );
    const { classes } = await reconciliation();
    const sums = Object.fromEntries(
      classes.map(({ class: kind, count, amount }: Record<string, unknown>) => [kind, [count, amount]]),
    );
    expect(sums).to.deep.equal({
      matched: [3, 15_000],
      // One percent of each of seven payments, the planted 500 included.
      charge: [7, 355],
      sweep: [1, 3_000],
      amount_differs: [1, 5_500],
      duplicate_receipt: [1, 5_000],
      missing_here: [2, 10_000],
      missing_there: [1, 5_000],
      reversed_there: [1, 5_000],
      unclaimed: [2, 12_000],
      unknown_withdrawal: [1, 1_000],
    });
  });

  it('books charges, what went to the bank, and money that is nobody’s, and nothing else by itself', async () => {
    const posted = await entriesOf(rec);
    expect(posted.map(({ type }: { type: string }) => type).sort()).to.deep.equal([
      'float.moved',
      'statement.charged',
    ]);
    for (const { id, class: kind } of await differences()) {
      const types = (await entriesOf(id)).map(({ type }: { type: string }) => type);
      expect(types, kind).to.deep.equal(kind === 'unclaimed' ? ['statement.followed'] : []);
    }
  });

  it('says what lies between the two balances, and that nothing is unexplained', async () => {
    const { agreement, closing } = await reconciliation();
    expect(agreement.statement).to.equal(closing);
    expect(agreement).to.include({ unexplained: 0, is_agreed: true });
  });

  it('missing here, ours: the collection asks, and is paid the late way', async () => {
    const { id } = await difference('missing_here', (row) => row.collection_id === paid.after);
    await passesUntil(async () => (await stateOf(id)) === 'explained');
    expect(await stateOf(paid.after!)).to.equal('failed.latePaid.held');
    expect((await call('GET', `/admin/collections/${paid.after}/evidence`)).json.answers.at(-1)).to.include({
      operation: 'query',
      outcome: 'succeeded',
    });
  });

  it('missing here, and the network is silent for a day: the line is a verdict by two people only', async () => {
    const { id } = await difference('missing_here', (row) => row.collection_id === paid.silent);
    await passesUntil(async () => (await stateOf(id)) === 'awaitingOperator.looking', 6 * hourMs);
    expect(await stateOf(paid.silent!)).to.equal('failed.resting');
    const proposed = await tell(id, 'operator.ruled');
    expect(proposed.status, proposed.text).to.equal(202);
    expect((await tell(id, 'operator.ruled')).status, 'the same person').to.equal(409);
    expect(await stateOf(paid.silent!)).to.equal('failed.resting');
    expect((await tell(id, 'operator.ruled', {}, colleague)).status).to.equal(200);
    await passesUntil(async () => (await stateOf(id)) === 'resolved');
    expect(await stateOf(paid.silent!)).to.equal('failed.latePaid.held');
    live.simulator.faults.clear();
  });

  it('nobody’s: a phone and an amount are a suggestion; two people give it to a collection, and suspense is free of it', async () => {
    const { id, suggestion } = await difference('unclaimed', (row) => row.amount === 5_000);
    expect(suggestion).to.equal(paid.byHand);
    expect((await tell(id, 'operator.ruled')).status, 'without a collection').to.equal(409);
    const given = { collection: suggestion };
    expect((await tell(id, 'operator.ruled', given)).status).to.equal(202);
    expect(
      (await tell(id, 'operator.ruled', { collection: paid.plain }, colleague)).status,
      'another one',
    ).to.equal(202);
    expect((await tell(id, 'operator.ruled', given)).status).to.equal(202);
    expect((await tell(id, 'operator.ruled', given, colleague)).status).to.equal(200);
    await passesUntil(async () => (await stateOf(id)) === 'resolved');
    expect(await stateOf(suggestion)).to.equal('failed.latePaid.held');
    const types = (await entriesOf(id)).map(({ type }: { type: string }) => type);
    expect(types).to.deep.equal(['statement.released', 'statement.followed']);
  });

  it('missing there: the network is asked, and says it was paid; the next file has it', async () => {
    const { id } = await difference('missing_there');
    await passesUntil(async () => (await stateOf(id)) === 'awaitingFile');
  });

  it('reversed there: a contradiction; the merchant’s payouts are held until a person reverses the success', async () => {
    const { id } = await difference('reversed_there');
    const alerts = await stored('alerts').find({ about: paid.reversed }).toArray();
    expect(alerts.map(({ kind }) => kind)).to.deep.equal(['contradiction']);
    const { reconciliations } = live.service.service.wired;
    expect(await reconciliations.isWithheld({ merchantId: live.merchantId, mode: 'live' })).to.equal(true);
    expect((await tell(paid.reversed!, 'operator.reversed')).status).to.equal(200);
    expect((await tell(id, 'operator.asked')).status).to.equal(200);
    await passesUntil(async () => (await stateOf(id)) === 'explained');
    expect(await reconciliations.isWithheld({ merchantId: live.merchantId, mode: 'live' })).to.equal(false);
  });

  it('another amount, a receipt twice, a withdrawal of nobody: the books follow by two people, with suspense', async () => {
    for (const kind of ['amount_differs', 'duplicate_receipt', 'unknown_withdrawal']) {
      const { id, effect } = await difference(kind);
      expect(await stateOf(id)).to.equal('awaitingOperator.looking');
      expect(await stored('alerts').countDocuments({ about: id, kind: 'difference_found' }), kind).to.equal(
        1,
      );
      expect((await tell(id, 'operator.accepted')).status).to.equal(202);
      expect((await tell(id, 'operator.accepted', {}, colleague)).status).to.equal(200);
      expect(await stateOf(id)).to.equal('resolved');
      const [entry] = await entriesOf(id);
      const [clearing] = entry.lines.filter(({ account }: { account: string }) =>
        /provider_clearing/.test(account),
      );
      expect(clearing.debit - clearing.credit, kind).to.equal(effect);
    }
  });

  it('closes where nothing is unexplained, and only then', async () => {
    const planted = `live:${rec}:planted`;
    const { date: day } = await reconciliation();
    const entry = await stored('journal_entries').findOne(
      { type: 'statement.charged' },
      { promoteLongs: false },
    );
    const at = new Date(Date.parse(`${day}T10:00:00Z`));
    await stored('journal_entries').insertOne({
      ...entry,
      _id: planted as never,
      effectiveAt: at,
      // Posted after the day was closed, about the day: it counts all the same.
      postedAt: new Date(live.clock.now()),
    });
    expect((await tell(rec, 'operator.closedDay')).status).to.equal(200);
    const differs = await until(async () => (await reconciliation()).agreement.unexplained === 355);
    expect(differs, JSON.stringify((await reconciliation()).agreement)).to.equal(true);
    expect((await reconciliation()).state).to.equal('open.resting');
    expect(await stored('alerts').countDocuments({ about: rec, kind: 'balances_differ' })).to.equal(1);
    await stored('journal_entries').deleteOne({ _id: planted as never });
    expect((await tell(rec, 'operator.closedDay')).status).to.equal(200);
    const isClosed = await until(async () => (await reconciliation()).state === 'closed');
    expect(isClosed, JSON.stringify((await reconciliation()).agreement)).to.equal(true);
    expect((await reconciliation()).agreement).to.include({ unexplained: 0 });
  });

  it('the next statement begins where this one ended, brings the line, and closes too', async () => {
    const { closing } = await reconciliation();
    const next = eatDate(Date.parse(`${date}T09:00:00Z`) + dayMs);
    const late: Plant[] = [{ kind: 'arrives_late', reference: reference(paid.missing!) }];
    const wrong = await bring(
      live.simulator.statement({ date: next, plants: late, openingTzs: closing + 1 }),
      next,
    );
    expect(wrong.json.error.message).to.match(
      /^Line 1: the day begins with \d+, and .* ended with \d+\. Bring/,
    );
    const { id } = await difference('missing_there');
    const brought = await bring(
      live.simulator.statement({ date: next, plants: late, openingTzs: closing }),
      next,
    );
    expect(brought.status, brought.text).to.equal(202);
    await passesUntil(async () => (await reconciliation(brought.json.id)).state === 'open.resting', hourMs);
    expect(await stateOf(id)).to.equal('explained');
    expect(await differences(brought.json.id)).to.deep.equal([]);
    expect((await reconciliation(brought.json.id)).agreement).to.include({ unexplained: 0 });
    expect((await tell(brought.json.id, 'operator.closedDay')).status).to.equal(200);
    expect(await until(async () => (await reconciliation(brought.json.id)).state === 'closed')).to.equal(
      true,
    );
  });

  it('leaves books that the auditor finds right, and nobody debited twice', async () => {
    const { auditWatch, settlements } = live.service.service.wired;
    await settlements.settleDue({ kind: 'timer', id: 'midnight' });
    await auditWatch.full();
    expect((await call('GET', '/admin/ledger/audit')).json.open_breaches).to.deep.equal([]);
    expect(live.simulator.invariants()).to.deep.include({ clean: true });
  });
});
