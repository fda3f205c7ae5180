import { expect } from 'chai';
import { type Live, openLive } from '../support/live.ts';
import { startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Live mode in several processes: what each says of its network, counts of it, and takes up from another. */
describe('the processes of live mode', function () {
  this.timeout(300_000);
  let live: Live;

  beforeEach(async () => {
    live = await openLive();
  });
  afterEach(async () => {
    expect(live.simulator.invariants(), 'the books of the network').to.deep.include({ clean: true });
    await live.close();
  });

  const created = async (phone: string, key?: string): Promise<string> => {
    const answer = await live.create(phone, key ? { key } : {});
    expect(answer.status, answer.text).to.equal(202);
    return answer.json.id;
  };

  it('count what the network answers by its codes, and what its gate turns away', async () => {
    live.simulator.faults.add({ operation: 'push', does: 'refuses', when: 'before', times: 1 });
    expect(await live.final(await created('255740000001'))).to.include({ status: 'succeeded' });
    expect(await live.final(await created('255740000002'))).to.include({ status: 'failed' });
    const answer = await fetch(`${live.service.adminUrl}/metrics`, {
      headers: { authorization: `Bearer ${live.service.operatorToken}` },
    });
    const shown = (await answer.text()).split('\n').filter((line) => /^provider_(answers|gate)/.test(line));
    expect(shown).to.include.members([
      'provider_answers_total{op="session",code="INS-0"} 1',
      'provider_answers_total{op="push",code="INS-0"} 1',
      'provider_answers_total{op="push",code="INS-2006"} 1',
      'provider_gate_refusals_total{op="push",status="401"} 1',
    ]);
  });

  it('name their network at the start and in GET /admin/rails: address, sandbox or not, and mode', async () => {
    const address = live.env.MPESA_BASE_URL!;
    const sandbox = address.replace(/openapi$/, 'sandbox');
    for (const [env, line, told] of [
      [{}, `A SIMULATOR at ${address}, synchronous`, { address, sandbox: false, answers: 'synchronous' }],
      [
        { MPESA_BASE_URL: sandbox, MPESA_SYNCHRONOUS: 'false' },
        `SANDBOX at ${sandbox}, asynchronous`,
        { address: sandbox, sandbox: true, answers: 'asynchronous' },
      ],
    ] as const) {
      const started = await live.startProcess(env);
      expect(started.output()).to.include(`live mode: MPESA_TZ ${line}`);
      await started.kill('SIGKILL');
      await live.restart(env);
      const { json } = await live.service.call('GET', '/admin/rails');
      expect(json.data[1]).to.include({ mode: 'live', name: 'MPESA_TZ', ...told });
    }
  });

  it('give a push back that they have no settings for, unclaimed, and one that has them makes it', async () => {
    await live.restart({ ROLE: 'api' });
    const id = await created('255740000001');
    const { clock, database } = live;
    const without = await startTestService({ ROLE: 'worker' }, { clock, database });
    const testPayment = await created('255700000000', live.testKey);
    const isPushed = async () => (await live.service.actor(testPayment)).state !== 'created.pushing.sending';
    expect(await until(isPushed), 'it works').to.equal(true);
    const stored = live.service.service.wired.db.collection<{ _id: string }>('collections');
    const payment = await stored.findOne({ _id: id });
    expect(payment).to.include({ state: 'created.pushing.sending' });
    expect(payment).to.have.property('calls').with.lengthOf(1);
    expect(payment).to.not.have.nested.property('calls[0].startedAt');
    await without.stop();
    await live.restart();
    expect(await live.final(id)).to.include({ status: 'succeeded' });
    expect([live.simulator.counts.push, live.debits(id)]).to.deep.equal([1, 1]);
  });

  it('ask at once about a push that a dead one had claimed, long before its patience is over', async () => {
    const doomed = await live.startProcess();
    const answer = await fetch(`${doomed.baseUrl}/v1/collections`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${live.liveKey}`,
        'content-type': 'application/json',
        'idempotency-key': 'live-doomed-at-once',
      },
      // The answer to this push never comes, and the money moves.
      body: JSON.stringify({ amount: 5000, phone: '255740000022', reference: 'doomed' }),
    });
    const { id } = (await answer.json()) as { id: string };
    expect(await until(async () => live.debits(id) === 1, 90_000), 'debited').to.equal(true);
    await doomed.kill('SIGKILL');
    // Its lease is over; the patience with its call is 150 s.
    live.clock.advance(20_000);
    await live.restart();
    const succeeded = await until(async () => {
      await live.service.sweep();
      return (await live.read(id)).status === 'succeeded';
    }, 30_000);
    expect(succeeded, JSON.stringify(await live.service.actor(id))).to.equal(true);
    expect([live.simulator.counts.push, live.debits(id)]).to.deep.equal([1, 1]);
  });
});
