import { type ActorDoc, StepRaced, StepRefused, type Write } from '@kusanya/durable-actors';
import { expect } from 'chai';
import fc from 'fast-check';
import { ActorWorkers } from '../../packages/durable-actors/src/work.ts';
import { NoRail } from '../../src/collections/collections.ts';
import { readBalance } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import type { Merchant } from '../../src/principal.ts';
import type { Wired } from '../../src/wiring.ts';
import { create, expectSound, Killed, killAt, type Moment, sweeping, type Till } from './till.ts';

/** One process at a time at work on a till, which dies and is replaced; and the deeds that a model test makes. */

interface Stored extends ActorDoc {
  status: string;
  data: { amountTzs: number; feeTzs: number };
}

type Mutate = (wired: Wired) => void;

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

export class Desk {
  /** How often what happened on all desks, so that a test can say what it saw: deeds, deaths, types of entries. */
  static readonly seen = new Map<string, number>();
  readonly #till: Till;
  readonly #merchants: Merchant[];
  readonly #mutate: Mutate | undefined;
  readonly #ids: string[] = [];
  readonly #final = new Map<string, string>();
  #process: Wired | undefined;
  #told = 0;

  constructor({ till, merchants, mutate }: DeskOptions) {
    this.#till = till;
    this.#merchants = merchants;
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
      }
      // What the chart or the books refuse is an answer to an operator, and no harm done; a payment that is refused
      // because pushes wait too long (nobody pushes here until `drive`) was not promised.
      else if (!(error instanceof StepRefused || error instanceof StepRaced || error instanceof NoRail))
        throw error;
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

  advance(ms: number): void {
    this.#till.clock.advance(ms);
  }

  pay(m: number, amount: number, phone: string): Promise<void> {
    const merchant = this.#merchants[m % this.#merchants.length]!;
    return this.perform(async (wired) => {
      this.#ids.push(await create(wired, merchant, amount, phone));
    });
  }

  /** Makes the calls and fires the timers that are due, as workers and sweeper would. */
  drive(): Promise<void> {
    return this.perform(async (wired) => {
      const { actors, queues, handover, lanes, clock } = wired;
      const log = createLog('silent');
      const workers = new ActorWorkers({ actors, queues, handover, lanes, clock, log });
      for (const [machine, plural] of [
        ['collection', 'collections'],
        ['settlement', 'settlements'],
      ] as const) {
        const now = new Date(clock.now());
        const due = { $or: [{ 'calls.notBefore': { $lte: now } }, { dueAt: { $lte: now } }] };
        for (const { _id } of await this.#till.db.collection<Stored>(plural).find(due).toArray()) {
          const doc = await actors.read({ machine, id: _id });
          for (const call of doc?.calls ?? []) {
            if (call.notBefore <= now) await workers.make(machine, _id, call.id, 0);
          }
          await workers.wake(machine, _id);
        }
      }
    });
  }

  /** An event to one of the collections, in whatever state it is; `isFact`: the rail's own word. */
  tell(nth: number, event: { type: string; [field: string]: unknown }, isFact: boolean): Promise<void> {
    return this.perform(async ({ actors, clock }) => {
      const id = this.#ids[nth % Math.max(1, this.#ids.length)];
      if (id === undefined) return;
      this.#told += 1;
      const stepId = `${id}.told.${this.#told}`;
      const at = clock.now();
      // The network's receipts are its own for each payment; people may type one twice.
      const receipt = isFact && event.receipt ? { receipt: `${event.receipt}${id.slice(-8)}` } : {};
      await actors.send(
        { machine: 'collection', id },
        { ...event, ...receipt, at, ...(isFact ? { askedAt: at } : { reason: 'model' }) },
        {
          stepId,
          cause: isFact ? { kind: 'rail', id: stepId } : { kind: 'operator', id: 'ann' },
          ...(isFact ? { answers: { callId: `${id}.gone`, factual: true } } : {}),
        },
      );
    });
  }

