import type { ChildProcess } from 'node:child_process';
import { cpuMsOf } from './cpu.ts';
import type { Stage } from './stage.ts';

/** What something took so far: processor time of all the ways' processes and of the stores, and Redis commands. */
export interface Spent {
  /** Milliseconds by name: `node` (all the processes that were named), `mongod`, `redis-server`. */
  ms: Record<string, number>;
  commands: number;
}

/** Begins to measure; what it gives back tells what was spent since. */
export async function meter(stage: Stage, processes: readonly ChildProcess[]): Promise<() => Promise<Spent>> {
  const read = async (): Promise<Spent> => {
    const node = processes.reduce((sum, { pid }) => sum + cpuMsOf(pid!), 0);
    return { ms: { node, ...stage.storesCpuMs() }, commands: await stage.redisCommands() };
  };
  const before = await read();
  return async () => {
    const after = await read();
    const ms = Object.entries(after.ms).map(
      ([name, value]) => [name, value - (before.ms[name] ?? 0)] as const,
    );
    return { ms: Object.fromEntries(ms), commands: after.commands - before.commands };
  };
}

/** `node 0.50 ms + mongod 0.20 ms + redis 0.10 ms = 0.80 ms, 12.0 Redis commands`, of each of `count`. */
export function eachOf({ ms, commands }: Spent, count: number): string {
  const parts = Object.entries(ms).map(([name, value]) => `${name} ${(value / count).toFixed(2)}`);
  return `${parts.join(' + ')} = ${msOfEach({ ms, commands }, count).toFixed(2)} ms of processors, ${(commands / count).toFixed(1)} Redis commands`;
}

export function msOfEach({ ms }: Spent, count: number): number {
  return Object.values(ms).reduce((sum, value) => sum + value, 0) / count;
}
