import { expect } from 'chai';
import { type Member, startMember } from '../support/member.ts';
import { freePort, startProcess } from '../support/processes.ts';
import { freshDatabase, stores } from '../support/stores.ts';

/** A node of a Redis Cluster takes a connection and refuses most of what BullMQ asks of it. */
describe('a node of a Redis Cluster', () => {
  let node: Member;

  before(async () => {
    node = await startMember('redis', (port, dir) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''],
      ...['--cluster-enabled', 'yes', '--cluster-port', '0'],
    ]);
  });
  after(() => node?.close());

  it('is refused at the start, with what to do instead', async () => {
    const env = {
      ...{ MONGODB_URI: (await stores()).mongodbUri, MONGODB_DATABASE: freshDatabase('cluster') },
      ...{ REDIS_URL: `redis://127.0.0.1:${node.port}`, NODE_ENV: 'test' },
      ...{ OPERATOR_TOKEN: 'a-token-of-operators', KEY_HASH_SECRET: 'a-secret-of-hashes' },
      SECRETS_KEY: Buffer.alloc(32, 3).toString('base64'),
    };
    const started = await startProcess(env, { port: await freePort(), adminPort: await freePort() });
    const reason = await started.ready.then(
      () => 'it is ready',
      (error: Error) => error.message,
    );
    await started.kill();
    expect(reason).match(
      /^ended \(1\).*did not start: REDIS_URL names a node of a Redis Cluster.*cluster-enabled no/s,
    );
    expect(reason).match(/redis\+sentinel:\/\//);
  });
});
