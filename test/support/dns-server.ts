/** A DNS server on loopback that answers what a test tells it to: public, private, mixed, changing, or nothing. */
import { createSocket, type Socket } from 'node:dgram';
import type { AddressInfo } from 'node:net';

/** Addresses of the type that was asked for; an error code; or silence. */
export type DnsReply = readonly string[] | 'nxdomain' | 'servfail' | 'silent';

export interface DnsQuery {
  name: string;
  type: 'A' | 'AAAA';
  /** How often this name and type was asked before. */
  earlier: number;
}

export interface DnsServer {
  /** `127.0.0.1:port`, for `dnsServers`. */
  address: string;
  /** Every question, in order. */
  queries: DnsQuery[];
  close(): Promise<void>;
}

/** Starts a server. An empty list of addresses means that the name exists without such a record. */
export async function startDnsServer(reply: (query: DnsQuery) => DnsReply): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const queries: DnsQuery[] = [];
  socket.on('message', (message, peer) => {
    const asked = questionOf(message);
    const earlier = queries.filter((one) => one.name === asked.name && one.type === asked.type).length;
    const query: DnsQuery = { name: asked.name, type: asked.type, earlier };
    queries.push(query);
    const answer = reply(query);
    if (answer !== 'silent')
      socket.send(response(message, asked.end, query.type, answer), peer.port, peer.address);
  });
  await bound(socket);
  const { port } = socket.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    queries,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function bound(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(0, '127.0.0.1', resolve);
  });
}

const headerBytes = 12;

function questionOf(message: Buffer): { name: string; type: 'A' | 'AAAA'; end: number } {
  const labels: string[] = [];
  let at = headerBytes;
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  // c-ares writes names in random case (0x20) on some versions.
  const name = labels.join('.').toLowerCase();
  return { name, type: message.readUInt16BE(at + 1) === 28 ? 'AAAA' : 'A', end: at + 5 };
}

function response(
  message: Buffer,
  end: number,
  type: 'A' | 'AAAA',
  reply: Exclude<DnsReply, 'silent'>,
): Buffer {
  const question = message.subarray(headerBytes, end);
  const addresses = typeof reply === 'string' ? [] : reply;
  const code = reply === 'nxdomain' ? 3 : reply === 'servfail' ? 2 : 0;
  const header = Buffer.alloc(headerBytes);
  message.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  return Buffer.concat([header, question, ...addresses.map((address) => record(type, address))]);
}

function record(type: 'A' | 'AAAA', address: string): Buffer {
  const data = type === 'A' ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
  // The name is a pointer to the question; class IN, time to live 0, so that nobody caches.
  const fixed = [0xc0, headerBytes, 0, type === 'A' ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, data.length];
  return Buffer.concat([Buffer.from(fixed), data]);
}

function ipv6Bytes(address: string): Buffer {
  const [head = '', tail] = address.split('::');
  const left = head.split(':').filter(Boolean);
  const right = (tail ?? '').split(':').filter(Boolean);
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return Buffer.from([...left, ...zeros, ...right].map((part) => part.padStart(4, '0')).join(''), 'hex');
}
