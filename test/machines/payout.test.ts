import { expect } from 'chai';
import {
  type PayoutContext,
  type PayoutEvent,
  type PayoutInput,
  payoutMachine,
} from '../../machines/payout.ts';
import {
  type RefundContext,
  type RefundEvent,
  type RefundInput,
  refundMachine,
} from '../../machines/refund.ts';
import { mpesaTerms, usualPayoutTerms } from '../../src/rails/rails.ts';
import { Drive } from '../support/drive.ts';
import { startMs, type Untimed } from '../support/moves.ts';

const reason = 'because';

class Payout extends Drive<PayoutContext, PayoutEvent> {
  constructor(how: Partial<PayoutInput> = {}) {
    const usual = { terms: usualPayoutTerms, isByHand: false, needsApproval: false, madeBy: 'maker' };
    super(payoutMachine, { at: startMs, ...usual, ...how });
  }
}

const { answerTimeoutMs, confirmDeadlineMs, sendRetryMs, sendWindowMs, bankMs } = usualPayoutTerms;
const untried: Untimed<PayoutEvent> = { type: 'send.notAttempted' };

describe('a payout', () => {
  for (const [when, waitedMs] of [
    ['its answer was waited for', answerTimeoutMs],
    ['a person has it', answerTimeoutMs + confirmDeadlineMs],
  ] as const) {
    it(`that proves not to have been sent when ${when} is sent again while its window is open`, () => {
      const payout = new Payout().wait(waitedMs).send(untried);
      expect(payout.state).to.equal('created.sending.backingOff');
      expect(payout.wait(sendRetryMs).times('sendMoney')).to.equal(2);
      expect(payout.send({ type: 'send.accepted' }).wait(waitedMs).times('sendMoney')).to.equal(2);
      expect(payout.send(untried).state, 'of what the rail has').to.match(
        /^created\.(confirming|underReview)/,
      );
    });
  }

  it('that proves not to have been sent when its window is over failed', () => {
    const payout = new Payout().wait(sendWindowMs).send(untried);
    expect([payout.state, payout.context.failureCode]).to.deep.equal([
      'failed.watching',
      'provider_unavailable',
    ]);
    expect(payout.times('releaseMoney')).to.equal(1);
  });

  const inFile = () =>
    new Payout({ isByHand: true }).send({ type: 'operator.exported', file: 'bkf_1', reason });

  it('that lies in its file for long waits for a person, who can still say that the bank has it', () => {
    const payout = inFile().wait(bankMs - 1);
    expect(payout.state).to.equal('created.exported');
    expect(payout.wait(1).state).to.match(/^created\.underReview/);
    payout.send({ type: 'operator.sent', reason });
    expect(payout.state).to.equal('created.awaitingBank');
    expect(payout.context.sentAt).to.equal(payout.now);
    expect(payout.wait(bankMs).state).to.match(/^created\.underReview/);
    expect(payout.send({ type: 'operator.sent', reason }).isTaken, 'a second time').to.equal(false);
  });

  it('that lies in its file is paid by the word of a statement or of a person', () => {
    const resolved: Untimed<PayoutEvent> = { type: 'operator.resolved', outcome: 'paid', reason };
    for (const word of [{ type: 'statement.found', receipt: 'R1' } as const, resolved]) {
      expect(inFile().send(word).state).to.equal('paid.watching');
      expect(inFile().wait(bankMs).send(word).state).to.equal('paid.watching');
    }
  });
});

class Refund extends Drive<RefundContext, RefundEvent> {
  constructor() {
    const input: RefundInput = { at: startMs, terms: mpesaTerms };
    super(refundMachine, input);
  }
}

describe('a refund', () => {
  const unsent: Untimed<RefundEvent> = { type: 'reverse.notAttempted' };

  it('that proves not to have been sent when its answer was waited for is sent again while it may be', () => {
    const refund = new Refund().wait(mpesaTerms.answerTimeoutMs).send(unsent);
    expect(refund.state).to.equal('created.sending.backingOff');
    expect(refund.wait(mpesaTerms.pushRetryMs).times('sendRefund')).to.equal(2);
    refund.send({ type: 'reverse.accepted' });
    expect(refund.send(unsent).state, 'of what the rail has').to.equal('created.confirming.polling');
  });

  it('that proves not to have been sent when its time is over failed', () => {
    const refund = new Refund().wait(mpesaTerms.confirmDeadlineMs).send(unsent);
    expect([refund.state, refund.times('releaseMoney')]).to.deep.equal(['failed.watching', 1]);
  });
});
