import { expect } from 'chai';
import { callbackSecret, type Live, openLive } from '../support/live.ts';
import { until } from '../support/until.ts';

const hourMs = 3_600_000;

/** Live mode against the simulated network, over real HTTP. */
describe('live mode', function () {
  this.timeout(300_000);
  let live: Live;

  before(async () => {
    live = await openLive();
  });
  after(() => live.close());
  afterEach(() => {
    live.simulator.faults.clear();
    expect(live.simulator.invariants(), 'the books of the network').to.deep.include({ clean: true });
  });

  const created = async (phone: string): Promise<string> => {
    const answer = await live.create(phone);
    expect(answer.status, answer.text).to.equal(202);
    return answer.json.id;
  };

  /** As a network would call back. */
  const callBack = async (conversation: string, code: string) => {
    const body = { input_ThirdPartyConversationID: conversation, input_ResultCode: code };
    const answer = await fetch(`${live.service.baseUrl}/rails/MPESA_TZ/${callbackSecret}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    return { status: answer.status, json: (await answer.json()) as Record<string, string> };
  };

  it('makes a real push that succeeds, with one debit and the network’s receipt', async () => {
    const id = await created('255740000001');
    const final = await live.final(id);
    expect(final).to.include({ status: 'succeeded', mode: 'live' });
    expect(final.provider_reference).to.match(/^SIM/);
    expect(live.debits(id)).to.equal(1);
  });

  it('keeps every answer for operators, verbatim', async () => {
    const id = await created('255740000002');
    expect(await live.final(id)).to.include({ status: 'failed', failure_code: 'insufficient_funds' });
    const { json } = await live.service.call('GET', `/admin/collections/${id}/evidence`);
    expect(json.answers[0]).to.include({
      operation: 'push',
      outcome: 'failed',
      code: 'INS-2006',
      http_status: 422,
    });
    expect(json.answers[0].text).to.include('Insufficient balance');
  });

  it('reaches no network with a test key', async () => {
    const pushes = live.simulator.counts.push;
    const { json } = await live.create('255740000001', { key: live.testKey });
    await until(async () => {
      const answer = await live.service.call('GET', `/v1/collections/${json.id}`, { token: live.testKey });
      return answer.json.status !== 'created';
    });
    expect(live.simulator.counts.push).to.equal(pushes);
  });

  it('refuses the documented test numbers with a live key', async () => {
    const answer = await live.create('255700000001');
    expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'phone_invalid']);
  });

  for (const [phone, what] of [
    ['255740000008', 'reset after the money moved'],
    ['255740000024', '502 after the money moved'],
    ['255740000016', 'of a code that nobody mapped'],
  ]) {
    it(`finds a payment by asking when the answer was ${what}`, async () => {
      const id = await created(phone!);
      expect(await live.final(id)).to.include({ status: 'succeeded' });
      expect(live.debits(id)).to.equal(1);
    });
  }

  it('has one prompt at a time on a phone: the second waits for the first', async () => {
    const [first, second] = [await created('255755000001'), await created('255755000001')];
    await live.final(first);
    await live.final(second);
    const payments = [...live.simulator.network.payments].filter(({ msisdn }) => msisdn === '255755000001');
    const [a, b] = payments.sort((one, other) => one.pushedAtMs - other.pushedAtMs);
    expect(b!.pushedAtMs, 'pushed after the first was paid').to.be.at.least(a!.debitedAtMs!);
    // A question may know of the payment before the push is answered.
    const push = await until(async () => {
      const { json } = await live.service.call('GET', `/admin/collections/${second}/evidence`);
      return json.answers.find(({ operation }: { operation: string }) => operation === 'push');
    });
    expect(push.asked_at >= (await live.final(first)).completed_at, 'asked when it was sent').to.equal(true);
  });

  it('ends a payment whose phone stayed busy as payer_busy, and prompts nobody for it', async () => {
    const first = await created('255740000022');
    expect(await until(async () => live.simulator.network.find(first.slice(4))), 'prompted').not.to.equal(
      false,
    );
    const second = await created('255740000022');
    await until(async () => (await live.service.actor(second)).state === 'created.pushing.sending');
    live.clock.advance(61_000);
    expect(await live.final(second)).to.include({ status: 'failed', failure_code: 'payer_busy' });
    expect(live.simulator.network.find(second.slice(4)), 'never pushed').to.equal(undefined);
    const { json } = await live.service.call('GET', `/admin/collections/${second}/evidence`);
    expect(json.answers[0]).to.include({ outcome: 'notAttempted', why: 'phone_busy' });
  });

  it('says what the network says of a wrong key: code, status and words, in evidence and in an alert', async () => {
    await live.restart({ MPESA_API_KEY: 'a-key-that-nobody-has-issued-yet' });
    const id = await created('255740000001');
    const answers = async () =>
      (await live.service.call('GET', `/admin/collections/${id}/evidence`)).json.answers;
    expect(await until(async () => (await answers()).length > 0), 'evidence').to.equal(true);
    const [answer] = await answers();
    expect(answer).to.include({ outcome: 'notAttempted', why: 'no_session', code: 'INS-989' });
    expect(answer.http_status).to.be.within(400, 499);
    const alerts = live.service.service.wired.db.collection('alerts');
    const alert = await alerts.findOne({ kind: 'rail_refused', about: id });
    expect(alert).to.have.nested.property('detail.code', 'INS-989');
    expect(live.simulator.counts.push, 'pushes of it').to.be.a('number');
    live.clock.advance(61_000);
    await live.service.sweep();
    expect(await live.final(id)).to.include({ status: 'failed', failure_code: 'provider_unavailable' });
    await live.restart();
    const closed = { type: 'operator.closed', reason: 'the key is right again' };
    await live.service.call('POST', '/admin/actors/brk.MPESA_TZ.push/events', { body: closed });
    live.clock.advance(1_100);
  });

  it('answers a callback in the rail’s format, once, and changes nothing by what it claims', async () => {
    const id = await created('255740000022');
    await until(async () => live.simulator.network.find(id.slice(4)));
    const claim = (code: string) => callBack(id.slice(4), code);
    const answer = await claim('INS-6');
    expect(answer.status).to.equal(200);
    expect(answer.json).to.include({
      output_ResponseCode: '0',
      output_ThirdPartyConversationID: id.slice(4),
    });
    const queries = live.simulator.counts.query;
    for (let times = 0; times < 100; times += 1) await claim(`INS-${times % 30}`);
    expect((await live.final(id)).status).to.equal('succeeded');
    expect(live.simulator.counts.query - queries, 'a flood is no flood of queries').to.be.at.most(3);
    const stored = live.service.service.wired.db.collection('railCallbacks');
    expect(await stored.countDocuments({ collectionId: id })).to.be.within(2, 20);
  });

  it('answers callbacks of unknown payments alike, and writes nothing', async () => {
    const stored = live.service.service.wired.db.collection('railCallbacks');
    const before = await stored.countDocuments();
    const conversation = '01JDXK9V3Q4ZB7M2N8T5R6W0AH';
    const answer = await callBack(conversation, 'INS-0');
    expect([answer.status, answer.json.output_ResponseCode]).to.deep.equal([200, '0']);
    expect(await stored.countDocuments()).to.equal(before);
  });

  it('knows no callback route for a wrong secret or another rail, and takes 16 KiB at most', async () => {
    const at = (path: string, body = '{}') =>
      fetch(`${live.service.baseUrl}${path}`, { method: 'POST', body }).then(async (answer) => ({
        status: answer.status,
        code: ((await answer.json()) as { error?: { code: string } }).error?.code,
      }));
    const unknown = { status: 404, code: 'route_not_found' };
    expect(await at('/rails/MPESA_TZ/a-wrong-secret-of-the-tests')).to.deep.equal(unknown);
    expect(await at(`/rails/TIGO_TZ/${callbackSecret}`)).to.deep.equal(unknown);
    const long = await at(`/rails/MPESA_TZ/${callbackSecret}`, 'x'.repeat(16 * 1024 + 1));
    expect(long).to.deep.equal({ status: 413, code: 'body_too_large' });
  });

  it('returns a late payment through the rail, and posts it only when that is confirmed', async () => {
    const id = await created('255740000012');
    expect((await live.final(id)).status).to.equal('expired');
    const isIn = (state: string) => async () => {
      await live.service.sweep();
      return (await live.service.actor(id)).state === state;
    };
    live.clock.advance(6 * 60_000);
    expect(await until(isIn('expired.latePaid.held'), 90_000), 'held').to.equal(true);
    expect((await live.service.call('GET', '/admin/reviews')).json.data[0].id).to.equal(id);
    const balance = () => live.service.call('GET', '/v1/balance', { token: live.liveKey });
    const held = (await balance()).json.reserved;
    expect(held).to.be.greaterThan(0);
    // The money goes back, and the network's answer is lost: only asking confirms it.
    live.simulator.faults.add({ operation: 'reversal', does: 'resets', when: 'after', times: 1 });
    live.simulator.faults.add({ operation: 'query', does: 'fails', when: 'before', times: 1 });
    const event = { type: 'operator.returnedLate', reason: 'the customer wants it back' };
    const sent = await live.service.call('POST', `/admin/actors/${id}/events`, { body: event });
    expect(sent.status, sent.text).to.equal(200);
    await until(async () => live.simulator.network.find(id.slice(4))?.reversedAtMs);
    expect((await balance()).json.reserved, 'not posted yet').to.equal(held);
    expect((await live.service.actor(id)).state).to.equal('expired.latePaid.returning.polling');
    live.clock.advance(10_000);
    await callBack(id.slice(4), 'INS-0');
    live.clock.advance(10_000);
    expect(await until(isIn('expired.latePaid.returned'), 90_000), 'returned').to.equal(true);
    expect((await balance()).json.reserved).to.equal(0);
  });

  it('refuses to create while the breaker is open, and closes it by a session, never by a push', async () => {
    await live.stopNetwork();
    const ids: string[] = [];
    const refused = await until(async () => {
      const answer = await live.create(`2557560000${10 + ids.length}`);
      if (answer.status === 202) ids.push(answer.json.id);
      await new Promise((resolve) => setTimeout(resolve, 150));
      return answer.status === 503 && answer;
    }, 90_000);
    expect((refused as { json?: { error: { code: string } } }).json?.error.code).to.equal(
      'channel_unavailable',
    );
    expect((refused as { headers: Headers }).headers.get('retry-after')).to.match(/^\d+$/);
    const breaker = async () => (await live.service.actor('brk.MPESA_TZ.push')).state;
    expect(await breaker()).to.match(/^(open|halfOpen)/);
    const stored = live.service.service.wired.db.collection('collections');
    const count = await stored.countDocuments();
    await live.create('255756000099');
    expect(await stored.countDocuments(), 'nothing was created').to.equal(count);
    // Everything that waits fails in time; nobody is prompted later.
    live.clock.advance(120_000);
    await live.startNetwork();
    expect(
      await until(async () => {
        await live.service.sweep();
        live.clock.advance(2_000);
        return (await breaker()) === 'closed';
      }, 90_000),
    ).to.equal(true);
    for (const id of ids) {
      const failed = await live.final(id);
      expect(failed).to.include({ status: 'failed', failure_code: 'provider_unavailable' });
    }
    expect(live.simulator.counts.push, 'pushes').to.equal(0);
    const { session, query } = live.simulator.counts;
    expect(session + query, 'probes').to.be.at.least(1);
    live.clock.advance(1_100);
    expect((await live.final(await created('255740000001'))).status).to.equal('succeeded');
    const rails = (await live.service.call('GET', '/admin/rails')).json.data;
    expect(rails[1]).to.include({ mode: 'live', name: 'MPESA_TZ', configured: true });
    const address = live.env.MPESA_BASE_URL;
    expect(rails[1]).to.include({ address, sandbox: false, answers: 'synchronous' });
    const breakers = rails[1].breakers.map(
      ({ operation, state }: { operation: string; state: string }) => `${operation} ${state}`,
    );
    expect(breakers).to.deep.equal(['push closed', 'payout closed', 'query closed']);
  });

  it('prompts nobody after an outage of two hours', async () => {
    await live.restart({ ROLE: 'api' });
    const id = await created('255740000001');
    live.clock.advance(2 * hourMs);
    const pushes = live.simulator.counts.push;
    await live.restart();
    await live.service.sweep();
    expect(await live.final(id)).to.include({ status: 'failed', failure_code: 'provider_unavailable' });
    expect(live.simulator.counts.push).to.equal(pushes);
    expect(live.debits(id)).to.equal(0);
  });

  it('killed between debit and answer, and restarted: succeeded, with one debit and one push', async () => {
    // A network of its own: this process goes by the real time.
    await live.close();
    live = await openLive();
    const doomed = await live.startProcess();
    const pushes = live.simulator.counts.push;
    const answer = await fetch(`${doomed.baseUrl}/v1/collections`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${live.liveKey}`,
        'content-type': 'application/json',
        'idempotency-key': 'live-doomed-1',
      },
      // The answer to this push never comes, and the money moves.
      body: JSON.stringify({ amount: 5000, phone: '255740000022', reference: 'doomed' }),
    });
    const { id } = (await answer.json()) as { id: string };
    expect(await until(async () => live.debits(id) === 1, 90_000), 'debited').to.equal(true);
    await doomed.kill('SIGKILL');
    live.clock.advance(200_000);
    await live.restart();
    const succeeded = await until(async () => {
      await live.service.sweep();
      return (await live.read(id)).status === 'succeeded';
    }, 90_000);
    expect(succeeded, JSON.stringify(await live.service.actor(id))).to.equal(true);
    expect(live.debits(id)).to.equal(1);
    expect(live.simulator.counts.push - pushes, 'pushes').to.equal(1);
  });
});
