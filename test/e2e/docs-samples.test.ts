import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MovableClock, quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url);
const read = (page: string) => readFileSync(new URL(page, root), 'utf8');

/** The commands of a page's shell samples, each in one line. */
function commandsOf(page: string): string[] {
  const samples = [...read(page).matchAll(/```sh\n([^`]*)```/g)].map(([, text]) => text!);
  return samples
    .flatMap((text) => text.replaceAll('\\\n', ' ').split('\n'))
    .filter((line) => line.trim() !== '');
}

/** Every curl of the documents, as printed but for addresses, keys and the ids that a reader puts in. */
describe('the samples of the documents', function () {
  this.timeout(120_000);
  const clock = new MovableClock();
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;
  let payment: string;
  let environment: Record<string, string>;

  before(async () => {
    test = await startTestService({}, { clock });
    merchant = await test.merchant();
    receiver = await startReceiver();
    payment = (await test.underReview(merchant)).id;
    environment = {
      KUSANYA_BASE_URL: test.baseUrl,
      KUSANYA_API_KEY: merchant.key,
      MERCHANT: merchant.id,
      TOKEN: test.operatorToken,
      OPERATOR_TOKEN: test.operatorToken,
    };
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  /** The status that a command printed, with what the samples' variables hold. */
  async function statusOf(command: string, set: string, ids: Record<string, string>): Promise<string> {
    const filled = (text: string) =>
      Object.entries(ids)
        .reduce((done, [from, to]) => done.replaceAll(from, to), text)
        .replaceAll('http://127.0.0.1:3001', test.adminUrl)
        .replaceAll('http://127.0.0.1:4545/hooks', receiver.url)
        .replaceAll('https://asha.example/hooks', receiver.url);
    const measured = filled(command).replace('curl ', 'curl -o /dev/null -w "%{http_code}" ');
    const { stdout } = await run('bash', ['-euc', `${filled(set)}\n${measured}`], {
      env: { ...process.env, ...environment },
    });
    return stdout;
  }

  it('of docs/API.md do what the page says', async () => {
    const commands = commandsOf('docs/API.md').filter((line) => line.startsWith('curl'));
    expect(commands.length).to.be.at.least(6);
    // Of this number the network never knows: it has not ended before the page says how.
    const { json: created } = await merchant.create({ phone: '255700000021' });
    const { json: sold } = await merchant.create({ amount: 300_000 });
    await merchant.tell(sold.id, { outcome: 'succeeded' });
    await merchant.final(sold.id);
    await merchant.settle();
    const destination = await test.destination(merchant.id);
    for (const command of commands) {
      const { id } = command.includes('/refunds') ? sold : created;
      const status = await statusOf(command, '', {
        col_01M7Z2140FFZZ0BBT12PR034MN: id,
        dst_01K5J8Q2R3S4T5V6W7X8Y9Z0AF: destination,
      });
      expect(status, command).to.match(/^20\d$/);
    }
  });

  it('of docs/OPERATING.md do too, in the order of the page, with nothing used before it is set', async () => {
    const { json: leaver } = await test.call('POST', '/admin/operators', {
      body: { name: 'Leaver', role: 'viewer', reason: 'to try' },
    });
    const folder = mkdtempSync(join(tmpdir(), 'kusanya-samples-'));
    const statement = join(folder, 'statement.csv');
    writeFileSync(
      statement,
      'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance,Other Party Info\n' +
        'QKABCDE123,2026-11-21 12:00:00,Pay Bill,Completed,5000,,5000,255700000000 - ASHA\n',
    );
    let set = '';
    let count = 0;
    for (const command of commandsOf('docs/OPERATING.md')) {
      if (/^[A-Za-z]+=/.test(command)) set += `${command}\n`;
      if (!command.startsWith('curl')) continue;
      count += 1;
      const id = payment;
      if (command.includes('/release')) {
        const stored = test.service.wired.db.collection<{ _id: string }>('collections');
        await stored.updateOne({ _id: id }, { $set: quarantinedAt(new Date(), 'to try') });
      }
      const ids = { 'opr_…': leaver.id, 'mer_…': merchant.id, 'col_…': id, 'statement.csv': statement };
      expect(await statusOf(command, set, ids), command).to.match(/^20\d$/);
    }
    expect(count).to.be.at.least(8);
    rmSync(folder, { recursive: true });
  });

  it('verify signatures in plain Node and in Python, as printed', async () => {
    const [, node] = /```js\n([\s\S]*?)```/.exec(read('docs/API.md'))!;
    const [, python] = /```python\n([\s\S]*?)```/.exec(read('docs/API.md'))!;
    const { verify } = JSON.parse(read('test/unit/signature.vectors.json')) as {
      verify: { tolerance_seconds?: number; verdict: string }[];
    };
    const vectors = verify.filter(({ tolerance_seconds: seconds }) => (seconds ?? 300) === 300);
    const expected = vectors.map(({ verdict }) => verdict === 'accept');
    const input = JSON.stringify(vectors);
    const inNode = `${node}\nconst all = JSON.parse(process.argv[1]);
      console.log(JSON.stringify(all.map((v) => isGenuine(Buffer.from(v.body_base64, 'base64'), v.header, v.secret, v.now_seconds))));`;
    const plain = await run(process.execPath, ['--input-type=module', '-e', inNode, input]);
    expect(JSON.parse(plain.stdout)).to.deep.equal(expected);
    const inPython = `${python}\nimport base64, json, sys
print(json.dumps([is_genuine(base64.b64decode(v["body_base64"]), v["header"], v["secret"], v["now_seconds"]) for v in json.loads(sys.argv[1])]))`;
    const answered = await run('python3', ['-c', inPython, input]);
    expect(JSON.parse(answered.stdout)).to.deep.equal(expected);
  });
});
