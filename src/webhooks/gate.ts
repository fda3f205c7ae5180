/**
 * The address gate: which URLs and addresses a webhook may go to ("private or internal addresses are refused",
 * CONTRACT 13.1). It is asked three times: when an endpoint is registered
 * (`checkUrl`, `resolvePublic`), at every dial, and once the socket is connected (dial.ts). What it answers is a
 * stable code and a sentence; neither ever shows an address, or a merchant could use us to map our own network.
 */
import { Resolver } from 'node:dns';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import type { Mode } from '../mode.ts';

export type UrlRefusal =
  | 'invalid_url'
  | 'scheme_not_allowed'
  | 'userinfo_not_allowed'
  | 'fragment_not_allowed'
  | 'port_not_allowed'
  | 'host_not_public'
  | 'blocked_address';

export type UrlCheck = { ok: true; url: URL } | { ok: false; reason: UrlRefusal; message: string };

export interface GateAddress {
  address: string;
  family: 4 | 6;
}

export type Resolution =
  | { ok: true; addresses: GateAddress[] }
  | {
      ok: false;
      reason: 'blocked_address' | 'dns_error';
      message: string;
      /** For our logs: what the DNS said (`ENOTFOUND`, `ETIMEOUT`, …). */
      detail?: string;
    };

export interface AddressRules {
  /** Ranges that are let through although they are not public (`WEBHOOK_ALLOW_CIDRS`): development and tests. */
  allowCidrs?: readonly string[];
  /** Addresses of this machine's interfaces, public ones too: a webhook must not reach our own listeners. */
  ownAddresses?: () => readonly string[];
}

export interface ResolveOptions extends AddressRules {
  /** `ip` or `ip:port`; empty: the system's. */
  dnsServers?: readonly string[];
  /** Time for the whole question, both record types and all tries. */
  dnsTimeoutMs?: number;
  /** Ends the question at once. */
  signal?: AbortSignal;
}

const messages = {
  invalid_url: 'The URL is not a valid absolute http(s) URL of at most 2048 characters.',
  scheme_not_allowed: 'The URL must begin with https:// (in test mode http:// is allowed too).',
  userinfo_not_allowed: 'The URL must not contain a user name or a password.',
  fragment_not_allowed: 'The URL must not contain a fragment (#).',
  port_not_allowed: 'The port must be 443 or 8443; in test mode also 80 or any from 1024 up.',
  host_not_public: 'The host must be a full public host name, without a dot at its end.',
  blocked_address: 'The host is, or resolves to, an address that is not publicly reachable.',
  dns_error: 'The host name could not be resolved.',
} as const;

const urlMaxChars = 2048;
const livePorts: readonly number[] = [443, 8443];
const testPorts: readonly number[] = [80, 443];
const unprivilegedPort = 1024;

/** Suffixes that never name a public host: RFC 6761, 6762, 8375, 9476, ICANN's reserved ones, cluster names. */
const privateSuffixes =
  /(?:^|\.)(?:local|localhost|localdomain|internal|intranet|private|corp|home|lan|svc|onion|alt|invalid|home\.arpa)$/;
