import { spawn } from 'node:child_process';
import process from 'node:process';
import { parseArgs } from 'node:util';

/**
 * `npm run faults`: the fault suite at full size, half an hour or more. `--seed N` repeats a run's choices, `--only`
 * takes whole words of a title, `--short` is what `npm run test:full` does.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
});
if (!/^\d{1,9}$/.test(values.seed)) {
  process.stderr.write('--seed is a whole number\n');
  process.exit(78);
}
process.stdout.write(`seed ${values.seed}: npm run faults -- --seed ${values.seed}\n`);
const mocha = ['node_modules/mocha/bin/mocha.js', 'test/faults/*.test.ts'];
const child = spawn(
  process.execPath,
  [...mocha, ...(values.only ? ['--grep', `\\b${values.only}\\b`] : [])],
  {
    env: { ...process.env, SEED: values.seed, TEST_SIZE: values.short ? 'full' : 'long' },
    stdio: 'inherit',
  },
);
child.on('exit', (code) => process.exit(code ?? 1));
