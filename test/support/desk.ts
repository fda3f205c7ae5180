import { type ActorDoc, StepRaced, StepRefused, type Write } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { ActorWorkers } from '../../packages/durable-actors/src/work.ts';
import { NoRail } from '../../src/collections/collections.ts';
import { AppError } from '../../src/http/http.ts';
import { newId } from '../../src/ids.ts';
import { readBalance } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import { sendEvent } from '../../src/operators/actorAdmin.ts';
import type { Merchant } from '../../src/principal.ts';
import { agreementAt } from '../../src/reconciliation/comparing.ts';
import type { ReconciliationDoc } from '../../src/reconciliation/reconciliation.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import type { Wired } from '../../src/wiring.ts';
import { ModelNetwork } from './modelNetwork.ts';
import { type Actor, houseAccounts, journalled, readStandings, reckon, type Standings } from './owed.ts';
import { create, expectSound, Killed, killAt, type Moment, sweeping, type Till } from './till.ts';

/**
 * One process at a time at work on a till in live mode, which dies and is replaced, and the network beside it; after
 * each deed the books are compared with what the actors' states make of them. The deeds about money that leaves, and
 * about statements, are in outgoings.ts; deeds.ts has them as commands of a model test.
 */

interface Stored extends ActorDoc {
  status: string;
  data: { amountTzs: number; feeTzs: number; msisdn: string };
}

type Mutate = (wired: Wired) => void;
/** Operators, of whom nobody agrees to a proposal of their own. */
export type Person = 'ann' | 'ben';

export interface DeskOptions {
  till: Till;
  merchants: Merchant[];
  /** A fault built into every process. */
  mutate: Mutate | undefined;
}

/** THE MUTANT: the books are written after the step, in a commit of their own. */
export function splitPostings(wired: Wired): void {
  const commit = wired.committer.commit.bind(wired.committer);
  const isPosting = ({ into }: Write) => into === 'journal_entries' || into === 'balances';
  wired.committer.commit = async (writes) => {
    const step = writes.filter((write) => !isPosting(write));
    const postings = writes.filter(isPosting);
    if (step.length === 0 || postings.length === 0) return commit(writes);
    const outcome = await commit(step);
    return outcome.ok ? commit(postings) : outcome;
  };
}

/** Everything that has calls and timers here, by where it is stored; what feeds others first. */
export const driven = {
  collections: 'collection',
  refunds: 'refund',
  payouts: 'payout',
  destinations: 'destination',
  reconciliations: 'reconciliation',
  differences: 'difference',
  settlements: 'settlement',
} as const;
export type Driven = keyof typeof driven;

/** Calls of one actor that follow on one another, at one visit of the worker. */
const visitsMax = 12;

export class Desk {
  /** How often what happened on all desks, so that a test can say what it saw: deeds, deaths, types of entries. */
  static readonly seen = new Map<string, number>();
  readonly till: Till;
  readonly merchants: Merchant[];
  readonly network: ModelNetwork;
  /** The day that this began on, in Dar es Salaam. */
  readonly firstDay: string;
  readonly #mutate: Mutate | undefined;
  readonly #final = new Map<string, string>();
  readonly #refundedBefore = new Map<string, number>();
  #process: Wired | undefined;
  #told = 0;

  constructor({ till, merchants, mutate }: DeskOptions) {
    this.till = till;
    this.merchants = merchants;
    this.network = new ModelNetwork(till.clock);
    this.firstDay = eatDate(till.clock.now());
    this.#mutate = mutate;
  }

