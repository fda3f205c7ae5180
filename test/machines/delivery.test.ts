import { expect } from 'chai';
import { type DeliveryContext, type DeliveryEvent, deliveryMachine } from '../../machines/delivery.ts';
import { Drive } from '../support/drive.ts';
import { hourMs, startMs, type Untimed } from '../support/moves.ts';

const second = 1_000;
const minute = 60 * second;
const day = 24 * hourMs;

type Told = Untimed<DeliveryEvent>;

class Delivery extends Drive<DeliveryContext, DeliveryEvent> {
  constructor(delaysMs = [minute, 5 * minute, 30 * minute, 2 * hourMs, 6 * hourMs, 12 * hourMs]) {
    const input = { at: startMs, delaysMs, holdMs: 30 * day };
    super(deliveryMachine, input);
  }

  fail(fields: { charged?: boolean; jitterMs?: number; reason?: string } = {}): this {
    const { charged = true, jitterMs = 0, reason = 'timeout' } = fields;
    return this.send({ type: 'attempt.failed', reason, charged, jitterMs, detail: this.#detail });
  }

  succeed(endpointActive = true): this {
    return this.send({ type: 'attempt.succeeded', status: 204, endpointActive, detail: this.#detail });
  }

  get #detail() {
    return { number: this.context.tries, startedAt: this.now, durationMs: 12 };
  }
}

const resend: Told = { type: 'operator.resent', reason: 'they fixed it' };

/** Every state with an attempt outside the schedule, and how such an attempt begins there. */
const extras: Record<string, { reach: () => Delivery; by: Told[] }> = {
  waiting: { reach: () => new Delivery().fail(), by: [resend] },
  held: { reach: () => new Delivery().send({ type: 'attempt.withheld' }), by: [{ type: 'delivery.probed' }] },
  delivered: { reach: () => new Delivery().succeed(), by: [resend] },
  failed: { reach: () => new Delivery([]).fail(), by: [resend, { type: 'delivery.probed' }] },
};

describe('delivery', () => {
  it('begins with the first attempt', () => {
    const delivery = new Delivery();
    expect([delivery.state, delivery.asked]).to.deep.equal(['pending.scheduled', ['postWebhook']]);
    expect(delivery.context).to.include({ attempt: 1, tries: 1 });
    expect(delivery.timers).to.deep.equal({});
  });

  describe('the schedule', () => {
    it('is seven attempts, each counted from the end of the failed one', () => {
      const delivery = new Delivery();
      const starts = [0];
      const answerAfter = 8 * second;
      for (let attempt = 1; attempt < 7; attempt += 1) {
        delivery.wait(answerAfter).fail();
        expect(delivery.state).to.equal('waiting');
        const failedAt = delivery.now;
        delivery.wait(day, () => starts.push((delivery.now - failedAt) / minute));
        expect(delivery.state).to.equal('pending.scheduled');
      }
      expect(starts).to.deep.equal([0, 1, 5, 30, 120, 360, 720]);
      delivery.fail({ reason: 'http_status' });
      expect([delivery.state, delivery.timers]).to.deep.equal(['failed', {}]);
      expect(delivery.context).to.include({ attempt: 7, tries: 7, reason: 'http_status' });
      expect([delivery.times('postWebhook'), delivery.times('recordAttempt')]).to.deep.equal([7, 7]);
    });

    for (const [jitterMs, waitMs] of [
      [0, minute],
      [2_999, minute + 2_999],
      [-5_000, minute],
    ] as const) {
      it(`waits ${waitMs} ms with a jitter of ${jitterMs} ms: never less than is published`, () => {
        expect(new Delivery().fail({ jitterMs }).timers).to.deep.equal({
          'xstate.after.retryDelay.waiting': waitMs,
        });
      });
    }

    it('counts an attempt that was lost with its worker like any other', () => {
      const delivery = new Delivery().fail({ reason: 'worker_lost', charged: false });
      expect(delivery.state).to.equal('waiting');
      expect(delivery.params('tellEndpoint')).to.deep.equal([
        { outcome: 'failed', charged: false, at: startMs },
      ]);
    });
  });

  it('tells the endpoint of a failure, and of a success only while it is not active', () => {
    const at = startMs + second;
    const failed = new Delivery().wait(second).fail();
    expect(failed.asked).to.deep.equal(['recordAttempt', 'tellEndpoint']);
    expect(failed.params('tellEndpoint')).to.deep.equal([{ outcome: 'failed', charged: true, at }]);
    expect(new Delivery().wait(second).succeed(true).asked).to.deep.equal(['recordAttempt']);
    const recovered = new Delivery().wait(second).succeed(false);
    expect(recovered.asked).to.deep.equal(['recordAttempt', 'tellEndpoint']);
    expect(recovered.params('tellEndpoint')).to.deep.equal([{ outcome: 'succeeded', charged: false, at }]);
  });

  it('is delivered without a reason, whatever failed before', () => {
    const delivery = new Delivery().fail().wait(minute).succeed();
    expect([delivery.state, delivery.context.reason]).to.deep.equal(['delivered', null]);
  });

  describe('held', () => {
    it('is no attempt: it takes no number and does not count', () => {
      const delivery = new Delivery().send({ type: 'attempt.withheld' });
      expect(delivery.state).to.equal('held');
      expect(delivery.context).to.include({ attempt: 0, tries: 0, heldAt: startMs });
      delivery.wait(hourMs).send({ type: 'delivery.released' });
      expect(delivery.context).to.include({ attempt: 1, tries: 1 });
    });

    it('begins a fresh schedule when released, with the next number', () => {
      const delivery = new Delivery()
        .fail()
        .wait(minute)
        .fail()
        .wait(5 * minute);
      delivery.send({ type: 'attempt.withheld' }).wait(day).send({ type: 'delivery.released' });
      expect([delivery.state, delivery.asked]).to.deep.equal(['pending.scheduled', ['postWebhook']]);
      expect(delivery.context).to.include({ attempt: 1, tries: 3, reason: null });
      expect(delivery.fail().timers).to.deep.equal({ 'xstate.after.retryDelay.waiting': minute });
    });

    it('fails after thirty days, not a moment before', () => {
      const delivery = new Delivery().send({ type: 'attempt.withheld' }).wait(30 * day - 1);
      expect(delivery.state).to.equal('held');
      delivery.wait(1);
      expect([delivery.state, delivery.context.reason]).to.deep.equal(['failed', 'endpoint_disabled']);
      expect(delivery.timers).to.deep.equal({});
    });

    const comings: [how: string, comeBack: (delivery: Delivery) => void][] = [
      ['a probe that failed', (delivery) => delivery.send({ type: 'delivery.probed' }).fail()],
      [
        'a probe that was withheld',
        (delivery) => delivery.send({ type: 'delivery.probed' }).send({ type: 'attempt.withheld' }),
      ],
      [
        'a release that came to nothing',
        (delivery) => delivery.send({ type: 'delivery.released' }).send({ type: 'attempt.withheld' }),
      ],
    ];
    for (const [how, comeBack] of comings) {
      it(`counts the thirty days from the first holding, whatever came between: ${how}`, () => {
        const delivery = new Delivery().wait(hourMs).send({ type: 'attempt.withheld' });
        delivery.wait(20 * day);
        comeBack(delivery);
        expect(delivery.state).to.equal('held');
        expect(delivery.timers).to.deep.equal({ 'xstate.after.holdTimeout.held': 10 * day });
      });
    }

    it('counts anew once an attempt of the schedule was made', () => {
      const delivery = new Delivery().send({ type: 'attempt.withheld' }).wait(20 * day);
      delivery.send({ type: 'delivery.released' }).fail().wait(minute).send({ type: 'attempt.withheld' });
      expect(delivery.timers).to.deep.equal({ 'xstate.after.holdTimeout.held': 30 * day });
    });

    it('is failed at once when it is held again after its thirty days', () => {
      const delivery = new Delivery().send({ type: 'attempt.withheld' }).wait(29 * day);
      delivery
        .send({ type: 'delivery.probed' })
        .wait(2 * day)
        .fail();
      expect(delivery.wait(0).state).to.equal('failed');
    });
  });

  describe('attempts outside the schedule', () => {
    for (const [from, { reach, by }] of Object.entries(extras)) {
      for (const event of by) {
        it(`${event.type} in ${from}: one attempt, and back when it fails`, () => {
          const delivery = reach().wait(10 * second);
          expect(delivery.state).to.equal(from);
          const { attempt, tries, reason } = delivery.context;
          const { timers } = delivery;
          delivery.send(event);
          expect([delivery.state, delivery.asked]).to.deep.equal(['pending.extra', ['postWebhook']]);
          expect(delivery.context).to.include({ attempt, tries: tries + 1 });
          delivery.fail({ jitterMs: 5_000 });
          expect([delivery.state, delivery.timers]).to.deep.equal([from, timers]);
          expect(delivery.asked).to.deep.equal(['recordAttempt', 'tellEndpoint']);
          expect(delivery.context, 'the schedule and its reason').to.include({ attempt, reason });
        });

        it(`${event.type} in ${from}: delivered when it succeeds`, () => {
          expect(reach().send(event).succeed().state).to.equal('delivered');
        });

        for (const type of ['attempt.withheld', 'attempt.canceled'] as const) {
          it(`${event.type} in ${from}: back, and no number used, on ${type}`, () => {
            const delivery = reach();
            const { tries } = delivery.context;
            delivery.send(event).send({ type });
            expect([delivery.state, delivery.context.tries, delivery.asked]).to.deep.equal([from, tries, []]);
          });
        }
      }
    }

    it('leave the next attempt of the schedule where it was, or make it at once when it is overdue', () => {
      const delivery = new Delivery()
        .fail()
        .wait(50 * second)
        .send(resend)
        .wait(4 * second)
        .fail();
      expect(delivery.timers).to.deep.equal({ 'xstate.after.retryDelay.waiting': 6 * second });
      delivery
        .send(resend)
        .wait(20 * second)
        .fail();
      expect(delivery.timers).to.deep.equal({ 'xstate.after.retryDelay.waiting': 0 });
    });

    it('go back to failed, wherever earlier ones came from', () => {
      for (const event of extras.failed!.by) {
        const delivery = extras.held!.reach().send({ type: 'delivery.probed' }).fail();
        delivery
          .wait(30 * day)
          .send(event)
          .fail();
        expect(delivery.state, event.type).to.equal('failed');
      }
    });

    const refused: [state: string, reach: () => Delivery, events: Told[]][] = [
      ['pending.scheduled', () => new Delivery(), [resend, { type: 'delivery.probed' }]],
      ['pending.extra', () => new Delivery().succeed().send(resend), [resend, { type: 'delivery.probed' }]],
      ['waiting', () => new Delivery().fail(), [{ type: 'delivery.probed' }, { type: 'delivery.released' }]],
      ['held', () => new Delivery().send({ type: 'attempt.withheld' }), [resend]],
      [
        'delivered',
        () => new Delivery().succeed(),
        [{ type: 'delivery.probed' }, { type: 'delivery.recovered' }],
      ],
    ];
    for (const [state, reach, events] of refused) {
      it(`${state} refuses ${events.map(({ type }) => type).join(', ')}`, () => {
        for (const event of events) {
          const delivery = reach();
          expect(delivery.state).to.equal(state);
          expect(delivery.send(event).isTaken, event.type).to.equal(false);
        }
      });
    }
  });

  it('recovered after its schedule ended begins a fresh one', () => {
    const delivery = new Delivery([minute]).fail().wait(minute).fail();
    delivery.wait(day).send({ type: 'delivery.recovered' });
    expect([delivery.state, delivery.asked]).to.deep.equal(['pending.scheduled', ['postWebhook']]);
    expect(delivery.context).to.include({ attempt: 1, tries: 3, reason: null, heldAt: null });
  });

  describe('canceled', () => {
    const ways: [how: string, reach: () => Delivery][] = [
      ['the first attempt', () => new Delivery()],
      ['a later attempt', () => new Delivery().fail().wait(minute)],
    ];
    for (const [how, reach] of ways) {
      it(`${how} finds its endpoint deleted: no attempt was made, and nothing more happens`, () => {
        const delivery = reach();
        const { tries } = delivery.context;
        delivery.send({ type: 'attempt.canceled' });
        expect([delivery.state, delivery.context.tries, delivery.timers]).to.deep.equal([
          'canceled',
          tries - 1,
          {},
        ]);
        const later: Told[] = [resend, { type: 'delivery.released' }, { type: 'delivery.recovered' }];
        for (const event of later) expect(delivery.send(event).isTaken, event.type).to.equal(false);
        expect(delivery.succeed().isTaken).to.equal(false);
      });
    }
  });
});
