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
  close(): Promise<void>;
}

export async function openProxy(target: { port: number; host?: string }): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let state: 'whole' | 'cut' | 'clogged' = 'whole';
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
      from.on('data', (chunk) => {
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
      for (const socket of open) socket.resume();
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}
