import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Cli, installCli } from '../support/cli.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { Visitor } from '../support/visitor.ts';

describe('kusanya admin', function () {
  this.timeout(120_000);
  const clock = new MovableClock();
  let cli: Cli;
  let test: TestService;
  let merchant: TestMerchant;
  let env: Record<string, string>;

  before(async () => {
    [cli, test] = await Promise.all([installCli(), startTestService({}, { clock })]);
    merchant = await test.merchant();
    env = { KUSANYA_OPERATOR_TOKEN: test.operatorToken, KUSANYA_ADMIN_URL: test.adminUrl };
  });

  after(async () => {
    await test?.stop();
    await cli?.remove();
  });

  const run = (line: string) => cli.run(line.split(' '), { env });

  it('doctor says what needs an operator, and is content when nothing does', async () => {
    const green = await until(async () => {
      const { code, stdout } = await run('admin doctor');
      return code === 0 && stdout;
    });
    expect(green).to.match(/^✓ requests {3}ok\n✓ mongo {6}answers\n✓ redis {6}answers\n✓ clock {6}agrees/);
    expect(green).to.match(/\n✓ machines {3}collection \d+, .*\n✓ needs you {2}nothing\n$/);
    await test.underReview(merchant);
    const { code, json } = await run('admin doctor --json');
    expect(code).to.equal(1);
    expect(json.needs_you[0]).to.include({ mode: 'test', kind: 'under_review', count: 1, amount_tzs: 5000 });
    // The clock of this service was moved ahead, so that the payment outlived its prompt.
    expect(json.checks.find(({ name }: { name: string }) => name === 'clock').says).to.match(
      /ahead of|agrees/,
    );
    const { stdout } = await run('admin doctor');
    expect(stdout).to.match(/! needs you {2}1 thing\n {4}test {2}1 under_review, TZS 5000, since \d+ \w\n$/);
  });

  it('doctor tells a clock that is wrong', async () => {
    clock.advance(60_000);
    expect((await run('admin doctor')).stdout).to.match(/! clock {6}\d\d+\.\d s ahead of this machine’s/);
  });

  it('stuck lists what waits for a person', async () => {
    const { id } = await test.underReview(await test.merchant());
    const { code, json, stdout } = await run('admin stuck --mode test --json');
    expect([code, stdout.endsWith('\n')]).to.deep.equal([1, true]);
    const found = json.data.find((each: { id: string }) => each.id === id);
    expect(found).to.include({ mode: 'test', why: 'under_review' });
    expect(found.state).to.match(/^created\.underReview\./);
    expect((await run('admin stuck')).stdout).to.include(`under_review  ${id}`);
    const live = await run('admin stuck --mode live');
    expect([live.code, live.stdout]).to.deep.equal([0, 'Nothing waits for a person.\n']);
  });

  it('chart draws where a payment stands, what is next and how it got there', async () => {
    const { json } = await merchant.create({ phone: '255700000004' });
    await merchant.final(json.id);
    const { code, stdout } = await run(`admin chart ${json.id}`);
    expect(code).to.equal(0);
    const [head, , ...lines] = stdout.split('\n');
    expect(head).to.match(
      new RegExp(`^${json.id} {2}failed\\.\\w+ {2}\\(test, collection of version \\d+\\)$`),
    );
    const tree = lines.slice(0, lines.indexOf(''));
    expect(tree[0]).to.equal('  ✓ created');
    expect(tree).to.include('  ● failed');
    expect(tree.filter((line) => line.includes('◀'))).to.have.length(1);
    expect(tree.find((line) => line.includes('◀'))).to.match(/^ {2}[├└] ● \w+ ◀ here for \d+ s$/);
    expect(tree).to.include('  ○ succeeded (standing, reversed)');
    expect(stdout).to.match(
      /How it got here \(UTC\)\n {4}1 {2}[-\d]+ [:\d]+ {2}created +→ created\.pushing\.sending\n/,
    );
    expect(lines.length).to.be.at.most(40);
    const few = await run(`admin chart ${json.id} --steps 0`);
    expect(few.stdout).to.not.include('How it got here');
  });

  it('chart draws every kind of actor, and tells an unknown one', async () => {
    const { id } = await test.endpoint(merchant.id, 'http://127.0.0.1:4242/hook');
    const { json } = await run(`admin chart ${id} --json`);
    const here = json.states.filter(({ standing }: { standing: string }) => standing === 'here');
    expect(here.at(-1).path).to.equal(json.actor.state);
    expect((await run('admin chart col_00000000000000000000000000')).code).to.equal(3);
    expect((await run('admin chart ../overview')).code).to.equal(2);
  });

  it('needs a token that is right, and a service that is there', async () => {
    const codeOf = async (more: Record<string, string>) =>
      (await cli.run(['admin', 'doctor'], { env: { ...env, ...more } })).code;
    expect(await codeOf({ KUSANYA_OPERATOR_TOKEN: '' })).to.equal(2);
    expect(await codeOf({ KUSANYA_OPERATOR_TOKEN: 'wrong' })).to.equal(3);
    expect(await codeOf({ KUSANYA_ADMIN_URL: 'http://127.0.0.1:1' })).to.equal(4);
    expect(await codeOf({ KUSANYA_ADMIN_URL: 'nowhere' })).to.equal(2);
  });

  it('open payment gives a link into the dashboard to the browser, which leads to the payment', async () => {
    const browser = join(cli.folder, 'browser');
    await writeFile(browser, `#!/bin/sh\necho "$1" > ${browser}.told\n`, { mode: 0o755 });
    const { id } = (await merchant.create()).json;
    const keyed = { KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: test.baseUrl };
    const open = (more: Record<string, string>, ...options: string[]) =>
      cli.run(['open', 'payment', id, ...options], { env: { ...keyed, ...more } });
    const { code, stdout } = await open({ BROWSER: browser });
    expect([code, stdout.startsWith(`${test.baseUrl}/dashboard/in/`)]).to.deep.equal([0, true]);
    const told = await until(() => readFile(`${browser}.told`, 'utf8').catch(() => undefined));
    expect(told).to.equal(stdout);
    const visitor = new Visitor(test.baseUrl);
    const { pathname, searchParams } = new URL(stdout.trim());
    const form_token = await visitor.formToken(`${pathname}?${searchParams}`);
    const fields = { form_token, link: pathname.split('/').at(-1)!, to: searchParams.get('to')! };
    const entered = await visitor.post('/dashboard/sign-in', fields);
    expect(entered.headers.get('location')).to.equal(`/dashboard/payments/${id}`);
    expect((await visitor.get(`/dashboard/payments/${id}`)).status).to.equal(200);
    const none = await open({ BROWSER: '/nonexistent' });
    expect([none.code, none.stderr]).to.deep.equal([0, 'No browser was found; open it yourself.\n']);
    expect((await open({}, '--print', '--manage')).code).to.equal(0);
    const { secret: live } = await test.issueKey(merchant.id, 'live');
    expect((await open({ KUSANYA_API_KEY: live }, '--print')).code).to.equal(0);
    expect((await open({ KUSANYA_API_KEY: live }, '--print', '--manage')).code).to.equal(3);
    expect((await cli.run(['open', 'payment', 'evt_1'], { env: keyed })).code).to.equal(2);
  });
});
