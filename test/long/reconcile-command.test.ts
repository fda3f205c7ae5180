import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { bundle } from '../support/bundle.ts';
import { root } from '../support/files.ts';
import { type Live, openLive } from '../support/live.ts';
import { untilNoonMs } from '../support/noon.ts';
import { until } from '../support/until.ts';

const { hourMs, dayMs } = limits;

/** OPERATING "The network's statement": `npm run reconcile` against a service that runs, with the simulator's own file. */
describe('npm run reconcile', function () {
  this.timeout(180_000);
  let live: Live;
  let date: string;
  let folder: string;
  let good: string;

  /** What the command does, without npm and tsx, which take longer to begin than it takes. */
  const ended = async (...args: string[]) =>
    run(process.execPath, await bundle('tools/reconcile/main.ts'), ...args);
  const run = async (program: string, ...args: string[]) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, OPERATOR_TOKEN: live.service.operatorToken },
    });
    const said = { out: '', err: '' };
    child.stdout.on('data', (chunk) => {
      said.out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      said.err += chunk;
    });
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, ...said };
  };
  const file = async (text: string) => {
    const path = join(folder, `${text.length}.csv`);
    await writeFile(path, text);
    return path;
  };
  const bring = async (text: string, ...more: string[]) =>
    ended(await file(text), '--url', live.service.adminUrl, '--date', date, ...more);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kusanya-statement-'));
    live = await openLive();
    live.clock.advance(untilNoonMs(live.clock.now()));
    for (let n = 0; n < 2; n += 1) {
      const { json } = await live.create('255740000001');
      expect((await live.final(json.id)).status).to.equal('succeeded');
    }
    date = eatDate(live.clock.now());
    good = live.simulator.statement({ date, plants: [{ kind: 'unclaimed', amountTzs: 7_000 }] });
    live.clock.advance(14 * hourMs);
  });
  after(async () => {
    await live?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('says what is wrong with the command, and how it is written', async () => {
    for (const args of [
      [],
      ['one.csv', 'two.csv'],
      ['--empty', 'one.csv'],
      ['--dates', date],
      [join(folder, 'nowhere.csv')],
    ]) {
      const { code, err } = await ended(...args);
      expect([code, err.includes('npm run reconcile -- <file.csv>')], String(args)).to.deep.equal([64, true]);
    }
    expect((await run('npm', 'run', '--silent', 'reconcile', '--', '--help')).code).to.equal(0);
  });

  it('tells a refusal with the line and what to do', async () => {
    const unfit = await bring(good.replace('Paid In', 'Money In'));
    expect(unfit).to.deep.include({ code: 1, out: '' });
    expect(unfit.err).to.match(
      /^Line 6: the column "Paid In" is missing; .*Export the organisation statement/,
    );
    const stranger = await bring(good, '--token', 'kusanya_operator_nobody');
    expect([stranger.code, stranger.err]).to.deep.equal([1, 'The API key is not valid.\n']);
    const nowhere = await ended(await file(good), '--url', 'http://127.0.0.1:9', '--date', date);
    expect(nowhere.code).to.equal(1);
    expect(nowhere.err).to.match(/^http:\/\/127\.0\.0\.1:9 was not reached \(.+\)\. Does the service run/);
  });

  it('brings a file, shows how far it is, and says when what is too young is judged', async () => {
    const { code, out, err } = await bring(good);
    expect([code, err]).to.deep.equal([0, '']);
    // Two payments, a charge for each, and somebody's 7,000.
    expect(out)
      .to.include(`rec.MPESA_TZ.${date}: 5 lines (${good.length} bytes)`)
      .and.to.match(/^matching\.waiting: 5 kept, 5 looked for$/m)
      .and.to.match(/^matched\t2\tTZS 10000$/m)
      .and.to.match(/^the newest lines are judged at \d{4}-/m)
      .and.to.match(/^now matching\.waiting; differences: GET http/m);
  });

  it('with the same file again goes on telling, and ends by whether both balances agree', async () => {
    const id = `rec.MPESA_TZ.${date}`;
    live.clock.advance(dayMs);
    await live.service.sweep();
    expect(await until(async () => (await live.service.actor(id)).state === 'open.resting')).to.equal(true);
    const { code, out } = await bring(good);
    expect(code, out).to.equal(0);
    expect(out)
      .to.match(/^unclaimed\t1\tTZS 7000$/m)
      .and.to.match(/^statement TZS 16900, ledger TZS \d+, unexplained TZS 0$/m)
      .and.to.match(/^now open\.resting; differences: GET http/m);
    // What the ledger says of that day is changed behind everybody's back.
    const entries = live.service.service.wired.db.collection('journal_entries');
    const found = await entries.findOne({ type: 'statement.charged' }, { promoteLongs: false });
    await entries.insertOne({ ...found, _id: 'live:planted' as never });
    const body = { type: 'operator.closedDay', reason: 'looked at' };
    await live.service.call('POST', `/admin/actors/${id}/events`, { body });
    const differs = async () => (await live.service.actor(id)).context.agreement?.unexplainedTzs !== 0;
    expect(await until(differs)).to.equal(true);
    const differing = await bring(good);
    expect(differing.code, differing.out).to.equal(2);
    expect(differing.out).to.match(/unexplained TZS 100$/m);
  });

  it('states a day on which nothing moved', async () => {
    const day = eatDate(dateDueAtMs(date) - dayMs);
    const stated = await ended('--empty', '--url', live.service.adminUrl, '--date', day);
    expect([stated.code, stated.err]).to.deep.equal([0, '']);
    expect(stated.out)
      .to.include(`rec.MPESA_TZ.${day}: a day on which nothing moved`)
      .and.to.match(/^statement TZS 0, ledger TZS 0, unexplained TZS 0$/m);
  });
});
