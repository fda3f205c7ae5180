import { readFileSync } from 'node:fs';

/** Linux counts a process's time in ticks of this length, whatever the kernel's own. */
const tickMs = 10;

/** The processor time that a process has used so far in milliseconds; NaN where the system does not tell (no /proc). */
export function cpuMsOf(pid: number): number {
  try {
    // Fields 14 and 15 of `man 5 proc_pid_stat`; the name before them, in brackets, may hold blanks.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  } catch {
    return Number.NaN;
  }
}
