import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Commands, openCommands } from '../../../test/support/cli.ts';
import { commands } from '../src/commands.ts';
import { commandHelp, listHelp } from '../src/help.ts';

describe('what kusanya says of itself', function () {
  this.timeout(60_000);
  let cli: Commands;

  before(async () => {
    cli = await openCommands();
  });

  after(() => cli?.remove());

  it('fits on a terminal of 24 lines of 80 characters, the prompt too', () => {
    for (const lines of [listHelp(commands), ...commands.map(commandHelp)]) {
      expect(lines.length, lines[0]).to.be.at.most(23);
      for (const line of lines) expect(line.length, line).to.be.at.most(80);
    }
  });

  it('names every command with one line, and tells of each what it takes', async () => {
    const all = await cli.run(['--help']);
    expect([all.code, all.stdout.split('\n').filter((line) => line.startsWith('  ')).length]).to.deep.equal([
      0,
      commands.length,
    ]);
    expect((await cli.run([])).stdout).to.equal(all.stdout);
    const one = await cli.run(['collections', 'create', '--help']);
    expect(one.stdout)
      .to.match(/^kusanya collections create \[options\]\n/)
      .and.include('--amount TZS');
    expect((await cli.run(['help', 'collections', 'create'])).stdout).to.equal(one.stdout);
    const group = await cli.run(['collections']);
    expect(group.code).to.equal(2);
    expect(group.stdout).to.include('collections wait ID').and.not.include('login');
    expect((await cli.run(['--version', '--json'])).json).to.deep.equal({ version: '0.1.0' });
  });

  const cases: readonly (readonly [string[], string[]])[] = [
    [['coll'], ['collections']],
    [
      ['collections', ''],
      ['create', 'list', 'get', 'wait'],
    ],
    [
      ['collections', 'list', '--st'],
      ['--status', '--starting-after'],
    ],
    [
      ['collections', 'list', '--status', ''],
      ['created', 'succeeded', 'failed', 'expired'],
    ],
    [['trigger', 'f'], ['failed']],
    [['trigger', 'failed', '--code', 'insu'], ['insufficient_funds']],
    [['--json', 'admin', 'ch'], ['chart']],
    [['open', ''], ['payment']],
    [
      ['completion', ''],
      ['bash', 'zsh', '--json', '--profile', '--help', '--version'],
    ],
    [['collections', 'get', 'col_1', '--pro'], ['--profile']],
    [['verify', '--header', ''], []],
  ];

  /** What the shell completes each case to. */
  function completed(shell: string, script: string, ask: string): string[][] {
    const probes = cases.map(([typed]) => `ask ${typed.map((word) => `'${word}'`).join(' ')}\necho '=='`);
    const { status, stdout, stderr } = spawnSync(shell, [], {
      input: `${script}\n${ask}\n${probes.join('\n')}\n`,
    });
    expect([status, String(stderr)]).to.deep.equal([0, '']);
    const parts = String(stdout).split('==\n').slice(0, -1);
    return parts.map((part) => part.split('\n').filter(Boolean));
  }

  it('completes in bash', async function () {
    if (spawnSync('bash', ['--version']).status !== 0) this.skip();
    const script = (await cli.run(['completion', 'bash'])).stdout;
    await writeFile(join(cli.folder, 'completion.bash'), script);
    const ask = `
[[ "$(complete -p kusanya)" == 'complete -o default -F _kusanya kusanya' ]] || exit 1
ask() { COMP_WORDS=(kusanya "$@"); COMP_CWORD=$#; COMPREPLY=(); _kusanya; printf '%s\\n' "\${COMPREPLY[@]}"; }`;
    expect(completed('bash', script, ask)).to.deep.equal(cases.map(([, choices]) => choices));
  });

  it('completes in zsh', async function () {
    if (spawnSync('zsh', ['--version']).status !== 0) this.skip();
    const script = (await cli.run(['completion', 'zsh'])).stdout;
    // The completion system itself needs a terminal; what it would be given is looked at instead.
    const ask = `
[[ $registered == '_kusanya kusanya' ]] || exit 1
compadd() { shift; for each in "$@"; do [[ $each == \${words[CURRENT]}* ]] && print -r -- $each; done; true }
_files() { true }
ask() { words=(kusanya "$@"); CURRENT=$#words; _kusanya }`;
    const compdef = 'compdef() { registered="$*" }\n';
    expect(completed('zsh', compdef + script, ask)).to.deep.equal(cases.map(([, choices]) => choices));
  });
});
