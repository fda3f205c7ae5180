import { expect } from 'chai';
import { Collection, ended, endedStates, type Told } from '../support/collection.ts';
import { hourMs, startMs } from '../support/moves.ts';

const second = 1_000;
const minute = 60 * second;
const told = ['recordEvent', 'openDeliveries'];

function succeeded(): Collection {
  const collection = new Collection().wait(second).send({ type: 'rail.noticed' }).wait(second);
  return collection.send({ type: 'push.succeeded', receipt: 'R1' });
}

function reach(state: string): Collection {
  const collection = endedStates[state]!();
  expect(collection.state, 'the way').to.equal(state);
  return collection;
}

const operator = (type: string): Told => ({ type, reason: 'looked into it' }) as Told;
const statuses = ['failed', 'expired'] as const;

describe('collection: succeeded', () => {
  const contradictions: Told[] = [
    { type: 'push.failed', code: 'declined' },
    { type: 'ask.failed', code: 'declined' },
    { type: 'ask.expired' },
    { type: 'ask.reversed' },
    { type: 'reverse.succeeded' },
  ];
  for (const event of contradictions) {
    it(`is never overwritten: ${event.type} is an alert and nothing else`, () => {
      const collection = succeeded();
      const before = { ...collection.context };
      collection.wait(second).send(event);
      expect([collection.state, collection.asked]).to.deep.equal([
        'succeeded.standing',
        ['recordContradiction'],
      ]);
      expect(collection.context).to.deep.equal({ ...before, askOpen: collection.context.askOpen });
    });
  }

  it('is told to nobody twice: a second success changes no outcome', () => {
    for (const event of [{ type: 'push.succeeded' }, { type: 'ask.succeeded', receipt: 'R2' }] as Told[]) {
      const collection = succeeded().send(event);
      expect(collection.asked, event.type).to.deep.equal([]);
      expect(collection.context.receipt).to.equal('R1');
      expect(collection.context.completedAt).to.equal(startMs + 2 * second);
    }
  });

  it('has no timers', () => {
    expect(succeeded().timers).to.deep.equal({});
  });

  it('proved false by an operator stays succeeded and posts the reversal once', () => {
    const collection = succeeded().send(operator('operator.reversed'));
    expect([collection.state, collection.asked]).to.deep.equal(['succeeded.reversed', ['reverseCapture']]);
    expect(collection.send(operator('operator.reversed')).isTaken).to.equal(false);
  });

  const quiet = () => succeeded().send({ type: 'ask.undecided', answer: 'unknown' }).wait(hourMs);

  it('is asked about when a person doubts it: what the network took back is an alert', () => {
    const collection = quiet().send(operator('operator.asked'));
    expect(collection.asked).to.deep.equal(['askRail']);
    collection.send({ type: 'ask.reversed' });
    expect([collection.state, collection.asked]).to.deep.equal([
      'succeeded.standing',
      ['recordContradiction'],
    ]);
    collection.wait(hourMs).send(operator('operator.asked')).send({ type: 'ask.succeeded', receipt: 'R1' });
    expect(collection.asked, 'all is well').to.deep.equal([]);
  });

  it('proved false is contradicted only by "paid"', () => {
    for (const [type, asked] of [
      ['ask.reversed', []],
      ['ask.failed', []],
      ['ask.expired', []],
      ['ask.succeeded', ['recordContradiction']],
    ] as const) {
      const collection = quiet().send(operator('operator.reversed'));
      collection.send(operator('operator.asked')).send({ type, code: 'declined' } as Told);
      expect([collection.state, collection.asked], type).to.deep.equal(['succeeded.reversed', asked]);
      expect(collection.context.askOpen).to.equal(false);
    }
  });

  it('refuses what is for other states', () => {
    const refused = ['acceptedLate', 'returnedLate', 'retried', 'confirmedReturn', 'resolved'];
    for (const name of refused) {
      expect(succeeded().send(operator(`operator.${name}`)).isTaken, name).to.equal(false);
    }
  });
});

