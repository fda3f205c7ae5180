import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { lockFile } from './lock.ts';

/**
 * Reads from a pipe that only the owner holds open, so it wakes when the owner is gone, however that came. A service
 * that took the directory over in the meantime has a lock of its own and keeps the servers. A shell, because it has
 * to be small and to need nothing that could be missing where the owner ran out of memory.
 */
const script = `
read -r _
sleep "$1"
[ "$(cat "$2" 2>/dev/null)" = "$3" ] || exit 0
for name in mongod redis; do
  pid=$(cat "$4/$name.pid" 2>/dev/null)
  case "$pid" in ''|*[!0-9]*) continue ;; esac
  if [ -r "/proc/$pid/cmdline" ]; then words=$(tr '\\0' ' ' <"/proc/$pid/cmdline")
  else words=$(ps -ww -o command= -p "$pid"); fi
  case "$words " in *" $4/$name "*) ;; *) continue ;; esac
  kill -TERM "$pid"; kill -CONT "$pid"
  left=30
  while kill -0 "$pid" 2>/dev/null && [ "$left" -gt 0 ]; do sleep 1; left=$((left - 1)); done
  kill -KILL "$pid" 2>/dev/null
done
`;

/** So long may a restart take to go on with the servers of a service that was killed. */
const usualGraceMs = 2_000;

export interface Guard {
  /** Undefined where no shell could be started. */
  pid: number | undefined;
  stop(): void;
}

/** Watches over the servers of `dataDir` (absolute, locked by this process) from a process of its own. */
export async function startGuard(dataDir: string, graceMs = usualGraceMs): Promise<Guard> {
  const file = lockFile(dataDir);
  const held = await readFile(file, 'utf8');
  const words = ['-c', script, 'kusanya-guard', String(graceMs / 1_000), file, held, dataDir];
  // A session of its own: what ends our process group must not end the guard with it.
  const child = spawn('/bin/sh', words, { cwd: '/', detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.on('error', () => {}); // no shell: as it was before there was a guard
  child.stdin.on('error', () => {});
  child.unref();
  if (child.stdin instanceof Socket) child.stdin.unref(); // a pipe is one
  return {
    pid: child.pid,
    stop: () => {
      child.kill('SIGKILL');
      child.stdin.destroy();
    },
  };
}
