import {
  constants,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  privateDecrypt,
  randomBytes,
} from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What an application has at the portal, played here: an API key, and the key pair that bearers are encrypted for. */
export interface KeyFile {
  /** PKCS8 PEM. It protects nothing: never use it outside a rehearsal. */
  privateKey: string;
  apiKey: string;
}

const fileName = 'keys.json';
const modulusBits = 4096;

/** The keys of a data folder; made at the first start, which takes some seconds. */
export async function loadOrMakeKeys(dataDir: string): Promise<KeyFile> {
  const path = join(dataDir, fileName);
  const kept = await readFile(path, 'utf8').catch(() => undefined);
  if (kept !== undefined) return JSON.parse(kept) as KeyFile;
  const pair = await promisify(generateKeyPair)('rsa', { modulusLength: modulusBits });
  const keys = {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    apiKey: randomBytes(16).toString('hex'),
  };
  await mkdir(dataDir, { recursive: true });
  await writeFile(path, JSON.stringify(keys), { mode: 0o600 });
  return keys;
}

/** Opens bearers. Each is decrypted once: RSA with 4096 bits costs some milliseconds. */
export class Bearers {
  readonly #key;
  readonly #opened = new Map<string, string | undefined>();
  readonly apiKey: string;
  /** Base64 of the SPKI DER, as the portal shows it. */
  readonly publicKey: string;

  constructor({ privateKey, apiKey }: KeyFile) {
    this.#key = createPrivateKey(privateKey);
    this.apiKey = apiKey;
    this.publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64');
  }

  /** What an Authorization header carries; undefined when it was not encrypted for this key. */
  open(authorization: string | undefined): string | undefined {
    const bearer = /^Bearer ([A-Za-z0-9+/=]+)$/.exec(authorization ?? '')?.[1];
    if (bearer === undefined) return undefined;
    if (!this.#opened.has(bearer)) {
      if (this.#opened.size > 10_000) this.#opened.clear();
      this.#opened.set(bearer, this.#decrypt(Buffer.from(bearer, 'base64')));
    }
    return this.#opened.get(bearer);
  }

  /**
   * Node 20 refuses to decrypt with PKCS1 padding (CVE-2023-46809), so the padding, `00 02 … 00`, is stripped by
   * hand. That leaks timing, which is why it is for test keys only.
   */
  #decrypt(bytes: Buffer): string | undefined {
    try {
      const padded = privateDecrypt({ key: this.#key, padding: constants.RSA_NO_PADDING }, bytes);
      const end = padded.indexOf(0, 2);
      if (padded[0] !== 0 || padded[1] !== 2 || end < 10) return undefined;
      return padded.subarray(end + 1).toString('utf8');
    } catch {
      return undefined;
    }
  }
}
