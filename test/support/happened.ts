import type { Db } from 'mongodb';
import { type EventDoc, recordEvent } from '../../src/events/events.ts';
import { newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import type { Mode } from '../../src/mode.ts';

/** Events and attempts as the service would have left them at any time, for what is counted of them. */

/** Numbers that look like chance and are the same in each run. */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

export interface Happened {
  merchantId: string;
  mode: Mode;
  status?: 'succeeded' | 'failed' | 'expired';
}

/** A payment that ended at a moment: seven of ten succeeded, as long as `status` says nothing else. */
export function endedEvent(
  next: () => number,
  atMs: number,
  { merchantId, mode, ...more }: Happened,
): EventDoc {
  const pick = next();
  const status = more.status ?? (pick < 0.7 ? 'succeeded' : pick < 0.9 ? 'failed' : 'expired');
  const codes = [
    'declined',
    'declined',
    'declined',
    'invalid_pin',
    'insufficient_funds',
    'payer_busy',
    'rejected',
  ];
  const data = {
    ...{ status, amount: 1_000 + Math.floor(next() * 500_000), fee: 20 },
    ...(status === 'failed' ? { failure_code: codes[Math.floor(next() * codes.length)] } : {}),
    created_at: new Date(atMs - Math.floor((2 + next() ** 3 * 90) * limits.secondMs)).toISOString(),
    completed_at: new Date(atMs).toISOString(),
  };
  const write = recordEvent({
    ...{ id: newId('evt', atMs), type: `collection.${status}`, atMs, data },
    ...{ collectionId: newId('col', atMs), merchantId, mode },
  });
  if (write.op !== 'insert') throw new Error('an event is inserted');
  return write.doc as EventDoc;
}

/** Attempts at these moments, to the endpoints in turn; every fifth timed out. */
export async function plantAttempts(
  db: Db,
  endpoints: readonly string[],
  times: readonly number[],
): Promise<void> {
  await db.collection<{ _id: string }>('attempts').insertMany(
    times.map((atMs, n) => ({
      ...{
        _id: `${newId('dlv', atMs)}/0001`,
        endpointId: endpoints[n % endpoints.length]!,
        at: new Date(atMs),
      },
      ...(n % 5 === 0 ? { ok: false, reason: 'timeout' } : { ok: true }),
    })),
  );
}