  settle(): Promise<void> {
    return this.perform(({ settlements }) => settlements.settleDue(sweeping));
  }

  /** Holds or releases one of the settlements. */
  keepBack(nth: number, type: 'operator.held' | 'operator.released'): Promise<void> {
    return this.perform(async ({ actors, clock }) => {
      const all = await this.#till.db.collection<Stored>('settlements').find({}).sort({ _id: 1 }).toArray();
      const doc = all[nth % Math.max(1, all.length)];
      if (!doc) return;
      this.#told += 1;
      const event = { type, at: clock.now(), reason: 'model' };
      const cause = { kind: 'operator', id: 'ann' } as const;
      const stepId = `${doc._id}.told.${this.#told}`;
      await actors.send({ machine: 'settlement', id: doc._id }, event, { stepId, cause });
    });
  }

  /** One payment down every way that money can go. */
  async tour(): Promise<void> {
    const paid = { type: 'ask.succeeded', receipt: 'R' };
    for (let i = 0; i < 6; i += 1) await this.pay(0, 10_000, '255700000021');
    for (const nth of [0, 1, 2, 3]) await this.tell(nth, { type: 'ask.expired' }, true);
    for (const nth of [0, 1, 2, 4, 5]) await this.tell(nth, paid, true);
    await this.tell(0, { type: 'operator.acceptedLate' }, false);
    await this.tell(1, { type: 'operator.returnedLate' }, false);
    await this.drive();
    await this.tell(4, { type: 'operator.reversed' }, false);
    this.advance(2 * 86_400_000);
    await this.settle();
    await this.tell(5, { type: 'operator.reversed' }, false);
    await this.tell(0, { type: 'operator.reversed' }, false);
    await this.tell(5, { type: 'ask.failed', code: 'declined' }, true);
  }

  /** Forgets everything, for the next run. */
  async clear(): Promise<void> {
    await this.#bury();
    const entries = this.#till.db.collection<{ type: string }>('journal_entries').find({});
    for await (const { type } of entries) count(type);
    const kept = new Set(['merchants', 'fee_plans', 'leases', 'shared_parts']);
    for (const { name } of await this.#till.db.listCollections({}, { nameOnly: true }).toArray()) {
      if (!kept.has(name)) await this.#till.db.collection(name).deleteMany({});
    }
  }

  async #alive(isWhole = true): Promise<Wired> {
    if (!this.#process) {
      this.#process = await this.#till.process();
      if (isWhole) this.#mutate?.(this.#process);
    }
    return this.#process;
  }

  async #bury(): Promise<void> {
    await this.#process?.lease.end();
    this.#process = undefined;
  }

  /** The invariants of the books (CONTRACT 18), from three sides: the auditor, the collections' own states, the past. */
  async #check(): Promise<void> {
    await expectSound(this.#till, false);
    const { db } = this.#till;
    const docs = await db.collection<Stored>('collections').find({}).toArray();
    const owed = new Map<string, { total: number; reserved: number }>();
    for (const doc of docs) {
      expect(doc.quarantined, `quarantined: ${doc._id}`).to.equal(undefined);
      this.#checkFinal(doc);
      const net = doc.data.amountTzs - doc.data.feeTzs;
      const isHeld = /latePaid\.(held|returning)/.test(doc.state);
      const sums = owed.get(doc.merchantId) ?? { total: 0, reserved: 0 };
      owed.set(doc.merchantId, sums);
      if (isHeld || doc.state === 'succeeded.standing') sums.total += net;
      if (isHeld) sums.reserved += net;
    }
    for (const { _id } of this.#merchants) {
      const { total, reserved } = owed.get(_id) ?? { total: 0, reserved: 0 };
      const balance = await readBalance(db, _id, 'test');
      expect(balance.pending + balance.available + balance.reserved, 'money owed').to.equal(total);
      expect(balance.reserved, 'reserved').to.equal(reserved);
      expect(balance.pending, 'pending').to.be.at.least(0);
    }
  }

  /** Final means final; the one way on is a late success. */
  #checkFinal({ _id, status }: Stored): void {
    const before = this.#final.get(_id);
    if (before !== undefined && before !== status)
      expect(status, `${_id} was ${before}`).to.equal('succeeded');
    if (status !== 'created') this.#final.set(_id, status);
  }
}

