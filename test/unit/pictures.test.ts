import { expect } from 'chai';
import { bars, calendar, lines, type Picture, picturesStyle, shortFigure } from '../../src/pages/pages.ts';

const picture = (more: Partial<Picture> = {}): Picture => ({
  title: 'Payments',
  says: '<8> ended.',
  series: [
    { name: 'succeeded', shade: 'blue' },
    { name: 'failed', shade: 'red' },
  ],
  columns: [
    { name: 'Sat, 12:00', mark: '12:00', values: [30, 0] },
    { name: 'Sat, 13:00', mark: '13:00', values: [10, 10] },
  ],
  ...more,
});

const pathsOf = (drawn: string, kind: string) =>
  [...drawn.matchAll(new RegExp(`<path class="(${kind}[^"]*)" d="([^"]*)"/>`, 'g'))].map(([, name, d]) => [
    name,
    d,
  ]);

describe('Pictures', () => {
  it('stack bars from the bottom, to a scale of 1, 2 or 5', () => {
    const drawn = String(bars(picture()));
    expect(drawn).to.contain('<li>50</li><li>25</li><li>0</li>');
    expect(pathsOf(drawn, 'bar')).to.deep.equal([
      ['bar blue', 'M0.8 100V40H9.2V100zM10.8 100V80H19.2V100z'],
      ['bar red', 'M10.8 80V60H19.2V80z'],
    ]);
  });

  it('end their scale where they are told to, if it is enough', () => {
    const scaleOf = (most: number) => {
      const columns = [{ name: 'a', mark: 'a', values: [most] }];
      return /<li>(\d+)<\/li>/.exec(String(lines(picture({ columns, tops: [60, 120] }))))![1];
    };
    expect([30, 61, 130].map(scaleOf)).to.deep.equal(['60', '120', '200']);
  });

  it('show one among a million', () => {
    const drawn = String(bars(picture({ columns: [{ name: 'a', mark: 'a', values: [1_000_000, 1] }] })));
    const [, [, d] = []] = pathsOf(drawn, 'bar');
    const [, from, to] = /^M[\d.]+ ([\d.]+)V([\d.]+)H/.exec(d!)!;
    expect(Number(from) - Number(to)).to.be.greaterThan(0);
  });

  it('break a line where nothing is known, and dot what stands alone', () => {
    const columns = [1, null, 2, 4].map((value, at) => ({ name: `${at}`, mark: `${at}`, values: [value] }));
    const series = [{ name: 'median', shade: 'blue' as const }];
    expect(pathsOf(String(lines(picture({ columns, series }))), 'line')).to.deep.equal([
      ['line line-0 blue', 'M5 80h.01M25 60h.01L35 20'],
    ]);
  });

  it('say in words and in a table what they draw, and escape it', () => {
    const drawn = String(bars(picture()));
    expect(drawn).to.contain('role="img" aria-label="Payments. &lt;8&gt; ended."');
    expect(drawn).to.contain('<title>Sat, 13:00\nsucceeded: 10\nfailed: 10</title>');
    expect(drawn).to.match(/<summary>As a table<\/summary>/);
    const rows = [...drawn.matchAll(/<tr><th scope="row">([^<]*)<\/th>(.*?)<\/tr>/g)];
    const cells = rows.map(([, name, text]) =>
      [name, ...text!.matchAll(/<td class="right">([^<]*)</g)].map(String),
    );
    expect(cells.map(([name, ...rest]) => [name, ...rest.map((cell) => cell.split(',')[1])])).to.deep.equal([
      ['Sat, 13:00', '10', '10'],
      ['Sat, 12:00', '30', '0'],
    ]);
    expect(drawn, 'nothing that the policy of our pages forbids').not.to.match(/style=|<script|<style/);
  });

  it('tell what is not known from what is nothing', () => {
    const columns = [null, 0, 3].map((value, at) => ({
      name: `${at}`,
      mark: `${at}`,
      values: [value, value],
    }));
    const drawn = String(bars(picture({ columns })));
    expect(drawn).to.contain('<rect class="unknown" width="10" height="100"/>');
    expect(drawn).to.contain('<title>0\nnot known</title>').and.to.contain('<title>1\n0</title>');
    expect(drawn).to.contain('<td class="right">–</td>');
  });

  it('have nothing to draw where nothing is', () => {
    const drawn = String(bars(picture({ columns: [{ name: 'a', mark: 'a', values: [0, null] }] })));
    expect(drawn).to.contain('Nothing yet.').and.not.to.contain('<svg');
  });

  it('write figures in a few letters', () => {
    const short = [0, 7, 950, 1_234, 34_000, 999_999, 5_600_000, 2e9].map(shortFigure);
    expect(short).to.deep.equal(['0', '7', '950', '1.2k', '34k', '1000k', '5.6M', '2bn']);
  });

  it('put days under their weekdays', () => {
    const day = (date: string) => ({ date, text: '', says: date, tone: 'none' as const });
    const drawn = String(
      calendar({
        title: 'Settled',
        says: 'Nothing.',
        weekdays: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'],
        days: [day('2026-11-21'), day('2026-11-22'), { ...day('2026-11-23'), isToday: true }],
      }),
    );
    const rows = [...drawn.matchAll(/<tr>((?:<td.*?<\/td>)+)<\/tr>/g)].map(([, row]) =>
      [...row!.matchAll(/<td.*?<\/td>/g)].map(([cell]) => /datetime="([^"]*)"/.exec(cell)?.[1] ?? ''),
    );
    expect(rows).to.deep.equal([
      ['', '', '', '', '', '2026-11-21', '2026-11-22'],
      ['2026-11-23', '', '', '', '', '', ''],
    ]);
    expect(drawn).to.contain('aria-current="date"');
  });
});

