import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { commands } from '../../packages/cli/src/commands.ts';
import { type Cli, installCli } from '../support/cli.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';

const path = new URL('../../packages/cli/README.md', import.meta.url);
const session = /(<!-- session -->\n```console\n)[\s\S]*?```/;

/** What the command line said, with fixed ids and times of the same lengths. */
class Recording {
  readonly #ids = new Map<string, string>();
  readonly #texts: (readonly [string, string])[];
  text = '';

  constructor(texts: (readonly [string, string])[]) {
    this.#texts = texts;
  }

  add(command: string, said: string): void {
    const known = this.#texts.reduce(
      (text, [from, to]) => text.replaceAll(from, to),
      `$ ${command}\n${said}\n`,
    );
    this.text += known
      .replace(/\b(mer|col|evt)_[0-9A-Z]{26}\b/g, (id, prefix) => this.#idOf(id, prefix))
      .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '2026-11-22 10:15:00')
      .replace(/^\d\d:\d\d:\d\d/gm, '13:15:00')
      .replace(/\bin \d+ ms\b/g, 'in 12 ms')
      .replace(/(receipt +)\S+/g, '$1TEST4K7QX2')
      .replace(/here for \d+ \w/g, 'here for 2 s')
      .replace(/(after \w+ in) \d+ \w/g, '$1 1 m')
      .replace(/whsec_[\w+/=]+/g, 'whsec_…');
  }

  #idOf(id: string, prefix: string): string {
    const made = `${prefix}_01M7Z2140FFZZ0BBT12PR0${String(this.#ids.size + 1).padStart(4, '0')}`;
    const known = this.#ids.get(id) ?? made;
    this.#ids.set(id, known);
    return known;
  }
}

describe('the README of kusanya', function () {
  this.timeout(120_000);
  let cli: Cli;
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;

  before(async () => {
    [cli, test, receiver] = await Promise.all([
      installCli(),
      // At its own pace, so that a payment stands where it stands for as long as the recording takes.
      startTestService({ SIMULATOR_SPEED: '1' }),
      startReceiver(),
    ]);
    merchant = await test.merchant();
  });

  after(async () => {
    await test?.stop();
    await receiver?.close();
    await cli?.remove();
  });

  it('shows a session as it is (else: UPDATE=1)', async () => {
    const recording = new Recording([
      [receiver.url, 'http://localhost:4242/hook'],
      [cli.folders.config, '~/.config/kusanya'],
    ]);
    const env = {
      ...{ KUSANYA_BASE_URL: test.baseUrl, KUSANYA_ADMIN_URL: test.adminUrl },
      KUSANYA_OPERATOR_TOKEN: test.operatorToken,
    };
    const run = async (line: string, stdin = '') => {
      const { stderr, stdout } = await cli.run(line.split(' '), { env, stdin });
      recording.add(`kusanya ${line}`, stderr + stdout);
      return /\bcol_\w+/.exec(stdout)?.[0];
    };
    await run('login', merchant.key);
    const listener = cli.start(['listen', '--forward-to', receiver.url], { env });
    try {
      await listener.says('Signed with');
      const ids = [
        await run('trigger succeeded --now --reference order-1001'),
        await run('trigger failed --code rejected --reference order-1002'),
      ];
      for (const id of ids) await listener.says(`of ${id}`);
      await run('collections list --limit 2');
      await run(`admin chart ${ids[1]} --steps 0`);
      recording.add('kusanya listen --forward-to 4242/hook', listener.said().stdout);
    } finally {
      listener.child.kill('SIGTERM');
      await listener.ended;
    }
    const page = readFileSync(path, 'utf8');
    const made = page.replace(session, (_all, head: string) => `${head}${recording.text.trimEnd()}\n\`\`\``);
    if (process.env.UPDATE === '1') writeFileSync(path, made);
    expect(made, 'the session').to.equal(readFileSync(path, 'utf8'));
    expect(made).to.include('200  collection.succeeded');
  });

  it('names every command', () => {
    const page = readFileSync(path, 'utf8').split('## Commands')[1]!.split('## Settings')[0]!;
    const rows = [...page.matchAll(/^\| `(\w+) ?([\w\\|]*)/gm)];
    const named = rows.flatMap(([, first, rest = '']) =>
      /\|/.test(rest) && first !== 'completion'
        ? rest.split('\\|').map((each) => `${first} ${each}`)
        : [first!],
    );
    const names = named.map((name) => (name === 'open' ? 'open payment' : name));
    expect(names.sort()).to.deep.equal(commands.map(({ name }) => name).sort());
  });
});
