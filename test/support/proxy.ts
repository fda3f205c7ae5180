import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';

/** A TCP proxy on loopback: a line that can be watched, cut, or made so slow that nothing comes through. */
export interface TcpProxy {
  port: number;
  /** Told of every connection, before anything is passed on. */
  onConnection: () => void;
  /** Cuts every connection, and refuses new ones until `mend`. */
  cut(): void;
  /** Passes nothing on, either way, and cuts nothing, until `mend`. */
  clog(): void;
  mend(): void;
  /**
   * The next connection that carries all these words in one piece takes bytes from then on and answers nothing, for
   * good; all others go on. `arrives`: the piece itself still gets to the server. Resolves when it has happened.
   */
  silence(words: readonly string[], arrives: boolean): Promise<void>;
  /**
   * Every line to Redis that gives itself such a name (CLIENT SETNAME) takes bytes and answers nothing, those that
   * are open and those that come until `mend`; the lines themselves stay so for good, all others go on.
   */
  silenceNamed(isOf: (name: string) => boolean): void;
  close(): Promise<void>;
}

export async function openProxy(target: { port: number; host?: string }): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let state: 'whole' | 'cut' | 'clogged' = 'whole';
  const silences: { words: readonly string[]; arrives: boolean; happen(): void }[] = [];
  const silent = new WeakSet<Socket>();
  const names = new WeakMap<Socket, string>();
  let isOfSilent = (_name: string): boolean => false;
  /** Whether a piece from the near side is passed on. */
  const passes = (near: Socket, chunk: Buffer): boolean => {
    if (silent.has(near)) return false;
    const name = nameIn(chunk);
    if (name !== undefined) names.set(near, name);
    if (name !== undefined && isOfSilent(name)) {
      silent.add(near);
      return false;
    }
    const index = silences.findIndex(({ words }) => words.every((word) => chunk.includes(word)));
    const [found] = index < 0 ? [] : silences.splice(index, 1);
    if (!found) return true;
    silent.add(near);
    found.happen();
    return found.arrives;
  };
  const keep = (socket: Socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    if (state === 'clogged') socket.pause();
  };
  const server = createServer((near) => {
    proxy.onConnection();
    keep(near);
    if (state === 'cut') {
      near.resetAndDestroy();
      return;
    }
    const far = dial(target.port, target.host ?? '127.0.0.1');
    keep(far);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (chunk: Buffer) => {
        if (from === near ? !passes(near, chunk) : silent.has(near)) return;
        if (!to.write(chunk)) from.pause();
      });
      to.on('drain', () => {
        if (state !== 'clogged') from.resume();
      });
      from.on('close', () => to.destroy());
      if (state === 'clogged') from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: TcpProxy = {
    port: (server.address() as AddressInfo).port,
    onConnection: () => {},
    cut: () => {
      state = 'cut';
      for (const socket of open) socket.destroy();
    },
    clog: () => {
      state = 'clogged';
      for (const socket of open) socket.pause();
    },
    mend: () => {
      state = 'whole';
      isOfSilent = () => false;
      for (const socket of open) socket.resume();
    },
    silence: (words, arrives) =>
      new Promise((happen) => void silences.push({ words, arrives, happen: () => happen() })),
    silenceNamed: (isOf) => {
      isOfSilent = isOf;
      for (const socket of open) if (isOf(names.get(socket) ?? '')) silent.add(socket);
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}

/** The name that a piece gives its line to Redis. */
function nameIn(chunk: Buffer): string | undefined {
  return /\r\nsetname\r\n\$\d+\r\n([^\r\n]+)\r\n/i.exec(chunk.toString('latin1'))?.[1];
}

/** How MongoDB's commands look on a line: `wordsOf('find', 'api_keys')`, `wordsOf('commitTransaction')`. */
export function wordsOf(command: string, collection?: string): string[] {
  return collection === undefined ? [`${command}\0`] : [`${command}\0`, `\0${collection}\0`];
}
