import { expect } from 'chai';
import { eventWords, reasonWords, spaced, timerWords } from '../../src/console/words.ts';
import { faultTable } from '../../src/webhooks/faults.ts';
import { models } from '../support/every-chart.ts';

/** Operators read words: whatever a chart or an attempt can say has some. */
describe('the console’s words', () => {
  for (const { name, machine } of models) {
    it(`name every timer and every event of the ${name}`, () => {
      for (const type of machine.events) {
        const [, delay] = /^xstate\.after\.(\w+)/.exec(type) ?? [];
        if (delay === 'midnight') continue; // is called what it is
        if (delay) expect(timerWords(type), type).to.not.equal(spaced(delay));
        else expect(eventWords(type), type).to.not.equal(type);
      }
    });
  }

  it('say why an attempt failed', () => {
    for (const { reason } of faultTable) expect(reasonWords(reason)).to.match(/ /).and.to.not.include('_');
  });
});