describe('collection: the watch after the end', () => {
  /** When it asked, in minutes since the end, and where it rests. */
  function watched(collection: Collection): { asks: number[]; state: string; timers: object } {
    const endedAt = collection.now;
    collection.wait(40 * 24 * hourMs, collection.answerPending);
    const asks = collection.askStarts.map((at) => (at * second + startMs - endedAt) / minute);
    return { asks, state: collection.state, timers: collection.timers };
  }
  const once = [60];
  const ladder = [5, 20, 80, 440, 1_880];
  const underReview = () => new Collection().send({ type: 'ask.reversed' }).wait(minute);
  const ways: [how: string, end: () => Collection, asks: number[]][] = [
    ['the push failed', () => ended('failed'), once],
    ['the rail said failed', () => new Collection().send({ type: 'ask.failed', code: 'declined' }), once],
    [
      'nothing was sent in time',
      () => new Collection().wait(minute).send({ type: 'push.notAttempted' }),
      once,
    ],
    ['the rail said expired', () => ended('expired'), ladder],
    [
      'an operator said failed',
      () => underReview().send({ type: 'operator.resolved', outcome: 'failed', reason: 'x' }),
      once,
    ],
    [
      'an operator said expired',
      () => underReview().send({ type: 'operator.resolved', outcome: 'expired', reason: 'x' }),
      ladder,
    ],
  ];
  for (const [how, end, asks] of ways) {
    it(`asks after ${asks.join(', ')} minutes and then rests: ${how}`, () => {
      const collection = end();
      const status = collection.state.split('.')[0];
      expect(watched(collection)).to.deep.equal({ asks, state: `${status}.resting`, timers: {} });
      expect(collection.lines.filter(({ asked }) => asked.includes('recordEvent')).length).to.equal(1);
    });
  }

  it('goes on although an ask is never answered', () => {
    const collection = ended('expired').wait(2 * 24 * hourMs);
    expect([collection.state, collection.times('askRail')]).to.deep.equal(['expired.resting', 1]);
    expect(collection.send({ type: 'ask.undecided', answer: 'unknown' }).asked).to.deep.equal(['askRail']);
  });

  it('hears that a push began after all', () => {
    for (const status of statuses) {
      for (const type of ['push.accepted', 'push.unknown'] as const) {
        const collection = ended(status).send({ type, askedAt: startMs + 100 });
        expect(collection.context.pushedAt, `${type} in ${status}`).to.equal(startMs + 100);
      }
    }
  });

  it('ends what has ended but once: no other verdict changes the status', () => {
    for (const status of statuses) {
      for (const event of [
        { type: 'push.failed', code: 'cancelled' },
        { type: 'push.notAttempted' },
        { type: 'ask.failed', code: 'cancelled' },
        { type: 'ask.expired' },
        { type: 'ask.reversed' },
        { type: 'ask.notFound' },
      ] as Told[]) {
        const collection = ended(status);
        const { completedAt, failureCode } = collection.context;
        collection.wait(second).send(event);
        expect(collection.state).to.equal(`${status}.watching`);
        expect(collection.asked).to.deep.equal([]);
        expect(collection.context).to.include({ completedAt, failureCode });
      }
    }
  });
});

