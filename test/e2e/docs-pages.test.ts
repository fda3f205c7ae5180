import { readFileSync } from 'node:fs';
import { get, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { readGuides } from '../../src/docs/guides.ts';
import { errorTable, isIsoTime } from '../../src/http/http.ts';
import {
  codesOf,
  type DocsPage,
  hrefsOf,
  idsOf,
  readAllPages,
  readPage,
  sectionOf,
  textOf,
} from '../support/docs.ts';
import { startTestService, type TestService } from '../support/service.ts';

interface OperationDoc {
  operationId: string;
  summary: string;
  tags: string[];
  parameters: { name?: string; $ref?: string; in?: string }[];
  requestBody?: { content: { 'application/json': { schema: { $ref: string } } } };
  responses: Record<string, { content?: Record<string, { schema: object; examples?: object }> }>;
}

interface Document {
  paths: Record<string, Record<string, OperationDoc>>;
  webhooks: Record<string, unknown>;
  components: { schemas: Record<string, { properties?: Record<string, object> }> };
}

/** CONTRACT 21: what is served is explained, by the service itself. */
describe('the documentation at /docs', function () {
  this.timeout(30_000);
  let test: TestService;
  let pages: DocsPage[];
  let document: Document;
  let operations: { method: string; path: string; doc: OperationDoc }[];

  before(async () => {
    test = await startTestService({ PUBLIC_BASE_URL: 'https://api.kusanya.example' });
    pages = await readAllPages(test.baseUrl);
    document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
    operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, doc]) => ({ method: method.toUpperCase(), path, doc })),
    );
  });

  after(() => test.stop());

  const page = (path: string) => pages.find((each) => each.path === path)!;
  /** The page of an operation's tag. */
  const pageOf = ({ tags }: OperationDoc) => page(`/docs/${tags[0]!.toLowerCase().replaceAll(' ', '-')}`);
  const htmlPages = () => pages.filter(({ path }) => path.startsWith('/docs') && path !== '/docs.md');

  it('has pages in four languages, none of which is missing or leads nowhere', () => {
    expect(htmlPages().length).to.be.at.least(4 * 9);
    for (const { path, status } of pages) expect([path, status]).to.deep.equal([path, 200]);
    for (const { path, html } of htmlPages()) {
      for (const href of hrefsOf(html)) {
        if (href.startsWith('https://')) continue;
        const { pathname, search, hash } = new URL(href, `http://docs${path}`);
        const target = page(`${pathname}${search}`);
        expect(target, `${path} links to ${href}`).to.not.equal(undefined);
        if (hash) expect(idsOf(target.html).has(hash.slice(1)), `${path} links to ${href}`).to.equal(true);
      }
    }
  });

  it('keeps the language that a reader chose', () => {
    for (const { path, html } of htmlPages().filter((each) => each.path.endsWith('?lang=php'))) {
      const inside = hrefsOf(html).filter((href) => /^\/docs(\/|\?|#|$)/.test(href));
      // The other languages are offered beside each sample.
      const lost = inside.filter((href) => !/\?lang=php(#|$)/.test(href) && !/-sample$/.test(href));
      expect(lost, path).to.deep.equal([]);
    }
  });

  it('forbids scripts of others, frames, forms and other hosts, and writes nothing into its pages', async () => {
    for (const { path, headers, html } of htmlPages()) {
      const policy = headers.get('content-security-policy');
      expect(policy, path).to.include("default-src 'none'").and.to.include("form-action 'none'");
      expect(policy, path).to.not.match(/unsafe|https?:|\*/);
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect(html, path).to.not.match(/<style| style=| on\w+=|<script(?! src="\/docs\/assets)|<iframe/);
      const loaded = [...html.matchAll(/<(?:link|script|img)[^>]* (?:href|src)="([^"]*)"/g)];
      expect(loaded.length).to.be.at.least(4);
      for (const [, from] of loaded) expect(from, path).to.match(/^\/docs\/assets\/[0-9a-f]{16}\//);
    }
    const sheet = /href="(\/docs\/assets\/[^"]+\.css)"/.exec(page('/docs').html)![1]!;
    const { headers, html } = await readPage(test.baseUrl, sheet);
    expect(headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
    expect(headers.get('content-encoding')).to.equal('gzip');
    expect(html).to.not.match(/url\(|@import/);
  });

  it('costs little: it is kept, asked for again without being sent again, and zipped', async () => {
    const { headers, html } = page('/docs/collections');
    expect(headers.get('cache-control')).to.equal('public, max-age=300');
    const tag = headers.get('etag')!;
    const again = await plainly(`${test.baseUrl}/docs/collections`, { 'if-none-match': tag });
    expect([again.status, again.text, again.headers.etag]).to.deep.equal([304, '', tag]);
    const other = await readPage(test.baseUrl, '/docs/collections?lang=php');
    expect(other.headers.get('etag')).to.not.equal(tag);
    const head = await readPage(test.baseUrl, '/docs/collections', { method: 'HEAD' });
    expect([head.status, head.html, head.headers.get('etag')]).to.deep.equal([200, '', tag]);
    expect(headers.get('content-encoding')).to.equal('gzip');
    const plain = await plainly(`${test.baseUrl}/docs/collections`);
    expect(plain.headers['content-encoding']).to.equal(undefined);
    expect(plain.text).to.equal(html);
  });

  it('says in its own words what is not there, and what it does not take', async () => {
    const missing = await readPage(test.baseUrl, '/docs/nowhere');
    expect([missing.status, missing.html.includes('<h1>Not here</h1>')]).to.deep.equal([404, true]);
    expect(missing.headers.get('cache-control')).to.equal('no-store');
    const posted = await readPage(test.baseUrl, '/docs', { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
    const slash = await readPage(test.baseUrl, '/docs/');
    expect([slash.status, slash.headers.get('location')]).to.deep.equal([302, '/docs']);
    expect((await readPage(test.baseUrl, '/docs?lang=cobol')).html).to.equal(page('/docs').html);
    expect((await readPage(test.baseUrl, '/docsx')).status).to.equal(404);
  });

  it('explains every operation: address, fields, errors with their remedies', () => {
    for (const { method, path, doc } of operations) {
      const section = sectionOf(pageOf(doc).html, doc.operationId);
      const text = textOf(section);
      for (const part of [method, path, doc.summary]) expect(text, doc.operationId).to.include(part);
      const ref = doc.requestBody?.content['application/json'].schema.$ref.split('/').at(-1);
      const fields = [
        ...doc.parameters.flatMap(({ name, in: place }) => (name && place !== 'header' ? [name] : [])),
        ...(doc.parameters.some(({ $ref }) => $ref?.endsWith('/IdempotencyKey')) ? ['Idempotency-Key'] : []),
        ...Object.keys(document.components.schemas[ref ?? '']?.properties ?? {}),
      ];
      for (const name of fields)
        expect(section, doc.operationId).to.include(`<code class="name">${name}</code>`);
      const codes = Object.values(doc.responses).flatMap(({ content }) =>
        Object.keys(content?.['application/json']?.examples ?? {}),
      );
      for (const code of codes.filter((each) => each in errorTable)) {
        expect(section, doc.operationId).to.include(`href="/docs/errors#${code}"`);
        const { remedy } = errorTable[code as keyof typeof errorTable];
        expect(text, `${doc.operationId} ${code}`).to.include(remedy.replaceAll('`', ''));
      }
    }
  });

  it('explains every object’s fields, every webhook and every error', () => {
    const all = htmlPages()
      .map(({ html }) => html)
      .join('');
    for (const [name, { properties = {} }] of Object.entries(document.components.schemas)) {
      if (/^(Error|.*List|(Create|Resend).*)$/.test(name) || !('object' in properties)) continue;
      const section = sectionOf(all, `${name.replaceAll(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase()}-object`);
      for (const field of Object.keys(properties))
        expect(section, name).to.include(`<code class="name">${field}</code>`);
    }
    for (const type of Object.keys(document.webhooks))
      expect(page('/docs/events').html).to.include(`<code>${type}</code>`);
    for (const [code, { httpStatus, type, message, remedy }] of Object.entries(errorTable)) {
      const text = textOf(sectionOf(page('/docs/errors').html, code));
      for (const part of [String(httpStatus), type, message, remedy])
        expect(text, code).to.include(part.replaceAll('`', ''));
    }
  });

  it('shows only answers that could be given', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { 'date-time': isIsoTime } });
    ajv.addFormat('uri', (text: string) => URL.canParse(text));
    ajv.addSchema(document, 'contract');
    let count = 0;
    const check = (isValid: ValidateFunction, value: unknown, what: string) => {
      count += 1;
      expect(isValid(value), `${what}: ${ajv.errorsText(isValid.errors)}`).to.equal(true);
    };
    for (const { doc } of operations) {
      for (const { head, code } of codesOf(sectionOf(pageOf(doc).html, doc.operationId))) {
        const status = /^Answer (\d+)$/.exec(head)?.[1];
        const schema = doc.responses[status ?? '']?.content?.['application/json']?.schema;
        if (!schema) continue;
        const placed = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"contract#/'));
        check(ajv.compile(placed), JSON.parse(code), `${doc.operationId} ${status}`);
      }
    }
    for (const { path, html } of htmlPages().filter((each) => !each.path.includes('?'))) {
      for (const { head, code } of codesOf(html)) {
        if (!(head in document.components.schemas)) continue;
        const isValid = ajv.compile({ $ref: `contract#/components/schemas/${head}` });
        check(isValid, JSON.parse(code), `${path} ${head}`);
      }
    }
    expect(count).to.be.at.least(operations.length + 5);
  });

  it('shows the guide and the other documents whole, with no Markdown left in them', () => {
    for (const { path, html } of htmlPages()) {
      const prose = textOf(
        html.replaceAll(/<pre>[\s\S]*?<\/pre>/g, '').replaceAll(/<code[\s\S]*?<\/code>/g, ''),
      );
      expect(prose, path).to.not.match(/\*\*|```|\]\(|\|--|^#+ |`/m);
    }
    for (const { path, file } of readGuides('')) {
      const written = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      const source = written.replaceAll('http://127.0.0.1:3000', 'https://api.kusanya.example');
      const fences = [...source.matchAll(/^```\w*\n([\s\S]*?)\n```$/gm)].map(([, code]) => code!);
      const shown = codesOf(page(path).html).map(({ code }) => code);
      expect(shown).to.deep.equal(fences);
      const words = (text: string) => text.match(/[\p{L}\d]{3,}/gu) ?? [];
      const seen = new Set(words(textOf(page(path).html.replaceAll('<', ' <'))));
      const missing = words(source.replaceAll(/\]\([^)]*\)/g, ']').replaceAll(/^```.*$/gm, '')).filter(
        (word) => !seen.has(word),
      );
      expect(missing, path).to.deep.equal([]);
    }
  });

  it('has its documents in the image', () => {
    const rules = readFileSync(new URL('../../.dockerignore', import.meta.url), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    const isLeftOut = (file: string) =>
      rules.reduce((isOut, rule) => {
        const pattern = rule.replace('!', '').replaceAll('.', '\\.').replaceAll('*', '[^/]*');
        return new RegExp(`^${pattern}(/|$)`).test(file) ? !rule.startsWith('!') : isOut;
      }, false);
    expect(isLeftOut('docs/CONTRACT.md')).to.equal(true);
    for (const { file } of readGuides('')) expect(isLeftOut(file), file).to.equal(false);
  });

  it('is there for programs too, as one text and an index of it', async () => {
    const text = await readPage(test.baseUrl, '/docs.md');
    expect(text.headers.get('content-type')).to.equal('text/markdown; charset=utf-8');
    for (const { method, path } of operations) expect(text.html).to.include(`\`${method} ${path}\``);
    for (const code of Object.keys(errorTable)) expect(text.html).to.include(`| \`${code}\` |`);
    const index = await readPage(test.baseUrl, '/llms.txt');
    expect(index.headers.get('content-type')).to.equal('text/plain; charset=utf-8');
    expect(index.html).to.match(/^# Kusanya\n\n> .+\n\n## /);
    const linked = [...index.html.matchAll(/\]\(https:\/\/api\.kusanya\.example(\/[^)]+)\)/g)];
    expect(linked.length).to.be.at.least(10);
    for (const [, path] of linked) expect((await readPage(test.baseUrl, path!)).status, path).to.equal(200);
  });
});

/** As a client has it that says nothing of caches and compression but what is given. */
function plainly(
  url: string,
  headers: OutgoingHttpHeaders = {},
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode,
          headers: response.headers,
          text: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    }).on('error', reject);
  });
}
