import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { command } from './command.ts';
import { asUsage, exits, usage } from './failure.ts';
import { Operators } from './operators.ts';
import type { Surroundings } from './surroundings.ts';

export const openPayment = command({
  name: 'open payment',
  operands: ['ID'],
  says: 'operators: a payment’s page of the console',
  options: { print: { type: 'boolean', says: 'only print its address' } },
  run: async ({ values, operands, output, around, profiles }) => {
    const id = operands[0]!;
    if (!/^col_\w+$/.test(id)) throw usage(`${id} is no payment’s id`);
    const adminUrl = await profiles.need('admin_url');
    // The console asks who is there; nothing is read here, so no token is needed.
    const { adminUrl: origin } = await asUsage(() => new Operators(adminUrl, ''));
    const url = `${origin}/console/test/actors/${id}`;
    output.result({ url }, url);
    if (!values.print && !output.isJson && !(await isOpened(url, around)))
      output.note('No browser was found; open it yourself.');
    return exits.ok;
  },
});

async function isOpened(url: string, { env, platform }: Surroundings): Promise<boolean> {
  const usual: Readonly<Record<string, string[]>> = {
    darwin: ['open'],
    win32: ['cmd', '/c', 'start', ''],
  };
  const [program, ...before] = env.BROWSER ? [env.BROWSER] : (usual[platform] ?? ['xdg-open']);
  const child = spawn(program!, [...before, url], { stdio: 'ignore', detached: true });
  child.unref();
  return await once(child, 'spawn').then(
    () => true,
    () => false,
  );
}
