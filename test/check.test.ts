import { execFile } from 'node:child_process';
import { expect } from 'chai';
import { root } from './support/sources.ts';

/** Format, types and lint, beside the tests: `npm run check`. */
describe('npm run check', function () {
  this.timeout(600_000);

  it('finds no fault', async () => {
    const said = await new Promise<string | undefined>((resolve) =>
      execFile('npm', ['run', '--silent', 'check'], { cwd: root, maxBuffer: 2 ** 26 }, (error, out, wrong) =>
        resolve(error ? `${out}\n${wrong}` : undefined),
      ),
    );
    expect(said, said).to.equal(undefined);
  });
});
