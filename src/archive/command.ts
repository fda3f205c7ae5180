import process from 'node:process';
import { parseArgs } from 'node:util';
import { connectMongo, type Doc, isDuplicateKey } from '@kusanya/durable-actors';
import { type Db, MongoBulkWriteError } from 'mongodb';
import { loadConfig } from '../config.ts';
import {
  type ArchivedDoc,
  fileOf,
  type Manifest,
  readBlocks,
  readManifests,
  readOwners,
  verifyFile,
} from './file.ts';

/** `npm run archive`: reads the files of the archive, without the service and without its database. */
const usage = `npm run archive -- <command>

  list                       every file, with what is in it
  read <id>                  what the archive has of a payment or another actor, as lines of JSON, oldest first;
                             an event, a delivery or an attempt is looked for in every file
  verify [file]              reads files back and compares them with their manifests
  restore <file> --into URI  puts a file's documents into a database, which the address names; what is there stays

  --dir <folder>             the folder of the archive; or in ARCHIVE_DIR
`;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dir: { type: 'string' },
    into: { type: 'string' },
    help: { type: 'boolean' },
  },
});
const [command, subject] = positionals;
const dir = values.dir ?? (values.help ? undefined : loadConfig().archive.dir) ?? '';

async function list(manifests: readonly Manifest[]): Promise<void> {
  for (const { name, before, docs, bytes, spans } of manifests) {
    const owners = spans.map(({ first, last }) => `${first} … ${last}`).join(', ');
    say([name, `before ${before}`, `${docs} documents`, `${bytes} bytes`, owners].join('\t'));
  }
}

/** Documents in the order of their collections and ids, each once: the latest file has the last word. */
async function read(manifests: readonly Manifest[], id: string): Promise<void> {
  const found = new Map<string, ArchivedDoc>();
  for (const manifest of manifests)
    for (const each of await foundIn(manifest, id)) found.set(`${each.in}/${each.doc._id}`, each);
  if (found.size === 0) throw new Error(`nothing of ${id} in ${manifests.length} files`);
  for (const key of [...found.keys()].sort()) say(JSON.stringify(found.get(key)));
}

async function foundIn(manifest: Manifest, id: string): Promise<ArchivedDoc[]> {
  const own = await readOwners(dir, manifest, [id]);
  if (own.length > 0 || !/^(evt|dlv)_/.test(id) || manifest.kind !== 'events') return own;
  const found: ArchivedDoc[] = [];
  for await (const docs of readBlocks(dir, manifest, 'plain')) {
    const isMeant = ({ doc }: ArchivedDoc) =>
      doc._id === id || doc._id.startsWith(`${id}/`) || doc.data?.eventId === id;
    found.push(...docs.filter(isMeant));
  }
  return found;
}

async function verify(manifests: readonly Manifest[]): Promise<void> {
  for (const manifest of manifests) {
    await verifyFile(dir, manifest);
    say(`${manifest.name}: whole, ${manifest.docs} documents`);
  }
}

async function restore([manifest]: readonly Manifest[], uri: string): Promise<void> {
  if (!manifest) throw new Error(`no file of this name in ${dir}`);
  await verifyFile(dir, manifest);
  const client = await connectMongo(uri);
  let count = 0;
  try {
    for await (const docs of readBlocks(dir, manifest, 'exact')) count += await putBack(client.db(), docs);
  } finally {
    await client.close();
  }
  say(
    `${count} documents of ${fileOf(dir, manifest.name)} were put back, ${manifest.docs - count} were there`,
  );
}

/** As they were, the order of their fields too. Answers how many were not there. */
async function putBack(db: Db, docs: readonly ArchivedDoc[]): Promise<number> {
  let count = 0;
  for (const name of new Set(docs.map((each) => each.in))) {
    const own = docs.flatMap(({ in: from, doc }) => (from === name ? [doc] : []));
    try {
      count += (await db.collection<Doc>(name).insertMany(own, { ordered: false })).insertedCount;
    } catch (error) {
      if (!(error instanceof MongoBulkWriteError) || !isDuplicateKey(error)) throw error;
      count += error.insertedCount;
    }
  }
  return count;
}

async function main(): Promise<void> {
  if (dir === '') throw new Error('name the folder: --dir, or ARCHIVE_DIR');
  const all = await readManifests(dir);
  const named = subject === undefined ? all : all.filter(({ name }) => name === subject);
  if (command === 'list') return list(all);
  if (command === 'verify') return verify(named);
  if (command === 'read' && subject !== undefined) return read(all, subject);
  if (command === 'restore' && subject !== undefined && values.into) return restore(named, values.into);
  process.stderr.write(usage);
  process.exitCode = 64;
}

if (values.help) process.stderr.write(usage);
else
  await main().catch((error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