const hostNamePattern = /^(?=.{4,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}$/;

/** 168.63.129.16 is Azure's wire server: inside every Azure network, though its number looks public. */
const refusedIPv4 = ipaddr.IPv4.parseCIDR('168.63.129.16/32');
/** All of the IPv6 space that is given out; whatever lies outside is special, or not assigned at all. */
const globalIPv6 = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an address is one of the public internet. IPv4 must be `unicast` for ipaddr.js. IPv6 must lie in
 * 2000::/3 as well: ipaddr.js alone calls `::7f00:1` unicast (127.0.0.1 in its "compatible" spelling), and other
 * spellings of IPv4 addresses. Only dotted decimal and RFC 4291 text count; anything else, and a zone, is refused.
 */
export function isPublicAddress(ip: string): boolean {
  const version = isIP(ip);
  if (version === 4) {
    const address = ipaddr.IPv4.parse(ip);
    return address.range() === 'unicast' && !address.match(refusedIPv4);
  }
  if (version !== 6 || ip.includes('%')) return false;
  const address = ipaddr.IPv6.parse(ip);
  return address.match(globalIPv6) && address.range() === 'unicast' && !isIsatap(address);
}

/** RFC 5214: an interface id of `0:5efe` or `200:5efe` carries an IPv4 address, under any prefix. */
function isIsatap(address: ipaddr.IPv6): boolean {
  return (address.parts[4]! & 0xfdff) === 0 && address.parts[5] === 0x5efe;
}

/** Whether a webhook may be sent to this address: public and not our own, or in a range that is let through. */
export function isPermittedAddress(ip: string, rules: AddressRules = {}): boolean {
  if (rules.allowCidrs?.some((cidr) => isInRange(ip, cidr))) return true;
  const own = rules.ownAddresses ?? interfaceAddresses;
  return isPublicAddress(ip) && !own().includes(canonical(ip));
}

/** @throws {RangeError} when a range of `WEBHOOK_ALLOW_CIDRS` is not `<address>/<bits>`. */
export function parseCidr(cidr: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  try {
    if (!isIP(cidr.slice(0, cidr.indexOf('/')))) throw new Error('not an address');
    return ipaddr.parseCIDR(cidr);
  } catch {
    throw new RangeError(`not a range of addresses like 127.0.0.0/8: ${cidr}`);
  }
}

/** @throws {TypeError} when one of `dnsServers` is not `ip` or `ip:port`: better at the start than at every dial. */
export function checkDnsServers(servers: readonly string[]): void {
  if (servers.length > 0) new Resolver().setServers(servers);
}

/** Ranges by their text: they are few, come from the configuration, and are asked for at every attempt. */
const ranges = new Map<string, ReturnType<typeof parseCidr>>();

function isInRange(ip: string, cidr: string): boolean {
  if (!isIP(ip) || ip.includes('%')) return false;
  const [base, bits] = ranges.get(cidr) ?? parseCidr(cidr);
  if (!ranges.has(cidr)) ranges.set(cidr, [base, bits]);
  const address = ipaddr.parse(ip);
  return address.kind() === base.kind() && address.match(base, bits);
}

function canonical(ip: string): string {
  return ipaddr.parse(ip).toString();
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(
    (each) => each?.map((one) => canonical(one.address)) ?? [],
  );
}

/**
 * Whether a webhook endpoint may have this URL, judged by its text alone.
 *
 * Live: https, ports 443 and 8443. Test: http too, ports 80, 443 and from 1024 up. Literal addresses are judged
 * after the URL parser has normalised them, so every spelling (decimal, octal, hexadecimal, short, full-width) is
 * the same address. `localhost` is let through exactly when `allowCidrs` covers 127.0.0.1 or ::1, because
 * developers write it; no other name from /etc/hosts ever resolves.
 *
 * @returns the parsed URL, or a refusal that may be shown to the merchant (400 on `url`).
 */
export function checkUrl(text: string, options: { mode: Mode; allowCidrs?: readonly string[] }): UrlCheck {
  // The parser drops tabs and line ends and turns backslashes into slashes: what it would mend is refused.
  if (typeof text !== 'string' || text.length > urlMaxChars || /[\s\\\p{Cc}]/u.test(text)) {
    return refuseUrl('invalid_url');
  }
  if (!URL.canParse(text)) return refuseUrl('invalid_url');
  const url = new URL(text);
  if (url.protocol !== 'https:' && (url.protocol !== 'http:' || options.mode === 'live')) {
    return refuseUrl('scheme_not_allowed');
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined) return refuseUrl('invalid_url');
  // On the text: the parser silently forgets an empty user (`https://@host`) and an empty fragment.
  if (authority.includes('@')) return refuseUrl('userinfo_not_allowed');
  if (text.includes('#')) return refuseUrl('fragment_not_allowed');
  if (!isPortAllowed(url, options.mode)) return refuseUrl('port_not_allowed');
  const refusal = hostRefusal(hostOf(url), options.allowCidrs ?? []);
  return refusal ? refuseUrl(refusal) : { ok: true, url };
}

/** A URL's host as sockets want it: an IPv6 address without its brackets. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}

/** A URL's port as a number, the scheme's own when it names none. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

function isPortAllowed(url: URL, mode: Mode): boolean {
  const port = portOf(url);
  return mode === 'live' ? livePorts.includes(port) : testPorts.includes(port) || port >= unprivilegedPort;
}

function hostRefusal(host: string, allowCidrs: readonly string[]): UrlRefusal | undefined {
  // Purely textual: which addresses are our own is asked where names are resolved and dialled.
  const rules = { allowCidrs, ownAddresses: () => [] };
  if (isIP(host)) return isPermittedAddress(host, rules) ? undefined : 'blocked_address';
  if (host === 'localhost') return loopbacks(rules).length > 0 ? undefined : 'host_not_public';
  return hostNamePattern.test(host) && !privateSuffixes.test(host) ? undefined : 'host_not_public';
}

function loopbacks(rules: AddressRules): string[] {
  return ['127.0.0.1', '::1'].filter((ip) => rules.allowCidrs?.some((cidr) => isInRange(ip, cidr)));
}

function refuseUrl(reason: UrlRefusal): UrlCheck {
  return { ok: false, reason, message: messages[reason] };
}

/**
 * Every address of a host, provided that a webhook may be sent to each of them: one bad answer refuses all, since
 * a name that mixes public and private addresses is an attack or a mistake. Asks the DNS itself (c-ares: own
 * deadline, cancellable, no search domains, no /etc/hosts, none of libuv's four shared threads).
 *
 * @param hostname a name or a literal address, as `hostOf` gives it.
 * @returns addresses, IPv4 first; or `blocked_address` or `dns_error`, with a sentence for the merchant.
 */
export async function resolvePublic(hostname: string, options: ResolveOptions = {}): Promise<Resolution> {
  const answer = await addressesOf(hostname, options);
  if (answer.addresses.length === 0) {
    return { ok: false, reason: 'dns_error', message: messages.dns_error, detail: answer.code };
  }
  if (!answer.addresses.every((ip) => isPermittedAddress(ip, options))) {
    return { ok: false, reason: 'blocked_address', message: messages.blocked_address };
  }
  const addresses = answer.addresses.map((address) => ({ address, family: isIP(address) as 4 | 6 }));
  return { ok: true, addresses: addresses.sort((a, b) => a.family - b.family) };
}

/** Whether a name has any address at all, public or not: how the canary tells a broken resolver of ours. */
export async function hasAddress(hostname: string, options: ResolveOptions): Promise<boolean> {
  return (await addressesOf(hostname, options)).addresses.length > 0;
}

interface DnsAnswer {
  addresses: string[];
  /** Why there is none. */
  code?: string;
}

function addressesOf(hostname: string, options: ResolveOptions): Promise<DnsAnswer> {
  if (isIP(hostname)) return Promise.resolve({ addresses: [hostname] });
  if (hostname === 'localhost') return Promise.resolve({ addresses: loopbacks(options), code: 'ENOTFOUND' });
  return new DnsQuestion(hostname, options).answer;
}

const dnsTimeoutMs = 5_000;
/** Once one record type has answered, the other gets this much longer: some name servers never answer AAAA. */
const secondAnswerMaxMs = 500;
const dnsTries = 2;

/** One question for A and AAAA with its own resolver, because c-ares can only cancel a whole resolver. */
class DnsQuestion {
  readonly answer: Promise<DnsAnswer>;
  readonly #addresses: string[] = [];
  readonly #codes: string[] = [];
  readonly #resolver: Resolver;
  readonly #signal: AbortSignal | undefined;
  readonly #deadline: NodeJS.Timeout;
  readonly #secondAnswerMs: number;
  #patience: NodeJS.Timeout | undefined;
  #settle!: (answer: DnsAnswer) => void;
  #open = 2;
  #isOver = false;

  constructor(hostname: string, options: ResolveOptions) {
    const timeoutMs = options.dnsTimeoutMs ?? dnsTimeoutMs;
    this.#secondAnswerMs = Math.min(secondAnswerMaxMs, timeoutMs / 4);
    this.#resolver = new Resolver({ timeout: Math.max(1, Math.ceil(timeoutMs / dnsTries)), tries: dnsTries });
    if (options.dnsServers?.length) this.#resolver.setServers(options.dnsServers);
    this.answer = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#deadline = setTimeout(() => this.#finish('ETIMEOUT'), timeoutMs);
    this.#signal = options.signal;
    this.#signal?.addEventListener('abort', this.#abort);
    if (this.#signal?.aborted) this.#abort();
    else this.#ask(hostname);
  }

  #ask(hostname: string): void {
    const heard = (error: NodeJS.ErrnoException | null, addresses?: string[]) => this.#hear(error, addresses);
    try {
      this.#resolver.resolve4(hostname, heard);
      this.#resolver.resolve6(hostname, heard);
    } catch (error) {
      // A name that c-ares cannot encode is refused by throwing.
      this.#finish((error as NodeJS.ErrnoException).code);
    }
  }

  readonly #abort = (): void => this.#finish('ECANCELLED');

  #hear(error: NodeJS.ErrnoException | null, addresses: string[] = []): void {
    if (this.#isOver) return;
    this.#open -= 1;
    this.#addresses.push(...addresses);
    if (error?.code) this.#codes.push(error.code);
    if (this.#open === 0) this.#finish();
    else if (this.#addresses.length > 0)
      this.#patience = setTimeout(() => this.#finish(), this.#secondAnswerMs);
  }

  #finish(code?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    clearTimeout(this.#patience);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#settle({ addresses: [...this.#addresses], code: code ?? this.#codes[0] ?? 'ENODATA' });
    this.#resolver.cancel();
  }
}
