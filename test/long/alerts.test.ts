import { connectMongo, MovableClock, prepareDatabase } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type AlertDoc, AlertTeller, alertsSpec, raiseAlert } from '../../src/alerts.ts';
import { createLog } from '../../src/log.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { freshDatabase, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Alerts go to the log, the overview and, when set, to ALERT_WEBHOOK_URL. */
describe('alerts', () => {
  /** A receiver of anything: what it gets here is no webhook of the interface. */
  const listen = async (answer?: Receiver['answer']) => {
    const receiver = await startReceiver(answer);
    return { ...receiver, receiver, close: () => receiver.close().catch(() => undefined) };
  };

  it('of a running service arrive where ALERT_WEBHOOK_URL says, and no secret goes with them', async () => {
    const { url, received, close } = await listen();
    const test = await startTestService({ ALERT_WEBHOOK_URL: url });
    const { id, merchant } = await test.latePayment();
    const got = await until(async () => received[0]);
    expect(got?.headers['content-type']).to.equal('application/json');
    const { kind, count, text, alerts } = JSON.parse(got!.body.toString());
    expect([kind, count]).to.deep.equal(['late_payment', 1]);
    expect(text).to.include(id);
    expect(alerts[0]).to.deep.include({ about: id, merchant_id: merchant.id, mode: 'test', times: 1 });
    expect(got!.body.toString()).to.not.include('2557');
    const stored = test.service.wired.db.collection('alerts');
    const told = await until(
      async () => (await stored.findOne({ about: id, toldAt: { $exists: true } })) ?? undefined,
    );
    expect(told).to.not.have.property('tellAt');
    await test.stop();
    await close();
  });

  describe('told', () => {
    const clock = new MovableClock();
    let client: Awaited<ReturnType<typeof connectMongo>>;
    let db: ReturnType<typeof client.db>;

    before(async () => {
      client = await connectMongo((await stores()).mongodbUri);
    });

    beforeEach(async () => {
      db = client.db(freshDatabase('alerts'));
      await prepareDatabase(db, [alertsSpec]);
    });

    after(() => client.close());

    const raise = async (kind: string, about: string) => {
      const write = raiseAlert({ kind, about, at: clock.now(), mode: 'test' });
      if (write.op === 'insert') await db.collection<AlertDoc>('alerts').insertOne(write.doc as AlertDoc);
    };
    const teller = (url: string | undefined, lines: string[] = [], timeoutMs = 5_000) => {
      const log = createLog('warn', { write: (line) => void lines.push(line) });
      return new AlertTeller({ db, clock, log, url, timeoutMs });
    };
    const bodies = ({ received }: Pick<Receiver, 'received'>) =>
      received.map(({ body }) => JSON.parse(body.toString()));
    const open = () => db.collection('alerts').countDocuments({ tellAt: { $exists: true } });

    it('once, each subject once, at most one post of a kind in a minute', async () => {
      const hook = await listen();
      const one = teller(hook.url);
      for (const about of ['col_1', 'col_1', 'col_2']) await raise('late_payment', about);
      await raise('rail_unreachable', 'brk.X.push');
      await one.tell();
      await one.tell();
      expect(bodies(hook).map(({ kind, count }) => [kind, count])).to.deep.equal([
        ['late_payment', 3],
        ['rail_unreachable', 1],
      ]);
      const times = bodies(hook)[0].alerts.map(({ about, times }: { about: string; times: number }) => [
        about,
        times,
      ]);
      expect(times).to.deep.equal([
        ['col_1', 2],
        ['col_2', 1],
      ]);
      for (const about of ['col_3', 'col_4']) await raise('late_payment', about);
      await one.tell();
      expect(hook.received).to.have.length(2);
      clock.advance(60_001);
      await one.tell();
      expect(bodies(hook)[2]).to.include({ kind: 'late_payment', count: 2 });
      expect(await open()).to.equal(0);
      await hook.close();
    });

    it('a storm of one kind keeps no other waiting', async () => {
      const hook = await listen();
      const one = teller(hook.url);
      await raise('late_payment', 'col_first');
      await one.tell();
      for (let n = 0; n < 60; n += 1) await raise('late_payment', `col_${n}`);
      await raise('rail_unreachable', 'brk.X.push');
      await one.tell();
      expect(bodies(hook).map(({ kind }) => kind)).to.deep.equal(['late_payment', 'rail_unreachable']);
      clock.advance(60_001);
      await one.tell();
      const last = bodies(hook).at(-1);
      expect([last.count, last.alerts.length]).to.deep.equal([60, 20]);
      expect(last.text).to.include('and 59 more');
      await hook.close();
    });

    it('again after failures, a few times, and then no more; the log names no address', async () => {
      const hook = await listen(500);
      const lines: string[] = [];
      const one = teller(hook.url, lines);
      await raise('late_payment', 'col_1');
      for (let minutes = 0; minutes < 120; minutes += 1) {
        await one.tell();
        clock.advance(60_000);
      }
      expect(hook.received).to.have.length(5);
      expect(await open()).to.equal(0);
      expect(lines.filter((line) => line.includes('given up'))).to.have.length(1);
      expect(lines.join('')).to.not.include('/hook').and.to.not.include(new URL(hook.url).host);
      // What failed once and then is taken is told once.
      hook.receiver.answer = 200;
      await raise('late_payment', 'col_2');
      await one.tell();
      await one.tell();
      expect(hook.received).to.have.length(6);
      await hook.close();
    });

    it('with patience for nobody who does not answer, and never through a redirect', async () => {
      const silent = await listen(() => undefined);
      await raise('late_payment', 'col_1');
      const one = teller(silent.url, [], 100);
      // Where the machine stands still, the time is over before anything was sent.
      const isAsked = await until(async () => {
        await one.tell();
        clock.advance(3_600_000);
        return silent.received.length > 0;
      });
      expect(isAsked).to.equal(true);
      expect(await open()).to.equal(1);
      await silent.close();
      const aim = await listen();
      const bent = await listen((_got, response) => {
        response.setHeader('location', aim.url);
        return 307;
      });
      await teller(bent.url).tell();
      expect([bent.received.length, aim.received.length, await open()]).to.deep.equal([1, 0, 1]);
      await bent.close();
      await aim.close();
    });

    it('to the log alone where no webhook is set', async () => {
      const lines: string[] = [];
      await raise('late_payment', 'col_1');
      const one = teller(undefined, lines);
      await one.tell();
      await one.tell();
      expect(lines.map((line) => JSON.parse(line))).to.have.length(1);
      expect(JSON.parse(lines[0]!)).to.include({ kind: 'late_payment', about: 'col_1', msg: 'alert' });
      expect(await open()).to.equal(0);
    });
  });
});
