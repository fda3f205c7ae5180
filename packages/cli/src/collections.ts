import { type Collection, type CollectionFilters, type Kusanya, KusanyaError } from '@kusanya/client';
import { type Call, command, type Options } from './command.ts';
import { asUsage, exits, usage } from './failure.ts';
import { countOf, momentOf, shown } from './moment.ts';
import type { Output } from './output.ts';

const statuses = ['created', 'succeeded', 'failed', 'expired'] as const;
const waiting = {
  timeout: { type: 'string', value: 'SECONDS', says: 'how long to wait, 180 where nothing is said' },
} as const satisfies Options;

export const createCollection = command({
  name: 'collections create',
  says: 'ask a customer for money (test mode)',
  about: ['Exit 1: with --wait, when it did not succeed.'],
  options: {
    amount: { type: 'string', value: 'TZS', says: 'whole shillings' },
    phone: { type: 'string', value: 'NUMBER', says: '255XXXXXXXXX; see the guide for test numbers' },
    reference: { type: 'string', value: 'TEXT', says: 'yours, such as an order’s number' },
    description: { type: 'string', value: 'TEXT', says: 'for people' },
    metadata: { type: 'string', multiple: true, value: 'NAME=VALUE', says: 'may be given several times' },
    'idempotency-key': { type: 'string', value: 'KEY', says: 'a new one where nothing is said' },
    wait: { type: 'boolean', says: 'until it has ended' },
    ...waiting,
  },
  run: async (call) => {
    const { values, output } = call;
    const { amount, phone, reference, description } = values;
    if (!amount || !phone || !reference) throw usage('--amount, --phone and --reference are needed');
    const metadata = values.metadata && Object.fromEntries(values.metadata.map(pairOf));
    const params = {
      amount: countOf('amount', amount, 1, 999_999_999),
      phone,
      reference,
      description,
      metadata,
    };
    const idempotencyKey = values['idempotency-key'] ?? newKey();
    const kusanya = await call.tester();
    const created = await create(kusanya, params, idempotencyKey, call);
    if (values.wait) return await follow(kusanya, created, call, values.timeout);
    output.result(created, ...linesOf(created, output));
    return exits.ok;
  },
});

export const listCollections = command({
  name: 'collections list',
  says: 'the newest collections',
  options: {
    limit: { type: 'string', value: 'COUNT', says: '1 to 100, 20 where nothing is said' },
    status: { type: 'string', value: 'STATUS', words: statuses, says: statuses.join(', ') },
    reference: { type: 'string', value: 'TEXT', says: 'with this reference' },
    phone: { type: 'string', value: 'NUMBER', says: 'of this customer' },
    receipt: { type: 'string', value: 'TEXT', says: 'with this receipt of the network' },
    since: { type: 'string', value: 'TIME', says: 'such as 10m, 2h, 3d or 2026-11-22' },
    'starting-after': { type: 'string', value: 'ID', says: 'the next page: older than this one' },
  },
  run: async ({ values, output, around, merchant }) => {
    const { status, reference, phone, receipt } = values;
    const filters: CollectionFilters = {
      ...{ reference, phone, provider_reference: receipt, starting_after: values['starting-after'] },
      status: statuses.find((each) => each === status),
      limit: values.limit === undefined ? undefined : countOf('limit', values.limit, 1, 100),
      created_at: values.since === undefined ? undefined : { gte: momentOf(values.since, around.nowMs()) },
    };
    const kusanya = await merchant();
    const page = await kusanya.collections.list(filters, { signal: around.signal });
    const rows = page.data.map((each) => [
      ...[each.id, each.status, `TZS ${each.amount}`, each.phone, shown(each.created_at), each.reference],
    ]);
    const heading = ['id', 'status', 'amount', 'phone', 'created (UTC)', 'reference'];
    output.result(page, ...output.table(heading, rows, 1));
    if (page.has_more) output.note(`There are more: --starting-after ${page.data.at(-1)?.id}`);
    return exits.ok;
  },
});

export const getCollection = command({
  name: 'collections get',
  operands: ['ID'],
  says: 'one collection as it is now',
  options: {},
  run: async ({ operands, output, around, merchant }) => {
    const kusanya = await merchant();
    const found = await asUsage(() => kusanya.collections.retrieve(operands[0]!, { signal: around.signal }));
    output.result(found, ...linesOf(found, output));
    return exits.ok;
  },
});

export const waitForCollection = command({
  name: 'collections wait',
  operands: ['ID'],
  says: 'wait until it has ended; exit 1 unless it succeeded',
  options: waiting,
  run: async (call) => {
    const kusanya = await call.merchant();
    const { signal } = call.around;
    const found = await asUsage(() => kusanya.collections.retrieve(call.operands[0]!, { signal }));
    return await follow(kusanya, found, call, call.values.timeout);
  },
});

/** @throws as the client does; where the outcome is unknown, the key is told that finds it out. */
export async function create(
  kusanya: Kusanya,
  params: Parameters<Kusanya['collections']['create']>[0],
  idempotencyKey: string,
  { around, output }: Pick<Call, 'around' | 'output'>,
): Promise<Collection> {
  try {
    return await asUsage(() => kusanya.collections.create(params, { idempotencyKey, signal: around.signal }));
  } catch (error) {
    if (error instanceof KusanyaError && error.outcome === 'unknown')
      output.note(`Repeat with --idempotency-key ${idempotencyKey} to find out what became of it.`);
    throw error;
  }
}

/** Waits for the end of a collection and shows it. */
async function follow(
  kusanya: Kusanya,
  begun: Collection,
  call: Pick<Call, 'around' | 'output'>,
  timeout?: string,
) {
  const ended = await ending(kusanya, begun, call, timeout);
  call.output.result(ended, ...linesOf(ended, call.output));
  return ended.status === 'succeeded' ? exits.ok : exits.failed;
}

/** @throws {StillPending} when the time is over first. */
export async function ending(
  kusanya: Kusanya,
  begun: Collection,
  { around, output }: Pick<Call, 'around' | 'output'>,
  timeout = '180',
): Promise<Collection> {
  const timeoutMs = countOf('timeout', timeout, 1, 86_400) * 1_000;
  if (begun.status !== 'created') return begun;
  output.note(`${begun.id} is created; waiting for its end`);
  return await kusanya.collections.wait(begun.id, { timeoutMs, signal: around.signal });
}

export function linesOf(collection: Collection, output: Output): string[] {
  const { id, status, amount, fee, phone, reference, failure_code: code, failure_message: why } = collection;
  const { provider_reference: receipt, created_at: created, completed_at: completed } = collection;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['amount', `TZS ${amount} (fee ${fee})`],
    ['phone', phone],
    ['reference', reference],
    ['failed', code && `${code}: ${why ?? ''}`],
    ['receipt', receipt],
    ['created', `${shown(created)} UTC`],
    ['completed', completed && `${shown(completed)} UTC`],
  ];
  const told = facts.filter(([, value]) => value !== undefined);
  return [
    `${output.paint('bold', id)}  ${output.status(status)}`,
    ...told.map(([name, value]) => `  ${output.paint('quiet', name.padEnd(9))}  ${value}`),
  ];
}

/** Good for this one command. */
export function newKey(): string {
  return `cli-${crypto.randomUUID()}`;
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw usage(`--metadata takes NAME=VALUE, not ${text}`);
  return [text.slice(0, at), text.slice(at + 1)];
}
