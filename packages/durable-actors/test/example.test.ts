import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { MongoClient } from 'mongodb';
import { bundle } from '../../../test/support/bundle.ts';
import { sized } from '../../../test/support/size.ts';
import { freshDatabase, stores } from '../../../test/support/stores.ts';
import type { StepLine } from '../src/index.ts';

const folder = join(import.meta.dirname, '..');
const program = join('examples', 'order.ts');

describe('the example of the README', () => {
  const text = readFileSync(join(folder, program), 'utf8');
  let run: ChildProcess | undefined;

  afterEach(() => run?.kill('SIGKILL'));

  it('is the program that is tested here, and not long', () => {
    const [, printed] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(folder, 'README.md'), 'utf8')) ?? [];
    expect(printed).equal(text);
    expect(text.trimEnd().split('\n').length).at.most(60);
  });

  it('is killed in the call and in the timer, goes on, and ships once', async () => {
    const { mongodbUri, redisUrl } = await stores();
    // At full size as the README says it.
    const command = sized(
      [await bundle('packages/durable-actors/examples/order.ts')],
      ['--import=tsx', program],
    );
    const name = freshDatabase('example');
    const said: string[] = [];
    const start = () => {
      const env = { ...process.env, MONGODB_URI: mongodbUri, REDIS_URL: redisUrl, NAME: name };
      const child = spawn(process.execPath, command, { cwd: folder, env });
      child.stdout.on('data', (chunk: Buffer) => said.push(...chunk.toString().trim().split('\n')));
      child.stderr.pipe(process.stderr);
      run = child;
      return child;
    };
    const hear = async (child: ChildProcess, line: RegExp) => {
      while (!said.some((each) => line.test(each))) await once(child.stdout!, 'data');
    };
    const kill = async (child: ChildProcess) => {
      child.kill('SIGKILL');
      await once(child, 'exit');
      said.push('killed');
    };

    const first = start();
    await hear(first, /^charging order_1\.1\.0$/);
    await kill(first);
    const second = start();
    await hear(second, /^order_1 is packing$/);
    await kill(second);
    const [code] = (await once(start(), 'exit')) as [number];

    expect(code).equal(0);
    expect(said.at(-1)).equal('order_1 is shipped');
    // The same call under the same id: whoever takes the charge can tell that it is the same.
    expect(said.filter((line) => /^charging/.test(line))).deep.equal(
      Array.from({ length: 2 }, () => 'charging order_1.1.0'),
    );
    const client = await MongoClient.connect(mongodbUri);
    try {
      const steps = client.db(name).collection<StepLine>('steps').find().sort({ _id: 1 });
      expect((await steps.toArray()).map(({ to }) => to)).deep.equal(['charging', 'packing', 'shipped']);
      expect(await client.db(name).collection('sent').countDocuments()).equal(1);
    } finally {
      await client.close();
    }
  });
});
