import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** What a service without configured secrets makes at its first start and keeps with its data. */
export interface Secrets {
  operatorToken: string;
  keyHashSecret: string;
  /** 32 bytes, base64. */
  secretsKey: string;
}

/** The merchant made at the first start. Its key is kept so that each start can print it: test mode only. */
export interface FirstMerchant {
  merchantId: string;
  testKey: string;
}

type Identity = Secrets & { kept?: FirstMerchant };

/**
 * The secrets of `dataDir`, made at the first start. They belong to the data: keys are hashed and webhook
 * secrets encrypted with them, so a broken file is never replaced by new ones.
 *
 * @throws Error when secrets.json is there but cannot be used
 */
export async function loadOrCreateSecrets(dataDir: string): Promise<Secrets> {
  const found = await read(dataDir);
  if (found) {
    const { operatorToken, keyHashSecret, secretsKey } = found;
    return { operatorToken, keyHashSecret, secretsKey };
  }
  const made: Secrets = {
    operatorToken: `kusanya_operator_${randomBytes(32).toString('base64url')}`,
    keyHashSecret: randomBytes(32).toString('base64url'),
    secretsKey: randomBytes(32).toString('base64'),
  };
  // Of two services that start at once only one gets DATA_DIR, but which is not yet settled: the first file counts.
  const isFirst = await write(dataDir, made, link);
  return isFirst ? made : loadOrCreateSecrets(dataDir);
}

/** The merchant made at the first start; undefined before `keepFirstMerchant`. */
export async function readFirstMerchant(dataDir: string): Promise<FirstMerchant | undefined> {
  return (await read(dataDir))?.kept;
}

/** Keeps the first merchant's test key beside the secrets, which must have been made. */
export async function keepFirstMerchant(dataDir: string, kept: FirstMerchant): Promise<void> {
  await write(dataDir, { ...(await loadOrCreateSecrets(dataDir)), kept }, rename);
}

async function read(dataDir: string): Promise<Identity | undefined> {
  const file = join(dataDir, 'secrets.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const advice = 'Restore it from a backup; without it the stored keys and webhook secrets cannot be used.';
  try {
    const identity = JSON.parse(text) as Identity;
    const { operatorToken, keyHashSecret, secretsKey } = identity;
    if (operatorToken && keyHashSecret && Buffer.from(secretsKey, 'base64').length === 32) return identity;
  } catch {
    // the same fault in other words
  }
  throw new Error(`${file} is damaged. ${advice}`);
}

/**
 * Whole or not at all, and on disk before anything is hashed or encrypted with it. `put` is `rename`, which
 * replaces, or `link`, which gives way to a file that is there: then the answer is false.
 */
async function write(dataDir: string, identity: Identity, put: typeof rename): Promise<boolean> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const own = join(dataDir, `secrets.${randomUUID()}`);
  try {
    const handle = await open(own, 'wx', 0o600);
    await handle.writeFile(`${JSON.stringify(identity, null, 2)}\n`);
    await handle.sync();
    await handle.close();
    await put(own, join(dataDir, 'secrets.json'));
    return true;
  } catch (error) {
    if (put === link && (error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(own, { force: true });
  }
}
