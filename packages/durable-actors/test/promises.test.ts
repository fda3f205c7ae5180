import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';

const read = (...path: string[]) => readFileSync(join(import.meta.dirname, ...path), 'utf8');

describe('what the README promises', () => {
  const rows = [...read('..', 'README.md').matchAll(/^\| .* \| `([\w.]+\.test\.ts)`: (.*) \|$/gm)];

  it('is proved by tests of that name', () => {
    expect(rows).length.above(10);
    for (const [, file, title] of rows) expect(read(file!), title).include(title);
  });

  it('exports what it lists, and lists what it exports as a value', async () => {
    const [, list = ''] = /## What is exported\n(.*?)\n## /s.exec(read('..', 'README.md')) ?? [];
    const listed = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
    const exported = Object.keys(await import('../src/index.ts'));
    expect(exported.filter((name) => !listed.includes(name))).deep.equal([]);
  });
});
