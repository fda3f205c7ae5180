import { createBrowserReceiver, createInspector, createWebSocketReceiver } from '@statelyai/inspect';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { type AnyStateMachine, createActor, createMachine } from 'xstate';
import type { Message } from '../../src/inspector/wire.ts';
import { type Bridge, startBridge } from '../../tools/inspect/bridge.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Stately's own client code, driven with our stream: what it takes, its page takes. */
describe('Stately’s inspector', () => {
  let kusanya: TestService;
  let merchant: TestMerchant;
  const bridges: Bridge[] = [];

  before(async () => {
    kusanya = await startTestService();
    merchant = await kusanya.merchant();
  });
  after(() => kusanya.stop());
  afterEach(() => {
    for (const bridge of bridges.splice(0)) bridge.close();
  });

  const bridgeTo = async (query: Record<string, string>, more: { token?: string; url?: string } = {}) => {
    const { adminUrl: url, operatorToken: token } = kusanya;
    const bridge = await startBridge({ url, token, query, port: 0, say: () => {}, ...more });
    bridges.push(bridge);
    return bridge;
  };
  /** What their WebSocket receiver hears of a bridge. */
  const receive = (bridge: Bridge): Message[] => {
    const heard: Message[] = [];
    const receiver = createWebSocketReceiver({ server: bridge.url.replace('http', 'ws') });
    receiver.subscribe((event) => void heard.push(event as unknown as Message));
    return heard;
  };
  const refusal = async (...how: Parameters<typeof bridgeTo>) => {
    const error = await bridgeTo(...how).catch((thrown: Error) => thrown);
    if (!(error instanceof Error)) throw new Error('it was let in');
    return error.message;
  };

  it('hears a payment from its history to its end, each of two viewers all of it', async () => {
    const { json } = await merchant.create();
    const bridge = await bridgeTo({ actor: json.id });
    const [one, other] = [receive(bridge), receive(bridge)];
    await merchant.final(json.id);
    for (const heard of [one, other]) {
      await until(async () => JSON.stringify(heard.at(-1) ?? '').includes('"succeeded":"standing"'));
      const steps = heard.filter(({ type, sessionId }) => type === '@xstate.event' && sessionId === json.id);
      const lines = await kusanya.history(json.id);
      const types = steps.map((message) => 'event' in message && message.event.type);
      // Answers that changed nothing to look for have no line, but whoever looks on hears of them.
      expect(types.filter((type) => type !== 'ask.undecided')).deep.equal(
        lines.map(({ event }) => event.type).filter((type) => type !== 'ask.undecided'),
      );
    }
  });

  it('gets messages with the fields that its own inspector sends of a running actor', async () => {
    const machine = kusanya.service.wired.actors.definition('collection').machine;
    const theirs: Record<string, unknown>[] = [];
    const inspector = createInspector({
      send: (event) => void theirs.push(JSON.parse(JSON.stringify(event)) as Record<string, unknown>),
    });
    const actor = createActor(machine, { inspect: inspector.inspect }).start();
    actor.send({ type: 'rail.noticed', at: 1 });
    await until(async () => theirs.length >= 4);
    actor.stop();

    const { json } = await merchant.create();
    await merchant.final(json.id);
    const ours = receive(await bridgeTo({ actor: json.id }));
    await until(async () => ours.length > 6);
    for (const type of ['@xstate.actor', '@xstate.event', '@xstate.snapshot']) {
      const [their, our] = [theirs, ours].map((all) =>
        (all as Record<string, unknown>[]).find((message) => message.type === type),
      );
      const keys = (message: object | undefined) =>
        Object.keys(message ?? {}).filter((key) => key !== 'sourceId');
      expect(keys(our).sort(), type).deep.equal(keys(their).sort());
      expect(our!._version, type).equal(their!._version);
      for (const key of keys(our)) expect(typeof our![key], `${type} ${key}`).equal(typeof their![key]);
      if (type === '@xstate.snapshot') {
        expect(keys(our!.snapshot as object).sort()).deep.equal(keys(their!.snapshot as object).sort());
      }
    }
  });

  it('can load every chart that it is sent, and stand in every state', async () => {
    const receiver = await kusanya.merchant();
    await kusanya.endpoint(receiver.id, 'http://127.0.0.1:9999/hook');
    const { json } = await receiver.create();
    await receiver.final(json.id);
    const heard = receive(await bridgeTo({ merchant: receiver.id }));
    const isWhole = () => new Set(heard.map(({ sessionId }) => sessionId.split('_')[0]));
    await until(async () => ['col', 'dlv', 'we'].every((prefix) => isWhole().has(prefix)));
    const charts = new Map<string, AnyStateMachine>();
    for (const message of heard) {
      if (message.type === '@xstate.actor') {
        charts.set(message.sessionId, createMachine(JSON.parse(message.definition)));
      }
      if (message.type === '@xstate.snapshot') {
        const { value, context } = message.snapshot;
        const config = { value, context } as Parameters<AnyStateMachine['resolveState']>[0];
        const state = charts.get(message.sessionId)!.resolveState(config);
        expect(state.value, message.sessionId).deep.equal(value);
      }
    }
  });

  it('takes every message in its page’s receiver', async () => {
    const { json } = await merchant.create();
    await merchant.final(json.id);
    const sent = receive(await bridgeTo({ actor: json.id }));
    await until(async () => sent.length > 6);
    const listeners: ((event: { data: unknown }) => void)[] = [];
    const posted: unknown[] = [];
    const window = {
      addEventListener: (_type: string, listener: (event: { data: unknown }) => void) =>
        listeners.push(listener),
      parent: { postMessage: (message: unknown) => posted.push(message) },
    };
    const browser = { ...window, self: 'the frame', top: 'the page' } as unknown as Window;
    const taken: unknown[] = [];
    createBrowserReceiver({ window: browser }).subscribe((event) => void taken.push(event));
    // The word that our bridge's page waits for.
    expect(posted).deep.equal([{ type: '@statelyai.connected' }]);
    for (const data of sent) for (const listener of listeners) listener({ data });
    expect(taken).deep.equal(sent);
  });

  it('is shown nothing but test mode', async () => {
    const id = 'brk.of.a.test';
    const at = Date.now();
    await kusanya.service.wired.actors.create(
      { machine: 'breaker', id, input: { at }, merchantId: merchant.id, mode: 'live', data: {} },
      { stepId: id, cause: { kind: 'rail', id } },
    );
    expect(await refusal({ actor: id })).match(/no actor brk.* in test mode/);
    expect(await refusal({ actor: id, mode: 'live' })).match(/no actor/);
  });

  it('says what to do where it cannot be reached', async () => {
    expect(await refusal({}, { token: 'wrong' })).match(/operator token.*--token/);
    expect(await refusal({}, { url: 'http://127.0.0.1:1' })).match(/No service answers.*npm start/);
    expect(await refusal({ last: 'many' })).match(/last/);
    const bridge = await bridgeTo({});
    const port = Number(new URL(bridge.url).port);
    const { adminUrl: url, operatorToken: token } = kusanya;
    const taken = await startBridge({ url, token, query: {}, port, say: () => {} }).catch(
      (error: Error) => error,
    );
    expect((taken as Error).message).match(/--port/);
  });

  it('serves its page to this machine’s browser only', async () => {
    const bridge = await bridgeTo({});
    const page = await fetch(bridge.url);
    expect(await page.text()).include('https://stately.ai/inspect');
    const foreign = new WebSocket(bridge.url.replace('http', 'ws'), { origin: 'https://evil.example' });
    const error = await new Promise<Error>((resolve) => foreign.once('error', resolve));
    expect(error.message).match(/401/);
  });
});
