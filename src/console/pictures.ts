import {
  bars,
  type CalendarDay,
  type Column,
  calendar,
  type Html,
  html,
  lines,
  type Picture,
  type Series,
  shades,
  shortFigure,
} from '../pages/pages.ts';
import { type Answered, address, type Visit } from './page.ts';
import { dayName, figures, hourName, label, reasonWords, span } from './words.ts';

/** Pictures over time of the installation, of a merchant, or of an endpoint; what they draw is counted by the service. */

type Tallies = Answered<'/admin/tallies'>;
type Row = Tallies['data'][number];
type Numbers = Row['numbers'];
type Kind = Tallies['kind'];

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** How far back: the last day and the week by the hour, the month by the day. */
const periods = {
  '': { by: 'hour', ms: dayMs },
  week: { by: 'hour', ms: 7 * dayMs },
  month: { by: 'day', ms: 31 * dayMs },
} as const;

type Period = keyof typeof periods;

/** Where nothing is counted: later than all. */
const notYet = '9999-12-31T00:00:00Z';

/** What a link of the page asks for. */
export const periodChoices: readonly (readonly [Period, string])[] = [
  ['', '24 hours'],
  ['week', '7 days'],
  ['month', '31 days'],
];

function periodOf(visit: Visit): Period {
  const asked = visit.query.get('period');
  return asked === 'week' || asked === 'month' ? asked : '';
}

/** The rows of a period, with how they are named and where they can be had as a file. */
interface Told {
  rows: Row[];
  /** Of the whole period. */
  total: Tallies['total'];
  isKnown(row: Row): boolean;
  column(row: Row, values: Column['values']): Column;
  more: Html;
}

/** @param of a merchant or an endpoint; undefined: all */
async function told(visit: Visit, kind: Kind, of?: string): Promise<Told> {
  const period = periodOf(visit);
  const { by, ms } = periods[period];
  // The running hour, or day, is the last one.
  const length = by === 'hour' ? hourMs : dayMs;
  const from = new Date(visit.nowMs - ms + length).toISOString();
  const query = { mode: visit.mode, kind, by, from, ...(of === undefined ? {} : { of }) };
  const tallies = await visit.read('/admin/tallies', { query });
  const knownMs = tallies.is_whole ? 0 : Date.parse(tallies.counted_from ?? notYet);
  const { mode: _mode, ...file } = query;
  return {
    rows: tallies.data,
    total: tallies.total,
    isKnown: ({ at }) => Date.parse(at) + length > knownMs,
    column: ({ at }, values) => {
      const atMs = Date.parse(at);
      const name = by === 'hour' ? hourName(atMs) : dayName(atMs);
      return { name, mark: period === '' ? name.slice(-'00:00'.length) : dayName(atMs), values };
    },
    more: html`<a href="${address(visit, `/tallies.csv?${new URLSearchParams(file)}`)}">Download as CSV</a>, with every part and the time to success.`,
  };
}

/** Rows whose hours are not counted yet have no values; the others what `valuesOf` makes of their numbers. */
function columnsOf(
  { rows, isKnown, column }: Told,
  series: readonly Series[],
  valuesOf: (numbers: Numbers, row: Row) => readonly (number | null)[],
): Column[] {
  return rows.map((row) => column(row, isKnown(row) ? valuesOf(row.numbers, row) : series.map(() => null)));
}

/** `failed` by its parts, the most frequent first. */
function failedParts(numbers: Numbers): [part: string, count: number][] {
  return Object.entries(numbers)
    .flatMap(([name, count]): [string, number][] =>
      name.startsWith('failed:') ? [[name.slice('failed:'.length), count]] : [],
    )
    .sort(([a, more], [b, less]) => less - more || (a < b ? -1 : 1));
}

/** Parts that have a colour of their own; the others are one. */
const partsShown = 4;

