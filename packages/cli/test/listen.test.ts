import { spawn } from 'node:child_process';
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AnyEvent, Kusanya, webhooks } from '@kusanya/client';
import { expect } from 'chai';
import { type Cli, installCli, type Running, watched } from '../../../test/support/cli.ts';
import { openProxy } from '../../../test/support/proxy.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../../../test/support/service.ts';
import { until } from '../../../test/support/until.ts';
import { Position } from '../src/position.ts';

describe('kusanya listen', function () {
  this.timeout(120_000);
  let cli: Cli;
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;
  let running: Running | undefined;

  before(async () => {
    [cli, test] = await Promise.all([installCli(), startTestService()]);
  });

  beforeEach(async () => {
    merchant = await test.merchant();
    receiver = await startReceiver();
  });

  afterEach(async () => {
    running?.child.kill('SIGKILL');
    await running?.ended;
    await receiver.close();
  });

  after(async () => {
    await test?.stop();
    await cli?.remove();
  });

  const environment = () => ({ KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: test.baseUrl });

  /** Listens in the background, and is ready. */
  async function listening(
    options: readonly string[] = [],
    env: Record<string, string> = {},
  ): Promise<Running> {
    const args = ['listen', '--forward-to', receiver.url, ...options];
    running = cli.start(args, { env: { ...environment(), ...env } });
    await running.says(/Ready: |"ready"/);
    return running;
  }

  /** The id of a payment that has its event. */
  const ended = async (phone = '255700000004') => {
    const { json } = await merchant.create({ phone });
    await merchant.final(json.id);
    return json.id as string;
  };
  const got = () => receiver.received.map(({ event }) => event.data.id as string);
  const gets = async (ids: readonly string[]) => {
    const isThere = await until(async () => ids.every((id) => got().includes(id)));
    expect(isThere, `${got().join()} of ${ids.join()}: ${JSON.stringify(running?.said())}`).to.equal(true);
  };

  it('forwards what an endpoint would get, byte for byte, signed with a secret of its own', async () => {
    const endpoint = await startReceiver();
    await test.endpoint(merchant.id, endpoint.url);
    const before = await ended();
    const listener = await listening();
    const id = await ended();
    await gets([id]);
    const here = receiver.received[0]!;
    const there = await endpoint.next(({ event }) => event.data.id === id);
    expect(here.body.toString()).to.equal(there.body.toString());
    expect(here.headers['webhook-attempt']).to.equal('1');
    const secret = (await cli.run(['listen', '--print-secret'], { env: environment() })).stdout.trim();
    const header = here.headers['service-signature'];
    expect(await webhooks.verify(here.body, header, secret)).to.include({ type: 'collection.failed' });
    await listener.says(secret);
    await listener.says(
      /\d\d:\d\d:\d\d {2}200 {2}collection\.failed {2}evt_\w+ {2}of col_\w+ {2}in \d+ ms\n/,
    );
    expect(got()).to.not.include(before);
    listener.child.kill('SIGINT');
    expect((await listener.ended).code).to.equal(0);
    await endpoint.close();
  });

  it('goes on after SIGKILL where it was: nothing is left out, and nothing comes twice but what was in hand', async () => {
    await listening();
    const first = await ended();
    await gets([first]);
    // It dies while the receiver has this one and has not answered.
    receiver.answer = () => undefined;
    const inHand = await ended();
    await gets([inHand]);
    running!.child.kill('SIGKILL');
    await running!.ended;
    receiver.answer = 200;
    const missed = [await ended(), await ended()];
    const listener = await listening();
    await gets(missed);
    const after = await ended();
    await gets([after]);
    expect(got()).to.deep.equal([first, inHand, inHand, ...missed, after]);
    await listener.says(/Goes on from .* ago/);
  });

  it('misses nothing that happened before its first event, nor where there was none at all', async () => {
    await listening();
    running!.child.kill('SIGKILL');
    await running!.ended;
    const ids = [await ended(), await ended()];
    await listening();
    await gets(ids);
    expect(got()).to.deep.equal(ids);
  });

  it('misses nothing over a line that is cut, and says so once', async () => {
    const proxy = await openProxy({ port: Number(new URL(test.baseUrl).port) });
    try {
      const line = { KUSANYA_BASE_URL: `http://127.0.0.1:${proxy.port}` };
      const listener = await listening([], line);
      const first = await ended();
      await gets([first]);
      proxy.cut();
      await listener.says('it asks again, and no event is lost');
      const missed = [await ended(), await ended()];
      proxy.mend();
      await gets(missed);
      expect(got()).to.deep.equal([first, ...missed]);
      expect(listener.said().stdout.match(/no event is lost/g)).to.have.length(1);
      await listener.says('answers again');
    } finally {
      await proxy.close();
    }
  });

  it('shows what the receiver would not take, and goes on', async () => {
    receiver.answer = (_received, response) => {
      response.statusCode = 500;
      response.end('no such order\x1b[2J\nsecond line');
      return undefined;
    };
    const listener = await listening();
    const first = await ended();
    await listener.says(`of ${first}  no such order[2J\n`);
    receiver.answer = 302;
    const second = await ended();
    await listener.says(new RegExp(`302 .* of ${second}`));
    receiver.answer = (_received, response) => void response.destroy();
    const third = await ended();
    await listener.says(new RegExp(`ERR .* of ${third}`));
    receiver.answer = 200;
    const fourth = await ended();
    await gets([fourth]);
    expect(got()).to.deep.equal([first, second, third, fourth]);
  });

  it('takes only the types that are asked for, from the time or the event that is asked for', async () => {
    const [before, start] = [await ended(), await ended()];
    const kusanya = new Kusanya(merchant.key, { baseUrl: test.baseUrl });
    const [{ id: evt }] = (await kusanya.events.list({ collection: start })).data as [AnyEvent];
    const paid = await ended('255700000000');
    await listening(['--since', evt, '--events', 'collection.succeeded, collection.expired', '--json']);
    await gets([paid]);
    const isFirst = running!
      .said()
      .stdout.split('\n')
      .map((line) => line && JSON.parse(line));
    expect(isFirst[0]).to.include({ kind: 'ready', merchant_id: merchant.id, mode: 'test' });
    await running!.says('"forwarded"');
    running!.child.kill('SIGTERM');
    expect((await running!.ended).json).to.include({ kind: 'forwarded', status: 200, ok: true, attempt: 1 });
    expect(got()).to.deep.equal([paid]);
    await listening(['--since', evt]);
    await gets([start, paid]);
    expect(got()).to.not.include(before);
    running!.child.kill('SIGTERM');
    await running!.ended;
    await listening(['--since', '1h']);
    await gets([before]);
  });

  it('goes on with another key of the merchant, and anew for another address', async () => {
    await listening();
    await gets([await ended()]);
    running!.child.kill('SIGTERM');
    await running!.ended;
    const missed = await ended();
    const { secret } = await test.issueKey(merchant.id, 'test');
    await listening([], { KUSANYA_API_KEY: secret });
    await gets([missed]);
    running!.child.kill('SIGTERM');
    await running!.ended;
    await ended();
    const [all] = [got().length];
    receiver.url += '?other';
    await listening();
    const fresh = await ended();
    await gets([fresh]);
    expect(got().slice(all)).to.deep.equal([fresh]);
  });

  it('refuses what it cannot forward to, or sign with; a live key may listen', async () => {
    const codeOf = async (...args: string[]) =>
      (await cli.run(['listen', ...args], { env: environment() })).code;
    expect(await codeOf()).to.equal(2);
    expect(await codeOf('--forward-to', 'ftp://x')).to.equal(2);
    expect(await codeOf('--forward-to', '4242/hook', '--secret', 'short')).to.equal(2);
    expect(await codeOf('--forward-to', '4242/hook', '--events', 'everything')).to.equal(2);
    expect(await codeOf('--forward-to', '4242/hook', '--since', 'evt_00000000000000000000000000')).to.equal(
      3,
    );
    const { secret } = await test.issueKey(merchant.id, 'live');
    await (await listening([], { KUSANYA_API_KEY: secret })).says(`${merchant.id} (live)`);
  });

  it('is a process: a key from a pipe is kept for the next one, and what fails ends it with its code', async () => {
    const login = ['login', '--base-url', test.baseUrl];
    expect((await cli.run(login, { stdin: 'kusanya_test_sk_wrong' })).code).to.equal(3);
    expect((await cli.run(login, { stdin: `${merchant.key}\n` })).code).to.equal(0);
    running = cli.start(['listen', '--forward-to', receiver.url]);
    await running.says(`${merchant.id} (test)`);
  });

  it('sends the last one again on r, ends on q, and paints, but only on a terminal', async function () {
    if (process.platform !== 'linux') this.skip();
    const shown = async (env: Record<string, string>) => {
      const line = `${process.execPath} ${cli.bin} listen --forward-to ${receiver.url}`;
      const child = spawn('script', ['-qefc', line, '/dev/null'], {
        env: { ...environment(), PATH: process.env.PATH, HOME: cli.folder, TERM: 'xterm', ...env },
      });
      running = watched(child);
      await running.says('r sends the last one again');
      const id = await ended();
      await gets([id]);
      await running.says(id);
      child.stdin.write('r');
      const isAgain = await until(async () => got().filter((each) => each === id).length === 2);
      expect(isAgain, running.said().stdout).to.equal(true);
      expect(receiver.received.at(-1)!.headers['webhook-attempt']).to.equal('2');
      await until(async () => running!.said().stdout.split(id).length === 3);
      child.stdin.write('q');
      const { code, stdout } = await running.ended;
      expect(code).to.equal(0);
      return stdout;
    };
    expect(await shown({})).to.include('\x1b[32m200\x1b[0m');
    expect(await shown({ NO_COLOR: '1' })).to.not.include('\x1b');
  });

  describe('the position on disk', () => {
    const path = () => join(cli.folder, `position-${merchant.id}.jsonl`);
    const at = (seconds: number) => ({
      id: `evt_${String(seconds).padStart(6, '0')}`,
      created_at: new Date(seconds * 1_000).toISOString(),
    });

    it('is spoilt by no crash: a line that broke off is one event again', async () => {
      const begun = await Position.begin(path(), [at(1)]);
      await begun.add(at(2));
      await begun.add(at(3));
      const text = await readFile(path(), 'utf8');
      await writeFile(path(), text.slice(0, -9));
      const found = await Position.resume(path());
      expect([found!.after, found!.has(at(2)), found!.has(at(3))]).to.deep.equal(['evt_000002', true, false]);
      await writeFile(path(), '{"id":');
      const error = await Position.resume(path()).catch(({ code }) => code);
      expect(error).to.equal('position_unreadable');
    });

    it('keeps what a tail can give again, and no more', async () => {
      const begun = await Position.begin(path(), []);
      expect((await Position.resume(path()))!.after).to.equal(null);
      for (let seconds = 1; seconds <= 600; seconds += 1) await begun.add(at(seconds));
      // What was late comes last, and is not where it goes on.
      await begun.add(at(590));
      await appendFile(path(), '\n');
      const found = (await Position.resume(path()))!;
      expect([found.after, found.has(at(590)), found.has(at(400))]).to.deep.equal([
        'evt_000600',
        true,
        false,
      ]);
      expect((await readFile(path(), 'utf8')).split('\n').length).to.be.below(250);
      expect((await readdir(cli.folder)).filter((name) => name.includes('.jsonl.'))).to.deep.equal([]);
    });
  });
});
