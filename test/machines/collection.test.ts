import { expect } from 'chai';
import { mpesaTerms } from '../../src/rails/mpesa/terms.ts';
import { Collection, createdStates, type Told } from '../support/collection.ts';
import { hourMs, startMs } from '../support/moves.ts';

const second = 1_000;
const minute = 60 * second;

const told = ['recordEvent', 'openDeliveries'];

describe('collection', () => {
  for (const [state, reach] of Object.entries(createdStates)) {
    it(`${state} is where its way leads`, () => {
      expect(reach().state).to.equal(state);
    });
  }

  it('fixes on creation until when a push may start and when the prompt runs out', () => {
    const { context, timers, asked } = new Collection();
    expect(context.notAfter - startMs).to.equal(60 * second);
    expect(context.expiresAt - startMs).to.equal(180 * second);
    expect(asked).to.deep.equal(['pushPrompt']);
    expect(timers).to.deep.equal({ 'xstate.after.answerTimeout.sending': 150 * second });
  });

  describe('pushing', () => {
    const answers: [event: Told, state: string, asked: string[]][] = [
      [{ type: 'push.accepted' }, 'created.awaitingApproval.waiting', []],
      [{ type: 'push.unknown' }, 'created.confirming.polling', ['askRail']],
      [{ type: 'push.succeeded', receipt: 'R1' }, 'succeeded.standing', ['postCapture', ...told]],
      [{ type: 'push.failed', code: 'insufficient_funds' }, 'failed.watching', told],
      [{ type: 'push.notAttempted' }, 'created.pushing.backingOff', []],
      [{ type: 'ask.undecided', answer: 'unknown' }, 'created.pushing.sending', []],
      [{ type: 'ask.undecided', answer: 'pending' }, 'created.pushing.sending', []],
    ];
    for (const [event, state, asked] of answers) {
      it(`leads to ${state} on ${JSON.stringify(event)}`, () => {
        const collection = new Collection().wait(second).send(event);
        expect(collection.state).to.equal(state);
        expect(collection.asked).to.deep.equal(asked);
      });
    }

    it('asks the rail when no answer came in time, and not a moment before', () => {
      const collection = new Collection().wait(150 * second - 1);
      expect(collection.state).to.equal('created.pushing.sending');
      collection.wait(1);
      expect(collection.state).to.equal('created.confirming.polling');
      expect(collection.asked).to.deep.equal(['askRail']);
    });

    it('is not ended by the answer to a question: the time-out runs on', () => {
      const collection = new Collection().wait(second).send({ type: 'rail.noticed' });
      collection.send({ type: 'ask.undecided', answer: 'unknown' });
      expect(collection.timers).to.deep.equal({ 'xstate.after.answerTimeout.sending': 149 * second });
    });

    it('remembers when the push began', () => {
      for (const type of ['push.accepted', 'push.unknown'] as const) {
        const collection = new Collection().wait(3 * second).send({ type, askedAt: startMs + second });
        expect(collection.context.pushedAt).to.equal(startMs + second);
      }
    });

    it('tries again every five seconds until the window closes, then fails', () => {
      const collection = new Collection();
      const refuse = () => {
        if (collection.asked.includes('pushPrompt')) collection.send({ type: 'push.notAttempted' });
      };
      refuse();
      collection.wait(hourMs - 1, refuse);
      const pushes = collection.lines.filter(({ asked }) => asked.includes('pushPrompt'));
      expect(pushes.map(({ at }) => at / second)).to.deep.equal([...Array(13).keys()].map((n) => n * 5));
      expect(collection.state).to.equal('failed.watching');
      expect(collection.context.failureCode).to.equal('provider_unavailable');
    });

    for (const [atMs, state] of [
      [55 * second, 'created.pushing.backingOff'],
      [55 * second + 1, 'failed.watching'],
      [90 * second, 'failed.watching'],
    ] as const) {
      it(`leads to ${state} when nothing was sent after ${atMs} ms`, () => {
        expect(new Collection().wait(atMs).send({ type: 'push.notAttempted' }).state).to.equal(state);
      });
    }

    for (const state of ['created.confirming.polling', 'created.underReview.polling']) {
      it(`fails when a worker back from an outage never sent: ${state}`, () => {
        const collection = createdStates[state]!().send({ type: 'push.notAttempted' });
        expect(collection.state).to.equal('failed.watching');
        expect(collection.context.failureCode).to.equal('provider_unavailable');
        expect(collection.asked).to.include.members(told);
      });
    }

    it('tells a phone that was busy from a network out of reach', () => {
      const collection = new Collection().wait(60 * second);
      collection.send({ type: 'push.notAttempted', code: 'payer_busy' });
      expect([collection.state, collection.context.failureCode]).to.deep.equal([
        'failed.watching',
        'payer_busy',
      ]);
    });

    for (const state of ['created.pushing.backingOff', 'created.awaitingApproval.waiting']) {
      it(`hears no second "not attempted": ${state}`, () => {
        expect(createdStates[state]!().send({ type: 'push.notAttempted' }).isTaken).to.equal(false);
      });
    }
  });

  describe('a verdict on any child of created', () => {
    const verdicts: [event: Told, state: string, asked: string[]][] = [
      [{ type: 'push.succeeded', receipt: 'R' }, 'succeeded.standing', ['postCapture', ...told]],
      [{ type: 'ask.succeeded', receipt: 'R' }, 'succeeded.standing', ['postCapture', ...told]],
      [{ type: 'push.failed', code: 'declined', message: 'no' }, 'failed.watching', told],
      [{ type: 'ask.failed', code: 'declined', message: 'no' }, 'failed.watching', told],
      [{ type: 'ask.expired' }, 'expired.watching', told],
    ];
    for (const [event, state, asked] of verdicts) {
      for (const [child, reach] of Object.entries(createdStates)) {
        it(`${event.type} in ${child} leads to ${state}`, () => {
          const collection = reach().wait(1);
          collection.send(event);
          const { completedAt, receipt, failureCode, failureMessage } = collection.context;
          expect(collection.state).to.equal(state);
          expect(collection.asked).to.deep.equal(asked);
          expect(completedAt).to.equal(collection.now);
          const isFailure = state.startsWith('failed');
          expect([failureCode, failureMessage]).to.deep.equal(isFailure ? ['declined', 'no'] : [null, null]);
          expect(receipt).to.equal(state.startsWith('succeeded') ? 'R' : null);
        });
      }
    }

    for (const [child, reach] of Object.entries(createdStates)) {
      it(`ask.reversed in ${child} leads under review, once`, () => {
        const collection = reach().wait(1);
        const { timers } = collection;
        collection.send({ type: 'ask.reversed' });
        const wasThere = child.startsWith('created.underReview');
        expect(collection.state).to.equal(wasThere ? child : 'created.underReview.polling');
        expect(collection.asked).to.deep.equal(wasThere ? [] : ['raiseAlert']);
        if (wasThere) expect(collection.timers, 'not entered again').to.deep.equal(timers);
      });
    }
  });

  describe('awaiting approval', () => {
    for (const [begunMs, answeredMs] of [
      [0, 0],
      [0, 5 * second],
      [40 * second, 42 * second],
      [60 * second, 75 * second],
    ] as const) {
      it(`lasts as long as a prompt lives, pushed after ${begunMs} ms and accepted after ${answeredMs} ms`, () => {
        const collection = new Collection().wait(answeredMs);
        collection.send({ type: 'push.accepted', askedAt: startMs + begunMs });
        collection.waitUntil(begunMs + 120 * second - 1);
        expect(collection.state).to.equal('created.awaitingApproval.waiting');
        collection.wait(1);
        expect(collection.state).to.equal('created.confirming.polling');
        expect(collection.now, 'expires_at of the 202').to.be.at.most(collection.context.expiresAt);
      });
    }

    it('lasts from the acceptance where nobody knows when the push began', () => {
      const collection = new Collection().wait(40 * second).send({ type: 'push.accepted' });
      expect(collection.timers).to.include({ 'xstate.after.approvalTimeout.awaitingApproval': 120 * second });
    });

    it('asks on its ladder while the customer may approve, so that a lost callback costs one wait', () => {
      const collection = new Collection().send({ type: 'push.accepted', askedAt: startMs });
      const asked: number[] = [];
      collection.waitUntil(120 * second - 1, () => {
        if (!collection.asked.includes('askRail')) return;
        asked.push((collection.now - startMs) / second);
        collection.send({ type: 'ask.undecided', answer: 'pending', askedAt: collection.now });
      });
      expect(asked).to.deep.equal([20, 40, 70, 110]);
    });

    it('asks again soon after a callback whose payment is still pending, then as before', () => {
      const collection = new Collection().send({ type: 'push.accepted', askedAt: startMs }).wait(25 * second);
      collection.send({ type: 'ask.undecided', answer: 'pending' }).wait(5 * second);
      collection.send({ type: 'rail.noticed' });
      expect(collection.asked, 'at once').to.deep.equal(['askRail']);
      collection.send({ type: 'ask.notFound', askedAt: collection.now });
      const since = collection.now;
      const asked: number[] = [];
      collection.waitUntil(90 * second, () => {
        if (!collection.asked.includes('askRail')) return;
        asked.push((collection.context.askedAt - since) / second);
        collection.send({ type: 'ask.undecided', answer: 'pending', at: collection.context.askedAt });
      });
      expect(asked.slice(0, 4)).to.deep.equal([5, 10, 18, 38]);
    });

    it('is over at once when the push was accepted after the prompt had run out', () => {
      const collection = new Collection();
      collection.send({ type: 'push.accepted', askedAt: startMs + second, at: startMs + 121 * second });
      expect(collection.timers).to.include({ 'xstate.after.approvalTimeout.awaitingApproval': 0 });
    });
  });

  describe('confirming', () => {
    it('asks on entry and along the ladder of waits, then every two minutes, until the deadline', () => {
      const collection = new Collection().send({ type: 'push.unknown' });
      collection.answerPending();
      collection.wait(hourMs - 1, collection.answerPending);
      const ladder = [0, 5, 15, 35, 65, 110, 170, 260, 380];
      const later = [...Array(26).keys()].map((n) => 500 + n * 120);
      expect(collection.askStarts).to.deep.equal([...ladder, ...later]);
      expect(collection.state).to.equal('created.confirming.polling');
      collection.wait(1);
      expect(collection.state, 'asking does not put the deadline off').to.equal(
        'created.underReview.polling',
      );
    });

    it('moves nowhere when the rail says "pending" again', () => {
      const collection = new Collection().send({ type: 'push.unknown' }).wait(2 * second);
      const { timers, state } = collection;
      collection.send({ type: 'ask.undecided', answer: 'pending' });
      expect([collection.state, collection.timers, collection.asked]).to.deep.equal([state, timers, []]);
    });

    it('never has two asks open: what the ladder wants meanwhile is one ask after the answer', () => {
      const collection = new Collection().send({ type: 'push.unknown' }).wait(20 * second);
      expect(collection.times('askRail')).to.equal(1);
      collection.send({ type: 'ask.undecided', answer: 'unknown' });
      expect(collection.asked).to.deep.equal(['askRail']);
      collection.send({ type: 'ask.undecided', answer: 'unknown' });
      expect(collection.asked).to.deep.equal([]);
    });

    it('asks again after an ask that was open on entry', () => {
      const collection = new Collection()
        .wait(149 * second)
        .send({ type: 'rail.noticed' })
        .wait(second);
      expect([collection.state, collection.asked]).to.deep.equal(['created.confirming.polling', []]);
      collection.send({ type: 'ask.undecided', answer: 'pending' });
      expect(collection.asked).to.deep.equal(['askRail']);
    });

    it('leaves the next ladder to begin at its first wait', () => {
      const collection = new Collection({ confirmDeadlineMs: 6 * second }).send({ type: 'push.unknown' });
      collection.wait(5 * second);
      expect(collection.context.asks).to.equal(1);
      collection.wait(second);
      expect(collection.context.asks).to.equal(0);
    });
  });

  describe('not found', () => {
    const grace = 60 * second + 300 * second;
    type Ask = number | 'pending' | 'unknown';
    const histories: [asks: Ask[], state: string, why: string][] = [
      [[grace - 1, grace + 30 * second], 'created', 'only one started after the grace'],
      [[grace - 31 * second, grace - 1], 'created', 'none started after the grace'],
      [[grace, grace + 30 * second - 1], 'created', 'they are less than 30 s apart'],
      [[grace, grace + 30 * second], 'expired', 'two after the grace, 30 s apart'],
      [
        [grace, grace + 20 * second, grace + 30 * second],
        'expired',
        'the first and the third are 30 s apart',
      ],
      [[grace, 'unknown', grace + 60 * second], 'expired', '"unknown" in between proves nothing'],
      [[grace, 'pending', grace + 60 * second], 'created', '"pending" in between: the rail knows it'],
      [[grace], 'created', 'one is not enough'],
    ];
    for (const [asks, status, why] of histories) {
      it(`leaves it ${status}: ${why}`, () => {
        const collection = new Collection().send({ type: 'push.unknown' });
        for (const ask of asks) {
          if (typeof ask === 'string') collection.send({ type: 'ask.undecided', answer: ask });
          else collection.send({ type: 'ask.notFound', askedAt: startMs + ask, at: startMs + ask + 500 });
        }
        expect(collection.state.split('.')[0]).to.equal(status);
        if (status === 'expired') expect(collection.asked).to.include.members(told);
      });
    }

    it('is judged by when the ask started, not by when it answered', () => {
      const collection = new Collection().send({ type: 'push.unknown' });
      const askedAt = startMs + grace - 1;
      collection.send({ type: 'ask.notFound', askedAt, at: askedAt + 20 * second });
      expect(collection.context.notFoundAt).to.equal(null);
    });

    it('counts while the bell is remembered too', () => {
      const collection = new Collection().send({ type: 'push.unknown' }).wait(6 * second);
      collection.send({ type: 'ask.notFound', askedAt: startMs + grace, at: startMs + grace });
      expect(collection.context.notFoundAt).to.equal(startMs + grace);
      expect(collection.asked).to.deep.equal(['askRail']);
    });

    it('means the same under review', () => {
      const collection = new Collection().send({ type: 'ask.reversed' });
      collection.send({ type: 'ask.notFound', askedAt: startMs + grace, at: startMs + grace });
      const second = startMs + grace + mpesaTerms.notFoundSpacingMs;
      collection.send({ type: 'ask.notFound', askedAt: second, at: second });
      expect(collection.state).to.equal('expired.watching');
    });
  });

  describe('under review', () => {
    it('asks every hour for thirty days and then rests', () => {
      const collection = new Collection().send({ type: 'ask.reversed' });
      collection.wait(30 * 24 * hourMs, collection.answerPending);
      expect(collection.askStarts).to.deep.equal([...Array(720).keys()].map((n) => (n + 1) * 3_600));
      collection.wait(hourMs, collection.answerPending);
      expect([collection.state, collection.timers]).to.deep.equal(['created.underReview.resting', {}]);
      expect(collection.askStarts.length).to.equal(720);
    });

    const resolutions: [
      fields: Record<string, string>,
      state: string,
      code: string | null,
      receipt: string | null,
    ][] = [
      [{ outcome: 'succeeded', receipt: 'R9' }, 'succeeded.standing', null, 'R9'],
      [{ outcome: 'failed', failureCode: 'payer_blocked' }, 'failed.watching', 'payer_blocked', null],
      [{ outcome: 'failed' }, 'failed.watching', 'provider_error', null],
      [{ outcome: 'expired' }, 'expired.watching', null, null],
    ];
    for (const [fields, state, code, receipt] of resolutions) {
      it(`an operator resolves it: ${JSON.stringify(fields)}`, () => {
        const event = { type: 'operator.resolved', reason: 'seen in the portal', ...fields } as Told;
        const collection = createdStates['created.underReview.polling']!().wait(minute).send(event);
        expect(collection.state).to.equal(state);
        expect(collection.context.failureCode).to.equal(code);
        expect(collection.context.receipt).to.equal(receipt);
        expect(collection.context.completedAt).to.equal(startMs + minute);
        const captured = state.startsWith('succeeded') ? ['postCapture'] : [];
        expect(collection.asked).to.deep.equal([...captured, ...told]);
      });
    }

    it('refuses a resolution that names no outcome', () => {
      const event = { type: 'operator.resolved', reason: 'oops' } as Told;
      expect(createdStates['created.underReview.polling']!().send(event).isTaken).to.equal(false);
    });

    for (const [state, reach] of Object.entries(createdStates)) {
      if (state.startsWith('created.underReview')) continue;
      it(`no operator resolves what is not under review: ${state}`, () => {
        const event = { type: 'operator.resolved', outcome: 'succeeded', reason: 'impatient' } as Told;
        expect(reach().send(event).isTaken).to.equal(false);
      });
    }
  });
});
