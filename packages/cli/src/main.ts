import { readFileSync } from 'node:fs';
import { Kusanya, type Options } from '@kusanya/client';
import type { Call } from './command.ts';
import { commands } from './commands.ts';
import { asUsage, type Exit, exits, Failure, toldOf, usage } from './failure.ts';
import { commandHelp, listHelp } from './help.ts';
import { Operators } from './operators.ts';
import { Output } from './output.ts';
import { type Parsed, parse } from './parse.ts';
import { Profiles } from './profile.ts';
import { commandLine, leave, ownSurroundings, type Surroundings } from './surroundings.ts';

/** Carries out the command line of this process, and ends it. */
export async function main(): Promise<void> {
  const around = ownSurroundings();
  leave(around, await execute(commandLine(), around));
}

/** Carries out a command line; what goes wrong is told, never thrown. Returns what the process is to end with. */
export async function execute(argv: readonly string[], around: Surroundings): Promise<Exit> {
  const output = new Output(around, argv.includes('--json'));
  try {
    return await carryOut(parse(commands, argv), output, around);
  } catch (error) {
    const told = toldOf(error);
    output.fail(told);
    return told.exit;
  }
}

async function carryOut(parsed: Parsed, output: Output, around: Surroundings): Promise<Exit> {
  const { command, words, values } = parsed;
  if (values.version) {
    const version = ownVersion();
    output.result({ version }, version);
    return exits.ok;
  }
  if (command && !values.help) return await command.run(callOf(parsed, output, around));
  const asked = words[0] === 'help' ? words.slice(1) : words;
  const group = commands.filter(({ name }) => asked.every((word, at) => name.split(' ')[at] === word));
  if (!command && group.length === 0) throw usage(`there is no command ${asked.join(' ')} (kusanya --help)`);
  const [only] = group;
  const lines = command
    ? commandHelp(command)
    : group.length === 1
      ? commandHelp(only!)
      : listHelp(commands, asked);
  output.result({ help: lines.join('\n') }, ...lines);
  // The beginning of a name is no command.
  return values.help || words[0] === 'help' || words.length === 0 ? exits.ok : exits.usage;
}

function callOf({ values, operands }: Parsed, output: Output, around: Surroundings): Call {
  const profiles = new Profiles(around, values.profile as string | undefined);
  const keyed = async (more: Pick<Options, 'fetch'> = {}) => {
    const [key, baseUrl] = [await profiles.need('api_key'), await profiles.need('base_url')];
    return { key, kusanya: await asUsage(() => new Kusanya(key, { baseUrl, ...more })) };
  };
  return {
    ...{ values, operands, output, around, profiles },
    merchant: async (more) => (await keyed(more)).kusanya,
    tester: async () => {
      const { key, kusanya } = await keyed();
      if (key.startsWith('kusanya_test_')) return kusanya;
      throw new Failure(exits.refused, 'live_key', 'this changes something, and here only a test key may');
    },
    operators: async () => {
      const [url, token] = [await profiles.need('admin_url'), await profiles.need('operator_token')];
      return await asUsage(() => new Operators(url, token));
    },
  };
}

function ownVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
