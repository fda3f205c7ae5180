import { accounts, type Fact, facts, moneyMap, type Place, places, shilling } from '../../machines/money.ts';

/** docs/MONEY.md: the money map as people read it, made of machines/money.ts as the drawings are of the charts. */

/** The page, as Markdown. */
export function moneyPage(): string {
  return [
    '# Where the money is',
    'Written by `npm run charts` from [machines/money.ts](../machines/money.ts): change that, not this. Whoever posts an entry',
    'is held to it ([src/ledger/postings.ts](../src/ledger/postings.ts)), the auditor compares what is stored with it',
    '([src/ledger/auditor.ts](../src/ledger/auditor.ts)), and every generated path of every chart is walked over it',
    '([test/machines/money-map.test.ts](../test/machines/money-map.test.ts)).',
    '',
    '## The accounts',
    '',
    table(
      ['account', 'whose money', 'grows by'],
      Object.entries(accounts).map(([kind, { whose, grows }]) => [`\`${kind}\``, whose, grows]),
    ),
    '',
    '## One shilling’s path',
    'From the customer’s PIN to the merchant’s bank. What we hold and what we owe are two sides of the same shilling; the fee’s',
    'shillings stay with us as `fee_revenue`.',
    '',
    shillingDrawing(),
    '',
    table(
      ['what happens', 'then', 'entry', 'we hold it in', 'we owe it as'],
      shilling.map(({ words, chart, state, fact, held, owed }) => [
        words,
        `${chart} \`${state}\``,
        `\`${fact}\``,
        held === null ? 'it has left' : `\`${held}\``,
        owed === null ? 'nobody is owed it' : `\`${owed}\``,
      ]),
    ),
    '',
    '## By chart and state',
    'What an actor’s own entries have changed, all together, while it is in a state. Where a state is not named, the one around',
    'it counts. What we hold (clearing, bank) changes by as much as what we owe or earned.',
    ...Object.entries(moneyMap).flatMap(([chart, part]) => ['', `### ${chart}`, '', ...partOf(chart, part)]),
    '',
    '### reconciliation',
    '',
    'Charges of the network and sweeps to the bank are the house’s own and come with each page of the statement, in whatever',
    'state it is: they hold no merchant’s money.',
    '',
    '## The facts',
    'The closed list of entries. A fact is posted by one chart only; where it says *once*, the posting key follows from the',
    'actor’s id, so that no second one can be.',
    '',
    table(
      ['entry', 'posted by', 'debit', 'credit', 'after', ''],
      Object.entries<Fact>(facts).map(([name, { chart, action, debit, credit, key, after = [] }]) => [
        `\`${name}\``,
        `${chart}: ${action}`,
        listed(debit),
        listed(credit),
        listed(after),
        key === null ? '' : 'once',
      ]),
    ),
    '',
  ].join('\n');
}

interface Part {
  readonly amounts: Readonly<Record<string, string>>;
  readonly standings: readonly {
    readonly states: readonly string[];
    readonly where?: string;
    readonly holds: Readonly<Partial<Record<Place, string>>>;
    readonly words: string;
  }[];
}

function partOf(chart: string, { amounts, standings }: Part): string[] {
  const used = [...new Set(standings.flatMap(({ holds }) => Object.keys(holds) as Place[]))];
  const rows = standings.map(({ states, where, holds, words }) => [
    states.map((state) => `\`${state}\``).join(', ') + condition(where),
    ...used.map((place) => signed(holds[place])),
    words,
  ]);
  const names = Object.entries(amounts).map(([name, says]) => `- *${spaced(name)}*: ${says}.`);
  return [
    ...names,
    '',
    `[![The chart](charts/${chart}.overview.svg)](charts/${chart}.svg)`,
    '',
    table(['state', ...used.map((place) => places[place].words), ''], rows),
  ];
}

function condition(where: string | undefined): string {
  if (where === undefined) return '';
  return where.startsWith('!') ? ` while not \`${where.slice(1)}\`` : ` while \`${where}\``;
}

function signed(amount: string | undefined): string {
  if (amount === undefined) return '';
  return amount.startsWith('-') ? `− ${spaced(amount.slice(1))}` : `+ ${spaced(amount)}`;
}

/** `feeReturned` → `fee returned` */
function spaced(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

function shillingDrawing(): string {
  const side = (which: 'held' | 'owed', first: string, last: string) => {
    const stops = [first, ...shilling.map((mile) => mile[which] ?? last)];
    return shilling.flatMap(({ fact }, at) => {
      const [from, to] = [stops[at]!, stops[at + 1]!];
      return from === to ? [] : [`    ${which}_${from}["${from}"] -->|${fact}| ${which}_${to}["${to}"]`];
    });
  };
  return [
    '```mermaid',
    'flowchart LR',
    '  subgraph hold [what we hold]',
    ...side('held', 'customer', 'merchant'),
    '  end',
    '  subgraph owe [what we owe]',
    ...side('owed', 'nobody', 'settled'),
    '  end',
    '```',
  ].join('\n');
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}
