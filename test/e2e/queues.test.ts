import { expect } from 'chai';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

interface Job {
  id: string;
  parts: number;
  actors: string[];
  due_at?: string;
  reason?: string;
}

interface QueueRow {
  queue: string;
  delayed: number;
  failed: number;
  next: Job[];
  failures: Job[];
}

describe('the queues', () => {
  let kusanya: TestService;
  const hourMs = 3_600_000;
  const [first, second] = ['col_01KAN0000000000000000000A1', 'col_01KAN0000000000000000000B2'];

  before(async () => {
    kusanya = await startTestService();
    const { queues } = kusanya.service.wired;
    // Jobs that wait for a long time, as timers of a payment and late bells do.
    const errands = [first, second].map((actor) => ({ machine: 'collection', actor }));
    await queues.queue('wake').add('wake', { errands }, { jobId: 'of-later', delay: hourMs });
    const bells = [{ actor: second, id: 'one' }];
    await queues.queue('bells').add('bells', { bells }, { jobId: 'of-later', delay: hourMs });
    // One that nobody understands.
    await queues.queue('wake').add('wake', null, { jobId: 'of-nothing', removeOnFail: false });
  });
  after(() => kusanya.stop());

  const read = async () => {
    const { status, json, text } = await kusanya.call('GET', '/admin/queues');
    expect(status, text).equal(200);
    return new Map((json.data as QueueRow[]).map((row) => [row.queue, row]));
  };

  it('are all shown, with how much is in each', async () => {
    const rows = await read();
    expect([...rows.keys()]).include.members([
      'wake',
      'collection.pushPrompt',
      'difference.askRail',
      'bells',
      'settlement',
    ]);
    expect(rows.get('wake')!.delayed).equal(1);
    expect(rows.get('bells')!.delayed).equal(1);
  });

  it('show what comes next, when, and whom it wakes', async () => {
    const rows = await read();
    for (const [name, actors] of [
      ['wake', [first, second]],
      ['bells', [second]],
    ] as const) {
      const [job] = rows.get(name)!.next;
      expect([job!.id, job!.parts, job!.actors], name).deep.equal(['of-later', actors.length, actors]);
      expect(Date.parse(job!.due_at!) - Date.now(), name).within(hourMs - 60_000, hourMs);
    }
  });

  it('show what failed, and why', async () => {
    const wake = await until(async () => {
      const row = (await read()).get('wake');
      return row && row.failed > 0 ? row : undefined;
    });
    const [job] = wake?.failures ?? [];
    expect([wake?.failed, job?.id]).deep.equal([1, 'of-nothing']);
    expect(job!.reason).match(/null/);
  });

  it('change in no way: there is no other route to them', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status } = await fetch(`${kusanya.adminUrl}/admin/queues`, {
        method,
        headers: { authorization: `Bearer ${kusanya.operatorToken}` },
      });
      expect(status, method).oneOf([405, 501]);
    }
    for (const path of ['/api/queues', '/wake', '/wake/of-later']) {
      expect((await kusanya.call('GET', `/admin/queues${path}`)).status, path).equal(404);
    }
    const job = await kusanya.service.wired.queues.queue('wake').getJob('of-later');
    expect([await job?.getState(), job?.delay]).deep.equal(['delayed', hourMs]);
  });

  it('are for operators', async () => {
    expect((await kusanya.call('GET', '/admin/queues', { token: 'wrong' })).status).equal(401);
  });

  it('cannot be read where Redis does not answer', async () => {
    // The last test: nobody needs it any more.
    kusanya.service.wired.queues.redis.disconnect();
    const { status, json } = await kusanya.call('GET', '/admin/queues');
    expect([status, json.error.code]).deep.equal([503, 'service_unavailable']);
  });
});
