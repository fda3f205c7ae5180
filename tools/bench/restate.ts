import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { createPlan } from './createPlan.ts';
import type { LoadPlan } from './load.ts';
import type { Stage } from './stage.ts';

/** Restate's server, installed from its npm package into a temporary folder while the bench runs. */
const packages = ['@restatedev/restate-server@1.7.12', '@restatedev/restate-sdk@1.17.2'];

export interface RestateWay {
  /** A load of creates at Restate's ingress. */
  plan(tag: string): LoadPlan;
  /** How many collections have been paid so far. */
  paid(): Promise<number>;
  close(): Promise<void>;
}

const run = promisify(execFile);

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** When a collection is paid: half a second after its creation, or not while anything is measured. */
const payAfterMs = { soon: 500, never: 3_600_000 };

/** Undefined, after saying why, where it cannot be installed or started. */
export async function startRestate(
  stage: Stage,
  print: (line: string) => void,
  pays: keyof typeof payAfterMs,
): Promise<RestateWay | undefined> {
  const dir = await mkdtemp(join(tmpdir(), 'kusanya-bench-restate-'));
  let server: ChildProcess | undefined;
  const close = async () => {
    if (server?.exitCode === null) {
      const ended = new Promise((resolve) => server!.once('exit', resolve));
      server.kill('SIGKILL');
      await ended;
    }
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await writeFile(join(dir, 'package.json'), '{"private":true}');
    await run('npm', ['install', '--no-save', '--ignore-scripts', ...packages], {
      cwd: dir,
      timeout: 120_000,
    });
    const [ingress, admin, fabric, handlers] = await freePorts(4);
    const platform = `${process.platform}-${process.arch}`;
    const program = join(dir, `node_modules/@restatedev/restate-server-${platform}/bin/restate-server`);
    server = spawn(program, ['--base-dir', join(dir, 'data')], {
      cwd: dir,
      stdio: 'ignore',
      env: {
        ...process.env,
        RESTATE_LISTEN_MODE: 'tcp',
        RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      },
    });
    server.on('error', () => undefined);
    await healthy(`http://127.0.0.1:${admin}/health`);
    const { child } = await stage.start('restateWay.ts', 'bench_restate', {
      RESTATE_DIR: dir,
      RESTATE_LOGGING: 'ERROR',
      NODE_ENV: 'production',
      RESTATE_PAY_MS: String(payAfterMs[pays]),
      RESTATE_ADMIN: `http://127.0.0.1:${admin}`,
      RESTATE_PORT: String(handlers),
    });
    return {
      plan: (tag) => planOf(ingress!, tag),
      paid: async () => (await stage.ask<{ paid: number }>(child, 'paid')).paid,
      close: async () => {
        await stage.kill(child);
        await close();
      },
    };
  } catch (error) {
    print(`  (Restate could not be measured here: ${String((error as Error).message).split('\n')[0]})`);
    await close();
    return undefined;
  }
}

/** The tag becomes part of the collection's id, and the running number chooses its merchant. */
function planOf(port: number, tag: string): LoadPlan {
  return { ...createPlan({ port, keys: [] }, tag), path: '/collection/col_{n}/create' };
}

async function healthy(url: string): Promise<void> {
  const giveUpAt = performance.now() + 30_000;
  while (
    !(await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() > giveUpAt) throw new Error('its server does not answer');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
