import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type ClientOptions, WebSocket } from 'ws';
import { setup } from 'xstate';
import { chartOptions, define, give, tell } from '../../packages/durable-actors/test/support/engine.ts';
import { AppError } from '../../src/http/http.ts';
import { Inspector, type StepFeed, type StepNotice } from '../../src/inspector/inspector.ts';
import type { Message } from '../../src/inspector/wire.ts';
import { openListed } from '../support/engine.ts';
import { until } from '../support/until.ts';

const nest = setup({}).createMachine({
  id: 'nest',
  ...chartOptions,
  initial: 'calm',
  states: { calm: { on: { poked: 'buzzing' } }, buzzing: { on: { poked: 'calm' } } },
});

describe('viewers of the inspector', () => {
  let engine: Awaited<ReturnType<typeof openListed>>;
  let server: Server;
  let inspector: Inspector;
  let isKnown: boolean;
  let noticed: (notice: StepNotice) => void;
  let watching: number;
  const viewers: WebSocket[] = [];

  before(async () => {
    engine = await openListed([define(nest)]);
  });
  after(() => engine.close());

  const open = async (more: { viewersMax?: number; pulseMs?: number; checkMs?: number } = {}) => {
    const { clock, log, db, actors } = engine;
    isKnown = true;
    watching = 0;
    // Steps are told by hand here.
    const feed = {
      watch: async (_filter: unknown, listener: typeof noticed) => {
        noticed = listener;
        watching += 1;
        return () => {
          watching -= 1;
        };
      },
    } as unknown as StepFeed;
    const identify = async () => {
      if (!isKnown) throw new AppError('api_key_invalid');
      return { name: 'a test', role: 'viewer' as const };
    };
    inspector = new Inspector({ feed, source: { db, actors }, clock, log, identify, ...more });
    server = createServer();
    inspector.attach(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  };
  afterEach(async () => {
    for (const viewer of viewers.splice(0)) viewer.terminate();
    await inspector.close();
    server.close();
  });

  const knock = (query = '', options: ClientOptions = {}) => {
    const { port } = server.address() as AddressInfo;
    const viewer = new WebSocket(`ws://127.0.0.1:${port}/admin/inspect?${query}`, options);
    viewers.push(viewer);
    return viewer;
  };
  const view = async (query?: string, options?: ClientOptions) => {
    const viewer = knock(query, options);
    const messages: Message[] = [];
    viewer.on('message', (text) => void messages.push(JSON.parse(String(text)) as Message));
    await new Promise((resolve, reject) => viewer.once('open', resolve).once('error', reject));
    await until(async () => watching > 0);
    return { viewer, messages };
  };
  const closing = (viewer: WebSocket) => new Promise<number>((resolve) => viewer.once('close', resolve));
  const noticeOf = (actor: string, seq: number, text = ''): StepNotice => ({
    ...{ actor, machine: 'nest', machineVersion: 1, merchantId: 'mer_1', mode: 'test', seq, at: seq },
    event: { type: 'poked' },
    from: 'calm',
    to: 'buzzing',
    cause: { kind: 'merchant', id: 'req_1' },
    snapshot: { value: 'buzzing', context: { seq, text } },
  });
  const snapshotSeqs = (messages: Message[]) =>
    messages.flatMap((message) =>
      message.type === '@xstate.snapshot' && message.snapshot.context?.seq
        ? [message.snapshot.context.seq]
        : [],
    ) as number[];

  it('who read too slowly miss the middle and get the newest snapshot', async () => {
    await open();
    const { _id } = await give(engine, 'nest');
    const { viewer, messages } = await view(`actor=${_id}`);
    await until(async () => messages.length >= 4);
    viewer.pause();
    const last = 5_000;
    const text = 'x'.repeat(10_000);
    for (let seq = 2; seq <= last; seq += 1) {
      noticed(noticeOf(_id, seq, text));
      if (seq % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    viewer.resume();
    await until(async () => snapshotSeqs(messages).at(-1) === last);
    const seqs = snapshotSeqs(messages);
    expect(seqs.at(-1)).equal(last);
    expect(seqs).deep.equal([...new Set(seqs)].sort((one, other) => one - other));
    expect(seqs.length).lessThan(last * 0.8);
  });

  it('keep each actor’s announcement before its newest snapshot, however many actors there are', async () => {
    await open();
    const { viewer, messages } = await view('machine=nest');
    await until(async () => messages.length > 0);
    viewer.pause();
    const text = 'x'.repeat(2_000);
    for (let n = 0; n < 6_000; n += 1) {
      noticed(noticeOf(`nest_many_${n % 3_000}`, 1 + Math.floor(n / 3_000), text));
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    viewer.resume();
    await until(async () => messages.at(-1)?.sessionId === 'nest_many_2999');
    const known = new Set<string>();
    for (const { type, sessionId } of messages) {
      if (type === '@xstate.actor') known.add(sessionId);
      expect(known.has(sessionId), sessionId).equal(true);
    }
    expect(messages.length).lessThan(3_000 * 5);
  });

  it('are told steps in their order where notices come late, twice or not at all', async () => {
    await open();
    const { _id } = await give(engine, 'nest');
    const { messages } = await view(`actor=${_id}`);
    for (let n = 0; n < 6; n += 1) await tell(engine, { _id }, 'poked');
    for (const seq of [3, 2, 3, 5, 7, 6]) noticed(noticeOf(_id, seq));
    const steps = () =>
      messages.filter(({ type }) => type === '@xstate.snapshot').map((step) => step.createdAt);
    await until(async () => steps().length >= 7);
    const events = messages.filter(({ type }) => type === '@xstate.event');
    expect(events).length(7);
    expect(snapshotSeqs(messages)).deep.equal([3, 5, 7]);
  });

  it('are no more than there is room for', async () => {
    await open({ viewersMax: 2 });
    const [first] = [await view(), await view()];
    const third = knock();
    const status = await new Promise((resolve) => {
      third.once('unexpected-response', (_request, response) => resolve(response.statusCode));
      third.on('error', () => {});
    });
    expect(status).equal(503);
    first.viewer.close();
    const isIn = await until(async () => {
      const again = knock();
      again.on('error', () => {});
      return new Promise<boolean>((resolve) => {
        again.once('open', () => resolve(true)).once('close', () => resolve(false));
      });
    });
    expect(isIn).equal(true);
  });

  it('who do not answer a pulse are cut off, and no longer watched for', async () => {
    // The live one's answer has a whole second to come.
    await open({ pulseMs: 1_000 });
    const alive = await view();
    const dead = await view('', { autoPong: false });
    expect(await closing(dead.viewer)).equal(1006);
    expect(alive.viewer.readyState).equal(WebSocket.OPEN);
    await until(async () => watching === 1);
    expect(watching).equal(1);
  });

  it('who are no operators any more are sent away', async () => {
    await open({ pulseMs: 50 });
    const { viewer } = await view();
    isKnown = false;
    expect(await closing(viewer)).equal(4401);
  });

  it('hear that the service stops', async () => {
    await open();
    const { viewer } = await view();
    const closed = closing(viewer);
    await inspector.close();
    expect(await closed).equal(1001);
  });
});
