import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import process from 'node:process';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/** `npm run reconcile -- file.csv`: brings a network's statement and follows it until a person is needed. */
const usage = `npm run reconcile -- <file.csv> [options]

  --date 2026-11-21                 the day of the statement; yesterday in Dar es Salaam when absent
  --rail MPESA_TZ                   whose statement it is
  --url http://127.0.0.1:3001       the operators' listener
  --token kusanya_operator_…        or in OPERATOR_TOKEN
  --reason "…"                      kept in the audit
`;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    date: { type: 'string' },
    rail: { type: 'string', default: 'MPESA_TZ' },
    url: { type: 'string', default: 'http://127.0.0.1:3001' },
    token: { type: 'string', default: process.env.OPERATOR_TOKEN ?? '' },
    reason: { type: 'string' },
    help: { type: 'boolean' },
  },
});
const [file] = positionals;

interface Told {
  id: string;
  state: string;
  lines: number;
  imported: number;
  matched: number;
  classes: { class: string; count: number; amount: number }[];
  agreement: { statement: number; ledger: number; unexplained: number } | null;
  error?: { message: string };
}

async function ask(path: string, init: RequestInit = {}): Promise<Told> {
  const headers = { authorization: `Bearer ${values.token}`, 'content-type': 'text/csv' };
  const response = await fetch(`${values.url}${path}`, { ...init, headers });
  const told = (await response.json()) as Told;
  if (!response.ok) throw new Error(told.error?.message ?? `answered ${response.status}`);
  return told;
}

/** The day before the one that it is in Dar es Salaam. */
function yesterday(): string {
  const eat = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Africa/Dar_es_Salaam' });
  const [today] = [eat.format(performance.timeOrigin + performance.now())];
  return new Date(Date.parse(`${today}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}

async function main(path: string): Promise<void> {
  const { size } = await stat(path);
  const query = new URLSearchParams({ rail: values.rail, date: values.date ?? yesterday() });
  query.set('reason', values.reason ?? 'The statement of the day.');
  const body = Readable.toWeb(createReadStream(path)) as ReadableStream;
  // Node wants to be told that nothing is read of the answer while the file is sent.
  const sending: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
  let told = await ask(`/admin/reconciliations?${query}`, sending);
  say(`${told.id}: ${told.lines} lines (${size} bytes)`);
  for (let last = ''; /^(importing|matching\.(lines|books)|open\.comparing)/.test(told.state); ) {
    await sleep(500);
    told = await ask(`/admin/reconciliations/${told.id}`);
    const line = `${told.state}: ${told.imported} kept, ${told.matched} looked for`;
    if (line !== last) say(line);
    last = line;
  }
  for (const { class: kind, count, amount } of told.classes) say(`${kind}\t${count}\tTZS ${amount}`);
  const { agreement } = told;
  if (agreement) {
    const { statement, ledger, unexplained } = agreement;
    say(`statement TZS ${statement}, ledger TZS ${ledger}, unexplained TZS ${unexplained}`);
  }
  say(`now ${told.state}; differences: GET ${values.url}/admin/differences?reconciliation=${told.id}`);
}

if (values.help || file === undefined) {
  process.stderr.write(usage);
  process.exitCode = file === undefined && !values.help ? 64 : 0;
} else {
  await main(file).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
}
