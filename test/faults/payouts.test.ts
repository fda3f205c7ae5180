import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { failpoints } from '../../src/failpoint.ts';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { testPayoutNumbers } from '../../src/rails/rails.ts';
import { payoutStories } from '../../tools/simulator/payoutStories.ts';
import { type Live, openLive } from '../support/live.ts';
import { type ServiceProcess, seeded } from '../support/processes.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { seed } from '../support/world.ts';

/**
 * Payouts of all rails while the process is killed: at the network by its own journal, at the bank by the files, and in the
 * books, nobody is paid twice, and whatever was answered 202 ends, or waits for a person with its reason.
 */
const size = isLong ? { ofEach: 60, kills: 24, fundings: 12 } : { ofEach: 6, kills: 4, fundings: 3 };

const settings = {
  MPESA_PAYOUTS: 'true',
  PAYOUT_DESTINATION_REST: '0s',
  SETTLEMENT_DELAY_DAYS: '0',
  DECIDE_ALONE_MAX: '5000000',
  PAYOUT_FEE: '100',
  WORKER_LOST_AFTER: '3s',
};
const operatorToken = 'operator-token-of-the-tests';
/** Only a callback passes it, and none need come here. */
const points = failpoints.filter((name) => name !== 'afterCallback');

/** The rail of test mode is named as the one it stands for. */
const wayOf = ({ mode, rail }: { mode: string; rail: string }) => `${mode}.${rail}`;

interface Stored {
  _id: string;
  mode: string;
  merchantId: string;
  status: string;
  state: string;
  data: { rail: string; amountTzs: number; account: { number: string } };
  snapshot: { context: { file: string | null; failureCode: string | null } };
}

interface Told {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  json: any;
}

interface Asked {
  token?: string;
  key?: string;
  body?: object;
}

