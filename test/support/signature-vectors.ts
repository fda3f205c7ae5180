/**
 * Makes test/unit/signature.vectors.json. Every code in it comes from the `openssl` command, never from our own
 * sources, so that the file can convict them. `npx tsx test/support/signature-vectors.ts` writes it anew; the test
 * compares it with what openssl says today.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface SignVector {
  name: string;
  event_id: string;
  at_ms: number;
  secrets: string[];
  body_base64: string;
  headers: Record<string, string>;
}

export interface VerifyVector {
  name: string;
  secret: string;
  /** Also as text where it is text, for readers; the bytes are `body_base64`. */
  body?: string;
  body_base64: string;
  header: string | null;
  now_seconds: number;
  tolerance_seconds: number;
  verdict: 'accept' | 'refuse';
  reason?: string;
}

export interface Vectors {
  about: string[];
  openssl: string;
  sign: SignVector[];
  verify: VerifyVector[];
}

export const vectorsPath = fileURLToPath(new URL('../unit/signature.vectors.json', import.meta.url));

export function hasOpenssl(): boolean {
  return spawnSync('openssl', ['version']).status === 0;
}

function openssl(key: string | Buffer, message: Buffer): Buffer {
  const hexKey = Buffer.from(key).toString('hex');
  const argv = ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${hexKey}`, '-binary'];
  return execFileSync('openssl', argv, { input: message });
}

const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';
const newerSecret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgdHdvLi4=';
const strangerSecret = 'whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCwgMzIgYnl0ZXM=';
const t = 1_780_000_000;
const body =
  '{"id":"evt_01JZZZZZZZZZZZZZZZZZZZZZZZ","type":"collection.succeeded","created_at":"2026-05-28T20:26:40.000Z",' +
  '"mode":"live","data":{"id":"col_01JZZZZZZZZZZZZZZZZZZZZZZZ","amount":15000,"description":"Malipo ya Ngũgĩ – kahawa ☕"}}';

function code(key: string | Buffer, at: number | string, bytes: string | Buffer): string {
  return openssl(key, Buffer.concat([Buffer.from(`${at}.`), Buffer.from(bytes)])).toString('hex');
}

function header(at: number | string, ...codes: string[]): string {
  return [`t=${at}`, ...codes.map((each) => `v1=${each}`)].join(',');
}

type Given = Partial<Pick<VerifyVector, 'secret' | 'now_seconds' | 'tolerance_seconds'>> & {
  bytes?: string | Buffer;
};

function vector(name: string, head: string | null, reason: string | undefined, given: Given): VerifyVector {
  const bytes = Buffer.from(given.bytes ?? body);
  const isText = Buffer.from(bytes.toString('utf8')).equals(bytes);
  return {
    name,
    secret: given.secret ?? secret,
    ...(isText ? { body: bytes.toString('utf8') } : {}),
    body_base64: bytes.toString('base64'),
    header: head,
    now_seconds: given.now_seconds ?? t,
    tolerance_seconds: given.tolerance_seconds ?? 300,
    verdict: reason === undefined ? 'accept' : 'refuse',
    ...(reason === undefined ? {} : { reason }),
  };
}

const accept = (name: string, head: string, given: Given = {}) => vector(name, head, undefined, given);
const refuse = (name: string, head: string | null, reason: string, given: Given = {}) =>
  vector(name, head, reason, given);

function accepted(): VerifyVector[] {
  const good = code(secret, t, body);
  const notUtf8 = Buffer.from('7b22a0ff22c37d', 'hex');
  return [
    accept('a fresh signature', header(t, good)),
    accept('exactly 300 seconds old', header(t, good), { now_seconds: t + 300 }),
    accept('exactly 300 seconds ahead', header(t, good), { now_seconds: t - 300 }),
    accept('rotation: the newer secret comes first', header(t, code(newerSecret, t, body), good), {
      secret: newerSecret,
    }),
    accept('rotation: the older secret comes second', header(t, code(newerSecret, t, body), good)),
    accept('the fitting part is the last of three', header(t, '0'.repeat(64), 'ab', good)),
    accept('the parts come in another order', `v1=${good},t=${t}`),
    accept('parts with unknown names are ignored', `t=${t},v0=${'0'.repeat(64)},v1=${good},v2=later`),
    accept('an empty body', header(t, code(secret, t, '')), { bytes: '' }),
    accept('a body that is not UTF-8', header(t, code(secret, t, notUtf8)), { bytes: notUtf8 }),
    accept('white space and line ends count as they are', header(t, code(secret, t, '{ "a" : 1 }\r\n')), {
      bytes: '{ "a" : 1 }\r\n',
    }),
  ];
}

/** CONTRACT 13.7: `t` is an integer, and there is a `v1`. */
function malformed(): VerifyVector[] {
  const good = code(secret, t, body);
  const badTimes: [string, string][] = [
    ['t with letters behind it', `${t}abc`],
    ['t is a word', 'abc'],
    ['t has a fraction', `${t}.5`],
    ['t has an exponent', '178e7'],
    ['t is hexadecimal', '0x6a18b900'],
    ['t has a sign', `+${t}`],
    ['t is negative', `-${t}`],
    ['t has a space before it', ` ${t}`],
    ['t has a space behind it', `${t} `],
    ['t is in digits that are not ASCII', '１７８０００００００'],
    ['t is empty', ''],
  ];
  return [
    refuse('there is no header', null, 'header_missing'),
    refuse('the header is empty', '', 'header_missing'),
    // Signed as written, so that the form of t alone can be what refuses them.
    ...badTimes.map(([name, at]) => refuse(name, header(at, code(secret, at, body)), 'timestamp_invalid')),
    refuse('there is no t', `v1=${good}`, 'timestamp_invalid'),
    refuse('t is given twice', `t=${t},t=${t + 1},v1=${good}`, 'timestamp_invalid'),
    refuse('there is no v1', `t=${t}`, 'signature_missing'),
    refuse('v1 is empty', `t=${t},v1=`, 'signature_missing'),
    refuse('the code is under another version', `t=${t},v0=${good}`, 'signature_missing'),
    refuse('the name is in capitals', `t=${t},V1=${good}`, 'signature_missing'),
    refuse('a space stands before v1', `t=${t}, v1=${good}`, 'signature_missing'),
    refuse('the header is only the code', good, 'timestamp_invalid'),
    refuse('the receiver has no secret', header(t, good), 'secret_missing', { secret: '' }),
  ];
}

/** Rule 3: more than 300 seconds away, on either side. */
function late(): VerifyVector[] {
  const good = header(t, code(secret, t, body));
  const inMilliseconds = `${t}000`;
  const reason = 'timestamp_out_of_tolerance';
  return [
    refuse('301 seconds old', good, reason, { now_seconds: t + 301 }),
    refuse('301 seconds ahead', good, reason, { now_seconds: t - 301 }),
    refuse('an hour ahead', good, reason, { now_seconds: t - 3600 }),
    refuse('t is in milliseconds', header(inMilliseconds, code(secret, inMilliseconds, body)), reason),
    refuse(
      't is longer than a number holds',
      header('9'.repeat(400), code(secret, '9'.repeat(400), body)),
      reason,
    ),
    refuse('11 seconds old where 10 are allowed', good, reason, {
      now_seconds: t + 11,
      tolerance_seconds: 10,
    }),
  ];
}

/** Rules 1, 2 and 5: the raw bytes, the whole secret, equal lengths. */
function mismatched(): VerifyVector[] {
  const good = code(secret, t, body);
  const reason = 'signature_mismatch';
  const flipped = (good.startsWith('0') ? '1' : '0') + good.slice(1);
  const decodedKey = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const rewritten = JSON.stringify(JSON.parse(body), null, 1);
  return [
    refuse('one digit differs', header(t, flipped), reason),
    refuse('one digit is missing', header(t, good.slice(0, -1)), reason),
    refuse('one digit too many', header(t, `${good}0`), reason),
    refuse('the code is in capitals', header(t, good.toUpperCase()), reason),
    refuse('the code is in base64', header(t, Buffer.from(good, 'hex').toString('base64')), reason),
    refuse('the code has as many characters, not as many bytes', header(t, `é${good.slice(1)}`), reason),
    refuse('signed with a stranger’s secret', header(t, code(strangerSecret, t, body)), reason),
    refuse('keyed without the prefix', header(t, code(secret.slice('whsec_'.length), t, body)), reason),
    refuse('keyed with the decoded secret', header(t, code(decodedKey, t, body)), reason),
    refuse('t was moved after signing', header(t + 1, good), reason),
    refuse('t has a zero before it that was not signed', header(`0${t}`, good), reason),
    refuse(
      'the body alone was signed',
      header(t, openssl(secret, Buffer.from(body)).toString('hex')),
      reason,
    ),
    refuse('one byte was added to the body', header(t, good), reason, { bytes: `${body}\n` }),
    refuse('the body was parsed and written again', header(t, good), reason, { bytes: rewritten }),
    refuse('no part of a rotation is of this secret', header(t, code(newerSecret, t, body), good), reason, {
      secret: strangerSecret,
    }),
  ];
}

function signVector(name: string, secrets: string[], bytes: string | Buffer, atMs: number): SignVector {
  const eventId = 'evt_01JZZZZZZZZZZZZZZZZZZZZZZZ';
  const at = String(Math.floor(atMs / 1000));
  const standard = secrets.map((each) => {
    const key = Buffer.from(each.slice('whsec_'.length), 'base64');
    const content = Buffer.concat([Buffer.from(`${eventId}.${at}.`), Buffer.from(bytes)]);
    return `v1,${openssl(key, content).toString('base64')}`;
  });
  return {
    name,
    event_id: eventId,
    at_ms: atMs,
    secrets,
    body_base64: Buffer.from(bytes).toString('base64'),
    headers: {
      'Service-Signature': header(at, ...secrets.map((each) => code(each, at, bytes))),
      'webhook-id': eventId,
      'webhook-timestamp': at,
      'webhook-signature': standard.join(' '),
    },
  };
}

export function makeVectors(): Vectors {
  return {
    about: [
      'Cases for Service-Signature (docs/CONTRACT.md 13.6), for any language: verify the bytes of body_base64 and header',
      'against secret at now_seconds; verdict and reason are what must come out (header null: there is none).',
      'sign holds whole sets of headers, secrets newest first. Every code was computed with the command in openssl,',
      'which reads the message (t, a dot, the body) on stdin; hexkey is the whole secret, whsec_ included, in hex.',
      'Made by test/support/signature-vectors.ts.',
    ],
    openssl: 'openssl dgst -sha256 -mac HMAC -macopt hexkey:<hex of the secret> -hex',
    sign: [
      signVector('one secret', [secret], body, t * 1000),
      signVector('milliseconds are cut off, not rounded', [secret], body, t * 1000 + 999),
      signVector('a rotation, the newer secret first', [newerSecret, secret], body, t * 1000),
      signVector('an empty body', [secret], '', t * 1000),
    ],
    verify: [...accepted(), ...malformed(), ...late(), ...mismatched()],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(vectorsPath, `${JSON.stringify(makeVectors(), null, 2)}\n`);
}