describe('collection: late payments', () => {
  for (const status of statuses) {
    for (const from of [`${status}.watching`, `${status}.resting`]) {
      for (const type of ['push.succeeded', 'ask.succeeded'] as const) {
        it(`${type} in ${from} is held: posted as late, an alert, no event`, () => {
          const collection = reach(from);
          const { completedAt } = collection.context;
          collection.wait(second).send({ type, receipt: 'R7' });
          expect(collection.state).to.equal(`${status}.latePaid.held`);
          expect(collection.asked).to.deep.equal(['postLateReceipt', 'raiseAlert']);
          expect(collection.params('raiseAlert')).to.deep.equal([{ kind: 'late_payment' }]);
          expect(collection.context).to.include({ completedAt, receipt: 'R7', late: false });
          expect(collection.timers).to.deep.equal({});
        });
      }
    }

    for (const type of ['push.succeeded', 'ask.succeeded'] as const) {
      it(`${type} after ${status} succeeds at once where the merchant wants it so`, () => {
        const collection = ended(status, true)
          .wait(hourMs - 1)
          .send({ type, receipt: 'R7' });
        expect(collection.state).to.equal('succeeded.standing');
        expect(collection.asked).to.deep.equal(['postCapture', ...told]);
        const completedAt = collection.now;
        expect(collection.context).to.include({ late: true, receipt: 'R7', completedAt, failureCode: null });
      });

      it(`${type} again, with the money ${status} and held, posts nothing`, () => {
        const collection = reach(`${status}.latePaid.held`).send({ type, receipt: 'R8' });
        expect([collection.state, collection.asked]).to.deep.equal([`${status}.latePaid.held`, []]);
      });
    }

    it(`accepted after ${status}: released, told, and completed at the acceptance`, () => {
      const collection = reach(`${status}.latePaid.held`)
        .wait(hourMs)
        .send(operator('operator.acceptedLate'));
      expect(collection.state).to.equal('succeeded.standing');
      expect(collection.asked).to.deep.equal(['releaseLate', ...told]);
      const completedAt = collection.now;
      expect(collection.context).to.include({
        late: true,
        receipt: 'R-LATE',
        completedAt,
        failureCode: null,
        failureMessage: null,
      });
    });

    const steps: [from: string, event: Told, to: string, asked: string[]][] = [
      ['held', operator('operator.returnedLate'), 'returning.polling', ['reversePayment']],
      ['held', { type: 'ask.failed', code: 'declined' }, 'held', ['recordContradiction']],
      ['held', { type: 'ask.expired' }, 'held', ['recordContradiction']],
      ['held', { type: 'ask.reversed' }, 'held', ['recordContradiction']],
      ['held', { type: 'reverse.succeeded' }, 'returned', ['postReturn']],
      ['returning.polling', { type: 'reverse.succeeded' }, 'returned', ['postReturn']],
      ['returning.polling', { type: 'reverse.failed' }, 'returning.polling', []],
      ['returning.polling', { type: 'reverse.accepted' }, 'returning.polling', []],
      ['returning.polling', { type: 'reverse.unknown' }, 'returning.polling', ['raiseAlert']],
      ['returning.polling', { type: 'ask.reversed' }, 'returned', ['postReturn']],
      ['returning.polling', { type: 'ask.succeeded' }, 'returning.polling', []],
      ['returning.polling', { type: 'ask.undecided', answer: 'pending' }, 'returning.polling', []],
      ['returning.polling', operator('operator.retried'), 'returning.polling', ['reversePayment']],
      ['returning.polling', operator('operator.confirmedReturn'), 'returned', ['postReturn']],
      ['returned', { type: 'reverse.succeeded' }, 'returned', []],
      ['returned', { type: 'ask.reversed' }, 'returned', []],
      ['returned', { type: 'ask.succeeded' }, 'returned', ['recordContradiction']],
      ['returned', { type: 'push.succeeded' }, 'returned', []],
    ];
    for (const [from, event, to, asked] of steps) {
      it(`${status}.latePaid.${from} on ${event.type} is ${to}`, () => {
        const collection = reach(`${status}.latePaid.${from}`)
          .wait(10 * second)
          .send(event);
        expect(collection.state).to.equal(`${status}.latePaid.${to}`);
        expect(collection.asked).to.deep.equal(asked);
      });
    }

    const refused: [from: string, names: string[]][] = [
      ['watching', ['acceptedLate', 'returnedLate', 'retried', 'confirmedReturn', 'resolved', 'reversed']],
      ['latePaid.held', ['retried', 'confirmedReturn', 'resolved', 'reversed']],
      ['latePaid.returning.polling', ['acceptedLate', 'returnedLate', 'resolved', 'reversed']],
      ['latePaid.returned', ['acceptedLate', 'returnedLate', 'retried', 'confirmedReturn', 'reversed']],
    ];
    for (const [from, names] of refused) {
      it(`${status}.${from} refuses ${names.join(', ')}`, () => {
        for (const name of names) {
          const collection = reach(`${status}.${from}`).send(operator(`operator.${name}`));
          expect(collection.isTaken, name).to.equal(false);
        }
      });
    }

    const grace = 300 * second;
    const isBack = (collection: Collection) => collection.state === `${status}.latePaid.held`;

    it(`a return that was refused after ${status} is back when the network would know of it, and can be ordered again`, () => {
      const collection = reach(`${status}.latePaid.returning.polling`).send({ type: 'reverse.failed' });
      expect([collection.state, collection.asked]).to.deep.equal([
        `${status}.latePaid.returning.polling`,
        ['askReturn'],
      ]);
      const refusedAt = collection.now;
      const stands = () => {
        const { askOpen, askedAt } = collection.context;
        if (askOpen)
          collection.send({ type: 'ask.succeeded', askedAt, at: Math.max(askedAt, collection.now) });
      };
      stands();
      expect(isBack(collection), 'too early to know').to.equal(false);
      collection.waitUntil(refusedAt + grace - 1 - collection.startMs, stands);
      expect(isBack(collection), 'still too early').to.equal(false);
      collection.wait(150 * second, stands);
      expect(isBack(collection)).to.equal(true);
      const alerts = collection.lines.at(-1)!;
      expect([alerts.event, alerts.asked]).to.deep.equal(['ask.succeeded', ['raiseAlert']]);
      expect(collection.timers, 'and nobody asks any more').to.deep.equal({});
      collection.send(operator('operator.returnedLate')).send({ type: 'reverse.succeeded' });
      expect(collection.state).to.equal(`${status}.latePaid.returned`);
      expect([collection.times('reversePayment'), collection.times('postReturn')]).to.deep.equal([2, 1]);
    });

    it(`a return after ${status} that may have gone through is never called failed because a later one was not sent`, () => {
      const collection = reach(`${status}.latePaid.returning.polling`).send({ type: 'reverse.unknown' });
      collection.send({ type: 'ask.undecided', answer: 'unknown' });
      collection.send(operator('operator.retried')).send({ type: 'reverse.failed' });
      expect(collection.state).to.equal(`${status}.latePaid.returning.polling`);
      expect(collection.send(operator('operator.acceptedLate')).isTaken, 'not to be credited').to.equal(
        false,
      );
      collection.send({ type: 'ask.reversed' });
      expect([collection.state, collection.asked]).to.deep.equal([
        `${status}.latePaid.returned`,
        ['postReturn'],
      ]);
    });

    it(`a return after ${status} is not called failed while another reversal is under way`, () => {
      const collection = reach(`${status}.latePaid.returning.polling`).send(operator('operator.retried'));
      collection.send({ type: 'reverse.failed' }).wait(hourMs);
      collection.send({ type: 'ask.succeeded', askedAt: collection.now });
      expect(isBack(collection)).to.equal(false);
      collection.send({ type: 'reverse.failed' }).wait(hourMs);
      collection.send({ type: 'ask.succeeded', askedAt: collection.now });
      expect(isBack(collection)).to.equal(true);
    });

    it(`a return after ${status} is asked about along the ladder, then hourly for 30 days`, () => {
      const collection = reach(`${status}.latePaid.returning.polling`).send({ type: 'reverse.accepted' });
      const from = collection.now;
      const asks: number[] = [];
      const undecided = () => {
        if (!collection.context.askOpen) return;
        asks.push((collection.context.askedAt - from) / second);
        collection.answerPending();
      };
      undecided();
      collection.wait(40 * 24 * hourMs, undecided);
      expect(asks.slice(0, 10)).to.deep.equal([0, 5, 15, 35, 65, 110, 170, 260, 380, 3_980]);
      expect(asks.length).to.equal(1 + 720);
      expect([collection.state, collection.timers]).to.deep.equal([
        `${status}.latePaid.returning.polling`,
        {},
      ]);
      collection.send(operator('operator.retried'));
      expect([collection.state, collection.asked]).to.deep.equal([
        `${status}.latePaid.returning.polling`,
        ['reversePayment'],
      ]);
    });
  }
});
