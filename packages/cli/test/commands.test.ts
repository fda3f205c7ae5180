import { readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { webhooks } from '@kusanya/client';
import { expect } from 'chai';
import { type Commands, openCommands } from '../../../test/support/cli.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../../../test/support/service.ts';

/** The commands as a user types them: real HTTP, the real service. What is the process's own is in listen.test.ts. */
describe('kusanya', function () {
  this.timeout(120_000);
  let cli: Commands;
  let test: TestService;
  let merchant: TestMerchant;
  let env: Record<string, string>;

  before(async () => {
    [cli, test] = await Promise.all([openCommands(), startTestService()]);
    merchant = await test.merchant();
    env = { KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: test.baseUrl };
  });

  after(async () => {
    await test?.stop();
    await cli?.remove();
  });

  const run = (line: string, more: Record<string, string> = {}) =>
    cli.run(line.split(' '), { env: { ...env, ...more } });

  describe('login', () => {
    const profiles = () => join(cli.folders.config, 'profiles.json');

    it('checks the key, keeps it for its owner alone, and the next command uses it', async () => {
      const options = { stdin: `${merchant.key}\n` };
      const { code, stdout } = await cli.run(['login', '--base-url', test.baseUrl], options);
      expect([code, stdout]).to.deep.equal([0, `${merchant.id} in test mode, kept in ${profiles()}\n`]);
      expect((await stat(profiles())).mode & 0o777).to.equal(0o600);
      expect((await stat(cli.folders.config)).mode & 0o777).to.equal(0o700);
      const { json } = await cli.run(['whoami', '--json']);
      expect(json).to.include({ merchant_id: merchant.id, base_url: test.baseUrl, profile: 'default' });
    });

    it('keeps nothing of a key that is refused', async () => {
      const before = await readFile(profiles(), 'utf8');
      const wrong = { stdin: 'kusanya_test_sk_wrong' };
      expect((await cli.run(['login', '--base-url', test.baseUrl], wrong)).code).to.equal(3);
      expect((await cli.run(['login', '--base-url', test.baseUrl], { stdin: '' })).code).to.equal(2);
      expect(await readFile(profiles(), 'utf8')).to.equal(before);
    });

    it('keeps several profiles and an operator’s token, and the environment wins over all', async () => {
      const other = await test.merchant();
      const of = ['--profile', 'other'];
      const key = { stdin: other.key };
      expect((await cli.run(['login', '--base-url', test.baseUrl, ...of], key)).code).to.equal(0);
      const token = { stdin: test.operatorToken };
      const operator = ['login', '--operator', '--admin-url', test.adminUrl, ...of];
      expect((await cli.run(operator, token)).code).to.equal(0);
      expect((await cli.run([...operator.slice(0, 4), ...of], { stdin: 'wrong' })).code).to.equal(3);
      const whose = async (more: Record<string, string>, ...options: string[]) =>
        (await cli.run(['whoami', '--json', ...options], { env: more })).json.merchant_id;
      expect(await whose({})).to.equal(merchant.id);
      expect(await whose({}, ...of)).to.equal(other.id);
      expect(await whose({ KUSANYA_PROFILE: 'other' })).to.equal(other.id);
      expect(await whose({ KUSANYA_API_KEY: merchant.key }, ...of)).to.equal(merchant.id);
      const stored = JSON.parse(await readFile(profiles(), 'utf8'));
      expect(stored.other).to.deep.equal({
        ...{ api_key: other.key, base_url: test.baseUrl },
        ...{ operator_token: test.operatorToken, admin_url: test.adminUrl },
      });
    });
  });

  describe('payments', () => {
    it('are created, waited for, listed and read', async () => {
      const params = '--amount 7000 --phone 255700000000 --reference order-9 --metadata table=7';
      const { code, json } = await run(`collections create ${params} --wait --json`);
      expect(code).to.equal(0);
      expect(json).to.include({ status: 'succeeded', amount: 7000 });
      expect(json.metadata).to.deep.equal({ table: '7' });
      const listed = await run('collections list --status succeeded --reference order-9 --since 1h --json');
      expect(listed.json.data.map(({ id }: { id: string }) => id)).to.deep.equal([json.id]);
      const { stdout } = await run(`collections get ${json.id}`);
      expect(stdout).to.match(new RegExp(`^${json.id}  succeeded\n  amount +TZS 7000 `));
      const table = (await run('collections list --limit 1')).stdout.split('\n');
      expect(table[1]).to.match(new RegExp(`^${json.id}  succeeded  TZS 7000`));
      const events = await run(`events list --collection ${json.id} --json`);
      expect(events.json.data[0]).to.include({ type: 'collection.succeeded' });
    });

    it('are created once with one idempotency key', async () => {
      const line =
        'collections create --amount 1000 --phone 255700000000 --reference k --idempotency-key k1 --json';
      const [one, other] = [await run(line), await run(line)];
      expect(one.json.id).to.equal(other.json.id);
    });

    it('that do not succeed, or not in time, exit 1', async () => {
      const failed = await run(
        'collections create --amount 1000 --phone 255700000004 --reference f --wait --json',
      );
      expect([failed.code, failed.json.failure_code]).to.deep.equal([1, 'rejected']);
      expect((await run(`collections wait ${failed.json.id}`)).code).to.equal(1);
      const { json } = await merchant.create({ phone: '255700000021' });
      const pending = await run(`collections wait ${json.id} --timeout 1`);
      expect([pending.code, pending.stderr]).to.deep.equal([
        1,
        `${json.id} is created; waiting for its end\nkusanya: ${json.id} is still created; it may yet succeed\n`,
      ]);
    });

    it('are triggered with every outcome and every code', async () => {
      const guide = readFileSync(new URL('../../../docs/API.md', import.meta.url), 'utf8');
      const help = (await run('trigger --help')).stdout;
      const rows = guide.split('\n').filter((line) => /^\| `25570000000.*\| fails/.test(line));
      const codes = rows.flatMap((row) => row.match(/(?<=`)[a-z_]+(?=`)/g) ?? []);
      expect(codes.length).to.be.at.least(7);
      const lines = ['succeeded', 'failed', 'expired', ...codes.map((code) => `failed --code ${code}`)];
      const ended = await Promise.all(lines.map((line) => run(`trigger ${line} --json`)));
      expect(ended.map(({ code }) => code)).to.deep.equal(lines.map(() => 0));
      const statuses = ended.map(({ json }) => json.failure_code ?? json.status);
      expect(statuses).to.deep.equal(['succeeded', 'insufficient_funds', 'expired', ...codes]);
      // On a busy machine this one may be on time.
      const late = await run('trigger late --no-wait --json');
      expect(guide).to.include(`| \`${late.json.phone}\` | expires, then the customer pays after all`);
      expect(help).to.include('OUTCOME: succeeded, failed, expired, late');
    });
  });

  it('triggers at once what the test helpers can tell, with codes that have no number', async () => {
    const lines = ['succeeded', 'expired', 'failed --code payer_busy', 'failed --code declined'];
    const ended = await Promise.all(lines.map((line) => run(`trigger ${line} --now --json`)));
    expect(ended.map(({ code }) => code)).to.deep.equal([0, 0, 0, 0]);
    const told = ended.map(({ json }) => json.failure_code ?? json.status);
    expect(told).to.deep.equal(['succeeded', 'expired', 'payer_busy', 'declined']);
    const none = await run('trigger failed --code payer_busy');
    expect([none.code, none.stderr]).to.deep.equal([
      2,
      'kusanya: payer_busy has no test number: add --now\n',
    ]);
  });

  describe('events resend', () => {
    let receiver: Receiver;
    before(async () => {
      receiver = await startReceiver();
    });
    after(() => receiver.close());

    it('has a webhook sent again', async () => {
      const { id } = await test.endpoint(merchant.id, receiver.url);
      const { json } = await merchant.create();
      await merchant.final(json.id);
      const { event } = await receiver.next(({ event: { data } }) => data.id === json.id);
      const count = () => receiver.received.filter((each) => each.event.id === event.id).length;
      const before = count();
      const resent = await run(`events resend ${event.id} --endpoint ${id} --json`);
      expect(resent.json.deliveries.map(({ endpoint }: { endpoint: string }) => endpoint)).to.deep.equal([
        id,
      ]);
      await receiver.next(() => count() > before);
      expect((await run('events resend evt_00000000000000000000000000')).code).to.equal(3);
    });
  });

  describe('verify', () => {
    const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';
    const body = JSON.stringify({ id: 'evt_1', type: 'collection.succeeded', data: {} });

    it('tells what is genuine from what is not, and why', async () => {
      const headers = await webhooks.sign(body, secret);
      const verify = (text: string, header: string, ...more: string[]) =>
        cli.run(['verify', '--header', header, ...more], {
          stdin: text,
          env: { KUSANYA_WEBHOOK_SECRET: secret },
        });
      const header = headers['Service-Signature'];
      const good = await verify(body, header);
      expect([good.code, good.stdout]).to.deep.equal([0, 'genuine: collection.succeeded evt_1\n']);
      const changed = await verify(`${body} `, header, '--json');
      expect([changed.code, changed.json]).to.deep.equal([
        1,
        { genuine: false, reason: 'signature_mismatch' },
      ]);
      const old = await webhooks.sign(body, secret, { nowSeconds: 1_700_000_000 });
      expect((await verify(body, old['Service-Signature'])).stdout).to.include('timestamp_out_of_tolerance');
      expect((await verify(body, old['Service-Signature'], '--tolerance', '999999999')).code).to.equal(0);
      const file = join(cli.folder, 'body.json');
      await writeFile(file, body);
      const named = await cli.run(['verify', file, '--header', header, '--secret', secret]);
      expect(named.code).to.equal(0);
    });
  });

  describe('exit codes', () => {
    const codeOf = async (line: string, more: Record<string, string> = {}) => (await run(line, more)).code;

    it('2 for what no command takes', async () => {
      const lines = [
        ...['nonsense', 'collections', 'collections get', 'whoami extra', 'events list --limit many'],
        ...[
          'trigger paid',
          'trigger expired --code declined',
          'collections list --status paid',
          'whoami --nonsense',
        ],
        ...['collections list --since yesterday', 'collections get ../x', 'whoami --profile a/b'],
        'collections create --amount 1 --phone 2',
      ];
      expect(await Promise.all(lines.map((line) => codeOf(line)))).to.deep.equal(lines.map(() => 2));
      expect((await cli.run(['whoami'], { env: { XDG_CONFIG_HOME: '/nonexistent' } })).code).to.equal(2);
      expect(await codeOf('whoami', { KUSANYA_BASE_URL: 'ftp://x' })).to.equal(2);
    });

    it('3 for what is refused, with what the service said', async () => {
      const { code, stderr } = await run('collections create --amount 1 --phone 12 --reference r --json');
      expect(code).to.equal(3);
      expect(JSON.parse(stderr).error).to.include({ type: 'invalid_request_error' });
      expect(JSON.parse(stderr).error.request_id).to.match(/^\w{8,}/);
      expect(await codeOf('whoami', { KUSANYA_API_KEY: 'kusanya_test_sk_wrong' })).to.equal(3);
    });

    it('3 for a live key that would change something; it may read', async () => {
      const { secret } = await test.issueKey(merchant.id, 'live');
      const live = { KUSANYA_API_KEY: secret };
      const changing = [
        'collections create --amount 1000 --phone 255712345678 --reference r',
        'trigger succeeded',
        'events resend evt_00000000000000000000000000',
      ];
      const ended = await Promise.all(changing.map((line) => run(line, live)));
      expect(ended.map(({ code }) => code)).to.deep.equal([3, 3, 3]);
      expect(ended[0]!.stderr).to.equal('kusanya: this changes something, and here only a test key may\n');
      expect(await codeOf('collections list', live)).to.equal(0);
      expect((await run('collections list --json', live)).json.data).to.deep.equal([]);
    });

    it('4 where there is no service, and where something else answers', async () => {
      const gone = run('whoami', { KUSANYA_BASE_URL: 'http://127.0.0.1:1' });
      const other = run('whoami', { KUSANYA_BASE_URL: `${test.adminUrl}/console` });
      expect([(await gone).code, (await other).code]).to.deep.equal([4, 4]);
    });
  });
});
