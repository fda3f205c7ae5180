import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Doc } from '@kusanya/durable-actors';
import { BSON } from 'mongodb';

/**
 * One file of the archive: lines of JSON in gzip, which `zcat` reads, and beside it a manifest. It is written in blocks,
 * each a whole gzip of its own, so that one owner's documents are read without the rest. A document is kept in MongoDB's
 * canonical Extended JSON: what is put back is what was taken, type for type.
 */

/** A document, the MongoDB collection that it was in, and whose it is. */
export interface ArchivedDoc {
  /** The actor whose past it is: a payment, for most. */
  of: string;
  in: string;
  doc: Doc;
}

/** The least and the greatest owner of one family. */
export interface OwnerSpan {
  first: string;
  last: string;
}

/** A stretch of a file that is read alone, and whose documents are in it: a span for each family of owners. */
interface Block {
  at: number;
  bytes: number;
  docs: number;
  spans: OwnerSpan[];
}

/** What a file holds: enough to find an owner in it, and to prove that it is whole. */
export interface Manifest {
  format: 1;
  name: string;
  kind: string;
  /** Only what is older than this is in it. */
  before: string;
  /** The day of the books that is in it, whole. */
  date?: string;
  writtenAt: string;
  docs: number;
  /** Documents by the MongoDB collection that they were in. */
  counts: Record<string, number>;
  bytes: number;
  /** Before they were compressed. */
  rawBytes: number;
  /** Of the file as it is. */
  sha256: string;
  /** Of its lines. */
  linesSha256: string;
  spans: OwnerSpan[];
  blocks: Block[];
}

/** Customers' numbers are in it. */
const ownerOnly = 0o600;

const zipped = promisify(gzip);
const unzipped = promisify(gunzip);
const { EJSON } = BSON;

export const fileOf = (dir: string, name: string): string => join(dir, `${name}.ndjson.gz`);
const manifestOf = (dir: string, name: string): string => join(dir, `${name}.json`);

/** Writes one file, block by block. Whoever does not come to its `end` has written nothing that counts. */
export class ArchiveWriter {
  readonly #dir: string;
  readonly #name: string;
  readonly #file: FileHandle;
  readonly #sha256 = createHash('sha256');
  readonly #linesSha256 = createHash('sha256');
  readonly #counts: Record<string, number> = {};
  readonly #blocks: Block[] = [];
  #bytes = 0;
  #rawBytes = 0;
  docs = 0;

  private constructor(dir: string, name: string, file: FileHandle) {
    this.#dir = dir;
    this.#name = name;
    this.#file = file;
  }

  /** @throws the system's error where the folder cannot be written, or the file is there already */
  static async begin(dir: string, name: string): Promise<ArchiveWriter> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return new ArchiveWriter(dir, name, await open(fileOf(dir, name), 'wx', ownerOnly));
  }

  async add(docs: readonly ArchivedDoc[]): Promise<void> {
    if (docs.length === 0) return;
    const lines = Buffer.from(docs.map((each) => `${lineOf(each)}\n`).join(''));
    const block = await zipped(lines);
    const spans = spansOf(docs.map(({ of }) => of));
    this.#blocks.push({ at: this.#bytes, bytes: block.length, docs: docs.length, spans });
    await this.#file.appendFile(block);
    this.#sha256.update(block);
    this.#linesSha256.update(lines);
    this.#bytes += block.length;
    this.#rawBytes += lines.length;
    this.docs += docs.length;
    for (const each of docs) this.#counts[each.in] = (this.#counts[each.in] ?? 0) + 1;
  }

  /** Both files are on the disk when this resolves, and so are their names. */
  async end(about: Pick<Manifest, 'kind' | 'before' | 'date' | 'writtenAt'>): Promise<Manifest> {
    await this.#file.sync();
    await this.#file.close();
    const manifest: Manifest = {
      format: 1,
      name: this.#name,
      ...about,
      docs: this.docs,
      counts: this.#counts,
      bytes: this.#bytes,
      rawBytes: this.#rawBytes,
      sha256: this.#sha256.digest('hex'),
      linesSha256: this.#linesSha256.digest('hex'),
      spans: spansOf(this.#blocks.flatMap(({ spans }) => spans.flatMap(({ first, last }) => [first, last]))),
      blocks: this.#blocks,
    };
    const path = manifestOf(this.#dir, this.#name);
    await writeFile(path, `${JSON.stringify(manifest, null, 1)}\n`, { flush: true, mode: ownerOnly });
    await syncFolder(dirname(path));
    return manifest;
  }

  /** Leaves nothing behind. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await removeFile(this.#dir, this.#name);
  }
}

/** Ids begin with what they are of: `col_`, `stl.`. */
export const familyOf = (id: string): string => /^[A-Za-z]+[_.]/.exec(id)?.[0] ?? id;

/** By family, since ids of one are in the order of their time and those of two are in none. */
function spansOf(owners: readonly string[]): OwnerSpan[] {
  const spans = new Map<string, OwnerSpan>();
  for (const owner of owners) {
    const span = spans.get(familyOf(owner));
    if (!span) spans.set(familyOf(owner), { first: owner, last: owner });
    else if (owner < span.first) span.first = owner;
    else if (owner > span.last) span.last = owner;
  }
  return [...spans.values()];
}

/** Whether one of these can be there. `owners`: in order. */
export function mayHave(spans: readonly OwnerSpan[], owners: readonly string[]): boolean {
  return spans.some(({ first, last }) => {
    let [from, to] = [0, owners.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (owners[middle]! < first) from = middle + 1;
      else to = middle;
    }
    return from < owners.length && owners[from]! <= last;
  });
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Removes a file that was never finished. */
export async function removeFile(dir: string, name: string): Promise<void> {
  await rm(manifestOf(dir, name), { force: true });
  await rm(fileOf(dir, name), { force: true });
}

function lineOf({ of, in: from, doc }: ArchivedDoc): string {
  return `{"of":${JSON.stringify(of)},"in":${JSON.stringify(from)},"doc":${EJSON.stringify(doc, { relaxed: false })}}`;
}

/** How documents are read back: `exact` keeps MongoDB's types, to be stored again; else numbers are plain, to be shown. */
export type Reading = 'exact' | 'plain';

function docOf(line: string, reading: Reading): ArchivedDoc {
  const found: unknown = EJSON.parse(line, { relaxed: reading === 'plain' });
  if (!isArchived(found)) throw new Error(`no line of the archive: ${line.slice(0, 80)}`);
  return found;
}

function isArchived(found: unknown): found is ArchivedDoc {
  return typeof found === 'object' && found !== null && 'of' in found && 'in' in found && 'doc' in found;
}

/** The manifests of a folder, by name. @throws the system's error where it cannot be read */
export async function readManifests(dir: string): Promise<Manifest[]> {
  const names = (await readdir(dir)).filter((name) => name.endsWith('.json')).sort();
  return Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(dir, name), 'utf8')) as Manifest),
  );
}

