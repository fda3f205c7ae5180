import { expect } from 'chai';
import type { AnyTransitionDefinition } from 'xstate';
import { type Fact, facts } from '../../machines/money.ts';
import { newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import { testPayoutNumbers } from '../../src/rails/rails.ts';
import { Chart } from '../support/charts.ts';
import { models } from '../support/every-chart.ts';
import { clockAtNoon } from '../support/noon.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** What an operator's event would post is shown, debit and credit, before it is sent: for every one that posts. */
describe('postings of operators’ events', function () {
  this.timeout(240_000);
  let test: TestService;
  let second: string;
  const clock = clockAtNoon();

  before(async () => {
    const settings = { PAYOUT_APPROVAL_FROM: '200000', PAYOUT_FEE: '500' };
    test = await startTestService(settings, { clock });
    const body = { name: 'Juma', role: 'operator', reason: 'a second person' };
    second = (await test.call('POST', '/admin/operators', { body })).json.token;
  });
  after(() => test.stop());

  const tell = (id: string, told: object, token?: string) =>
    test.call('POST', `/admin/actors/${id}/events`, {
      body: { reason: 'looked at', ...told },
      ...(token ? { token } : {}),
    });
  const posted = async (id: string) => {
    const { mode } = await test.actor(id);
    return (await test.call('GET', `/admin/ledger/entries?mode=${mode}&source=${id}`)).json.data;
  };
  const reached = (id: string, state: RegExp) =>
    until(async () => {
      const { state: now } = await test.actor(id);
      if (state.test(now)) return true;
      // Its window must not be over before it was sent.
      if (/^created\.(born|sending)/.test(now)) return false;
      clock.advance(5 * limits.minuteMs);
      await test.sweep();
      return false;
    }, 60_000);

  /** A merchant with money, and the payment that it came from. */
  const funded = async (phone = '255700000000'): Promise<{ merchant: TestMerchant; id: string }> => {
    const merchant = await test.merchant();
    const { json } = await merchant.create({ amount: 1_000_000, phone });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
    return { merchant, id: json.id };
  };
  const payout = async (number: string, state: RegExp, amount = 100_000) => {
    const { merchant } = await funded();
    const account = { mode: 'test', kind: 'wallet', name: 'Acme Ltd', number, reason: 'to try' };
    const entered = await test.call('POST', `/admin/merchants/${merchant.id}/destinations`, {
      body: account,
    });
    await tell(entered.json.id, { type: 'operator.confirmed' }, second);
    const made = await test.call('POST', `/admin/merchants/${merchant.id}/payouts`, {
      body: { mode: 'test', amount, destination: entered.json.id, reason: 'to try' },
    });
    expect(made.status, made.text).to.equal(202);
    await reached(made.json.id, state);
    return made.json.id as string;
  };
  const refund = async (phone: string, state: RegExp) => {
    const { merchant, id } = await funded(phone);
    const made = await test.call('POST', '/v1/refunds', {
      ...{ token: merchant.key, body: { collection: id, amount: 4_000 } },
      headers: { 'Idempotency-Key': `refund of ${id}` },
    });
    expect(made.status, made.text).to.equal(202);
    await reached(made.json.id, state);
    return made.json.id as string;
  };
  /** A late payment on its way back, of which the network never tells whether it went. */
  const returning = async () => {
    const { id } = await test.latePayment();
    const rail = test.service.wired.rails.test;
    const [reverse, ask] = [rail.reversePayment!.bind(rail), rail.queryReversal!.bind(rail)];
    const isIt = ({ collectionId }: { collectionId: string }) => collectionId === id;
    const nobodyKnows = { kind: 'unknown', why: 'ambiguous_code' } as const;
    rail.reversePayment = async (request, signal) => (isIt(request) ? nobodyKnows : reverse(request, signal));
    rail.queryReversal = async (request, signal) => (isIt(request) ? nobodyKnows : ask(request, signal));
    expect((await tell(id, { type: 'operator.returnedLate' })).status).to.equal(200);
    return id;
  };
  const difference = async () => {
    const { actors } = test.service.wired;
    const at = clock.now();
    const id = newId('dif', at);
    const terms = {
      askLadderMs: [limits.hourMs],
      silentMs: limits.dayMs,
      fileMs: limits.dayMs,
      lookMs: limits.dayMs,
    };
    const about = { reconciliation: 'rec.MPESA_TZ.2026-11-20', rail: 'MPESA_TZ', currency: 'TZS' };
    const none = { receipt: null, line: null, lineId: null, entry: null, collection: null, suggestion: null };
    const data = { kind: 'opening', ...about, ...none, amountTzs: 700, effectTzs: 700, details: '' };
    await actors.create(
      {
        ...{ machine: 'difference', id, merchantId: 'house', mode: 'live' },
        ...{ input: { at, kind: 'opening', terms }, data: { ...data, bookedAt: new Date(at) } },
      },
      { stepId: `${id}.made`, cause: { kind: 'operator', id: 'admin' } },
    );
    await reached(id, /^awaitingOperator/);
    return id;
  };

  interface Scenario {
    told: { type: string; [field: string]: unknown };
    /** Brings an actor to where it can be told so; its id. */
    before(): Promise<string>;
    posts: string;
    /** Where the entry is of another actor, that the same commit makes: the entries of it. */
    of?: (id: string) => Promise<string>;
  }

  const underReview = async () => (await test.underReview(await test.merchant())).id;
  const { refused, unknown } = testPayoutNumbers;
  const usual = '0712345678';
  const scenarios: Readonly<Record<string, Scenario>> = {
    'collection operator.resolved postCapture': {
      told: { type: 'operator.resolved', outcome: 'succeeded', receipt: 'R-1' },
      ...{ before: underReview, posts: 'collection.succeeded' },
    },
    'collection operator.acceptedLate releaseLate': {
      told: { type: 'operator.acceptedLate' },
      ...{ before: async () => (await test.latePayment()).id, posts: 'late.accepted' },
    },
    'collection operator.confirmedReturn postReturn': {
      told: { type: 'operator.confirmedReturn' },
      ...{ before: returning, posts: 'late.returned' },
    },
    'collection operator.reversed reverseCapture': {
      told: { type: 'operator.reversed' },
      ...{ before: async () => (await funded()).id, posts: 'success.reversed' },
    },
    'collection operator.refunded openRefund': {
      told: { type: 'operator.refunded', amount: 4_000 },
      ...{ before: async () => (await funded('255700000031')).id, posts: 'refund.held' },
      of: async (id) => {
        const { json } = await test.call('GET', `/admin/refunds?mode=test&collection=${id}`);
        return json.data[0].id;
      },
    },
    'payout operator.refused releaseMoney': {
      told: { type: 'operator.refused' },
      before: () => payout(usual, /awaitingApproval/, 300_000),
      posts: 'payout.released',
    },
    'payout operator.resolved postPaid': {
      told: { type: 'operator.resolved', outcome: 'paid', receipt: 'FT-1' },
      ...{ before: () => payout(unknown, /underReview/), posts: 'payout.paid' },
    },
    'payout operator.resolved releaseMoney': {
      told: { type: 'operator.resolved', outcome: 'failed' },
      ...{ before: () => payout(unknown, /underReview/), posts: 'payout.released' },
    },
    'payout operator.foundPaid postFoundPaid': {
      told: { type: 'operator.foundPaid', receipt: 'FT-2' },
      ...{ before: () => payout(refused, /^failed/), posts: 'payout.found_paid' },
    },
    'payout operator.returned postReturned': {
      told: { type: 'operator.returned' },
      ...{ before: () => payout(usual, /^paid/), posts: 'payout.returned' },
    },
    'refund operator.resolved postPaid': {
      told: { type: 'operator.resolved', outcome: 'succeeded', receipt: 'RV-1' },
      ...{ before: () => refund('255700000031', /underReview/), posts: 'refund.paid' },
    },
    'refund operator.resolved releaseMoney': {
      told: { type: 'operator.resolved', outcome: 'failed' },
      ...{ before: () => refund('255700000031', /underReview/), posts: 'refund.released' },
    },
    'refund operator.foundPaid postFoundPaid': {
      told: { type: 'operator.foundPaid', receipt: 'RV-2' },
      ...{ before: () => refund('255700000030', /^failed/), posts: 'refund.found_paid' },
    },
    'difference operator.accepted followStatement': {
      told: { type: 'operator.accepted' },
      ...{ before: difference, posts: 'statement.followed' },
    },
  };

  it('are told of here for every operator’s event that posts, in whichever chart', () => {
    expect(Object.keys(scenarios).sort()).to.deep.equal(postingEvents());
  });

  for (const [name, { told, before: prepared, posts, of }] of Object.entries(scenarios)) {
    it(`${name}: what the rehearsal shows is what is posted`, async () => {
      const id = await prepared();
      const earlier = (await posted(id)).length;
      const dry = await tell(id, { ...told, dry_run: true });
      expect(dry.status, dry.text).to.equal(200);
      expect(dry.json.entries.map(({ type }: { type: string }) => type)).to.deep.equal([posts]);
      const [shown] = dry.json.entries;
      const sum = (side: 'debit' | 'credit') =>
        shown.lines.reduce((total: number, line: Record<string, number>) => total + line[side]!, 0);
      expect([sum('debit') > 0, sum('debit')]).to.deep.equal([true, sum('credit')]);
      expect(await posted(id), 'nothing was posted').to.have.length(earlier);
      const first = await tell(id, told);
      if (first.status === 202)
        expect((await tell(id, told, second)).status, 'a second person').to.equal(200);
      else expect(first.status, first.text).to.equal(200);
      const entries = await posted(of ? await of(id) : id);
      const real = entries.find(({ type }: { type: string }) => type === posts);
      expect(real?.lines, 'as it was shown').to.deep.equal(shown.lines);
    });
  }
});

/** Every action by which an operator's event posts, with its chart and event: as the charts have them. */
function postingEvents(): string[] {
  const actions = new Set(Object.values<Fact>(facts).map(({ chart, action }) => `${chart} ${action}`));
  // A refund is born in the step that orders it, and holds its money in that commit.
  actions.add('collection openRefund');
  const found = models.flatMap(({ name, machine }) =>
    [...new Chart(machine).transitions.keys()].flatMap((transition) =>
      namesOf(transition)
        .filter((action) => actions.has(`${name} ${action}`))
        .map((action) => [name, transition.eventType, action] as const),
    ),
  );
  const byOperators = found.filter(([, eventType]) => eventType.startsWith('operator.'));
  return [...new Set(byOperators.map((each) => each.join(' ')))].sort();
}

function namesOf({ actions }: AnyTransitionDefinition): string[] {
  return actions.flatMap((action) => {
    if (typeof action === 'string') return [action];
    return typeof action === 'object' && 'type' in action ? [String(action.type)] : [];
  });
}
