import type { Redis } from 'ioredis';
import type { Log } from './log.ts';

/**
 * A connection that listens to what processes tell each other. Its commands wait for the connection, and are sent again
 * after each loss of it. `redis`: whose settings it has.
 */
export function earOf(redis: Redis, log: Log, hear: (channel: string, text: string) => void): Redis {
  const ear = redis.duplicate({
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    commandTimeout: undefined,
  });
  ear.on('error', (error) => log.debug({ error: error.message }, 'ear'));
  ear.on('message', (channel: string, text: string) => {
    try {
      hear(channel, text);
    } catch (error) {
      log.warn({ channel, error: String(error) }, 'odd message of another process');
    }
  });
  return ear;
}
