/**
 * X.509 certificates made on the spot (RFC 5280, ECDSA P-256), so that TLS tests need neither the openssl command
 * nor a private key in the repository. For tests only.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

export interface Certificate {
  /** PEM, with its chain behind it. */
  cert: string;
  /** PEM, PKCS #8. */
  key: string;
}

export interface Authority {
  cert: string;
  /** A certificate for these names and IPv4 addresses, valid from and to the given times. */
  issue(names: readonly string[], validity?: { fromMs?: number; toMs?: number }): Certificate;
}

const dayMs = 86_400_000;

/** A certificate authority of its own; trust it with Node's `ca` option. */
export function createAuthority(name: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const root = { name, key: privateKey };
  const cert = certificate({ subject: name, publicKey, issuer: root, isAuthority: true, names: [] });
  return {
    cert,
    issue(names, validity = {}) {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const subject = names[0] ?? 'nobody';
      const made = certificate({ subject, publicKey: own.publicKey, issuer: root, names, ...validity });
      return { cert: made, key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
    },
  };
}

/** A certificate that vouches for itself. */
export function selfSigned(names: readonly string[]): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = names[0] ?? 'nobody';
  const cert = certificate({ subject, publicKey, issuer: { name: subject, key: privateKey }, names });
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

interface Wanted {
  subject: string;
  publicKey: KeyObject;
  issuer: { name: string; key: KeyObject };
  names: readonly string[];
  isAuthority?: boolean;
  fromMs?: number;
  toMs?: number;
}

function certificate({
  subject,
  publicKey,
  issuer,
  names,
  isAuthority = false,
  fromMs,
  toMs,
}: Wanted): string {
  const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const serial = randomBytes(8);
  serial[0]! &= 0x7f;
  serial[0]! |= 0x40;
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    ecdsaWithSha256,
    commonName(issuer.name),
    sequence(time(fromMs ?? Date.now() - dayMs), time(toMs ?? Date.now() + dayMs)),
    commonName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensions(names, isAuthority))),
  );
  const signature = sign('sha256', body, issuer.key);
  const whole = sequence(body, ecdsaWithSha256, tagged(0x03, Buffer.from([0]), signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function extensions(names: readonly string[], isAuthority: boolean): Buffer[] {
  const yes = tagged(0x01, Buffer.from([0xff]));
  const basicConstraints = sequence(
    oid(0x55, 0x1d, 0x13),
    yes,
    tagged(0x04, sequence(...(isAuthority ? [yes] : []))),
  );
  if (names.length === 0) return [basicConstraints];
  const alternatives = names.map((name) =>
    isIP(name) === 4
      ? tagged(0x87, Buffer.from(name.split('.').map(Number)))
      : tagged(0x82, Buffer.from(name)),
  );
  return [basicConstraints, sequence(oid(0x55, 0x1d, 0x11), tagged(0x04, sequence(...alternatives)))];
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from(name)))));
}

/** GeneralizedTime would be wanted from 2050 on; until then it is UTCTime. */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return tagged(0x17, Buffer.from(`${text}Z`));
}

function oid(...bytes: number[]): Buffer {
  return tagged(0x06, Buffer.from(bytes));
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
