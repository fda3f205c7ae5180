import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { MongoClient } from 'mongodb';
import { type Simulator, startSimulator } from '../../tools/simulator/simulator.ts';
import { freePort, type ServiceProcess, startProcess } from '../support/processes.ts';
import { type Receiver, startReceiver } from '../support/service.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';
import { freshDatabase, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * All that a real process writes, at the chattiest level, through a life with many mishaps: one line for each step
 * and each attempt, and none of the secrets that were planted on the way.
 */
describe('the output of a whole run', () => {
  const configured = {
    OPERATOR_TOKEN: 'planted-operator-token-f81d4fae',
    KEY_HASH_SECRET: 'planted-key-hash-secret-7dec11d0',
    SECRETS_KEY: Buffer.from('planted-secrets-key-a765-00a0c91').toString('base64'),
    MPESA_API_KEY: simulatorKeys.apiKey,
    MPESA_CALLBACK_SECRET: 'planted-callback-secret-11e4-b9a8',
  };
  const planted = new Set<string>(Object.values(configured));
  const phones = ['255712345678', '255687654321', '255700000000', '255700000001', '255700000020'];
  const plant = (text: string) => {
    planted.add(text);
    return text;
  };

  let service: ServiceProcess;
  let simulator: Simulator;
  let receiver: Receiver;
  let client: MongoClient;
  let database: string;
  /** What came out of each stream: chunks end anywhere, also in the middle of a line. */
  const outputs: Buffer[][] = [];
  let keys = 0;
  let dataDir: string;

  before(async function () {
    this.timeout(60_000);
    const { mongodbUri, redisUrl } = await stores();
    database = freshDatabase('logs');
    client = await new MongoClient(mongodbUri).connect();
    receiver = await startReceiver();
    const clock = new SystemClock();
    dataDir = await mkdtemp(join(tmpdir(), 'kusanya-logs-'));
    simulator = await startSimulator({
      ...{
        keys: simulatorKeys,
        dataDir,
        mode: 'sync',
        clock,
        speed: 50,
        activationMs: 0,
        port: 0,
      },
    });
    const env = {
      ...configured,
      MONGODB_URI: mongodbUri,
      MONGODB_DATABASE: database,
      REDIS_URL: redisUrl,
      REDIS_PREFIX: database,
      LOG_LEVEL: 'trace',
      SIMULATOR_SPEED: '50',
      SWEEP_INTERVAL: '500ms',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_RETRY_DELAYS: '100ms,100ms',
      MPESA_BASE_URL: simulator.baseUrl,
      MPESA_PUBLIC_KEY: simulator.publicKey,
      MPESA_SERVICE_PROVIDER_CODE: '000000',
    };
    service = await startProcess(env, { port: await freePort(), adminPort: await freePort() });
    for (const stream of [service.child.stdout!, service.child.stderr!]) {
      const chunks: Buffer[] = [];
      outputs.push(chunks);
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    }
    await service.ready;
  });

  after(async () => {
    await service?.kill();
    await receiver?.close();
    await simulator?.close();
    await rm(dataDir, { recursive: true, force: true });
    await client?.close();
  });

  const send = async (method: string, path: string, token: string, body?: unknown) => {
    const base = path.startsWith('/admin') ? service.adminUrl : service.baseUrl;
    keys += 1;
    const response = await fetch(`${base}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': `logs-${keys}`,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
    return { status: response.status, json: (text ? JSON.parse(text) : {}) as any };
  };
  const admin = (method: string, path: string, body?: object) =>
    send(method, path, configured.OPERATOR_TOKEN, body && { reason: 'a test', ...body });

  it('has a line for each step and each attempt, and no secret', async function () {
    this.timeout(90_000);
    const merchant = (await admin('POST', '/admin/merchants', { name: 'Acme' })).json.id as string;
    const key = async (mode: string) =>
      (await admin('POST', `/admin/merchants/${merchant}/keys`, { mode })).json;
    const [test, live] = [await key('test'), await key('live')];
    const endpoint = (
      await admin('POST', `/admin/merchants/${merchant}/endpoints`, { mode: 'test', url: receiver.url })
    ).json;
    for (const secret of [test.secret, live.secret, endpoint.secret]) plant(secret);
    const rotated = await admin('POST', `/admin/endpoints/${endpoint.id}/rotate-secret`, {});
    expect(rotated.status).to.equal(201);
    plant(rotated.json.secret);
    const other = await admin('POST', `/admin/keys/${test.id}/rotate`, { overlap_seconds: 3600 });
    plant(other.json.secret);
    const own = await send('POST', '/v1/webhook_endpoints', test.secret, { url: `${receiver.url}/own` });
    const ownRotated = await send(
      'POST',
      `/v1/webhook_endpoints/${own.json.id}/rotate_secret`,
      test.secret,
      {},
    );
    for (const { status, json } of [own, ownRotated]) {
      expect(status).to.equal(201);
      plant(json.secret);
    }
    await send('DELETE', `/v1/webhook_endpoints/${own.json.id}`, test.secret);

    const words = {
      metadata: { note: plant('planted-metadata-value') },
      description: plant('planted-words'),
    };
    const create = (token: string, phone: string, more = {}) =>
      send('POST', '/v1/collections', token, {
        amount: 5000,
        phone,
        reference: 'order-1',
        ...words,
        ...more,
      });
    receiver.answer = ({ event }) => (event.data.status === 'failed' ? 500 : 200);
    const made: string[] = [];
    for (const phone of phones) {
      const { status, json } = await create(phone.startsWith('2557000') ? test.secret : live.secret, phone);
      expect(status, JSON.stringify(json)).to.equal(202);
      made.push(json.id);
    }
    await mishaps(create, test.secret);
    const ended = async (id: string) =>
      (await admin('GET', `/admin/actors/${id}`)).json.state?.startsWith('created') === false;
    for (const id of made) expect(await until(() => ended(id), 30_000), id).to.equal(true);
    const db = client.db(database);
    const attempts = await until(async () => {
      const count = await db.collection('attempts').countDocuments();
      const open = await db.collection('deliveries').countDocuments({ state: /^(pending|waiting)/ });
      return open === 0 && count;
    }, 30_000);
    expect(attempts).to.be.at.least(phones.length - 2);
    // The streams may end a moment after the process.
    const closed = once(service.child, 'close');
    process.kill(service.child.pid!, 'SIGTERM');
    await closed;
    const output = outputs.map((chunks) => Buffer.concat(chunks).toString()).join('\n');

    for (const secret of planted) expect(output.includes(secret), `the output has ${secret}`).to.equal(false);
    for (const phone of phones) {
      for (const form of [phone, phone.replace('255', '0')])
        expect(output.includes(form), `the output has ${form}`).to.equal(false);
    }
    // biome-ignore lint/suspicious/noExplicitAny: lines of every shape
    const lines: any[] = output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    const said = (msg: string) => lines.filter((line) => line.msg === msg);
    for await (const { actor, seq, to } of db.collection('steps').find()) {
      const found = said('step').filter((line) => line.actor === actor && line.seq === seq);
      expect(
        found.map((line) => line.to),
        `${actor}/${seq}`,
      ).to.deep.equal([to]);
    }
    for await (const { deliveryId, number } of db.collection('attempts').find()) {
      const found = said('attempt').filter((line) => line.actor === deliveryId && line.number === number);
      expect(found, `${deliveryId}/${number}`).to.have.length(1);
    }
    expect(said('attempt').filter(({ call }) => call === 'pushPrompt')).to.have.length(made.length);
    expect(said('request').length).to.be.at.least(keys);
  });

  /** Requests that fail in every way that could make somebody log too much. */
  async function mishaps(
    create: (token: string, phone: string, more?: object) => Promise<{ status: number }>,
    key: string,
  ): Promise<void> {
    const statuses = [
      await create(key, '255712345678x'),
      await create(plant(`${key.slice(0, -4)}zzzz`), '255712345678'),
      await create(key, '255712345678', { metadata: { note: { deep: plant('planted-deep-metadata') } } }),
      await create(key, '255712345678', { phone_2: plant('planted-unknown-field') }),
      await send(
        'POST',
        '/v1/collections',
        key,
        `{"phone": "255712345678", "note": "${plant('planted-torn')}`,
      ),
      await send('GET', `/v1/collections?reference=${plant('planted-query')}&phone=255712345678`, key),
      await send('POST', `/rails/MPESA_TZ/${configured.MPESA_CALLBACK_SECRET}`, key, {
        input_ThirdPartyConversationID: 'unknown',
        phone: '255712345678',
      }),
      await send('POST', `/rails/MPESA_TZ/${plant('planted-wrong-secret')}`, key, {}),
      await admin('GET', `/admin/deliveries?status=${plant('planted-admin-query')}`),
    ];
    expect(statuses.filter(({ status }) => status >= 500)).to.deep.equal([]);
  }
});