/** The blocks of a file, one after the other, as they are. @throws the system's error */
async function* rawBlocks(
  dir: string,
  { name, blocks }: Pick<Manifest, 'name' | 'blocks'>,
): AsyncGenerator<{ block: Block; packed: Buffer }> {
  const file = await open(fileOf(dir, name), 'r');
  try {
    for (const block of blocks) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(block.bytes), 0, block.bytes, block.at);
      if (bytesRead !== block.bytes) throw new Error(`${name} ends in the middle of a block`);
      yield { block, packed: buffer };
    }
  } finally {
    await file.close();
  }
}

/** Lines of a packed block. */
async function linesOf(packed: Buffer): Promise<string[]> {
  const text = (await unzipped(packed)).toString('utf8');
  return text.split('\n').slice(0, -1);
}

/** All documents of a file, block by block. @throws where it cannot be read */
export async function* readBlocks(
  dir: string,
  manifest: Pick<Manifest, 'name' | 'blocks'>,
  reading: Reading,
): AsyncGenerator<ArchivedDoc[]> {
  for await (const { packed } of rawBlocks(dir, manifest))
    yield (await linesOf(packed)).map((line) => docOf(line, reading));
}

/** The documents of some owners in a file: only the blocks that can have some are read. `owners`: in order. */
export async function readOwners(
  dir: string,
  { name, blocks }: Pick<Manifest, 'name' | 'blocks'>,
  owners: readonly string[],
): Promise<ArchivedDoc[]> {
  const able = blocks.filter(({ spans }) => mayHave(spans, owners));
  if (able.length === 0) return [];
  const wanted = new Set(owners.map((owner) => `{"of":${JSON.stringify(owner)}`));
  const found: ArchivedDoc[] = [];
  for await (const { packed } of rawBlocks(dir, { name, blocks: able }))
    for (const line of await linesOf(packed))
      if (wanted.has(line.slice(0, line.indexOf(',"in":')))) found.push(docOf(line, 'plain'));
  return found;
}

/**
 * Reads a whole file back and compares it with its manifest: the bytes, the lines, each line as a document, and how many
 * there are of each MongoDB collection. @throws Error saying what differs
 */
export async function verifyFile(dir: string, manifest: Manifest): Promise<void> {
  const [sha256, linesSha256] = [createHash('sha256'), createHash('sha256')];
  const counts: Record<string, number> = {};
  for await (const { block, packed } of rawBlocks(dir, manifest)) {
    sha256.update(packed);
    const lines = await linesOf(packed);
    if (lines.length !== block.docs) throw new Error(`${manifest.name}: a block has ${lines.length} lines`);
    for (const line of lines) {
      linesSha256.update(`${line}\n`);
      const { in: from } = docOf(line, 'exact');
      counts[from] = (counts[from] ?? 0) + 1;
    }
  }
  const { size } = await stat(fileOf(dir, manifest.name));
  if (size !== manifest.bytes) throw new Error(`${manifest.name} has ${size} bytes, not ${manifest.bytes}`);
  if (sha256.digest('hex') !== manifest.sha256) throw new Error(`${manifest.name} is not as it was written`);
  if (linesSha256.digest('hex') !== manifest.linesSha256)
    throw new Error(`the lines of ${manifest.name} are not as they were written`);
  const differs = Object.entries(manifest.counts).find(([from, count]) => counts[from] !== count);
  if (differs) throw new Error(`${manifest.name} has ${counts[differs[0]] ?? 0} of ${differs.join(': ')}`);
}