/** How colours look to those who lack a kind of cone: Machado, Oliveira and Fernandes (2009), on linear light. */
const sights: Readonly<Record<string, readonly (readonly [number, number, number])[]>> = {
  everybody: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  'who sees no red': [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  'who sees no green': [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  'who sees no blue': [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

type Three = [number, number, number];

function linear(hex: string): Three {
  const part = (at: number) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(1), part(3), part(5)];
}

function lab([r, g, b]: Three): Three {
  const f = (value: number) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const luminance = ([r, g, b]: Three) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

describe('The colours of pictures', () => {
  const [light, dark] = picturesStyle
    .split('@media (prefers-color-scheme: dark)')
    .slice(0, 2)
    .map((part) => [...part.matchAll(/--picture-\w+: (#[0-9a-f]{6});/g)].map(([, hex]) => hex!));
  const cards = { light: '#ffffff', dark: '#12161c' };

  for (const [scheme, colours] of [
    ['light', light!],
    ['dark', dark!],
  ] as const) {
    it(`stand out from the card, ${scheme}`, () => {
      expect(colours).to.have.length(7);
      for (const colour of colours) {
        const [less, more] = [colour, cards[scheme]]
          .map((hex) => luminance(linear(hex)))
          .sort((a, b) => a - b);
        expect((more! + 0.05) / (less! + 0.05), colour).to.be.at.least(3);
      }
    });

    for (const [who, sight] of Object.entries(sights))
      it(`are different for ${who}, ${scheme}`, () => {
        const seen = colours.map((hex) => {
          const light = linear(hex);
          const dot = (row: readonly number[]) =>
            Math.min(
              1,
              Math.max(
                0,
                row.reduce((sum, factor, at) => sum + factor * light[at]!, 0),
              ),
            );
          return lab([dot(sight[0]!), dot(sight[1]!), dot(sight[2]!)]);
        });
        for (const [a, one] of seen.entries())
          for (const [b, other] of seen.entries())
            if (a < b) {
              const distance = Math.hypot(...one.map((value, at) => value - other[at]!));
              expect(distance, `${colours[a]} and ${colours[b]}`).to.be.at.least(20);
            }
      });
  }
});