function count(what: string): void {
  Desk.seen.set(what, (Desk.seen.get(what) ?? 0) + 1);
}

type Model = { payments: number };
type Command = fc.AsyncCommand<Model, Desk>;

function deed(name: string, run: (desk: Desk) => Promise<void> | void, needs = 0): Command {
  return {
    check: (model) => model.payments >= needs,
    run: async (model, desk) => {
      if (needs === 0 && name.startsWith('pay')) model.payments += 1;
      await run(desk);
    },
    toString: () => name,
  };
}

const { minuteMs, dayMs } = { minuteMs: 60_000, dayMs: 86_400_000 };
const nth = fc.nat(5);
const phones = ['255700000000', '255700000001', '255700000005', '255700000021', '255700000022'];
const amounts = fc.oneof(fc.integer({ min: 1_000, max: 50_000 }), fc.constant(3_000_000_000));
const pays = fc
  .tuple(fc.nat(2), amounts, fc.constantFrom(...phones))
  .map(([m, amount, phone]) => deed(`pay(${m}, ${amount}, ${phone})`, (desk) => desk.pay(m, amount, phone)));
const drives = fc.constant(deed('drive', (desk) => desk.drive()));
const jumps = fc
  .constantFrom(-5_000, 5_000, 20_000, 90_000, 10 * minuteMs, 2 * dayMs)
  .map((ms) => deed(`jump(${ms})`, (desk) => desk.advance(ms)));
const facts = fc
  .tuple(
    nth,
    fc.constantFrom<{ type: string; code?: string; receipt?: string }>(
      ...Array.from({ length: 5 }, () => ({ type: 'ask.succeeded', receipt: 'LATE' })),
      { type: 'push.succeeded', receipt: 'PUSH' },
      { type: 'ask.expired' },
      { type: 'ask.failed', code: 'declined' },
      { type: 'ask.expired' },
      { type: 'ask.reversed' },
      { type: 'rail.noticed' },
    ),
  )
  .map(([n, event]) => deed(`${event.type}(${n})`, (desk) => desk.tell(n, event, true), 1));
const orders = fc
  .tuple(
    nth,
    fc.constantFrom<{ type: string; outcome?: string; receipt?: string }>(
      { type: 'operator.acceptedLate' },
      { type: 'operator.returnedLate' },
      { type: 'operator.reversed' },
      { type: 'operator.resolved', outcome: 'succeeded' },
      { type: 'operator.resolved', outcome: 'succeeded', receipt: 'TYPED' },
      { type: 'operator.confirmedReturn' },
    ),
  )
  .map(([n, event]) => deed(`${event.type}(${n})`, (desk) => desk.tell(n, event, false), 1));
const settles = fc.constantFrom(0, dayMs, 3 * dayMs).map((ms) =>
  deed(
    `settle(in ${ms})`,
    (desk) => {
      desk.advance(ms);
      return desk.settle();
    },
    1,
  ),
);
const keeps = fc
  .tuple(nth, fc.constantFrom('operator.held' as const, 'operator.released' as const))
  .map(([n, type]) => deed(`${type}(${n})`, (desk) => desk.keepBack(n, type), 1));
const kills = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom<Moment>('before', 'after'))
  .map(([n, moment]) => deed(`kill(${moment} ${n})`, (desk) => desk.doom(n, moment), 1));

/** Everything that may happen; what matters most is there more than once, since all are drawn alike. */
export const deeds: fc.Arbitrary<Command>[] = [
  ...[pays, pays, pays, pays, drives, drives, jumps],
  ...[facts, facts, facts, facts, facts, orders, orders, orders, settles, settles, keeps, kills, kills],
];
