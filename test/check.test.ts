import { execFile } from 'node:child_process';
import { expect } from 'chai';
import { root } from './support/files.ts';

/**
 * For the compiler and the linter, which are written in Go: one thread, and little collecting of garbage. It takes longer
 * by itself, but half the time of the processors, which the tests beside it need.
 */
const sparing = { GOMAXPROCS: '1', GOGC: '400' };

/** Format, types and lint, beside the tests: `npm run check`. */
describe('npm run check', function () {
  this.timeout(600_000);

  it('finds no fault', async () => {
    const said = await new Promise<string | undefined>((resolve) =>
      execFile(
        ...(['npm', ['run', '--silent', 'check']] as const),
        { cwd: root, env: { ...process.env, ...sparing }, maxBuffer: 2 ** 26 },
        (error, out, wrong) => resolve(error ? `${out}\n${wrong}` : undefined),
      ),
    );
    expect(said, said).to.equal(undefined);
  });
});
