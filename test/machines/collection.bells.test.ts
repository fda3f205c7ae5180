import { expect } from 'chai';
import { createdStates, endedStates, type Told } from '../support/collection.ts';
import { startMs } from '../support/moves.ts';

const second = 1_000;

const bells: Told[] = [{ type: 'rail.noticed' }, { type: 'operator.asked', reason: 'the customer is here' }];
/** Answers after which the collection is where it was. */
const undecided: Told[] = [
  { type: 'ask.undecided', answer: 'pending' },
  { type: 'ask.undecided', answer: 'unknown' },
  { type: 'ask.notFound', askedAt: startMs },
];
const negative: Told[] = [
  { type: 'ask.failed', code: 'declined' },
  { type: 'ask.expired' },
  { type: 'ask.reversed' },
];

describe('collection: the bell', () => {
  for (const [state, way] of Object.entries({ ...createdStates, ...endedStates })) {
    describe(state, () => {
      const isReturning = state.includes('returning');
      const asks = isReturning ? 'askReturn' : 'askRail';
      // A return is asked about by itself: the first answer leaves it quiet until the next wait is over.
      const reach = () =>
        isReturning
          ? way()
              .wait(5 * second)
              .send({ type: 'ask.undecided', answer: 'unknown' })
          : way();
      for (const bell of bells) {
        it(`${bell.type} asks now and moves nothing`, () => {
          const collection = reach().wait(6 * second);
          const [before, { timers }] = [collection.state, collection];
          collection.send(bell);
          expect(collection.asked).to.deep.equal([asks]);
          expect(collection.context.askedAt).to.equal(collection.now);
          // While the customer may approve, a callback means that the next asks come sooner.
          const isSooner = bell.type === 'rail.noticed' && before.startsWith('created.awaitingApproval');
          if (isSooner) expect(collection.state).to.equal('created.awaitingApproval.noticed');
          else expect([collection.state, collection.timers]).to.deep.equal([before, timers]);
        });

        it(`${bell.type} while an ask is open is remembered, and is one ask however often it rings`, () => {
          const collection = reach()
            .wait(6 * second)
            .send(bell);
          for (let ring = 0; ring < 3; ring += 1) expect(collection.send(bell).asked).to.deep.equal([]);
          collection.send({ type: 'ask.undecided', answer: 'unknown' });
          expect(collection.asked).to.deep.equal([asks]);
          collection.send({ type: 'ask.undecided', answer: 'unknown' });
          expect(collection.asked).to.deep.equal([]);
        });
      }

      it('an ask within five seconds of the last starts when they are over', () => {
        const collection = reach()
          .wait(6 * second)
          .send({ type: 'rail.noticed' });
        const first = collection.context.askedAt;
        collection.wait(second).send({ type: 'ask.undecided', answer: 'pending' });
        collection.wait(second).send({ type: 'rail.noticed' });
        expect(collection.asked).to.deep.equal([asks]);
        expect(collection.context.askedAt).to.equal(first + 5 * second);
      });

      const isCreated = state.startsWith('created');
      const isLate = state.includes('latePaid');
      const answers = [...undecided, ...(isLate ? [] : negative)];
      for (const answer of answers) {
        it(`a bell outlives the answer ${JSON.stringify(answer)}`, () => {
          const collection = reach()
            .wait(6 * second)
            .send({ type: 'rail.noticed' });
          collection.send({ type: 'rail.noticed' }).wait(second).send(answer);
          expect(collection.asked).to.include(asks);
          expect(collection.context).to.include({ askOpen: true, bell: false });
        });
      }

      if (isCreated) {
        it('a bell is forgotten once the money is there', () => {
          const collection = reach()
            .wait(6 * second)
            .send({ type: 'rail.noticed' });
          collection.send({ type: 'rail.noticed' }).send({ type: 'ask.succeeded', receipt: 'R' });
          expect(collection.asked).not.to.include('askRail');
          expect(collection.context).to.include({ askOpen: false, bell: false });
        });
      }
    });
  }

  it('is answered for a person only, once the collection succeeded', () => {
    const collection = createdStates['created.awaitingApproval.waiting']!().send({ type: 'push.succeeded' });
    expect(collection.send({ type: 'rail.noticed' }).isTaken, 'callbacks come for every payment').to.equal(
      false,
    );
    collection.wait(6 * second).send({ type: 'operator.asked', reason: 'the customer says it came back' });
    expect(collection.asked).to.deep.equal(['askRail']);
    for (let ring = 0; ring < 3; ring += 1)
      expect(collection.send({ type: 'operator.asked', reason: 'again' }).asked).to.deep.equal([]);
    collection.send({ type: 'ask.succeeded', receipt: 'R' });
    expect(collection.asked).to.deep.equal(['askRail']);
    collection.send({ type: 'ask.succeeded', receipt: 'R' });
    expect([collection.asked, collection.state]).to.deep.equal([[], 'succeeded.standing']);
  });
});