/** Series for the parts of `failed`, and their values in an hour. */
function failures({ total }: Told, words: (part: string) => string) {
  const parts = failedParts(total.numbers).map(([part]) => part);
  const shown = parts.slice(0, partsShown);
  const others = parts.slice(partsShown);
  const series: Series[] = shown.map((part, at) => ({ name: words(part), shade: shades[at]! }));
  if (others.length > 0) series.push({ name: 'other reasons', shade: 'grey' });
  const of = (numbers: Numbers, part: string) => numbers[`failed:${part}`] ?? 0;
  const valuesOf = (numbers: Numbers) => [
    ...shown.map((part) => of(numbers, part)),
    ...(others.length > 0 ? [others.reduce((sum, part) => sum + of(numbers, part), 0)] : []),
  ];
  return { series, valuesOf };
}

function mostOften({ total }: Told, words: (part: string) => string): string {
  const most = failedParts(total.numbers)
    .slice(0, 2)
    .map(([part, count]) => `${words(part)} (${figures(count)})`);
  return most.length > 0 ? ` Most often: ${most.join(', ')}.` : '';
}

/** A share in per cent. One that is not all is never written as all. */
function percent(part: number, all: number): string {
  if (all === 0) return '–';
  const share = (100 * part) / all;
  const rounded = share > 99 ? Math.floor(share * 10) / 10 : Math.round(share);
  return `${rounded} %`;
}

/** Payments that ended, what was collected, why they did not succeed, and how long they took. */
export async function paymentPictures(visit: Visit, merchant?: string): Promise<Html[]> {
  const all = await told(visit, 'payments', merchant);
  return [endedPicture(all), collectedPicture(all), failurePicture(all), tookPicture(all)];
}

function endedPicture(all: Told): Html {
  const { succeeded = 0, failed = 0, expired = 0, late = 0 } = all.total.numbers;
  const series: Series[] = [
    { name: 'succeeded', shade: 'blue' },
    { name: 'failed', shade: 'red' },
    { name: 'expired', shade: 'yellow' },
  ];
  const afterwards = late > 0 ? ` ${figures(late)} more were paid late and accepted.` : '';
  const says = `${figures(succeeded + failed + expired)} ended: ${figures(succeeded)} succeeded, ${figures(failed)} failed, ${figures(expired)} expired.${afterwards}`;
  const columns = columnsOf(all, series, (of) => [of.succeeded ?? 0, of.failed ?? 0, of.expired ?? 0]);
  return bars({ title: 'Payments', says, series, columns, more: all.more, written: figures });
}

function collectedPicture(all: Told): Html {
  const { tzs = 0, fees = 0 } = all.total.numbers;
  const series: Series[] = [{ name: 'TZS', shade: 'blue' }];
  const says = `TZS ${figures(tzs)} collected, of which TZS ${figures(fees)} in fees.`;
  const columns = columnsOf(all, series, (of) => [of.tzs ?? 0]);
  return bars({ title: 'Shillings', says, series, columns, more: all.more, written: figures });
}

/** What did not succeed, in per cent of what ended: what is left above the bars is the success rate. */
function failurePicture(all: Told): Html {
  const { series: codes, valuesOf } = failures(all, label);
  const series: Series[] = [...codes, { name: 'expired', shade: 'yellow' }];
  const ended = ({ succeeded = 0, failed = 0, expired = 0 }: Numbers) => succeeded + failed + expired;
  const columns = columnsOf(all, series, (of) =>
    [...valuesOf(of), of.expired ?? 0].map((count) => (count === 0 ? 0 : (100 * count) / ended(of))),
  );
  const { numbers } = all.total;
  const rate = percent(numbers.succeeded ?? 0, ended(numbers));
  const says =
    ended(numbers) > 0 ? `${rate} succeeded; drawn is what did not.${mostOften(all, label)}` : 'None ended.';
  const written = (value: number) => `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} %`;
  const title = 'What did not succeed';
  const words = ended(numbers) > 0 ? { nothing: 'Nothing: all succeeded.' } : {};
  return bars({ title, says, series, columns, more: all.more, written, short: written, words });
}

/** Times that a scale may end with: their halves can be said in a word, too. */
const tops = [2, 4, 10, 20, 60, 120, 240, 600, 1_200, 3_600].map((seconds) => 1_000 * seconds);

