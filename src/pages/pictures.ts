import { type Html, html, type Part, trusted } from './html.ts';

/**
 * Pictures over time: stacked bars and lines as SVG, a calendar as a table. No script, no style of their own; colours are
 * variables of the sheet (pictures.css), which all can tell apart. The drawing is stretched to the width there is, so
 * every text stands beside it and keeps its size. Behind each is a table that says the same.
 */

/** A colour of the sheet. Blue is for what is well, red for what is not; grey for the rest. */
export type Shade = 'blue' | 'red' | 'purple' | 'yellow' | 'green' | 'pink' | 'grey';

/** For what has no colour of its own, in this order. */
export const shades: readonly Shade[] = ['red', 'purple', 'green', 'pink', 'yellow'];

export interface Series {
  name: string;
  shade: Shade;
}

/** An hour or a day. `values` belong to the series, in their order; null: it is not known. */
export interface Column {
  /** In full, for the table and to hover: `Sat 21 Nov, 13:00`. */
  name: string;
  /** What is said below the picture where it fits: `13:00`. */
  mark: string;
  values: readonly (number | null)[];
}

export interface Picture {
  title: string;
  /** What there is to see, in one sentence: it stands above the picture, and is what a screen reader hears of it. */
  says: string;
  series: readonly Series[];
  /** From the oldest to the newest. */
  columns: readonly Column[];
  /** Columns are no times but a few kinds, each with its mark. */
  areKinds?: true;
  /** The values that the scale may end with, rising. Beyond them, and where there are none: 1, 2, 5, 10, 20 and so on. */
  tops?: readonly number[];
  /** How a value is written in the table and to hover; as it is. */
  written?: (value: number) => string;
  /** How it is written beside the picture, in a few letters. */
  short?: (value: number) => string;
  words?: Partial<PictureWords>;
  /** Below the table, such as where it can be had as a file. */
  more?: Part;
}

/** What a picture says by itself, in the language of its page. */
export interface PictureWords {
  /** Opens the table. */
  table: string;
  /** Above the names of the columns. */
  when: string;
  /** Instead of the picture where there is nothing to draw. */
  nothing: string;
  /** To hover over what is not known. */
  unknown: string;
}

const english: PictureWords = {
  table: 'As a table',
  when: 'When',
  nothing: 'Nothing yet.',
  unknown: 'not known',
};

const height = 100;
const columnWidth = 10;
/** Between two bars. */
const gap = 1.6;
/** So many bars are too thin to have an edge, and to be hovered over: the table says it. */
const thinFrom = 60;
/** What is there is seen, however little it is. */
const least = 1.2;

/** Bars, one upon the other; the first series is at the bottom. */
export function bars(picture: Picture): Html {
  return framed(picture, 'bars', (top) => {
    const paths = picture.series.map((): string[] => []);
    for (const [at, { values }] of picture.columns.entries()) {
      let floor = height;
      for (const [of, value] of values.entries()) {
        if (!value) continue;
        const tall = Math.max(least, (value / top) * height);
        const ceiling = Math.max(0, floor - tall);
        const [left, right] = [at * columnWidth + gap / 2, (at + 1) * columnWidth - gap / 2];
        paths[of]!.push(`M${round(left)} ${round(floor)}V${round(ceiling)}H${round(right)}V${round(floor)}z`);
        floor = ceiling;
      }
    }
    const kind = picture.columns.length > thinFrom ? 'bar thin' : 'bar';
    return paths.map((path, of) => pathOf(kind, picture.series[of]!.shade, path));
  });
}

/** A line for each series, broken where a value is not known. The second is dashed, the third dotted. */
export function lines(picture: Picture): Html {
  return framed(picture, 'lines', (top) =>
    picture.series.map(({ shade }, of) => {
      let isDrawing = false;
      const path = picture.columns.map(({ values }, at) => {
        const value = values[of] ?? null;
        const command = isDrawing ? 'L' : 'M';
        isDrawing = value !== null;
        if (value === null) return '';
        const [x, y] = [round((at + 0.5) * columnWidth), round(height - (value / top) * height)];
        // A point between two gaps is a line too, as long as its cap.
        return command === 'M' ? `M${x} ${y}h.01` : `L${x} ${y}`;
      });
      return pathOf(`line line-${of}`, shade, path);
    }),
  );
}

function pathOf(kind: string, shade: Shade, path: readonly string[]): Html {
  return path.some((part) => part !== '')
    ? html`<path class="${kind} ${shade}" d="${path.join('')}"/>`
    : html``;
}

/** Title, sentence, key, drawing and table. */
function framed(picture: Picture, kind: 'bars' | 'lines', draw: (top: number) => readonly Html[]): Html {
  const { title, says, series, columns } = picture;
  const words = { ...english, ...picture.words };
  const top = topOf(picture, kind === 'bars');
  const short = picture.short ?? shortFigure;
  const key = series.map(
    ({ name, shade }, of) =>
      html`<li><i class="${shade} ${kind === 'lines' ? `line-${of}` : ''}"></i>${name}</li>`,
  );
  const width = columns.length * columnWidth;
  const isEmpty = columns.every(({ values }) => values.every((value) => !value));
  const drawing = html`<div class="plot">
<ol class="scale" aria-hidden="true"><li>${short(top)}</li><li>${short(top / 2)}</li><li>0</li></ol>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}. ${says}"><path class="grid" d="M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}"/>${unknownOf(columns)}${draw(top)}${columns.length > thinFrom ? '' : columns.map((column, at) => hoverOf(picture, words, column, at))}</svg>
<ol class="marks ${picture.areKinds ? 'each' : ''}" aria-hidden="true">${marksOf(picture).map((mark) => html`<li>${mark}</li>`)}</ol>
</div>`;
  return html`<figure class="picture">
<figcaption><b>${title}</b> <span>${says}</span></figcaption>
${series.length > 1 && !isEmpty ? html`<ul class="key" aria-hidden="true">${key}</ul>` : ''}
${isEmpty ? html`<p class="empty">${words.nothing}</p>` : drawing}
${isEmpty ? '' : tableOf(picture, words)}
</figure>`;
}