  /** Does something and then checks everything; a process that dies of it is replaced by the next deed. */
  async perform(deed: (wired: Wired) => Promise<unknown>): Promise<void> {
    count('deeds');
    try {
      await deed(await this.#alive());
    } catch (error) {
      if (error instanceof Killed) {
        count('deaths');
        await this.#bury();
      } else if (!isRefusal(error)) throw error;
    }
    await this.#check();
  }

  /** Kills the process at its `nth` commit from now. */
  async doom(nth: number, moment: Moment): Promise<void> {
    await this.#bury();
    const wired = await this.#alive(false);
    killAt(wired, nth, moment);
    this.#mutate?.(wired);
  }

  async advance(ms: number): Promise<void> {
    this.till.clock.advance(ms);
    await this.network.settle();
  }

  merchant(m: number): Merchant {
    return this.merchants[m % this.merchants.length]!;
  }

  /** One of the actors that are stored there, the oldest first; undefined: there is none. */
  async pick<Doc extends ActorDoc = Stored>(stored: Driven, nth: number): Promise<Doc | undefined> {
    const all = this.till.db.collection<Stored>(stored);
    const found = await all.countDocuments();
    if (found === 0) return undefined;
    const [doc] = await all
      .find({})
      .sort({ _id: 1 })
      .skip(nth % found)
      .limit(1)
      .toArray();
    return doc as ActorDoc as Doc | undefined;
  }

  pay(m: number, amount: number, phone: string): Promise<void> {
    return this.perform((wired) => create(wired, this.merchant(m), amount, phone, 'live'));
  }

  /** A payment that the network confirms at once. */
  earn(m: number, amount: number): Promise<void> {
    return this.perform(async (wired) => {
      const id = await create(wired, this.merchant(m), amount, '255740000001', 'live');
      await this.#heard(wired, id, { type: 'ask.succeeded' });
    });
  }

  /** Makes the calls and fires the timers that are due, as workers and sweeper would. */
  drive(): Promise<void> {
    return this.perform(async (wired) => {
      await this.network.settle();
      const { actors, queues, handover, lanes, clock } = wired;
      const log = createLog('silent');
      const workers = new ActorWorkers({ actors, queues, handover, lanes, clock, log });
      for (const [plural, machine] of Object.entries(driven)) {
        const now = new Date(clock.now());
        const due = { $or: [{ 'calls.notBefore': { $lte: now } }, { dueAt: { $lte: now } }] };
        for (const { _id } of await this.till.db.collection<Stored>(plural).find(due).toArray()) {
          for (let visit = 0; visit < visitsMax; visit += 1) {
            const doc = await actors.read({ machine, id: _id });
            const open = doc?.calls.filter(({ notBefore }) => notBefore <= now) ?? [];
            for (const call of open) await workers.make(machine, _id, call.id, 0);
            const after = await actors.read({ machine, id: _id });
            if (open.length === 0 || after?.seq === doc?.seq) break;
          }
          await workers.wake(machine, _id);
        }
      }
    });
  }

  /** The network's own word on a payment, in whatever state it is: what it says of money is so in its book, too. */
  hear(nth: number, event: { type: string; [field: string]: unknown }): Promise<void> {
    return this.perform(async (wired) => {
      const doc = await this.pick('collections', nth);
      if (doc) await this.#heard(wired, doc._id, event);
    });
  }

  async #heard(wired: Wired, id: string, event: { type: string }): Promise<void> {
    const { data } = (await this.till.db.collection<Stored>('collections').findOne({ _id: id }))!;
    const { msisdn, amountTzs } = data;
    const payment = await this.network.paymentOf(id, { msisdn, amountTzs: Number(amountTzs) });
    const isPaid = /succeeded$/.test(event.type);
    if (isPaid && payment.debitedAtMs === undefined) await this.network.book.payAfterAll(payment);
    await this.tell(wired, 'collections', id, { ...event, ...(isPaid ? { receipt: payment.receipt } : {}) });
  }

  /** An answer of the network to one of the actors, whose call was long given up. */
  tell(
    wired: Wired,
    stored: Driven,
    id: string,
    event: { type: string; [field: string]: unknown },
  ): Promise<unknown> {
    this.#told += 1;
    const at = wired.clock.now();
    const stepId = `${id}.told.${this.#told}`;
    return wired.actors.send(
      { machine: driven[stored], id },
      { ...event, at, askedAt: at },
      { stepId, cause: { kind: 'rail', id: stepId }, answers: { callId: `${id}.gone`, factual: true } },
    );
  }

  /** An operator's event to one of the actors, as the route takes it: proposed, where it takes two. */
  order(
    by: Person,
    stored: Driven,
    nth: number,
    event: { type: string; [field: string]: unknown },
  ): Promise<void> {
    return this.perform(async (wired) => {
      const doc = await this.pick(stored, nth);
      if (doc) await this.command(wired, by, doc._id, event);
    });
  }

  /** The same by two, of whom the second agrees to what the first proposed. */
  async orderByTwo(
    stored: Driven,
    nth: number,
    event: { type: string; [field: string]: unknown },
  ): Promise<void> {
    await this.order('ann', stored, nth, event);
    await this.order('ben', stored, nth, event);
  }

  async command(
    wired: Wired,
    by: Person,
    id: string,
    event: { type: string; [field: string]: unknown },
  ): Promise<void> {
    await sendEvent(wired).handler({
      ...this.requestBy(by),
      params: { id },
      body: { reason: 'model', ...event },
    });
  }

  /** What every request of an operator has. */
  requestBy(name: Person) {
    const nobodyWaits = { raw: undefined, stream: undefined, idempotencyKey: undefined, onGone: () => {} };
    const recordWrite = (): Write => {
      throw new Error('an operator’s request records no answer');
    };
    const requestId = newId('req', this.till.clock.now());
    return { principal: { name, role: 'admin' as const }, requestId, query: {}, recordWrite, ...nobodyWaits };
  }

  settle(): Promise<void> {
    return this.perform(({ settlements }) => settlements.settleDue(sweeping));
  }

