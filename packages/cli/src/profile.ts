import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exits, Failure, usage } from './failure.ts';
import type { Surroundings } from './surroundings.ts';

/** What is kept under a name, so that it is not typed each time. */
export interface Profile {
  api_key?: string;
  base_url?: string;
  operator_token?: string;
  admin_url?: string;
  /** What `listen` signs with where the receiver brings no secret of its own. */
  webhook_secret?: string;
}

type Field = Exclude<keyof Profile, 'webhook_secret'>;

/** The environment wins. */
const variables: Readonly<Record<Field, string>> = {
  api_key: 'KUSANYA_API_KEY',
  base_url: 'KUSANYA_BASE_URL',
  operator_token: 'KUSANYA_OPERATOR_TOKEN',
  admin_url: 'KUSANYA_ADMIN_URL',
};

/** Where `npm start` listens. */
const usual: Readonly<Partial<Record<Field, string>>> = {
  base_url: 'http://127.0.0.1:3000',
  admin_url: 'http://127.0.0.1:3001',
};

/** The file of profiles. It holds secrets: only its owner may read it. */
export class Profiles {
  readonly path: string;
  /** The one in use. */
  readonly name: string;
  readonly #env: Surroundings['env'];

  constructor({ env, folders }: Pick<Surroundings, 'env' | 'folders'>, name: string | undefined) {
    this.path = join(folders.config, 'profiles.json');
    this.name = name ?? env.KUSANYA_PROFILE ?? 'default';
    this.#env = env;
    if (!/^[\w.-]{1,40}$/.test(this.name))
      throw usage('a profile’s name has 1 to 40 letters, digits, ., _ or -');
  }

  /** A value of the environment, else of the profile, else the usual one. */
  async read(field: Field): Promise<string | undefined> {
    return this.#env[variables[field]] || (await this.own())[field] || usual[field];
  }

  /** As `read`, where nothing can be done without it. */
  async need(field: Field): Promise<string> {
    const found = await this.read(field);
    if (found) return found;
    const login = field === 'operator_token' ? 'kusanya login --operator' : 'kusanya login';
    throw usage(`there is no ${field.replace('_', ' ')}: set ${variables[field]}, or run ${login}`);
  }

  /** What the profile in use holds. */
  async own(): Promise<Profile> {
    return (await this.#all())[this.name] ?? {};
  }

  /** Adds to the profile in use. */
  async keep(more: Profile): Promise<void> {
    const all = await this.#all();
    const text = JSON.stringify({ ...all, [this.name]: { ...all[this.name], ...more } }, null, 2);
    await writeWhole(this.path, `${text}\n`);
  }

  async #all(): Promise<Record<string, Profile>> {
    const text = await readFile(this.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '{}';
      throw new Failure(exits.failed, 'profile_unreadable', `${this.path}: ${error.code}`);
    });
    if (text !== '{}' && ((await stat(this.path)).mode & 0o077) !== 0) await chmod(this.path, 0o600);
    try {
      return JSON.parse(text) as Record<string, Profile>;
    } catch {
      throw new Failure(exits.failed, 'profile_unreadable', `${this.path} is not JSON: mend or remove it`);
    }
  }
}

/** Replaces a file of its owner at once: a reader finds the old one or the new one, also after a crash. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true, mode: 0o700 });
  const beside = `${path}.${crypto.randomUUID()}`;
  await writeFile(beside, text, { mode: 0o600, flush: true });
  await rename(beside, path);
}
