import { expect } from 'chai';
import { eventWords, timerWords } from '../../src/console/chartWords.ts';
import { operatorEvents } from '../../src/console/operatorEvents.ts';
import { sentences } from '../../src/console/sentences.ts';
import { moment, reasonWords, spaced, typedMoment } from '../../src/console/words.ts';
import { momentTyped } from '../../src/time.ts';
import { faultTable } from '../../src/webhooks/faults.ts';
import { models } from '../support/every-chart.ts';

const toldElsewhere = ['operator.exported', 'operator.planned', 'operator.updated'];

/** Before a chart is added here: are the words of the form, and those of a step, true of it too? */
const sameForAll = {
  'operator.asked': ['collection', 'difference', 'payout', 'refund'],
  'operator.resolved': ['collection', 'payout', 'refund'],
  'operator.foundPaid': ['payout', 'refund'],
};

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

  it('say in a sentence where each actor stands', () => {
    expect(Object.keys(sentences).sort()).to.deep.equal(models.map(({ name }) => name).sort());
  });

  /** What operators tell actors by the page of the actor; lists and pages of their own tell the others. */
  const told = models.flatMap(({ name, machine }) =>
    machine.events
      .filter((type) => type.startsWith('operator.') && !toldElsewhere.includes(type))
      .map((type) => ({ name, type })),
  );

  it('name everything that operators can tell a chart, in a form', () => {
    const unnamed = told.filter(({ type }) => operatorEvents[type] === undefined);
    expect(unnamed).to.deep.equal([]);
  });

  it('say one thing by one name: an operator’s event of several charts means the same to each', () => {
    const charts = new Map<string, string[]>();
    for (const { name, type } of told) charts.set(type, [...(charts.get(type) ?? []), name].sort());
    const shared = [...charts].filter(([, names]) => names.length > 1);
    expect(Object.fromEntries(shared)).to.deep.equal(sameForAll);
  });

  it('tell every time in one zone, and take it typed in the same', () => {
    const at = Date.parse('2026-11-21T22:05:09Z');
    expect(String(moment(at))).to.include('>22 Nov 01:05:09 EAT<');
    expect(typedMoment(at)).to.equal('2026-11-22 01:05:09');
    expect(Date.parse(momentTyped(typedMoment(at)))).to.equal(at);
    expect(momentTyped('2026-11-22')).to.equal('2026-11-22T00:00:00+03:00');
    expect(momentTyped('2026-11-22 01:05')).to.equal('2026-11-22T01:05:00+03:00');
    for (const text of ['2026-11-21T22:05:09Z', 'yesterday']) expect(momentTyped(text)).to.equal(text);
  });

  it('say why an attempt failed', () => {
    for (const { reason } of faultTable) expect(reasonWords(reason)).to.match(/ /).and.to.not.include('_');
  });
});
