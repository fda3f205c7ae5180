import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { Kusanya } from '@kusanya/client';
import { command } from './command.ts';
import { asUsage, exits, usage } from './failure.ts';
import { Operators } from './operators.ts';
import type { Profile } from './profile.ts';
import type { Surroundings } from './surroundings.ts';

export const login = command({
  name: 'login',
  says: 'keep an API key; it is asked for, or read from stdin',
  about: ['It is checked, and kept in a file that only you can read.'],
  options: {
    'base-url': { type: 'string', value: 'URL', says: 'the service; http://127.0.0.1:3000 as of npm start' },
    operator: { type: 'boolean', says: 'an operator’s token instead of a key' },
    'admin-url': { type: 'string', value: 'URL', says: 'for operators; http://127.0.0.1:3001' },
  },
  run: async ({ values, output, around, profiles }) => {
    const { operator = false } = values;
    const secret = await pasted(around, operator ? 'Operator’s token: ' : 'API key: ');
    if (!secret) throw usage('nothing was pasted');
    if (operator) {
      const url = values['admin-url'] ?? (await profiles.need('admin_url'));
      const operators = await asUsage(() => new Operators(url, secret));
      await operators.read('/admin/overview?mode=test', { signal: around.signal });
      await profiles.keep({ operator_token: secret, admin_url: url });
      output.result(
        { profile: profiles.name, admin_url: url },
        `Operator of ${url}, kept in ${profiles.path}`,
      );
    } else {
      const url = values['base-url'] ?? (await profiles.need('base_url'));
      const client = await asUsage(() => new Kusanya(secret, { baseUrl: url }));
      const principal = await client.whoami({ signal: around.signal });
      const own: Profile = { api_key: secret, base_url: url };
      await profiles.keep(own);
      const { merchant_id: merchant, mode } = principal;
      output.result(principal, `${merchant} in ${mode} mode, kept in ${profiles.path}`);
    }
    const { env } = around;
    const stronger = operator ? env.KUSANYA_OPERATOR_TOKEN : env.KUSANYA_API_KEY;
    if (stronger) output.note('The environment names another one, and it wins.');
    return exits.ok;
  },
});

export const whoami = command({
  name: 'whoami',
  says: 'whose key this is, and where',
  options: {},
  run: async ({ output, around, profiles, merchant }) => {
    const kusanya = await merchant();
    const principal = await kusanya.whoami({ signal: around.signal });
    const url = await profiles.need('base_url');
    const { merchant_id: id, mode, key_id: key } = principal;
    output.result(
      { ...principal, base_url: url, profile: profiles.name },
      `${id} in ${mode} mode (${key}) at ${url}`,
    );
    return exits.ok;
  },
});

/** A line from stdin; on a terminal it is asked for and not shown. */
async function pasted({ stdin, stderr, signal }: Surroundings, question: string): Promise<string> {
  const isTerminal = stdin.isTTY === true;
  if (isTerminal) stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: isTerminal });
  const gone = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  const given = new Promise<string>((resolve) => lines.once('line', resolve));
  signal.addEventListener('abort', () => lines.close());
  lines.on('SIGINT', () => lines.close());
  const line = await Promise.any([given, gone]);
  lines.close();
  if (isTerminal) stderr.write('\n');
  return line.trim();
}
