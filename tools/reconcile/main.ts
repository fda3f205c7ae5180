import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import process from 'node:process';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/** `npm run reconcile -- file.csv`: brings a network's statement and follows it until a person is needed. */
const usage = `npm run reconcile -- <file.csv> [options]

  --empty                           instead of a file: nothing moved on the day
  --date 2026-11-21                 the day of the statement; yesterday in Dar es Salaam when absent
  --rail MPESA_TZ                   whose statement it is; BANK is the bank's
  --url http://127.0.0.1:3001       the operators' listener
  --token kusanya_operator_…        or in OPERATOR_TOKEN
  --reason "…"                      kept in the audit

Ends with 0 where both balances agree, or the newest lines are too young to be judged yet; with 2 where something is
unexplained; with 1 where the file or the service refused; with 64 where the command is wrong.
`;
const exits = { isFine: 0, isRefused: 1, isUnexplained: 2, isMisused: 64 };

const options = {
  date: { type: 'string' },
  rail: { type: 'string', default: 'MPESA_TZ' },
  url: { type: 'string', default: 'http://127.0.0.1:3001' },
  token: { type: 'string', default: process.env.OPERATOR_TOKEN ?? '' },
  reason: { type: 'string', default: 'The statement of the day.' },
  empty: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** What is wrong with the command itself. */
class Misused extends Error {}

interface Told {
  id: string;
  state: string;
  lines: number;
  imported: number;
  repeated: number;
  matched: number;
  classes: { class: string; count: number; amount: number }[];
  agreement: { statement: number; ledger: number; unexplained: number } | null;
  judged_at: string | null;
  error?: { message: string };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function commandOf(args: string[]) {
  try {
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    const wanted = values.empty ? 0 : 1;
    if (!values.help && positionals.length !== wanted)
      throw new TypeError(values.empty ? '--empty goes with no file' : 'one file is wanted');
    return { ...values, file: positionals[0] ?? '' };
  } catch (error) {
    throw new Misused((error as Error).message);
  }
}

type Command = ReturnType<typeof commandOf>;

async function ask({ url, token }: Command, path: string, init: RequestInit = {}): Promise<Told> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'text/csv' };
  const response = await fetch(`${url}${path}`, { ...init, headers }).catch((error: Error) => {
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    throw new Error(
      `${url} was not reached (${why}). Does the service run, and is this its operators' listener?`,
    );
  });
  const told = (await response.json()) as Told;
  if (!response.ok) throw new Error(told.error?.message ?? `${url} answered ${response.status}`);
  return told;
}

/** The day before the one that it is in Dar es Salaam. */
function yesterday(): string {
  const eat = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Africa/Dar_es_Salaam' });
  const today = eat.format(performance.timeOrigin + performance.now());
  return new Date(Date.parse(`${today}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}

/** Sends the file as it is read, or says that there is none; tells what it began. */
async function bring(command: Command): Promise<Told> {
  const { file, rail, reason, date = yesterday() } = command;
  if (command.empty) {
    const query = new URLSearchParams({ rail, date, reason, empty: 'true' });
    const told = await ask(command, `/admin/reconciliations?${query}`, { method: 'POST' });
    say(`${told.id}: a day on which nothing moved`);
    return told;
  }
  const { size } = await stat(file).catch((error: Error) => {
    throw new Misused(`the file cannot be read: ${error.message}`);
  });
  const query = new URLSearchParams({ rail, date, reason });
  const body = Readable.toWeb(createReadStream(file)) as ReadableStream;
  // Node wants to be told that nothing is read of the answer while the file is sent.
  const sending: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
  const told = await ask(command, `/admin/reconciliations?${query}`, sending);
  say(`${told.id}: ${told.lines} lines (${size} bytes)`);
  return told;
}

/** Says how far it is whenever that has changed, until nothing goes on by itself. */
async function follow(command: Command, begun: Told): Promise<Told> {
  let told = begun;
  for (let last = ''; /^(importing|matching\.(lines|books)|open\.comparing)/.test(told.state); ) {
    await sleep(500);
    told = await ask(command, `/admin/reconciliations/${told.id}`);
    const line = `${told.state}: ${told.imported + told.repeated} kept, ${told.matched} looked for`;
    if (line !== last) say(line);
    last = line;
  }
  return told;
}

async function main(command: Command): Promise<number> {
  const { id, state, classes, agreement, judged_at } = await follow(command, await bring(command));
  for (const { class: kind, count, amount } of classes) say(`${kind}\t${count}\tTZS ${amount}`);
  if (agreement) {
    const { statement, ledger, unexplained } = agreement;
    say(`statement TZS ${statement}, ledger TZS ${ledger}, unexplained TZS ${unexplained}`);
  } else say(`the newest lines are judged at ${judged_at}; both balances are compared then`);
  say(`now ${state}; differences: GET ${command.url}/admin/differences?reconciliation=${id}`);
  return agreement && agreement.unexplained !== 0 ? exits.isUnexplained : exits.isFine;
}

try {
  const command = commandOf(process.argv.slice(2));
  if (command.help) say(usage);
  else process.exitCode = await main(command);
} catch (error) {
  const isMisused = error instanceof Misused;
  process.stderr.write(`${(error as Error).message}\n${isMisused ? `\n${usage}` : ''}`);
  process.exitCode = isMisused ? exits.isMisused : exits.isRefused;
}
