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

  it('refuses what is for other states', () => {
    const refused = ['acceptedLate', 'returnedLate', 'retried', 'confirmedReturn', 'resolved', 'asked'];
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
      ['held', operator('operator.returnedLate'), 'returning', ['reversePayment']],
      ['held', { type: 'ask.failed', code: 'declined' }, 'held', ['recordContradiction']],
      ['held', { type: 'ask.expired' }, 'held', ['recordContradiction']],
      ['held', { type: 'ask.reversed' }, 'held', ['recordContradiction']],
      ['held', { type: 'reverse.succeeded' }, 'returned', ['postReturn']],
      ['returning', { type: 'reverse.succeeded' }, 'returned', ['postReturn']],
      ['returning', { type: 'reverse.failed' }, 'held', ['raiseAlert']],
      ['returning', { type: 'reverse.unknown' }, 'returning', ['raiseAlert', 'askRail']],
      ['returning', { type: 'ask.reversed' }, 'returned', ['postReturn']],
      ['returning', { type: 'ask.succeeded' }, 'returning', []],
      ['returning', { type: 'ask.undecided', answer: 'pending' }, 'returning', []],
      ['returning', operator('operator.retried'), 'returning', ['reversePayment']],
      ['returning', operator('operator.confirmedReturn'), 'returned', ['postReturn']],
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
      ['latePaid.returning', ['acceptedLate', 'returnedLate', 'resolved', 'reversed']],
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

    it(`a return that failed after ${status} can be ordered again`, () => {
      const collection = reach(`${status}.latePaid.returning`).send({ type: 'reverse.failed' });
      collection.send(operator('operator.returnedLate')).send({ type: 'reverse.succeeded' });
      expect(collection.state).to.equal(`${status}.latePaid.returned`);
      expect([collection.times('reversePayment'), collection.times('postReturn')]).to.deep.equal([2, 1]);
    });
  }
});
