import { stopwatch } from '@kusanya/durable-actors';

/** What is to be reached, as ratios within one run or as figures of one unit; `least` or `most`. */
const goals: readonly { figure: string; what: string; least?: number; most?: number; unit?: string }[] = [
  {
    figure: 'start.ratio',
    what: 'npm start as it is: creates beside straightforward',
    least: 1.5,
    unit: '×',
  },
  { figure: 'start.p99', what: 'npm start as it is: p99 of a create', most: 150, unit: ' ms' },
  { figure: 'start.backlogged', what: 'npm start as it is: failed for our own backlog', most: 0 },
  { figure: 'creates.ratio', what: 'api role: creates beside straightforward', least: 4, unit: '×' },
  { figure: 'journey.rate', what: 'journeys, one process', least: 500, unit: '/s' },
  { figure: 'journey.ms', what: 'a journey: all processors together', most: 3, unit: ' ms' },
  { figure: 'journey.commands', what: 'a journey: Redis commands', most: 60 },
  { figure: 'deliveries.rate', what: 'deliveries, one worker', least: 2_400, unit: '/s' },
  {
    figure: 'deliveries.ratio',
    what: 'deliveries beside a worker that records nothing',
    least: 0.4,
    unit: '×',
  },
  {
    figure: 'isolation.hanging',
    what: 'p99 of healthy endpoints beside a hanging one',
    most: 1.2,
    unit: '×',
  },
  { figure: 'isolation.slow', what: 'p99 of healthy endpoints beside 16 slow ones', most: 1.2, unit: '×' },
  { figure: 'lifecycles.ratio', what: 'lifecycles beside straightforward at its best', least: 2, unit: '×' },
  { figure: 'pinned.ratio', what: 'two workers on a core each beside one', least: 1.8, unit: '×' },
  { figure: 'nights.ratio', what: 'a night at 200 k stored beside 20 k', most: 1.3, unit: '×' },
  { figure: 'late.ratio', what: 'late timers: two workers on a core each beside one', least: 1.8, unit: '×' },
  { figure: 'stored.ratio', what: 'creates at 10 k stored beside 1 M', most: 1.2, unit: '×' },
];

const printed: string[] = [];
const figures = new Map<string, number>();
const sinceStart = stopwatch();

/** Says it now, and keeps it for the page. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
  printed.push(line);
}

/** Only for whoever watches the run: where it is, and after how long. */
export function tell(line: string): void {
  process.stderr.write(`[${Math.round(sinceStart() / 1_000)} s] ${line}\n`);
}

/** A figure that a goal is about. */
export function record(figure: string, value: number): void {
  figures.set(figure, value);
}

/** What was measured beside what is to be reached. What was not measured in this run is left out. */
export function printGoals(): void {
  const measured = goals.filter(({ figure }) => figures.has(figure));
  if (measured.length === 0) return;
  print('\nBeside what is to be reached:');
  for (const { figure, what, least, most, unit = '' } of measured) {
    const value = figures.get(figure)!;
    const isReached = least === undefined ? value <= most! : value >= least;
    const bound = least === undefined ? `≤ ${most}` : `≥ ${least}`;
    const told = `${Number.isInteger(value) ? value : value.toFixed(2)}${unit}`;
    print(`  ${isReached ? 'yes' : 'no '}  ${what.padEnd(52)} ${told.padStart(10)}   ${bound}${unit}`);
  }
}

/** All that was printed. */
export function pageText(): string {
  return printed.join('\n').trim();
}

export function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** @throws when it does not happen. */
export async function until<Found>(
  find: () => Promise<Found>,
  withinMs = 60_000,
): Promise<NonNullable<Found>> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (performance.now() > giveUpAt) throw new Error('what the bench waits for does not happen');
    await pause(20);
  }
}
