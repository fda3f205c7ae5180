import { expect } from 'chai';
import { type Cli, installCli } from '../support/cli.ts';
import { seeded } from '../support/processes.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';
import { type Receiver, startReceiver, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const blows = ['kill', 'kill', 'cut', 'silence', 'rest'] as const;
const rounds = 30;

/** `kusanya listen` while payments go on ending: killed, its line cut and silent, and what it promises of each event. */
describe('kusanya listen under blows', function () {
  this.timeout(600_000);
  const seed = Number(process.env.SEED ?? 20_261_122);
  let cli: Cli;
  let test: TestService;
  let proxy: TcpProxy;
  let receiver: Receiver;

  before(async () => {
    [cli, test, receiver] = await Promise.all([installCli(), startTestService(), startReceiver()]);
    proxy = await openProxy({ port: Number(new URL(test.baseUrl).port) });
  });

  after(async () => {
    await proxy?.close();
    await test?.stop();
    await receiver?.close();
    await cli?.remove();
  });

  it(`forwards each event, and twice at most one for each kill (seed ${seed})`, async () => {
    const merchant = await test.merchant();
    const env = { KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: `http://127.0.0.1:${proxy.port}` };
    const start = async () => {
      const running = cli.start(['listen', '--forward-to', receiver.url], { env });
      await running.says('Ready: ');
      return running;
    };
    // Slow enough that a kill meets an event in hand now and then.
    receiver.answer = (_received, response) => {
      setTimeout(() => response.end('ok'), 30);
      return undefined;
    };
    const random = seeded(seed);
    const made: string[] = [];
    let isOver = false;
    let listener = await start();
    const creating = (async () => {
      while (!isOver) {
        const { json } = await merchant.create({ phone: '255700000004' });
        made.push(json.id);
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
    })();
    let kills = 0;
    try {
      for (let round = 0; round < rounds; round += 1) {
        const blow = blows[Math.floor(random() * blows.length)];
        const ms = 50 + Math.floor(random() * 1_500);
        await new Promise((resolve) => setTimeout(resolve, ms));
        if (blow === 'kill') {
          listener.child.kill('SIGKILL');
          await listener.ended;
          kills += 1;
          listener = await start();
        } else if (blow === 'cut') {
          proxy.cut();
          await new Promise((resolve) => setTimeout(resolve, ms));
          proxy.mend();
        } else if (blow === 'silence') await proxy.silence(['GET /v1/events'], true);
      }
      isOver = true;
      await creating;
      await Promise.all(made.map((id) => merchant.final(id)));
      const got = () => new Set(receiver.received.map(({ event }) => event.data.id));
      const isThere = await until(async () => made.every((id) => got().has(id)), 120_000);
      const missing = made.filter((id) => !got().has(id));
      expect(missing, `left out of ${made.length}, after ${kills} kills`).to.deep.equal([]);
      expect(isThere).to.equal(true);
      expect(receiver.received.length - made.length, `twice, after ${kills} kills`).to.be.at.most(kills);
      expect(kills).to.be.greaterThan(3);
      expect(made.length).to.be.greaterThan(50);
    } finally {
      isOver = true;
      listener.child.kill('SIGKILL');
      await creating;
    }
  });
});
