import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { newKey } from './collections.ts';
import { command } from './command.ts';
import { asUsage, exits, usage } from './failure.ts';
import type { Surroundings } from './surroundings.ts';

export const openPayment = command({
  name: 'open payment',
  operands: ['ID'],
  says: 'a payment’s page of the dashboard, in your browser',
  about: ['The link is good once, within 60 seconds.'],
  options: {
    manage: { type: 'boolean', says: 'there webhooks may be sent again, too (test mode)' },
    print: { type: 'boolean', says: 'only print its address' },
  },
  run: async ({ values, operands, output, around, profiles, merchant, tester }) => {
    const id = operands[0]!;
    if (!/^col_\w+$/.test(id)) throw usage(`${id} is no payment’s id`);
    const kusanya = await (values.manage ? tester() : merchant());
    const role = values.manage ? 'manage' : 'view';
    const options = { idempotencyKey: newKey(), signal: around.signal };
    const link = await asUsage(() => kusanya.dashboardLink({ role }, options));
    // Where this machine reaches the service, which need not be how the service calls itself.
    const url = new URL(new URL(link.url).pathname, await profiles.need('base_url'));
    url.searchParams.set('to', `/payments/${id}`);
    output.result({ url: url.href }, url.href);
    if (!values.print && !output.isJson && !(await isOpened(url.href, around)))
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
