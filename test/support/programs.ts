import { spawnSync } from 'node:child_process';

/** Skips the test where a program that it needs is not there. */
export function needs(test: Mocha.Context, program: string, words: string[], where: string): void {
  if (spawnSync(program, words, { stdio: 'ignore' }).status === 0) return;
  process.stderr.write(`    skipped: there is no ${program} here (${where})\n`);
  test.skip();
}