function hoverOf(
  { series, written = String }: Picture,
  words: PictureWords,
  column: Column,
  at: number,
): Html {
  const told = series.flatMap(({ name }, of) => {
    const value = column.values[of] ?? null;
    return value === null || value === 0 ? [] : [`${name}: ${written(value)}`];
  });
  const isUnknown = column.values.every((value) => value === null);
  const text = [column.name, ...(isUnknown ? [words.unknown] : told.length > 0 ? told : ['0'])].join('\n');
  return html`<rect class="hover" x="${at * columnWidth}" width="${columnWidth}" height="${height}"><title>${text}</title></rect>`;
}

/** What nobody knows is not drawn as nothing. */
function unknownOf(columns: readonly Column[]): Html {
  const count = columns.findIndex(({ values }) => values.some((value) => value !== null));
  const unknown = count < 0 ? columns.length : count;
  if (unknown === 0) return html``;
  return html`<rect class="unknown" width="${unknown * columnWidth}" height="${height}"/>`;
}

function tableOf({ series, columns, title, written = String, more }: Picture, words: PictureWords): Html {
  const head = series.map(({ name }) => html`<th scope="col" class="right">${name}</th>`);
  const rows = columns.toReversed().map(({ name, values }) => {
    const cells = series.map((_, of) => {
      const value = values[of] ?? null;
      return html`<td class="right">${value === null ? '–' : written(value)}</td>`;
    });
    return html`<tr><th scope="row">${name}</th>${cells}</tr>\n`;
  });
  return html`<details><summary>${words.table}</summary>
<div class="scroll" role="region" aria-label="${title}" tabindex="0"><table><thead><tr><th scope="col">${words.when}</th>${head}</tr></thead><tbody>${rows}</tbody></table></div>${more ? html`<p>${more}</p>` : ''}</details>`;
}

/** Five marks at most, at equal distances: the first, the last, and what lies between. */
function marksOf({ columns, areKinds }: Picture): string[] {
  if (areKinds) return columns.map(({ mark }) => mark);
  const count = Math.min(5, columns.length);
  return Array.from({ length: count }, (_, at) => {
    const place =
      count === 1 ? 0 : Math.min(columns.length - 1, Math.round((at * columns.length) / (count - 1)));
    return columns[place]!.mark;
  });
}

/** The least that all fits under: of `tops`, or of 1, 2, 5, 10, 20 … */
function topOf({ columns, tops }: Picture, isStacked: boolean): number {
  const known = columns.map(({ values }) => values.map((value) => value ?? 0));
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  const most = Math.max(1, ...known.map((values) => (isStacked ? sum(values) : Math.max(0, ...values))));
  const given = tops?.find((top) => top >= most);
  if (given !== undefined) return given;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= most)!;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** `0`, `950`, `1.2k`, `34k`, `5.6M`: as wide as a scale is. */
export function shortFigure(value: number): string {
  const units: [number, string][] = [
    [1e9, 'bn'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  const [size, unit] = units.find(([each]) => value >= each) ?? [1, ''];
  const scaled = value / size;
  return `${scaled < 10 ? Math.round(scaled * 10) / 10 : Math.round(scaled)}${unit}`;
}

/** A day of a calendar. */
export interface CalendarDay {
  /** `YYYY-MM-DD`. */
  date: string;
  /** Beside the day, for who sees no colours: `✓`. */
  mark?: string;
  /** In a few letters: `1.2M`; empty where nothing is. */
  text: string;
  /** In full. */
  says: string;
  /** What is to be seen at once: money that came, that will come, that is late or held. */
  tone: 'none' | 'good' | 'busy' | 'care' | 'bad';
  isToday?: boolean;
  href?: string;
}

/**
 * Weeks from Monday to Sunday; `days` are consecutive. `weekdays` begin with Monday. It is a table already, so there is
 * none behind it; what a tone means is written in each day, too.
 */
export function calendar({
  title,
  says,
  weekdays,
  days,
}: {
  title: string;
  says: string;
  weekdays: readonly string[];
  days: readonly CalendarDay[];
}): Html {
  const before = days[0] ? (new Date(`${days[0].date}T00:00:00Z`).getUTCDay() + 6) % 7 : 0;
  const cells: (CalendarDay | undefined)[] = [...Array<undefined>(before).fill(undefined), ...days];
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, week) =>
    Array.from({ length: 7 }, (_, day) => cells[week * 7 + day]),
  );
  return html`<figure class="picture">
<figcaption><b>${title}</b> <span>${says}</span></figcaption>
<table class="calendar"><thead><tr>${weekdays.map((day) => html`<th scope="col">${day}</th>`)}</tr></thead>
<tbody>${weeks.map((week) => html`<tr>${week.map(dayOf)}</tr>\n`)}</tbody></table>
</figure>`;
}

function dayOf(day: CalendarDay | undefined): Html {
  if (!day) return trusted('<td></td>');
  const { date, mark, text, says, tone, isToday, href } = day;
  const inside = html`<time datetime="${date}">${Number(date.slice(8))}${mark ? ` ${mark}` : ''}</time>${text ? html`<b>${text}</b>` : ''}`;
  return html`<td class="${tone}" ${isToday ? html`aria-current="date"` : ''}>${href ? html`<a href="${href}" title="${says}">${inside}</a>` : inside}</td>`;
}
