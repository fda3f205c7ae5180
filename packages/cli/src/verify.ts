import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { webhooks } from '@kusanya/client';
import { command } from './command.ts';
import { exits, Failure, usage } from './failure.ts';
import { countOf } from './moment.ts';
import type { Surroundings } from './surroundings.ts';

export const verifyWebhook = command({
  name: 'verify',
  operands: ['[FILE]'],
  says: 'whether a webhook is genuine; its body in FILE or stdin',
  about: ['Exit 1: it is not. The secret can be in KUSANYA_WEBHOOK_SECRET too.'],
  options: {
    header: { type: 'string', value: 'TEXT', says: 'the header Service-Signature, t=…,v1=…' },
    secret: {
      type: 'string',
      multiple: true,
      value: 'SECRET',
      says: 'whsec_…; several while one is replaced',
    },
    tolerance: { type: 'string', value: 'SECONDS', says: 'how old it may be, 300 where nothing is said' },
  },
  run: async ({ values, operands, output, around }) => {
    const { header, tolerance = '300' } = values;
    const secrets = values.secret ?? [around.env.KUSANYA_WEBHOOK_SECRET ?? ''].filter(Boolean);
    if (!header) throw usage('--header is needed');
    if (secrets.length === 0) throw usage('--secret is needed');
    const toleranceSeconds = countOf('tolerance', tolerance, 0, 999_999_999);
    const raw = await bodyOf(operands[0], around.stdin);
    try {
      const event = await webhooks.verify(raw, header, secrets, { toleranceSeconds });
      output.result({ genuine: true, event }, `genuine: ${event.type} ${event.id}`);
      return exits.ok;
    } catch (error) {
      if (!(error instanceof webhooks.SignatureRefused)) throw error;
      output.result({ genuine: false, reason: error.reason }, `not genuine: ${error.reason}`);
      return exits.failed;
    }
  },
});

async function bodyOf(file: string | undefined, stdin: Surroundings['stdin']): Promise<Uint8Array> {
  if (file === undefined || file === '-') return await buffer(stdin);
  return await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new Failure(exits.usage, 'usage', `${file}: ${error.code}`);
  });
}