  /** Forgets everything, for the next run. */
  async clear(): Promise<void> {
    await this.#bury();
    const entries = this.till.db.collection<{ type: string }>('journal_entries').find({});
    for await (const { type } of entries) count(type);
    const kept = new Set(['merchants', 'fee_plans', 'leases', 'shared_parts']);
    for (const { name } of await this.till.db.listCollections({}, { nameOnly: true }).toArray()) {
      if (!kept.has(name)) await this.till.db.collection(name).deleteMany({});
    }
  }

  async #alive(isWhole = true): Promise<Wired> {
    if (!this.#process) {
      this.#process = await this.till.process();
      const { rails } = this.#process;
      Object.assign(rails, { live: this.network.rail(rails.test) });
      if (isWhole) this.#mutate?.(this.#process);
    }
    return this.#process;
  }

  async #bury(): Promise<void> {
    this.network.doom(undefined);
    await this.#process?.lease.end();
    this.#process = undefined;
  }

  /** The invariants of the books (CONTRACT 18): by the auditor, by what the actors' states add up to, and by the past. */
  async #check(): Promise<void> {
    const standings = await readStandings(this.till.db);
    for (const { _id, quarantined } of Object.values(standings).flat())
      expect(quarantined?.why, `quarantined: ${_id}`).to.equal(undefined);
    for (const doc of standings.collections) this.#checkPast(doc);
    await Promise.all([expectSound(this.till, false), this.#checkBooks(standings)]);
    const again = [...this.network.sent].filter(([, times]) => times > 1);
    expect(again, 'what is sent once').to.deep.equal([]);
    const { debited_twice, paid_twice } = this.network.book.invariants();
    expect({ debited_twice, paid_twice }).to.deep.equal({ debited_twice: [], paid_twice: [] });
  }

  /** Each account of each merchant, and each of our own, is what the states of all actors add up to. */
  async #checkBooks(standings: Standings): Promise<void> {
    const { db } = this.till;
    const [{ merchants, house }, journal, balances] = await Promise.all([
      reckon(db, standings, this.#refundedBefore),
      journalled(db),
      Promise.all(this.merchants.map(({ _id }) => readBalance(db, _id, 'live'))),
    ]);
    for (const kind of houseAccounts) expect(journal.get(kind) ?? 0, kind).to.equal(house[kind]);
    for (const [m, { _id }] of this.merchants.entries()) {
      const of = (kind: string) => journal.get(`merchant_${kind}:${_id}`) ?? 0;
      const { free, reserved, mayOwe } = merchants.get(_id) ?? { free: 0, reserved: 0, mayOwe: false };
      const balance = balances[m]!;
      expect(balance.pending + balance.available, 'money owed').to.equal(free);
      expect(balance.reserved, 'reserved').to.equal(reserved);
      expect(balance.pending, 'pending').to.be.at.least(0);
      if (!mayOwe) expect(balance.available, 'available').to.be.at.least(0);
      const kept = { pending: of('pending'), available: of('available'), reserved: of('reserved') };
      expect({ ...balance }, 'what the merchant sees').to.deep.equal(kept);
    }
  }

  /**
   * Of each day that was gone through, what lies between statement and books is told, to the shilling. Not of any moment:
   * a difference looks at the books again after a quarter of an hour.
   */
  async checkDays(): Promise<void> {
    const { reconciliations } = await readStandings(this.till.db);
    for (const day of reconciliations) await this.#checkDay(day);
  }

  async #checkDay({ _id, state, data }: Actor): Promise<void> {
    if (!/^(open|closed)/.test(state)) return;
    const { date, rail, currency, closingTzs } = data as ReconciliationDoc['data'];
    const endMs = dateDueAtMs(date) + dayMs;
    const agreement = await agreementAt(this.till.db, { rail, currency }, endMs, closingTzs);
    expect(agreement.unexplainedTzs, `unexplained of ${_id}: ${JSON.stringify(agreement)}`).to.equal(0);
  }

  /** Final means final; the one way on is a late success. What was refunded of a false success is remembered. */
  #checkPast({ _id, status = '', state, snapshot }: Actor): void {
    const before = this.#final.get(_id);
    if (before !== undefined && before !== status)
      expect(status, `${_id} was ${before}`).to.equal('succeeded');
    if (status !== 'created') this.#final.set(_id, status);
    if (state === 'succeeded.reversed' && !this.#refundedBefore.has(_id))
      this.#refundedBefore.set(_id, Number(snapshot.context.refundedTzs));
  }
}

const dayMs = 86_400_000;

export function count(what: string): void {
  Desk.seen.set(what, (Desk.seen.get(what) ?? 0) + 1);
}

/**
 * What the chart or the books refuse is an answer, and no harm done; a payment that is refused because pushes wait too
 * long (nobody pushes here until `drive`) was not promised.
 */
function isRefusal(error: unknown): boolean {
  if (error instanceof AppError) return error.httpStatus < 500;
  return error instanceof StepRefused || error instanceof StepRaced || error instanceof NoRail;
}
