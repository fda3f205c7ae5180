import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Simulator, startSimulator } from '../../tools/simulator/simulator.ts';
import { createAuthority } from '../support/certificates.ts';
import { freePort } from '../support/processes.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';
import { until } from '../support/until.ts';
import { openWorld, type World } from '../support/world.ts';

/** docs/OPERATING.md "Live mode", as it is printed: a rehearsal on one machine, webhooks and sandbox included. */
describe('going live', function () {
  this.timeout(180_000);
  // Live webhooks go to two ports only, so the address is one of this run's own.
  const address = `127.${1 + (process.pid % 250)}.${1 + (Date.now() % 250)}.2`;
  let dataDir: string;
  let simulator: Simulator;
  let receiver: Server;
  let world: World;
  let liveKey: string;
  const heard: { type: string; data: { id: string }; signature: string | undefined }[] = [];

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'kusanya-live-'));
    const authority = createAuthority('rehearsal');
    await writeFile(join(dataDir, 'ca.pem'), authority.cert);
    receiver = createServer(authority.issue([address]), (request, response) => {
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => {
        heard.push({ ...JSON.parse(text), signature: request.headers['webhook-signature'] });
        response.writeHead(204).end();
      });
    });
    await new Promise<void>((resolve, reject) => {
      receiver.once('error', reject);
      receiver.listen(8443, address, resolve);
    });
    const ports = { port: await freePort(), adminPort: await freePort() };
    const secret = 'a-secret-of-your-choice';
    simulator = await startSimulator({
      ...{ keys: simulatorKeys, dataDir, mode: 'async', speed: 50, activationMs: 0 },
      callbackUrl: `http://127.0.0.1:${ports.port}/rails/MPESA_TZ/${secret}`,
    });
    const env = {
      MPESA_BASE_URL: simulator.baseUrl.replace('/openapi', '/sandbox'),
      ...{ MPESA_API_KEY: simulator.apiKey, MPESA_PUBLIC_KEY: simulator.publicKey },
      ...{ MPESA_SERVICE_PROVIDER_CODE: '000000', MPESA_SYNCHRONOUS: 'false' },
      MPESA_CALLBACK_SECRET: secret,
      NODE_EXTRA_CA_CERTS: join(dataDir, 'ca.pem'),
    };
    world = await openWorld(env, { ports });
    const made = await world.operate('POST', `/admin/merchants/${world.merchantId}/keys`, {
      ...{ mode: 'live', reason: 'rehearsal' },
    });
    liveKey = made!.json.secret;
  });

  after(async () => {
    await world?.close();
    await simulator?.close();
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
    await rm(dataDir, { recursive: true, force: true });
  });

  const create = async (phone: string, apiKey = liveKey) => {
    const body = { amount: 1_000, phone, reference: 'rehearsal' };
    return (await world.ask('POST', '/v1/collections', { key: `live-${phone}-${apiKey}`, body, apiKey }))!;
  };

  it('a payment of a number of the sandbox succeeds, and its webhook comes over TLS by one’s own authority', async () => {
    const endpoint = await world.operate('POST', `/admin/merchants/${world.merchantId}/endpoints`, {
      ...{ mode: 'live', url: `https://${address}:8443/hooks`, reason: 'rehearsal' },
    });
    expect(endpoint!.status, JSON.stringify(endpoint!.json)).to.equal(201);
    const { status, json } = await create('000000000001');
    expect(status, JSON.stringify(json)).to.equal(202);
    const webhook = await until(async () => heard.find(({ data }) => data.id === json.id), 60_000);
    expect(webhook?.type).to.equal('collection.succeeded');
    expect(webhook?.signature).to.match(/^v1,/);
    expect(simulator.network.debits).to.have.length(1);
    expect(simulator.heard.wrong).to.deep.equal([]);
  });

  it('the sandbox’s numbers are refused with a test key', async () => {
    const { status, json } = await create('000000000001', world.testKey);
    expect([status, json.error.code]).to.deep.equal([400, 'phone_invalid']);
  });
});
