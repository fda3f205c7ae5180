import { expect } from 'chai';
import { type Answer, startTestService, type TestService } from '../support/service.ts';

describe('/admin/queues', () => {
  let kusanya: TestService;
  let delayed: { queue: string; id: string };

  before(async () => {
    kusanya = await startTestService();
    // A job that waits for a long time, as a timer of a payment does.
    const queue = kusanya.service.wired.queues.queue('wake');
    const job = await queue.add('wake', { machine: 'collection', actor: 'col_1' }, { delay: 3_600_000 });
    delayed = { queue: 'wake', id: job.id! };
  });
  after(() => kusanya.stop());

  const ask = async (
    path: string,
    { method = 'GET', ...headers }: Record<string, string> = {},
  ): Promise<Pick<Answer, 'status' | 'headers' | 'text'>> => {
    const response = await fetch(`${kusanya.adminUrl}/admin/queues${path}`, {
      method,
      redirect: 'manual',
      headers: { authorization: `Bearer ${kusanya.operatorToken}`, ...headers },
      ...(method === 'GET' ? {} : { body: '{}' }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  it('shows every queue and what waits in it', async () => {
    const { status, text } = await ask(`/api/queues?activeQueue=${delayed.queue}&status=delayed&page=1`);
    expect(status, text).equal(200);
    const { queues } = JSON.parse(text) as {
      queues: { name: string; readOnlyMode: boolean; jobs: { id: string }[] }[];
    };
    const names = queues.map(({ name }) => name);
    expect(names).include.members(['wake', 'pushPrompt', 'askRail', 'doorbell', 'settlement']);
    expect(queues.every(({ readOnlyMode }) => readOnlyMode)).equal(true);
    const jobs = queues.find(({ name }) => name === delayed.queue)!.jobs.map(({ id }) => id);
    expect(jobs).include(delayed.id);
    const one = await ask(`/api/queues/${delayed.queue}/${delayed.id}`);
    expect([one.status, one.text.includes('col_1')]).deep.equal([200, true]);
  });

  it('changes nothing, whatever it is asked', async () => {
    const { queue, id } = delayed;
    const asked: [string, string][] = [
      ['PUT', `/api/queues/${queue}/${id}/promote`],
      ['PUT', `/api/queues/${queue}/${id}/retry`],
      ['PUT', `/api/queues/${queue}/${id}/clean`],
      ['PUT', `/api/queues/${queue}/promote`],
      ['PUT', `/api/queues/${queue}/retry/failed`],
      ['PUT', `/api/queues/${queue}/clean/delayed`],
      ['PUT', `/api/queues/${queue}/empty`],
      ['PUT', `/api/queues/${queue}/pause`],
      ['PUT', '/api/queues/pause'],
      ['PUT', `/api/queues/${queue}/obliterate`],
      ['POST', `/api/queues/${queue}/add`],
      ['PATCH', `/api/queues/${queue}/${id}/delay`],
      ['PATCH', `/api/queues/${queue}/${id}/update-data`],
      ['DELETE', `/api/queues/${queue}/${id}`],
    ];
    for (const [method, path] of asked) {
      const { status, headers } = await ask(path, { method });
      expect([status, headers.get('allow')], `${method} ${path}`).deep.equal([405, 'GET, HEAD']);
      expect((await ask(path, { 'x-http-method-override': method })).status, path).oneOf([200, 404]);
    }
    const job = await kusanya.service.wired.queues.queue(queue).getJob(id);
    expect([await job?.getState(), job?.delay]).deep.equal(['delayed', 3_600_000]);
    expect(await kusanya.service.wired.queues.queue(queue).isPaused()).equal(false);
  });

  it('is for operators', async () => {
    const api = await ask('/api/queues', { authorization: 'Bearer wrong' });
    expect(api.status).equal(401);
    const person = await fetch(`${kusanya.adminUrl}/admin/queues`, {
      redirect: 'manual',
      headers: { accept: 'text/html,*/*' },
    });
    expect([person.status, person.headers.get('location')]).deep.equal([302, '/console/sign-in']);
    const program = await fetch(`${kusanya.adminUrl}/admin/queues/api/queues`);
    expect(program.status).equal(401);
  });

  it('is a page of its own files, under a strict policy, and fetches nothing from other hosts', async () => {
    const page = await ask('');
    expect(page.status).equal(200);
    expect(page.headers.get('content-type')).match(/^text\/html/);
    expect(page.headers.get('content-security-policy')).match(/default-src 'none'.*script-src 'self'/);
    const addresses = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!);
    expect(addresses.filter((path) => /^(https?:)?\/\//.test(path))).deep.equal([]);
    expect(page.text).not.match(/<%/);
    const files = addresses.filter((path) => path.startsWith('static/'));
    expect(files.length).greaterThan(2);
    for (const path of files) {
      const { status, headers } = await ask(`/${path}`);
      expect([status, headers.get('x-content-type-options')], path).deep.equal([200, 'nosniff']);
    }
    for (const path of [
      '/static/../../package.json',
      '/static/%2e%2e/index.ejs',
      '/static/',
      '/nothing',
      '/api/%ff',
    ]) {
      expect((await ask(path)).status, path).equal(404);
    }
    expect((await ask('/queue/wake')).text).equal(page.text);
  });

  it('says so where Redis does not answer', async () => {
    // The last test: nobody needs it any more.
    kusanya.service.wired.queues.redis.disconnect();
    const { status, text } = await ask('/api/queues?activeQueue=wake&status=latest&page=1');
    expect([status, (JSON.parse(text) as { error: { code: string } }).error.code]).deep.equal([
      503,
      'service_unavailable',
    ]);
  });
});
