import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { failureCodes } from '../../machines/collection.ts';
import { errorTable } from '../../src/http/http.ts';
import { renderSettingsTable } from '../../src/settings.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
/** Every page that people read, wherever it lies. */
const folders = ['', 'docs/', 'test/', ...['packages', 'examples', 'tools'].flatMap(withInner)];
const pages = folders.flatMap((folder) =>
  readdirSync(new URL(folder, root)).flatMap((name) => (name.endsWith('.md') ? [`${folder}${name}`] : [])),
);

function withInner(folder: string): string[] {
  const inner = readdirSync(new URL(folder, root), { withFileTypes: true });
  return [
    `${folder}/`,
    ...inner.filter((each) => each.isDirectory()).map(({ name }) => `${folder}/${name}/`),
  ];
}

interface Vector {
  name: string;
  secret: string;
  body_base64: string;
  header: string | null;
  now_seconds: number;
  tolerance_seconds?: number;
  verdict: 'accept' | 'refuse';
}

describe('the documents', () => {
  it('name files that are there', () => {
    for (const page of pages) {
      for (const [, path] of read(page).matchAll(
        /`((?:src|machines|packages|test|docs|tools|ops)\/[\w./-]+)`/g,
      )) {
        expect(existsSync(new URL(path!, root)), `${page} names ${path}`).to.equal(true);
      }
    }
  });

  it('name every file that a recipe touches', () => {
    const named = [
      ...read('docs/RECIPES.md').matchAll(/`([\w.-]*(?:\/[\w.-]+)*\.(?:ts|json|md|yml|example))`/g),
    ];
    expect(named.length).to.be.greaterThan(60);
    for (const [, path] of named) expect(existsSync(new URL(path!, root)), path).to.equal(true);
  });

  it('name what a file has', () => {
    const named = [...read('docs/RECIPES.md').matchAll(/`([\w./-]+\.ts)`[^`|]{0,30}?\(`(\w+)`/g)];
    expect(named.length).to.be.greaterThan(6);
    for (const [, path, name] of named) expect(read(path!), path).to.match(new RegExp(`\\b${name}\\b`));
  });

  it('print commands that are there', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const printed = pages
      .filter((page) => !page.startsWith('packages/') && !page.startsWith('examples/'))
      .flatMap((page) => [...read(page).matchAll(/\bnpm run ([\w:]+)|\bnpx mocha ((?:[\w./-]+\.ts ?)+)/g)]);
    expect(printed.length).to.be.greaterThan(20);
    for (const [, script, files] of printed) {
      if (script) expect(scripts).to.have.property(script);
      for (const file of files?.trim().split(' ') ?? [])
        expect(existsSync(new URL(file, root)), file).to.equal(true);
    }
  });

  it('link to pages and sections that are there', () => {
    for (const page of pages) {
      for (const [, target] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (target!.startsWith('https://')) continue;
        const [path, section] = target!.split('#');
        const linked = new URL(path === '' ? page.split('/').at(-1)! : path!, new URL(page, root));
        expect(existsSync(linked), `${page} links to ${target}`).to.equal(true);
        if (section)
          expect(sectionsOf(readFileSync(linked, 'utf8')), `${page}: ${target}`).to.include(section);
      }
    }
  });

  it('list every setting as src/settings.ts has it', () => {
    const page = read('docs/OPERATING.md');
    const table = /\| setting \| default \| what it does \|\n(?:\|.*(?:\n|$))*/;
    const written = page.replace(table, () => `${renderSettingsTable()}\n`);
    if (process.env.UPDATE === '1') writeFileSync(new URL('docs/OPERATING.md', root), written);
    expect(written === read('docs/OPERATING.md'), 'UPDATE=1 writes the table').to.equal(true);
    expect(written).to.include(renderSettingsTable());
  });

  it('list every error that a merchant can be answered as src/http/errors.ts has it, and no other', () => {
    const page = read('docs/API.md');
    const table = /\| status \| `code` \| what to do \|\n(?:\|.*(?:\n|$))*/;
    const written = page.replace(table, () => `${errorTableText()}\n`);
    if (process.env.UPDATE === '1') writeFileSync(new URL('docs/API.md', root), written);
    expect(written === read('docs/API.md'), 'UPDATE=1 writes the table').to.equal(true);
    expect(written).to.include(errorTableText());
  });

  it('promise every error that a merchant can be answered, with its status, and no other', () => {
    const expected = errors.map(([code, { httpStatus }]) => `${httpStatus} ${code}`).sort();
    const section = read('docs/CONTRACT.md').split('\n## 4 Errors')[1]!.split('\n## 5 ')[0]!;
    const rows = section.split('\n').flatMap((line) => {
      const [, statuses = '', ...cells] = line.split('|');
      const codes = cells.join('|').match(/`[a-z]+(?:_[a-z]+)+`/g) ?? [];
      return codes.map((code) => ({ statuses, code: code.slice(1, -1) }));
    });
    const statusOf = (code: string) => String(errorTable[code as keyof typeof errorTable].httpStatus);
    const listed = rows.filter(({ statuses, code }) => /\d{3}/.test(statuses) && code in errorTable);
    const codes = listed
      .filter(({ statuses, code }) => statuses.includes(statusOf(code)))
      .map(({ code }) => `${statusOf(code)} ${code}`);
    expect([...new Set(codes)].sort()).to.deep.equal(expected);
    const unknown = rows.filter(({ statuses, code }) => /\d{3}/.test(statuses) && !(code in errorTable));
    expect(unknown.map(({ code }) => code).filter((code) => !code.endsWith('_error'))).to.deep.equal([]);
  });

  it('list every route of merchants in the README', () => {
    const { paths } = JSON.parse(read('openapi.json')) as { paths: Record<string, object> };
    const section = read('README.md').split('\n## The API')[1]!.split('\n## ')[0]!;
    const named = [...section.matchAll(/`(?:[A-Z]+ )?(\/v1\/[^`]*)`/g)].map(([, path]) => path);
    expect([...new Set(named)]).to.have.members(Object.keys(paths));
  });

  it('list every failure code, and no other', () => {
    const codesIn = (text: string) => [...text.matchAll(/`([a-z]+(?:_[a-z]+)*)`/g)].map(([, code]) => code);
    const table = read('docs/API.md').split('\n| `failure_code` |')[1]!.split('\n\n')[0]!;
    const rows = [...table.matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell]) => codesIn(cell!));
    expect(rows, 'docs/API.md').to.deep.equal([...failureCodes]);
    const clause = /\*\*9\.1\*\* .*?closed list:([^.]*)\./s.exec(read('docs/CONTRACT.md'))![1]!;
    expect(codesIn(clause), 'docs/CONTRACT.md').to.deep.equal([...failureCodes]);
  });

  it('keep the README short', () => {
    expect(read('README.md').split('\n').length).to.be.at.most(150);
  });

  it('name no machine of ours', () => {
    for (const page of pages)
      expect(read(page), page).not.to.match(/\/(?:work|home|root|tmp)\/|registry\.\w/);
  });

  it('show merchants a verification that holds against every signature of the vectors', () => {
    const [, sample] = /```js\n([\s\S]*?)```/.exec(read('docs/API.md')) ?? [];
    const isGenuine = run(sample!);
    const { verify } = JSON.parse(read('test/unit/signature.vectors.json')) as { verify: Vector[] };
    // The sample allows the contract's 300 seconds and no others.
    for (const vector of verify.filter(({ tolerance_seconds: seconds }) => (seconds ?? 300) === 300)) {
      const body = Buffer.from(vector.body_base64, 'base64');
      const isTaken = isGenuine(body, vector.header, vector.secret, vector.now_seconds);
      expect(isTaken, vector.name).to.equal(vector.verdict === 'accept');
    }
  });

  it('show a verification that takes what is signed now', () => {
    const [, sample] = /```js\n([\s\S]*?)```/.exec(read('docs/API.md')) ?? [];
    const t = Math.floor(Date.now() / 1000);
    const code = createHmac('sha256', 'whsec_a').update(`${t}.{}`).digest('hex');
    expect(run(sample!)('{}', `t=${t},v1=${code}`, 'whsec_a')).to.equal(true);
  });
});

const errors = Object.entries(errorTable);

/** The guide's table: codes of one status and one remedy in one row. */
function errorTableText(): string {
  const rows = new Map<string, { status: number; codes: string[]; remedy: string }>();
  for (const [code, { httpStatus, remedy }] of errors) {
    const row = rows.get(`${httpStatus} ${remedy}`) ?? { status: httpStatus, codes: [], remedy };
    rows.set(`${httpStatus} ${remedy}`, { ...row, codes: [...row.codes, `\`${code}\``] });
  }
  const lines = [...rows.values()].map(
    ({ status, codes, remedy }) => `| ${status} | ${codes.join(' ')} | ${remedy} |`,
  );
  return ['| status | `code` | what to do |', '|---|---|---|', ...lines].join('\n');
}

type IsGenuine = (body: Buffer | string, header: string | null, secret: string, now?: number) => boolean;

/** The sample as a function: its import is given, its export is taken. */
function run(sample: string): IsGenuine {
  const body = sample.replace(/^import .*$/m, '').replace('export function', 'return function');
  const crypto = process.getBuiltinModule('node:crypto');
  return new Function('createHmac', 'timingSafeEqual', body)(crypto.createHmac, crypto.timingSafeEqual);
}

/** Headings as GitHub makes links of them. */
function sectionsOf(page: string): string[] {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}
