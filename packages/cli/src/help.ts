import type { Command } from './command.ts';
import { everywhere } from './parse.ts';

/** Everything fits on a terminal of 24 lines of 80 characters; a test holds that. */

/** All commands, or those that begin with these words. */
export function listHelp(commands: readonly Command[], words: readonly string[] = []): string[] {
  const shown = commands.filter(({ name }) => words.every((word, at) => name.split(' ')[at] === word));
  const names = shown.map(nameLine);
  const width = Math.max(...names.map(({ length }) => length));
  return [
    'kusanya: mobile-money collections on the command line',
    '',
    ...shown.map(({ says }, at) => `  ${names[at]!.padEnd(width)}  ${says}`),
    '',
    'kusanya COMMAND --help tells more. All take --json and --profile NAME.',
    'Exit: 0 done, 1 came out badly, 2 usage, 3 refused, 4 unreachable.',
  ];
}

/** One command. */
export function commandHelp(command: Command): string[] {
  const { says, about = [], words, options } = command;
  const { json, profile } = everywhere;
  const rows = Object.entries({ ...options, json, profile }).map(([name, option]) => {
    const { value, says: meaning }: { value?: string; says: string } = option;
    return { left: `--${name}${value ? ` ${value}` : ''}`, says: meaning };
  });
  const width = Math.max(...rows.map(({ left }) => left.length));
  return [
    `kusanya ${nameLine(command)} [options]`,
    '',
    `  ${says}`,
    ...about.map((line) => `  ${line}`),
    ...(words ? ['', `  ${command.operands![0]}: ${words.join(', ')}`] : []),
    '',
    ...rows.map((row) => `  ${row.left.padEnd(width)}  ${row.says}`),
  ];
}

function nameLine({ name, operands = [] }: Command): string {
  return [name, ...operands].join(' ');
}