describe(`payouts under kill -9 (SEED=${seed})`, () => {
  const random = seeded(seed);
  let live: Live;
  let running: ServiceProcess | undefined;
  let colleague: string;
  const destinations: { mode: 'live' | 'test'; rail: string; id: string }[] = [];
  /** What was answered 202. */
  const promised = new Set<string>();
  let settled: Stored[] = [];

  /** An operator's request to whatever runs, again until it is answered; a key makes it one operation. */
  const operate = async (method: string, path: string, asked: Asked = {}): Promise<Told> => {
    const { token = operatorToken, key, body } = asked;
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const init = { method, headers, ...(body ? { body: JSON.stringify({ reason: 'paid', ...body }) } : {}) };
    let latest = 'nobody hears';
    const answer = await until(async () => {
      const { adminUrl } = running ?? live.service;
      const told = await fetch(`${adminUrl}${path}`, init).catch((error) => {
        latest = String(error.cause ?? error);
      });
      if (told) latest = String(told.status);
      if (!told || told.status >= 500 || told.status === 429) return undefined;
      // Its process may die in the middle of the answer.
      const json = await told.json().catch(() => undefined);
      return json === undefined ? undefined : { status: told.status, json };
    }, 60_000);
    if (!answer) throw new Error(`${method} ${path} is not answered: ${latest}`);
    return answer;
  };
  const db = () => live.service.service.wired.db;
  const stored = () => db().collection<Stored>('payouts').find({}).toArray();
  const network = () => live.simulator.network;
  const referenceOf = (id: string) => `P${id.slice('po_1'.length)}`;
  const timesPaid = (id: string) =>
    network().paidOut.filter(({ reference }) => reference === referenceOf(id)).length;

  const enter = async (mode: 'live' | 'test', account: object): Promise<void> => {
    const path = `/admin/merchants/${live.merchantId}/destinations`;
    const answer = await operate('POST', path, { body: { mode, name: 'Acme', ...account } });
    const made = answer.json;
    expect(answer.status, JSON.stringify(made)).to.equal(201);
    const confirm = { token: colleague, body: { type: 'operator.confirmed' } };
    expect((await operate('POST', `/admin/actors/${made.id}/events`, confirm)).status).to.equal(200);
    await until(async () => (await live.service.actor(made.id)).state === 'active');
    destinations.push({ mode, rail: made.rail, id: made.id });
  };

  before(async function () {
    this.timeout(180_000);
    live = await openLive({ env: settings });
    const made = await operate('POST', '/admin/operators', { body: { name: 'zuri', role: 'operator' } });
    colleague = made.json.token;
    for (let n = 0; n < size.fundings; n += 1) {
      for (const token of [live.liveKey, live.testKey]) {
        const { json } = await live.service.call('POST', '/v1/collections', {
          token,
          headers: { 'idempotency-key': `funds-${n}` },
          body: { amount: 5_000_000, phone: '255754000001', reference: `funds-${n}` },
        });
        const isPaid = async () => (await live.service.actor(json.id)).state.startsWith('succeeded');
        expect(await until(isPaid, 60_000), 'the merchant has money').to.equal(true);
      }
    }
    const paths = [...Object.keys(payoutStories), '255754000002', '255754000003', '255754000004'];
    for (const number of paths) await enter('live', { kind: 'wallet', number });
    await enter('live', { kind: 'bank_account', number: '0150123456789', bank: 'CRDB' });
    await enter('test', { kind: 'bank_account', number: '0150123456780', bank: 'CRDB', rail: 'manual' });
    for (const number of [...Object.values(testPayoutNumbers), '255754000005'])
      await enter('test', { kind: 'wallet', number });
  });
  after(() => live?.close());

  it('are all made, while processes die at random and at named points', async function () {
    this.timeout(600_000);
    running = await live.startProcess(settings);
    let isOver = false;
    const load = async (way: string) => {
      const paths = destinations.filter((each) => wayOf(each) === way);
      for (let n = 0; n < size.ofEach; n += 1) {
        const { mode, id: destination } = paths[n % paths.length]!;
        const amount = 1_000 + n;
        const made = await operate('POST', `/admin/merchants/${live.merchantId}/payouts`, {
          key: `${way}.${n}`,
          body: { mode, amount, destination },
        });
        const { status, json } = made;
        // It was made already, and its answer was lost with the process: then the refusal names it.
        const id = status === 202 ? json.id : /it made (po_\w+)/.exec(json.error.message)?.[1];
        expect(id, JSON.stringify(json)).to.be.a('string');
        promised.add(id);
        await wait(random() * 100);
      }
    };
    const bank = async () => {
      while (!isOver) {
        for (const mode of ['live', 'test'] as const) {
          const answer = await operate('POST', '/admin/payout-files', { body: { mode } });
          if (answer.status !== 201) continue;
          await operate('POST', `/admin/payout-files/${answer.json.id}/sent`, { body: {} });
        }
        await wait(200);
      }
    };
    const kill = async () => {
      for (let n = 0; n < size.kills; n += 1) {
        const point = points[Math.floor(random() * points.length)]!;
        // Every other one dies by itself; not the last, for nobody starts another after it.
        const isDoomed = (size.kills - n) % 2 === 0;
        const armed: Record<string, string> = isDoomed
          ? { FAILPOINT: `${point}:${1 + Math.floor(random() * 10)}` }
          : {};
        await wait(300 + random() * 1_500);
        await running!.kill('SIGKILL');
        running = await live.startProcess({ ...settings, ...armed, NODE_ENV: 'test' }).catch((error) => {
          // It died in the middle of its start.
          if (!isDoomed) throw error;
          return live.startProcess(settings);
        });
      }
    };
    const ways = [...new Set(destinations.map(wayOf))];
    expect(ways).to.have.members(['live.MPESA_TZ', 'live.manual', 'test.MPESA_TZ', 'test.manual']);
    const all = Promise.all([kill(), ...ways.map(load)]).finally(() => {
      isOver = true;
    });
    await Promise.all([all, bank()]);
    await running.kill('SIGKILL');
    running = undefined;
  });

  it('end, or wait for a person with the reason', async function () {
    this.timeout(600_000);
    await live.restart(settings);
    for (const mode of ['live', 'test']) await operate('POST', '/admin/payout-files', { body: { mode } });
    const isDone = ({ status, state }: Stored) =>
      status !== 'created' || /underReview|exported|awaitingBank/.test(state);
    const done = await until(async () => {
      live.clock.advance(2 * limits.minuteMs);
      await live.service.sweep();
      return (await stored()).every(isDone);
    }, 300_000);
    const open = (await stored()).filter((each) => !isDone(each));
    expect(done, open.map(({ _id, state }) => `${_id} ${state}`).join(', ')).to.equal(true);
    settled = await stored();
    const missing = [...promised].filter((id) => !settled.some(({ _id }) => _id === id));
    expect(missing, 'answered 202 and not there').to.deep.equal([]);
    for (const { _id, state, mode } of settled.filter(({ state }) => /underReview/.test(state))) {
      if (mode === 'test') continue;
      const answers = await db().collection('railAnswers').countDocuments({ collectionId: _id });
      expect(answers, `${_id} ${state} has no reason`).to.be.above(0);
    }
  });

  it('are paid at most once by the network’s journal, and the books say of each what the network says', () => {
    const wallets = settled.filter(({ data }) => data.rail === 'MPESA_TZ');
    const ofLive = wallets.filter(({ mode }) => mode === 'live');
    expect(ofLive.length).to.be.at.least(size.ofEach);
    const wrong = ofLive.flatMap(({ _id, status, state }) => {
      const times = timesPaid(_id);
      const isPaid = status === 'paid' || status === 'returned';
      if (times > 1) return [`${_id} was paid ${times} times`];
      if (isPaid && times === 0) return [`${_id} is ${state} and was not paid`];
      return ['failed', 'cancelled'].includes(status) && times > 0 ? [`${_id} is ${state} and was paid`] : [];
    });
    expect(wrong).to.deep.equal([]);
    expect(live.simulator.invariants()).to.deep.include({ clean: true });
    const again = live.simulator.carelessness().pushed_again.filter((each) => each.startsWith('P'));
    expect(again, 'sent again').to.deep.equal([]);
  });

  it('by hand are each in one file, which reads the same each time', async () => {
    // A file whose process died is closed by the next.
    live.clock.advance(2 * limits.minuteMs);
    for (const mode of ['live', 'test']) await operate('POST', '/admin/payout-files', { body: { mode } });
    const lines: string[] = [];
    const files = (await db().collection('payout_files').find({}).toArray()).map(({ _id }) => String(_id));
    for (const id of files) {
      const [once, twice] = [
        await live.service.call('GET', `/admin/payout-files/${id}/file.csv`),
        await live.service.call('GET', `/admin/payout-files/${id}/file.csv`),
      ];
      expect([once.status, once.text]).to.deep.equal([200, twice.text]);
      lines.push(...once.text.trim().split('\r\n').slice(1));
    }
    const inFiles = lines.map((line) => line.split(',')[0]!).sort();
    const byHand = settled.filter(({ data }) => data.rail === 'manual').map(({ _id }) => _id);
    expect(inFiles).to.deep.equal(byHand.sort());
  });

  it('leave books that balance, and an auditor with nothing to say', async function () {
    this.timeout(120_000);
    const { breaches } = await auditAll(db(), live.clock.now() + limits.minuteMs);
    expect(breaches).to.deep.equal([]);
    const counts: Record<string, number> = {};
    for (const { data, mode, state } of settled) {
      const name = `${data.rail} ${mode} ${state.replace(/\.(polling|resting|watching)$/, '')}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    process.stdout.write(`      ${promised.size} payouts, ${size.kills} kills: ${JSON.stringify(counts)}\n`);
    const balance = await live.service.call('GET', '/v1/balance', { token: live.liveKey });
    const ofLive = settled.filter(({ mode }) => mode === 'live');
    const sum = (of: Stored[], each: (one: Stored) => number) => of.reduce((all, one) => all + each(one), 0);
    const whole = ({ data }: Stored) => Number(data.amountTzs) + 100;
    expect(balance.json.reserved, 'held for those that wait').to.equal(
      sum(
        ofLive.filter(({ status }) => status === 'created'),
        whole,
      ),
    );
  });
});
