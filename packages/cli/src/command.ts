import type { Options as ClientOptions, Kusanya } from '@kusanya/client';
import type { Exit } from './failure.ts';
import type { Operators } from './operators.ts';
import type { Output } from './output.ts';
import type { Profiles } from './profile.ts';
import type { Surroundings } from './surroundings.ts';

/** An option of a command. */
export interface Option {
  type: 'string' | 'boolean';
  /** It may be given several times. */
  multiple?: boolean;
  /** What stands for its value in the help, such as URL. */
  value?: string;
  /** The words that it takes, for completion; others are refused unless they are only examples. */
  words?: readonly string[];
  says: string;
}

export type Options = Readonly<Record<string, Option>>;

export type Value = string | boolean | string[];

/** The values that were given, by the type of their options. */
export type Values<O extends Options> = string extends keyof O
  ? Record<string, Value | undefined>
  : {
      [Name in keyof O]?: O[Name]['type'] extends 'boolean'
        ? boolean
        : O[Name]['multiple'] extends true
          ? string[]
          : string;
    };

/** What a command is given. */
export interface Call<O extends Options = Options> {
  values: Values<O>;
  operands: string[];
  output: Output;
  around: Surroundings;
  profiles: Profiles;
  /** The service by the key of the environment or the profile. @throws {Failure} where there is none. */
  merchant(more?: Pick<ClientOptions, 'fetch'>): Promise<Kusanya>;
  /** The same for something that changes: with a test key only. @throws {Failure} for a live one. */
  tester(): Promise<Kusanya>;
  /** The operators' routes. @throws {Failure} where there is no token. */
  operators(): Promise<Operators>;
}

export interface Command<O extends Options = Options> {
  /** `collections create` */
  name: string;
  /** What stands behind the name; one that may be missing in brackets: `['ID', '[FILE]']`. */
  operands?: readonly string[];
  /** The words that the first operand can be. */
  words?: readonly string[];
  /** One line for the list of commands. */
  says: string;
  /** More lines for its own help. */
  about?: readonly string[];
  options: O;
  // A method, so that a command with options of its own is a command.
  run(call: Call<O>): Promise<Exit>;
}

/** A command, its values typed by its options. */
export function command<const O extends Options>(parts: Command<O>): Command<O> {
  return parts;
}
