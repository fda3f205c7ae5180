import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { openProxy, type TcpProxy, wordsOf } from '../support/proxy.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * One line to MongoDB goes silent under a request while all others, heartbeats too, go on: every request is answered
 * within its limit, and the process serves again by itself.
 */
describe('a silent line to MongoDB', function () {
  this.timeout(120_000);
  let proxy: TcpProxy;
  let test: TestService;

  before(async () => {
    const { port } = new URL((await stores()).mongodbUri.replace(/^mongodb:/, 'http:'));
    proxy = await openProxy({ port: Number(port) });
    // Only requests go over this line: workers would run into the silence of others' commands.
    const uri = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`;
    test = await startTestService({ MONGODB_URI: uri, ROLE: 'api' }, { pushWindowMs: limits.hourMs }); // nobody pushes here
  });
  after(async () => {
    await test?.stop();
    await proxy?.close();
  });

  it('under a commit: it is told by /readyz, and then every create is answered 202', async () => {
    const merchant = await test.merchant();
    const silence = proxy.silence(wordsOf('commitTransaction'), true);
    const first = merchant.create({}, 'first');
    await silence;
    const creates = [first, ...Array.from({ length: 5 }, () => merchant.create())];
    // Between the time after which a wait is told and the time at which the line is given up.
    const told = await until(async () => {
      const { status, json } = await test.call('GET', '/readyz');
      const { oldest_commit_ms: commitMs, oldest_command_ms: commandMs } = json;
      return status === 503 && Math.min(commitMs, commandMs) >= limits.mongoWaitMs && json;
    });
    expect(told).to.deep.include({ status: 'unavailable', mongo: true });
    expect(told.wrong.join()).to.match(/a commit has been waiting for \d+ ms/);
    const answers = await Promise.all(creates);
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(6).fill(202));
    expect((await merchant.create({}, 'first')).text).to.equal(answers[0]!.text);
    expect((await merchant.get('/v1/collections')).json.data).to.have.length(6);
    expect(await until(async () => (await test.call('GET', '/readyz')).status === 200)).to.equal(true);
  });

  it('under the look-ups of an API key and of an idempotency key: nobody is left without an answer', async () => {
    const known = await test.merchant();
    const first = await known.create({}, 'again');
    const merchant = await test.merchant();
    const silences = ['idempotency', 'api_keys'].map((name) => proxy.silence(wordsOf('find', name), false));
    const asked = [known.create({}, 'again'), merchant.create(), merchant.get('/v1/whoami')];
    await Promise.all(silences);
    asked.push(merchant.get('/v1/balance'), known.create({}, 'again'));
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status)).to.deep.equal([202, 202, 200, 200, 202]);
    expect([answers[0]!.text, answers[4]!.text]).to.deep.equal([first.text, first.text]);
  });
});