function tookPicture(all: Told): Html {
  const series: Series[] = [
    { name: 'half of them', shade: 'blue' },
    { name: '95 % of them', shade: 'red' },
  ];
  const columns = columnsOf(all, series, (_, row) => [row.median_ms, row.p95_ms]);
  const { median_ms: median, p95_ms: p95 } = all.total;
  const says =
    median === null || p95 === null
      ? 'None succeeded.'
      : `Half succeeded within ${span(median)}, 95 % within ${span(p95)}; the customer’s own part included.`;
  return lines({
    title: 'Time to success',
    says,
    series,
    columns,
    more: all.more,
    written: span,
    short: span,
    tops,
  });
}

/** Attempts to deliver webhooks: of all, of a merchant, or of an endpoint. */
export async function webhookPicture(visit: Visit, of?: string): Promise<Html> {
  const all = await told(visit, 'webhooks', of);
  const { ok = 0, n = 0 } = all.total.numbers;
  const { series: reasons, valuesOf } = failures(all, reasonWords);
  const series: Series[] = [{ name: 'taken', shade: 'blue' }, ...reasons];
  const columns = columnsOf(all, series, (numbers) => [numbers.ok ?? 0, ...valuesOf(numbers)]);
  const says =
    n > 0
      ? `${percent(ok, n)} of ${figures(n)} attempts were taken.${mostOften(all, reasonWords)}`
      : 'No attempts.';
  return bars({ title: 'Webhooks', says, series, columns, more: all.more, written: figures });
}

/** What was settled on each day, and what waits for which. */
export async function calendarPicture(visit: Visit, merchant?: string): Promise<Html> {
  const query = { mode: visit.mode, ...(merchant === undefined ? {} : { merchant }) };
  const { data, today } = await visit.read('/admin/calendar', { query });
  const days = data.map(({ date, settled, waiting }): CalendarDay => {
    const sum = settled + waiting;
    const isLate = waiting > 0 && date < today;
    const parts = [
      ...(settled > 0 ? [`TZS ${figures(settled)} settled`] : []),
      ...(waiting > 0 ? [`TZS ${figures(waiting)} ${isLate ? 'late or held back' : 'to be settled'}`] : []),
    ];
    const page = `/settlements?date=${date}${merchant ? `&merchant=${merchant}` : ''}`;
    return {
      date,
      mark: isLate ? '!' : settled > 0 ? '✓' : '',
      text: sum > 0 ? shortFigure(sum) : '',
      says: `${date}: ${parts.join(', ') || 'nothing'}`,
      tone: isLate ? 'bad' : waiting > 0 ? 'busy' : settled > 0 ? 'good' : 'none',
      isToday: date === today,
      ...(sum > 0 ? { href: address(visit, page) } : {}),
    };
  });
  const total = (name: 'settled' | 'waiting') => data.reduce((sum, day) => sum + day[name], 0);
  return calendar({
    title: 'Settlements',
    says: `TZS ${figures(total('settled'))} settled (✓) in these weeks, TZS ${figures(total('waiting'))} to come; ! is late or held back.`,
    weekdays: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'],
    days,
  });
}

/** A bar for each age. */
export function agePicture({ under_review: review }: Answered<'/admin/waiting'>, nowMs: number): Html {
  const columns = review.ages.map(({ under, count }): Column => {
    const name = under === 'more' ? 'older than a week' : `less than ${under}`;
    return { name, mark: under === 'more' ? 'older' : `< ${under}`, values: [count] };
  });
  const oldest = review.oldest_at ? `; the oldest for ${span(nowMs - Date.parse(review.oldest_at))}` : '';
  const picture: Picture = {
    title: 'Under review, by age',
    says: `${figures(review.count)}${review.is_more ? '+' : ''} payments of which nobody knows whether they were paid${oldest}.`,
    series: [{ name: 'payments', shade: 'red' }],
    columns,
    written: figures,
    areKinds: true,
    words: { nothing: 'None.' },
  };
  return bars(picture);
}
