import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { openProxy, type TcpProxy } from '../../../test/support/proxy.ts';
import { startTestService, type TestMerchant, type TestService } from '../../../test/support/service.ts';
import { until } from '../../../test/support/until.ts';
import { type AnyEvent, Kusanya, KusanyaError } from '../src/index.ts';
import { errorOf } from './support/rejected.ts';

describe('events.tail', function () {
  this.timeout(120_000);
  const clock = new MovableClock();
  let test: TestService;
  let proxy: TcpProxy;
  let merchant: TestMerchant;
  let kusanya: Kusanya;
  let controller: AbortController;
  let asked: string[];

  before(async () => {
    test = await startTestService({}, { clock });
    proxy = await openProxy({ port: Number(new URL(test.baseUrl).port) });
  });

  beforeEach(async () => {
    merchant = await test.merchant();
    // Six seconds, so that a line that falls silent is given up soon; it waits for one second at a time then.
    asked = [];
    kusanya = new Kusanya(merchant.key, {
      baseUrl: `http://127.0.0.1:${proxy.port}`,
      timeoutMs: 6_000,
      fetch: (url, init) => {
        asked.push(url);
        return fetch(url, init);
      },
    });
    controller = new AbortController();
  });

  afterEach(() => controller.abort());

  after(async () => {
    await proxy.close();
    await test.stop();
  });

  /** Tails in the background. */
  function follow(options: { after?: string | null; collection?: string } = {}) {
    const got: AnyEvent[] = [];
    const ended = (async () => {
      for await (const event of kusanya.events.tail({ ...options, signal: controller.signal }))
        got.push(event);
    })();
    ended.catch(() => {});
    const ids = () => got.map(({ data }) => data.id);
    return { got, ids, ended, has: (count: number) => until(async () => got.length >= count) };
  }

  const paid = async () => {
    const { json } = await merchant.create();
    await merchant.final(json.id);
    return json.id as string;
  };

  it('gives each event once and in order, from when it begins', async () => {
    await paid();
    const { ids, has, ended } = follow();
    expect(await until(async () => asked.some((url) => url.includes('wait=')))).to.equal(true);
    const made = [await paid(), await paid(), await paid()];
    expect(await has(3)).to.equal(true);
    expect(ids()).to.deep.equal(made);
    const gone = new Error('enough');
    controller.abort(gone);
    expect(await errorOf(Error, ended)).to.equal(gone);
  });

  it('loses nothing over a line that is cut, and falls silent, and comes back', async () => {
    const first = await paid();
    const [event] = (await kusanya.events.list()).data;
    const { ids, has } = follow({ after: event!.id });
    const made: string[] = [];
    made.push(await paid());
    proxy.cut();
    made.push(await paid(), await paid());
    proxy.mend();
    made.push(await paid());
    const silent = proxy.silence(['GET /v1/events'], true);
    await silent;
    made.push(await paid());
    expect(await has(5)).to.equal(true);
    expect(ids()).to.deep.equal(made);
    expect(ids()).to.not.include(first);
  });

  it('finds what was committed late behind its cursor, also when it slept for longer than that can take', async () => {
    await paid();
    const [start] = (await kusanya.events.list()).data;
    const { committer } = test.service.wired;
    const commit = committer.commit.bind(committer);
    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const { json: late } = await merchant.create();
    let isHeld = false;
    committer.commit = async (writes, isAwaited) => {
      const isLate = writes.some((write) => write.op === 'insert' && write.doc.collectionId === late.id);
      if (isLate && !isHeld) {
        isHeld = true;
        await held;
      }
      return commit(writes, isAwaited);
    };
    const tail = kusanya.events.tail({ after: start!.id, signal: controller.signal });
    const next = async () => (await tail.next()).value?.data.id;
    try {
      expect(await until(async () => isHeld)).to.equal(true);
      const inTime = await paid();
      expect(await next()).to.equal(inTime);
      // From here to its next turn the tail sleeps.
      letGo();
      await merchant.final(late.id);
      clock.advance(5 * 60_000);
      const afterwards = await paid();
      expect([await next(), await next()]).to.deep.equal([late.id, afterwards]);
    } finally {
      letGo();
      committer.commit = commit;
    }
  });

  it('gives everything that came after an id, over more than a page', async () => {
    const events: string[] = [];
    const first = await paid();
    const [start] = (await kusanya.events.list({ collection: first })).data;
    const made = await Promise.all(
      Array.from({ length: 130 }, () => merchant.create({ phone: '255700000004' })),
    );
    await Promise.all(made.map(({ json }) => merchant.final(json.id)));
    for await (const event of kusanya.events.tail({ after: start!.id, signal: controller.signal })) {
      events.push(event.id);
      if (events.length === made.length) break;
    }
    expect(new Set(events).size).to.equal(made.length);
    const listed = [];
    for await (const event of kusanya.events.list({ ending_before: start!.id, limit: 50 }))
      listed.push(event.id);
    expect(events).to.deep.equal(listed);
  });

  it('begins with the first event there is, or will be, after null', async () => {
    const { ids: waiting, has: hasNew } = follow({ after: null });
    expect(await until(async () => asked.some((url) => url.includes('wait=')))).to.equal(true);
    const made = [await paid(), await paid()];
    expect(await hasNew(2)).to.equal(true);
    expect(waiting()).to.deep.equal(made);
    const { ids, has } = follow({ after: null });
    expect(await has(2)).to.equal(true);
    expect(ids()).to.deep.equal(made);
  });

  it('ends at a refusal', async () => {
    const revoked = new Kusanya('kusanya_test_sk_revoked', { baseUrl: test.baseUrl });
    expect(await errorOf(KusanyaError, revoked.events.tail().next())).to.include({ status: 401 });
    expect(await errorOf(KusanyaError, kusanya.events.tail({ after: 'evt_none' }).next())).to.have.property(
      'status',
    );
  });
});
