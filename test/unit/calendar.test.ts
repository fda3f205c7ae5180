import { expect } from 'chai';
import fc from 'fast-check';
import { settlementDate } from '../../src/settlement/calendar.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';

/** The naive way: the host's time zone data, and a calendar that counts days one by one. */
const darEsSalaam = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'Africa/Dar_es_Salaam',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
});
const naiveDate = (ms: number) => darEsSalaam.format(ms);
const monthDays = (year: number, month: number) =>
  month === 2
    ? (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
      ? 29
      : 28
    : [4, 6, 9, 11].includes(month)
      ? 30
      : 31;
function naivePlus(date: string, days: number): string {
  let [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  for (let left = days; left > 0; left--) {
    day++;
    if (day > monthDays(year, month)) [month, day] = [month + 1, 1];
    if (month > 12) [year, month] = [year + 1, 1];
  }
  return [year, String(month).padStart(2, '0'), String(day).padStart(2, '0')].join('-');
}

const moments = fc.integer({ min: Date.UTC(1970, 0, 2), max: Date.UTC(2100, 0, 1) });
const delays = fc.integer({ min: 0, max: 31 });

describe('settlement calendar', () => {
  const vectors: [at: string, delayDays: number, due: string, date: string][] = [
    // worked by hand
    ['2026-11-21T20:59:59.999Z', 1, '2026-11-21T21:00:00.000Z', '2026-11-22'],
    ['2026-11-21T21:00:00.000Z', 1, '2026-11-22T21:00:00.000Z', '2026-11-23'],
    ['2026-12-31T22:30:00.000Z', 1, '2027-01-01T21:00:00.000Z', '2027-01-02'],
    ['2028-02-28T21:00:00.000Z', 1, '2028-02-29T21:00:00.000Z', '2028-03-01'],
    ['2026-11-21T09:00:00.000Z', 1, '2026-11-21T21:00:00.000Z', '2026-11-22'],
    ['2026-11-21T09:00:00.000Z', 3, '2026-11-23T21:00:00.000Z', '2026-11-24'],
    // the bounds of the delay
    ['2026-11-21T21:00:00.000Z', 0, '2026-11-21T21:00:00.000Z', '2026-11-22'],
    ['2026-11-21T20:59:59.999Z', 0, '2026-11-20T21:00:00.000Z', '2026-11-21'],
    ['2026-01-31T00:00:00.000Z', 31, '2026-03-02T21:00:00.000Z', '2026-03-03'],
    // a year that is no leap year although divisible by four
    ['2100-02-27T21:00:00.000Z', 1, '2100-02-28T21:00:00.000Z', '2100-03-01'],
  ];
  for (const [at, delayDays, due, date] of vectors) {
    it(`settles a payment of ${at} with T+${delayDays} at ${due}`, () => {
      const settled = settlementDate(Date.parse(at), delayDays);
      expect(new Date(settled.dueAtMs).toISOString()).to.equal(due);
      expect(settled.date).to.equal(date);
    });
  }

  it('agrees with the time zone database and a calendar that counts days', () => {
    fc.assert(
      fc.property(moments, delays, (atMs, delayDays) => {
        const { date, dueAtMs } = settlementDate(atMs, delayDays);
        expect(date).to.equal(naivePlus(naiveDate(atMs), delayDays));
        // the date has just begun there
        expect(naiveDate(dueAtMs)).to.equal(date);
        expect(naiveDate(dueAtMs - 1)).to.not.equal(date);
      }),
      { numRuns: 2_000 },
    );
  });

  it('never settles T+1 and later before the payment, nor T+0 after it', () => {
    fc.assert(
      fc.property(moments, delays, (atMs, delayDays) => {
        const { dueAtMs } = settlementDate(atMs, delayDays);
        if (delayDays === 0) expect(dueAtMs).to.be.at.most(atMs);
        else expect(dueAtMs).to.be.above(atMs);
      }),
    );
  });

  it('names the date in Dar es Salaam of any moment', () => {
    expect(eatDate(Date.parse('2026-11-21T20:59:59.999Z'))).to.equal('2026-11-21');
    expect(eatDate(Date.parse('2026-11-21T21:00:00.000Z'))).to.equal('2026-11-22');
    fc.assert(
      fc.property(moments, (ms) => {
        expect(eatDate(ms)).to.equal(naiveDate(ms));
      }),
    );
  });

  it('gives a date’s own beginning back', () => {
    expect(dateDueAtMs('2026-11-22')).to.equal(Date.parse('2026-11-21T21:00:00.000Z'));
    fc.assert(
      fc.property(moments, delays, (atMs, delayDays) => {
        const { date, dueAtMs } = settlementDate(atMs, delayDays);
        expect(dateDueAtMs(date)).to.equal(dueAtMs);
      }),
    );
  });

  it('refuses dates that do not exist and delays out of bounds', () => {
    for (const date of [
      '2026-02-29',
      '2026-02-30',
      '2026-13-01',
      '2026-1-1',
      '',
      'tomorrow',
      '2026-11-22T',
    ]) {
      expect(() => dateDueAtMs(date), date).to.throw(RangeError);
    }
    for (const delayDays of [-1, 32, 0.5, Number.NaN]) {
      expect(() => settlementDate(0, delayDays), String(delayDays)).to.throw(RangeError);
    }
  });
});
