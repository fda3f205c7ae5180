import type { Actors } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type BreakerDoc, breakerId, railOperations } from './breakers.ts';
import { lastCallbackAt } from './callbacks.ts';

/** What operators are shown of a rail's health. */

export async function readLastCallback(db: Db, rail: string): Promise<string | null> {
  return (await lastCallbackAt(db, rail))?.toISOString() ?? null;
}

export async function readBreakers(actors: Actors, rail: string) {
  const found = await Promise.all(
    railOperations.map((each) => actors.read({ machine: 'breaker', id: breakerId(rail, each) })),
  );
  return (found.filter(Boolean) as BreakerDoc[]).map(({ _id, data, state, snapshot, updatedAt }) => ({
    id: _id,
    operation: data.operation,
    state,
    failures: snapshot.context.failures,
    opened_at: isoOrNull(snapshot.context.openedAt),
    updated_at: updatedAt.toISOString(),
  }));
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
