import type { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { AnyStateMachine } from 'xstate';
import { type CollectionContext, collectionMachine, type FailureCode } from '../../machines/collection.ts';
import { newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import type { PushOutcome, PushRequest, Rail, StatusAnswer } from '../../src/rails/rails.ts';
import type { Faults } from '../../tools/simulator/faults.ts';
import { Chart, earliestOf, type Position } from './charts.ts';
import { until } from './until.ts';

/**
 * The conformance kit of a rail (CONTRACT 19): the same facts, stated of any door to a network. A rail is not judged by
 * what it says alone but by where the collection's chart gets with it, against what the network knows moved.
 */
export interface Story {
  msisdn: string;
  what: string;
  /** A status, a failure code, `late` or `underReview`. */
  ends: string;
  /** The answer to its push never comes. */
  hangs?: boolean;
}

export interface Line {
  faults: Faults;
  /** The same rail, which waits for an answer for a moment only: for answers that never come. */
  hurried: Rail;
  sessionsMade(): number;
  counts: Record<'push' | 'query' | 'reversal', number>;
}

export interface Door {
  rail: Rail;
  /** The rail's and the network's; the kit moves it. */
  clock: MovableClock;
  stories: readonly Story[];
  /** Endings that have a number, where the door cannot see them all itself. */
  scripted?: readonly string[];
  /** Collections whose money moved, once per debit. */
  debits(): string[];
  /** What is wrong with the network's books; empty when nothing is. */
  breaches(): string[];
  /** Hears every bell that rings for a collection, until the answer is called. */
  onBell(heard: (collectionId: string) => void): () => void;
  /** Result codes that callbacks about a collection claimed; waits for those under way, as time is not waited for. */
  claims?(collectionId: string): Promise<readonly string[]>;
  /** Doors that go over a line can have it broken. */
  line?: Line;
  close(): Promise<void>;
}

/** A push that went well: paid, or (asynchronous) on its way. */
const taken = ['succeeded', 'accepted'];

const never = new AbortController().signal;

/** States the facts of the rail behind a door. */
export function describeRail(name: string, open: () => Promise<Door>, over: 'a line' | 'no line'): void {
  describe(name, function () {
    this.timeout(120_000);
    let door: Door;
    before(async () => {
      door = await open();
    });
    after(() => door.close());
    afterEach(() => {
      door.line?.faults.clear();
      expect(door.breaches(), 'the books of the network').to.deep.equal([]);
    });
    describePort(() => door);
    describeStories(() => door);
    if (over === 'a line') describeLine(() => door as Door & { line: Line });
  });
}

function describePort(door: () => Door): void {
  it('promises what its terms say', () => {
    const { capabilities, terms } = door().rail;
    expect(capabilities.promptLifeMs).to.equal(terms.promptLifeMs);
    expect(capabilities.notFoundGraceMs).to.equal(terms.notFoundGraceMs);
    expect(capabilities.queryableBy).to.include('reference');
  });

  it('gives a push the time that every rail gives, for the delay is ours', () => {
    const { pushWindowMs, promptLifeMs } = door().rail.terms;
    expect(pushWindowMs).to.equal(limits.pushWindowMs);
    expect(promptLifeMs).to.be.above(0);
  });

  it('has a scripted number for every failure code it can produce', () => {
    const scripted = new Set(door().scripted ?? door().stories.map(({ ends }) => ends));
    for (const code of door().rail.capabilities.producedFailureCodes) {
      expect(scripted.has(code), `a number for ${code}`).to.equal(true);
    }
  });

  it('makes one debit of the same reference sent twice', async () => {
    const { rail, clock } = door();
    const request = requestOf(door());
    const first = await rail.requestPayment(request, never);
    expect(first.kind).to.be.oneOf(['accepted', 'succeeded']);
    const second = await rail.requestPayment(request, never);
    expect(second.kind, 'the second is no failure').to.be.oneOf(['accepted', 'unknown']);
    clock.advance(20_000);
    expect((await ask(door(), request)).kind).to.equal('succeeded');
    expect(
      door()
        .debits()
        .filter((id) => id === request.collectionId),
    ).to.have.lengthOf(1);
  });

  it('sends nothing after notAfter', async () => {
    const { rail, clock } = door();
    const request = { ...requestOf(door()), notAfterMs: clock.now() - 1 };
    const outcome = await rail.requestPayment(request, never);
    expect(outcome).to.include({ kind: 'notAttempted', why: 'too_late' });
    clock.advance(60_000);
    expect(door().debits()).not.to.include(request.collectionId);
  });

  it('claims a push once, before anything of it is sent, and sends nothing where that is refused', async () => {
    const { rail, clock } = door();
    const pushes = door().line?.counts.push;
    const refused = requestOf(door());
    const outcome = await rail.requestPayment({ ...refused, claim: async () => false }, never);
    expect(outcome).to.include({ kind: 'notAttempted', why: 'taken' });
    expect(door().line?.counts.push).to.equal(pushes);
    let claims = 0;
    const claim = async () => {
      claims += 1;
      expect(door().line?.counts.push, 'sent before the claim').to.equal(pushes);
      return true;
    };
    const request = { ...requestOf(door()), claim };
    expect((await rail.requestPayment(request, never)).kind).to.be.oneOf(taken);
    expect(claims).to.equal(1);
    clock.advance(60_000);
    expect(door().debits()).not.to.include(refused.collectionId);
  });

  it('sends nothing when its time ran out during the claim', async () => {
    const { rail, clock } = door();
    const request = requestOf(door());
    const claim = async () => {
      clock.advance(rail.terms.pushWindowMs + 1);
      return true;
    };
    const outcome = await rail.requestPayment({ ...request, claim }, never);
    expect(outcome).to.include({ kind: 'notAttempted', why: 'too_late' });
    clock.advance(60_000);
    expect(door().debits()).not.to.include(request.collectionId);
  });

  it('finds nothing of a payment that was never pushed, and says so without a failure', async () => {
    const { rail, clock } = door();
    const query = { collectionId: newId('col', clock.now()), msisdn: '255712345678', amountTzs: 500 };
    expect((await rail.queryStatus({ ...query, pushedAtMs: null }, never)).kind).to.equal('notFound');
  });

  it('reverses a payment that was made', async () => {
    const { rail, clock } = door();
    const request = requestOf(door());
    await rail.requestPayment(request, never);
    clock.advance(20_000);
    const paid = (await ask(door(), request)) as Extract<StatusAnswer, { kind: 'succeeded' }>;
    expect(paid.kind).to.equal('succeeded');
    const { collectionId, amountTzs } = request;
    const reversal = { collectionId, receipt: paid.receipt!, amountTzs };
    const reversed = (await rail.reversePayment!(reversal, never)).kind;
    if (rail.capabilities.callbacks !== 'always') return expect(reversed).to.equal('succeeded');
    // Asynchronous: only taken, and found out by asking.
    expect(reversed).to.equal('accepted');
    return expect((await ask(door(), request)).kind).to.equal('reversed');
  });

  it('claims a refund once, at the moment of sending, and sends nothing where that is refused or too late', async () => {
    const { rail, clock, line } = door();
    const request = requestOf(door());
    await rail.requestPayment(request, never);
    clock.advance(20_000);
    const paid = (await ask(door(), request)) as Extract<StatusAnswer, { kind: 'succeeded' }>;
    const { collectionId } = request;
    const order = () => ({
      ...{ collectionId, receipt: paid.receipt!, amountTzs: 100, refundId: newId('rf', clock.now()) },
    });
    const sent = line?.counts.reversal;
    let claims = 0;
    const claim = async () => {
      claims += 1;
      expect(line?.counts.reversal, 'sent before the claim').to.equal(sent);
      return true;
    };
    const notAfterMs = clock.now() + 30_000;
    const refused = { notAfterMs, claim: async () => false };
    const late = { notAfterMs: clock.now() - 1, claim };
    for (const [once, why] of [[refused, 'taken'] as const, [late, 'too_late'] as const]) {
      const outcome = await rail.reversePayment!({ ...order(), once }, never);
      expect(outcome).to.include({ kind: 'notAttempted', why });
    }
    expect([line?.counts.reversal, claims]).to.deep.equal([sent, 0]);
    const outcome = await rail.reversePayment!({ ...order(), once: { notAfterMs, claim } }, never);
    expect(outcome.kind).to.be.oneOf(['succeeded', 'accepted']);
    expect(claims).to.equal(1);
  });

  it('answers a probe, and a probe pushes nothing', async () => {
    const pushes = door().line?.counts.push;
    expect(await door().rail.probe(AbortSignal.timeout(5_000))).to.equal('up');
    expect(door().line?.counts.push).to.equal(pushes);
  });
}

function describeStories(door: () => Door): void {
  it('ends every scripted number as its story says, with one debit where money moved and none elsewhere', async () => {
    for (const { msisdn, what, ends, hangs } of door().stories) {
      const rail = hangs && door().line ? door().line!.hurried : door().rail;
      const walked = await walk({ ...door(), rail }, msisdn);
      const about = `${msisdn}, ${what}: ${walked.states.join(' → ')}`;
      expect(walked.ending, about).to.equal(ends);
      expect(walked.pushes, `pushes of ${about}`).to.equal(1);
      const debits = door()
        .debits()
        .filter((id) => id === walked.collectionId).length;
      const isDebited = ['succeeded', 'late'].includes(ends);
      if (ends !== 'underReview') expect(debits, `debits of ${about}`).to.equal(isDebited ? 1 : 0);
      if (ends === 'succeeded') {
        expect(
          walked.states.some((state) => /^(failed|expired)/.test(state)),
          about,
        ).to.equal(false);
      }
      const captures = walked.asked.filter((action) => action === 'postCapture');
      expect(captures, `captures of ${about}`).to.have.lengthOf(ends === 'succeeded' ? 1 : 0);
      expect(walked.asked.filter((action) => action === 'recordEvent').length).to.be.at.most(1);
    }
  }).timeout(300_000);

  it('takes no final state back, whatever it hears later', async () => {
    const { chart, position } = await walk(
      door(),
      door().stories.find(({ ends }) => ends === 'succeeded')!.msisdn,
    );
    const at = door().clock.now();
    for (const type of ['ask.failed', 'ask.expired', 'ask.reversed', 'ask.notFound', 'push.failed']) {
      const after = chart.step(position, { type, at, askedAt: at, code: 'declined' });
      expect(after.state, type).to.equal(position.state);
    }
  });
}

function describeLine(door: () => Door & { line: Line }): void {
  const broken = ['resets', 'hangs', 'fails', 'garbles', 'cuts'] as const;
  for (const does of broken) {
    for (const when of ['before', 'after'] as const) {
      it(`knows nothing of a push whose answer ${does} ${when} the money moves, and asks`, async () => {
        const { line, rail, clock } = door();
        const request = requestOf(door());
        line.faults.add({ operation: 'push', does, when, times: 1, msisdn: request.msisdn });
        const asked = does === 'hangs' ? line.hurried : rail;
        const outcome = await asked.requestPayment(request, never);
        expect(outcome.kind, JSON.stringify(outcome)).to.equal('unknown');
        clock.advance(20_000);
        const answer = await ask(door(), request);
        expect(answer.kind).to.equal(when === 'after' ? 'succeeded' : 'notFound');
        const debits = door()
          .debits()
          .filter((id) => id === request.collectionId);
        expect(debits).to.have.lengthOf(when === 'after' ? 1 : 0);
      });
    }

    it(`knows nothing when the answer to a question ${does}`, async () => {
      const { line, rail, clock } = door();
      const request = requestOf(door());
      await rail.requestPayment(request, never);
      clock.advance(20_000);
      line.faults.add({ operation: 'query', does, when: 'before', times: 1 });
      const asked = does === 'hangs' ? line.hurried : rail;
      expect((await ask({ ...door(), rail: asked }, request)).kind).to.equal('unknown');
      expect((await ask(door(), request)).kind).to.equal('succeeded');
    });
  }

  it('goes on with its session after a stray 401 without a code, and pushes once', async () => {
    const { line, rail } = door();
    const request = requestOf(door());
    await rail.queryStatus({ ...request, pushedAtMs: null }, never);
    const made = line.sessionsMade();
    line.faults.add({ operation: 'push', does: 'refuses', when: 'before', times: 1 });
    expect((await rail.requestPayment(request, never)).kind).to.be.oneOf(taken);
    expect(line.sessionsMade() - made, 'new sessions').to.equal(0);
    line.faults.add({ operation: 'push', does: 'refuses', when: 'before', times: 9 });
    for (const why of ['session_refused', 'gate_refused']) {
      const refused = await rail.requestPayment(requestOf(door()), never);
      expect(refused).to.include({ kind: 'notAttempted', why });
    }
    expect(line.sessionsMade() - made, 'new sessions').to.be.at.most(1);
  });

  it('refreshes no session on 401 with INS-6', async () => {
    const { line, rail } = door();
    await rail.queryStatus({ ...requestOf(door()), pushedAtMs: null }, never);
    const made = line.sessionsMade();
    line.faults.add({ operation: 'push', does: 'answers', when: 'before', times: 1, code: 'INS-6' });
    const outcome = await rail.requestPayment(requestOf(door()), never);
    expect(outcome).to.include({ kind: 'failed', code: 'declined' });
    expect(line.sessionsMade()).to.equal(made);
  });

  it('asks about a code that nobody has mapped, and never fails by it', async () => {
    const { line, rail } = door();
    for (const code of ['INS-7777', 'INS-', 'constructor', '0']) {
      line.faults.add({ operation: 'push', does: 'answers', when: 'after', times: 1, code });
      const outcome = await rail.requestPayment(requestOf(door()), never);
      expect(outcome, code).to.include({ kind: 'unknown', why: 'unmapped_code' });
      expect(outcome.evidence?.code).to.equal(code);
    }
  });

  it('may push again after 403 and 429 without a code: nothing reached the platform', async () => {
    const { line, rail } = door();
    for (const [httpStatus, why] of [
      [403, 'session_refused'],
      [429, 'gate_busy'],
    ] as const) {
      const request = requestOf(door());
      line.faults.add({ operation: 'push', does: 'refuses', when: 'before', times: 9, httpStatus });
      const outcome = await rail.requestPayment(request, never);
      expect(outcome, String(httpStatus)).to.include({ kind: 'notAttempted', why });
      line.faults.clear();
      expect((await pushedAnew(rail, request)).kind).to.be.oneOf(taken);
      expect(
        door()
          .debits()
          .filter((id) => id === request.collectionId).length,
      ).to.be.at.most(1);
    }
  });

  it('leaves a push that is stopped while it waits as unknown', async () => {
    const { line, rail } = door();
    const stopping = new AbortController();
    const { push } = line.counts;
    const pushing = rail.requestPayment({ ...requestOf(door()), msisdn: '255740000022' }, stopping.signal);
    expect(await until(async () => line.counts.push > push), 'it is on its way').to.equal(true);
    stopping.abort();
    expect(await pushing).to.include({ kind: 'unknown', why: 'stopped' });
  });
}

/** As the chart does: what was not attempted is pushed again, for the session may be on the point of being replaced. */
async function pushedAnew(rail: Rail, request: PushRequest): Promise<PushOutcome> {
  let outcome: PushOutcome = { kind: 'notAttempted', why: 'session_refused' };
  await until(async () => {
    outcome = await rail.requestPayment(request, never);
    return outcome.kind !== 'notAttempted';
  });
  return outcome;
}

let lastPhone = 10_000_000;

/** A payment of somebody who pays, each on a phone of their own. */
function requestOf({ clock, rail }: Door): PushRequest {
  lastPhone += 1;
  return {
    collectionId: newId('col', clock.now()),
    msisdn: `2557${lastPhone}`,
    amountTzs: 5_000,
    description: 'Two kilos of coffee – "best" #1',
    notAfterMs: clock.now() + rail.terms.pushWindowMs,
    claim: async () => true,
  };
}

function ask({ rail, clock }: Door, { collectionId, msisdn, amountTzs }: PushRequest): Promise<StatusAnswer> {
  // The latest moment at which the push may have begun.
  const pushedAtMs = clock.now() - 20_000;
  return rail.queryStatus({ collectionId, msisdn, amountTzs, pushedAtMs }, never);
}

export interface Walked {
  collectionId: string;
  chart: Chart;
  position: Position;
  /** States in the order they were reached. */
  states: string[];
  /** Every effect that was asked for. */
  asked: string[];
  /** That may have reached the network. */
  pushes: number;
  ending: string;
}

const stepsMax = 300;

/** Walks one payment over its chart with this rail, from the push to where it rests; time is moved, not waited for. */
export async function walk(door: Door, msisdn: string): Promise<Walked> {
  const { rail, clock } = door;
  const collectionId = newId('col', clock.now());
  const chart = new Chart(collectionMachine as unknown as AnyStateMachine);
  const input = { at: clock.now(), terms: rail.terms, acceptsLate: false };
  let position = chart.begin(input);
  const walked = { states: [position.state], asked: [] as string[], pushes: 0 };
  const calls = position.asked.map(({ type }) => type);
  const take = (next: Position) => {
    if (next.state !== position.state) walked.states.push(next.state);
    position = next;
    walked.asked.push(...next.asked.map(({ type }) => type));
    calls.push(...next.asked.map(({ type }) => type).filter((type) => /^(pushPrompt|askRail)$/.test(type)));
  };
  const send = (event: { type: string }) => take(chart.step(position, { ...event, at: clock.now() }));
  const deaf = door.onBell((id) => {
    if (id === collectionId) send({ type: 'rail.noticed' });
  });
  for (let steps = 0; steps < stepsMax; steps += 1) {
    const context = position.context as unknown as CollectionContext;
    const payment = { collectionId, msisdn, amountTzs: 5_000 };
    const call = calls.shift();
    if (call === 'pushPrompt') {
      const askedAt = clock.now();
      const claim = async () => true;
      const request = { ...payment, description: 'Coffee', notAfterMs: context.notAfter, claim };
      const outcome = await rail.requestPayment(request, never);
      if (outcome.kind !== 'notAttempted') walked.pushes += 1;
      send({ ...pushEvent(outcome), askedAt } as { type: string });
    } else if (call === 'askRail') {
      clock.advance(Math.max(0, context.askedAt - clock.now()));
      const askedAt = clock.now();
      const claims = async () => (await door.claims?.(collectionId)) ?? [];
      const isEnded = !position.state.startsWith('created');
      const query = { ...payment, pushedAtMs: context.pushedAt, claims, isEnded };
      const answer = await rail.queryStatus(query, never);
      send({ ...askEvent(answer), askedAt } as { type: string });
    } else {
      const timer = earliestOf(position.timers);
      if (!timer || position.state.startsWith('created.underReview')) break;
      // A bell that rings by itself may come first.
      const isBell = await door.rail.probe(never).then(() => calls.length > 0);
      if (isBell) continue;
      clock.advance(Math.max(0, timer.dueAt - clock.now()));
      take(chart.fire(position, timer.id));
    }
  }
  deaf();
  return { collectionId, chart, position, ...walked, ending: endingOf(position) };
}

function pushEvent(outcome: PushOutcome): { type: string } {
  return { ...outcome, type: `push.${outcome.kind}` };
}

function askEvent(answer: StatusAnswer): { type: string } {
  const isUndecided = answer.kind === 'pending' || answer.kind === 'unknown';
  if (isUndecided) return { type: 'ask.undecided', answer: answer.kind } as { type: string };
  return { ...answer, type: `ask.${answer.kind}` };
}

function endingOf({ state, context }: Position): string {
  if (state.includes('latePaid')) return 'late';
  if (state.startsWith('created.underReview')) return 'underReview';
  if (state.startsWith('failed')) return (context.failureCode as FailureCode | null) ?? 'failed';
  return state.split('.', 1)[0]!;
}
