import { connect, type Socket } from 'node:net';
import { stepId, stepsSpec } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import type { Message } from '../../src/inspector/wire.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** A viewer of the stream, and all that it was sent. */
interface Viewer {
  socket: WebSocket;
  messages: Message[];
  of(actor: string, type: Message['type']): Message[];
  /** Where an actor stood, snapshot by snapshot. */
  path(actor: string): string[];
}

const textOf = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value as object)
        .map(([name, inner]) => `${name}.${textOf(inner)}`)
        .join();

describe('WS /admin/inspect', () => {
  let kusanya: TestService;
  let merchant: TestMerchant;
  const viewers: Viewer[] = [];

  before(async () => {
    kusanya = await startTestService();
    merchant = await kusanya.merchant();
  });
  after(() => kusanya.stop());
  afterEach(() => {
    for (const { socket } of viewers.splice(0)) socket.terminate();
  });

  const address = (query: string) => `${kusanya.adminUrl.replace('http', 'ws')}/admin/inspect?${query}`;
  const knock = (query: string, headers: Record<string, string> = {}) =>
    new WebSocket(address(query), {
      headers: { authorization: `Bearer ${kusanya.operatorToken}`, ...headers },
    });
  const view = async (query: string, headers?: Record<string, string>): Promise<Viewer> => {
    const socket = knock(query, headers);
    const messages: Message[] = [];
    socket.on('message', (text) => void messages.push(JSON.parse(String(text)) as Message));
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const of = (actor: string, type: Message['type']) =>
      messages.filter((message) => message.sessionId === actor && message.type === type);
    // An answer that decides nothing is told to whoever looks on, and leaves no line.
    const path = (actor: string) =>
      of(actor, '@xstate.snapshot').flatMap((message) =>
        'snapshot' in message && 'event' in message && message.event.type !== 'ask.undecided'
          ? [textOf(message.snapshot.value)]
          : [],
      );
    const viewer = { socket, messages, of, path };
    viewers.push(viewer);
    return viewer;
  };
  /** The answer to a knock that is not let in. */
  const refusal = (socket: WebSocket) =>
    new Promise<{ status: number; json: { error: { code: string; message: string; param?: string } } }>(
      (resolve, reject) => {
        socket.once('open', () => reject(new Error('it was let in')));
        socket.once('unexpected-response', (_request, response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => {
            text += String(chunk);
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) }));
        });
        socket.on('error', () => {});
      },
    );
  const history = async (id: string) =>
    (await kusanya.history(id)).filter(({ event }) => event.type !== 'ask.undecided');
  const paid = async () => {
    const { json } = await merchant.create();
    await merchant.final(json.id);
    return json.id as string;
  };

  it('begins with an actor, its chart and its history', async () => {
    const id = await paid();
    const viewer = await view(`actor=${id}`);
    const lines = await history(id);
    await until(async () => viewer.of(id, '@xstate.snapshot').length >= lines.length);
    const [first] = viewer.messages;
    expect(first).deep.include({ type: '@xstate.actor', sessionId: id, rootId: id, id: null });
    expect(first).deep.include({ name: `collection:${id}`, _version: '0.7.2' });
    expect(first!.createdAt).match(/^\d{13}$/);
    const { definition } = first as { definition: string };
    expect(JSON.parse(definition)).deep.include({ id: 'collection', initial: 'created' });
    expect(viewer.path(id)).deep.equal(lines.map(({ to }) => to));
    const events = viewer
      .of(id, '@xstate.event')
      .map((message) => 'event' in message && message.event.type)
      .filter((type) => type !== 'ask.undecided');
    expect(events).deep.equal(lines.map(({ event }) => event.type));
    const { snapshot } = viewer.of(id, '@xstate.snapshot').at(-1) as { snapshot: { context: object } };
    expect(snapshot.context).deep.equal((await kusanya.actor(id)).context);
  });

  it('tells an actor’s steps in their order, also where one carries a later time than the next', async () => {
    const id = await paid();
    const lines = await history(id);
    const later = new Date(Date.parse(lines[0].at) + 60_000);
    const steps = kusanya.service.wired.db.collection<{ _id: string }>(stepsSpec.name);
    await steps.updateOne({ _id: stepId(id, lines[0].seq) }, { $set: { at: later } });
    const viewer = await view(`merchant=${merchant.id}&mode=test`);
    await until(async () => viewer.path(id).length >= lines.length);
    expect(viewer.path(id)).deep.equal(lines.map(({ to }) => to));
  });

  it('goes on live without a gap and without a double, across machines and causes', async () => {
    const receiver = await kusanya.merchant();
    await kusanya.endpoint(receiver.id, 'http://127.0.0.1:9999/hook');
    const viewer = await view(`merchant=${receiver.id}&mode=test`);
    const { json } = await receiver.create();
    await receiver.final(json.id);
    const isWhole = await until(async () => viewer.path(json.id).at(-1) === 'succeeded.standing');
    expect(isWhole).equal(true);
    const lines = await history(json.id);
    expect(viewer.path(json.id)).deep.equal(lines.map(({ to }) => to));
    expect(viewer.of(json.id, '@xstate.actor')).length(1);
    const sources = viewer
      .of(json.id, '@xstate.event')
      .map((message) => 'sourceId' in message && message.sourceId);
    expect(sources[0]).equal('merchant');
    expect(sources).include('rail');
    expect(viewer.of('merchant', '@xstate.actor')).length(1);
    expect(viewer.of('rail', '@xstate.actor')).length(1);
    const born = await until(async () =>
      viewer.messages.find(({ sessionId, type }) => sessionId.startsWith('dlv_') && type === '@xstate.event'),
    );
    expect((born as { sourceId: string }).sourceId).equal(json.id);
    await until(async () => viewer.of('receiver', '@xstate.actor').length > 0);
    expect(viewer.of('receiver', '@xstate.actor')).length(1);
    // Everybody is announced before anything is told of them.
    const known = new Set<string>();
    for (const message of viewer.messages) {
      if (message.type === '@xstate.actor') known.add(message.sessionId);
      expect(known.has(message.sessionId), message.sessionId).equal(true);
      if ('sourceId' in message) expect(known.has(message.sourceId), message.sourceId).equal(true);
    }
  });

  it('shows the last few of a machine, test mode unless live is asked for', async () => {
    const ids = [await paid(), await paid(), await paid()];
    const viewer = await view('machine=collection&last=2');
    await until(async () => viewer.path(ids[2]!).length > 0 && viewer.path(ids[1]!).length > 0);
    const shownIds = new Set(
      viewer.messages.map(({ sessionId }) => sessionId).filter((id) => /^col_/.test(id)),
    );
    expect([...shownIds].sort()).deep.equal(ids.slice(1).sort());
    const live = await view('mode=live');
    await paid();
    await until(async () => viewer.path([...shownIds].at(-1)!).length > 0);
    expect(live.messages).deep.equal([]);
  });

  it('shows no phone and no metadata', async () => {
    const { json } = await merchant.create({ phone: '255700000000', metadata: { order: 'private-order' } });
    await merchant.final(json.id);
    const viewer = await view(`actor=${json.id}`);
    await until(async () => viewer.path(json.id).at(-1) === 'succeeded.standing');
    const text = JSON.stringify(viewer.messages);
    expect(text).not.match(/255700000000|private-order/);
  });

  it('finds by itself what no notice told it of', async () => {
    const { id } = await kusanya.endpoint(merchant.id, 'http://127.0.0.1:9999/hook');
    const viewer = await view(`actor=${id}`);
    await until(async () => viewer.path(id).length > 0);
    // From here on no notice reaches anybody.
    kusanya.service.wired.feed.close();
    try {
      const answer = await kusanya.call('POST', `/admin/endpoints/${id}/disable`, {
        body: { reason: 'a test' },
      });
      expect(answer.status).equal(200);
      const isFound = await until(async () => viewer.path(id).length > 1);
      expect(isFound).equal(true);
      expect(viewer.path(id)).deep.equal((await history(id)).map(({ to }) => to));
      expect(viewer.of('operator', '@xstate.actor')).length(1);
    } finally {
      kusanya.service.wired.feed.start();
    }
  });

  it('lets nobody in without an operator’s token', async () => {
    const wrong = await refusal(knock('', { authorization: 'Bearer wrong' }));
    expect([wrong.status, wrong.json.error.code]).deep.equal([401, 'api_key_invalid']);
    const none = await refusal(new WebSocket(address('')));
    expect([none.status, none.json.error.code]).deep.equal([401, 'api_key_missing']);
    const merchants = await refusal(knock('', { authorization: `Bearer ${merchant.key}` }));
    expect(merchants.status).equal(401);
  });

  it('says what is wrong with a query', async () => {
    const cases: [string, number, string][] = [
      ['machine=toaster', 400, 'machine'],
      ['mode=both', 400, 'mode'],
      ['last=100000', 400, 'last'],
      ['actors=col_1', 400, 'actors'],
      ['merchant=me', 400, 'merchant'],
      ['actor=a%24b', 400, 'actor'],
      ['actor=a&actor=b', 400, 'actor'],
    ];
    for (const [query, status, param] of cases) {
      const { status: was, json } = await refusal(knock(query));
      expect([was, json.error.param], query).deep.equal([status, param]);
      expect(json.error.message, query).match(/\w+/);
    }
    const { status, json } = await refusal(knock('actor=col_01ARZ3NDEKTSV4RRFFQ69G5FAV'));
    expect([status, json.error.code]).deep.equal([404, 'resource_not_found']);
  });

  it('is closed to pages of other origins', async () => {
    const { host } = new URL(kusanya.adminUrl);
    const { status } = await refusal(knock('', { origin: 'https://evil.example' }));
    expect(status).equal(403);
    expect((await refusal(knock('', { origin: 'null' }))).status).equal(403);
    await view('', { origin: `http://${host}` });
  });

  it('reads nothing of what a viewer sends, and cuts off one who sends much', async () => {
    const id = await paid();
    const viewer = await view(`actor=${id}`);
    viewer.socket.send(
      JSON.stringify({ type: '@xstate.event', sessionId: id, event: { type: 'operator.asked' } }),
    );
    await until(async () => viewer.path(id).length > 0);
    const before = await kusanya.history(id);
    const closed = new Promise<number>((resolve) => viewer.socket.once('close', resolve));
    viewer.socket.send('x'.repeat(10_000));
    expect(await closed).equal(1009);
    expect(await kusanya.history(id)).deep.equal(before);
  });

  it('does not take requests that only offer another protocol from anybody', async () => {
    const body = JSON.stringify({ name: 'Offered h2c', reason: 'a test' });
    const { hostname, port } = new URL(kusanya.adminUrl);
    const socket: Socket = connect(Number(port), hostname);
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    const request =
      `POST /admin/merchants HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade, HTTP2-Settings\r\n` +
      `Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nAuthorization: Bearer ${kusanya.operatorToken}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`;
    // The rest of the body leaves in a packet of its own.
    await new Promise((resolve) => socket.setNoDelay().write(request, resolve));
    socket.write(body.slice(5));
    await until(async () => text.includes('Offered h2c'));
    expect(text).match(/^HTTP\/1\.1 201 /);
    text = '';
    socket.write(`GET /livez HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    await until(async () => text.length > 0);
    expect(text).match(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });
});
