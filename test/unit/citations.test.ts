import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { root, textsIn } from '../support/files.ts';

/** Comments cite the contract by its numbers and pages by their paths. A stranger must find each of them. */

const numbered = [
  ...readFileSync(join(root, 'docs/CONTRACT.md'), 'utf8').matchAll(/^(?:## |- \*\*)(\d+(?:\.\d+)?)\b/gm),
].map(([, number]) => number!);
const clauses = new Set(numbered);
const sources = ['src', 'machines', 'packages', 'tools', 'test'].flatMap(textsIn);

describe('citations', () => {
  it('of the contract name clauses that it has', () => {
    let cited = 0;
    for (const { path, text } of sources) {
      for (const [, first, more = ''] of text.matchAll(
        /CONTRACT(?:\.md)? (\d+(?:\.\d+)?)((?:(?:,| and| to) \d+(?:\.\d+)?)*)/g,
      )) {
        for (const number of [first!, ...more.split(/,| and| to/).filter(Boolean)]) {
          expect([...clauses], `${path} cites CONTRACT ${number}`).to.include(number.trim());
          cited += 1;
        }
      }
    }
    expect(cited).to.be.greaterThan(80);
  });

  it('name pages of the repository', () => {
    for (const { path, text } of sources) {
      for (const [page] of text.matchAll(/[\w./-]*\b[\w-]+\.md\b/g)) {
        if (page === '/docs.md') continue; // an address of the service
        const places = [page, `docs/${page}`, join(path, '..', page)];
        expect(
          places.some((place) => existsSync(join(root, place))),
          `${path} cites ${page}`,
        ).to.equal(true);
      }
    }
  });

  it('mean one clause each: no number stands twice, and none is skipped', () => {
    expect(numbered).to.have.length(clauses.size);
    for (const clause of clauses) {
      const [part, number] = clause.split('.').map(Number);
      const before = number === undefined ? part! - 1 : number - 1;
      const previous = number === undefined ? String(before) : `${part}.${before}`;
      expect(before === 0 || clauses.has(previous), `before ${clause}`).to.equal(true);
    }
  });
});
