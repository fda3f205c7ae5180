import { access, constants, readFile, writeFile } from 'node:fs/promises';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { archiving } from './archiving.ts';
import { creates, wholeStart } from './creates.ts';
import { deliveries, pinned } from './deliveries.ts';
import { isolation } from './isolation.ts';
import { journey } from './journey.ts';
import { late } from './late.ts';
import { lifecycles } from './lifecycles.ts';
import { auditNights } from './nights.ts';
import { pageText, print, printGoals, tell } from './report.ts';
import { recovery, stored, timers } from './scale.ts';
import { settling } from './settling.ts';
import { Stage } from './stage.ts';
import { stripes } from './stripes.ts';
import { waiting } from './waiting.ts';

/**
 * Measures in one run what counts, beside the straightforward way and the floor, and prints ratios: absolute
 * figures are not stable on shared machines. `npm run bench -- --only creates,journey` runs these parts alone;
 * `--write` puts what was printed in front of the history in docs/BENCHMARKS.md.
 */
const parts: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  ...{ start: wholeStart, creates, journey, lifecycles, deliveries, pinned },
  isolation: (of) => isolation(of, print),
  stored: (of) => stored(of, print),
  timers: (of) => timers(of, print),
  recovery: (of) => recovery(of, print),
  waiting: (of) => waiting(of, print),
  stripes: (of) => stripes(of, print),
  settling: (of) => settling(of, print),
  nights: (of) => auditNights(of, print),
  archiving: (of) => archiving(of, print),
  late: (of) => late(of, print),
};

const page = join(import.meta.dirname, '../../docs/BENCHMARKS.md');
/** What stands below this line in the page is written by people. */
const historyMark = '## What each change gave';

/** Keeps what was printed, with the machine and the date, above what the page tells of earlier runs. */
async function write(loadBefore: number): Promise<void> {
  const [load] = loadavg();
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 1024 ** 3)} GiB, ${platform()} ${arch()}, Node ${process.version}`;
  const earlier = await readFile(page, 'utf8');
  const history = earlier.includes(historyMark) ? earlier.slice(earlier.indexOf(historyMark)) : '';
  const text = `# Benchmarks

Written by \`npm run bench -- --write\`. All figures are of one run on one machine, where the load generator, MongoDB,
Redis and the service share the cores. Read the ratios: absolute figures differ from machine to machine and from hour
to hour. What each part does stands at the top of its file in \`tools/bench\`.

| | |
|---|---|
| date | ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC |
| machine | ${machine} |
| load average | ${loadBefore.toFixed(1)} before, ${load!.toFixed(1)} after |

\`\`\`text
${pageText()}
\`\`\`

${history}`;
  await writeFile(page, text);
}

function wanted(): string[] {
  const { values } = parseArgs({
    options: { only: { type: 'string' }, write: { type: 'boolean' } },
    allowPositionals: false,
  });
  const names = values.only?.split(',') ?? Object.keys(parts);
  const unknown = names.find((name) => !(name in parts));
  if (unknown) throw new Error(`no part is called ${unknown}: there are ${Object.keys(parts).join(', ')}`);
  return names;
}

const [loadBefore] = loadavg();
const names = wanted();
// Better now than after the whole run.
if (process.argv.includes('--write')) await access(page, constants.W_OK);
const stage = await Stage.open();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    tell(`${signal}: ending`);
    void stage.close().finally(() => process.exit(1));
  });
// A part that fails is told, and takes nobody else with it.
try {
  for (const [at, name] of names.entries()) {
    tell(`part ${at + 1} of ${names.length}: ${name}`);
    await parts[name]!(stage).catch((error) => {
      print(`  ${name} COULD NOT BE MEASURED: ${String((error as Error).message).split('\n')[0]}`);
      process.exitCode = 1;
    });
    await stage.endAll();
  }
  printGoals();
} finally {
  await stage.close();
}
tell('done');
if (process.argv.includes('--write')) await write(loadBefore!);
process.exit();
