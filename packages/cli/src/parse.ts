import { parseArgs } from 'node:util';
import type { Command, Option, Options, Value } from './command.ts';
import { type Failure, usage } from './failure.ts';

/** Options that every command has. */
export const everywhere = {
  json: { type: 'boolean', says: 'JSON instead of words' },
  profile: { type: 'string', value: 'NAME', says: 'another profile than default' },
  help: { type: 'boolean', says: 'this help' },
  version: { type: 'boolean', says: 'the version' },
} as const satisfies Options;

export interface Parsed {
  /** None where there is only an option such as `--help`, or the beginning of a name. */
  command: Command | undefined;
  /** Words that name no whole command. */
  words: string[];
  values: Record<string, Value | undefined>;
  operands: string[];
}

/** @throws {Failure} with exit 2, for what no command takes. */
export function parse(commands: readonly Command[], argv: readonly string[]): Parsed {
  // First only to find the words; options of commands are not known yet.
  const loose = parseArgs({ args: [...argv], options: shapes(everywhere), strict: false });
  const words = loose.positionals;
  const command = commands
    .filter(({ name }) => name.split(' ').every((word, at) => words[at] === word))
    .sort((a, b) => b.name.length - a.name.length)[0];
  if (!command) return { command, words, values: loose.values as Parsed['values'], operands: [] };
  const { values, positionals } = strictly(command, argv);
  const operands = positionals.slice(command.name.split(' ').length);
  if (!values.help) checkOperands(command, operands);
  for (const [name, { words: known }] of Object.entries(command.options)) {
    const given = values[name];
    if (known && typeof given === 'string' && !known.includes(given))
      throw wrong(command, `--${name} takes ${known.join(', ')}`);
  }
  return { command, words, values, operands };
}

function strictly(command: Command, argv: readonly string[]) {
  try {
    const options = shapes({ ...everywhere, ...command.options });
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    return { values: values as Parsed['values'], positionals };
  } catch (error) {
    // Node says more than is needed: how to write what is no option.
    throw wrong(command, (error as Error).message.split('. ')[0]!);
  }
}

function checkOperands(command: Command, given: readonly string[]): void {
  const wanted = command.operands ?? [];
  const needed = wanted.filter((name) => !name.startsWith('['));
  if (given.length < needed.length) throw wrong(command, `${needed[given.length]} is missing`);
  if (given.length > wanted.length) throw wrong(command, `${given[wanted.length]} is too much`);
  const [first] = given;
  if (command.words && first !== undefined && !command.words.includes(first))
    throw wrong(command, `${first} is none of ${command.words.join(', ')}`);
}

function wrong({ name }: Command, message: string): Failure {
  return usage(`${name}: ${message} (kusanya ${name} --help)`);
}

function shapes(options: Options): Record<string, Pick<Option, 'type' | 'multiple'>> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, multiple = false }]) => [name, { type, multiple }]),
  );
}
