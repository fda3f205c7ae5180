import type { Db } from 'mongodb';
import { Archiver, type ArchiverOptions } from './archiver.ts';
import { type ArchiveFileDoc, type ArchiveRunDoc, archiveFilesSpec, archiveRunsSpec } from './documents.ts';
import { type ArchivedDoc, readOwner } from './file.ts';
import type { ArchiveKind } from './retention.ts';

/** What is too old for MongoDB, in files: written by the archiver, read here. */
export { type ArchivePlan, type ArchiveReport, Archiver, archivePoints } from './archiver.ts';
export { archiveFilesSpec, archiveRunsSpec } from './documents.ts';
export { type ArchiveKind, archiveKinds, type Fate, fates, kindWords } from './retention.ts';

/** The archive of an installation, to be read and to be written. */
export function openArchive({
  patientDb,
  config: { archive },
  ...parts
}: Pick<ArchiverOptions, 'db' | 'clock' | 'log' | 'lease' | 'charts' | 'mayGo'> & {
  patientDb: Db;
  config: { archive: Pick<ArchiverOptions, 'dir' | 'keptMs'> };
}): { archive: Archive; archiver: Archiver } {
  return {
    archive: new Archive({ db: parts.db, dir: archive.dir }),
    archiver: new Archiver({ ...parts, db: patientDb, ...archive }),
  };
}

/** What an owner has in the archive. */
export interface Archived {
  docs: ArchivedDoc[];
  /** The files that may hold something of it. */
  files: string[];
  /** Files that this process cannot read, with the reason. */
  missing: { file: string; why: string }[];
}

export const nothingArchived: Archived = { docs: [], files: [], missing: [] };

export class Archive {
  readonly #db: Db;
  readonly #dir: string | undefined;

  constructor({ db, dir }: { db: Db; dir: string | undefined }) {
    this.#db = db;
    this.#dir = dir;
  }

  /** What of an actor was archived; each document once, however many files have it. */
  async of(kind: ArchiveKind, owner: string): Promise<Archived> {
    const counted = { kind, state: { $ne: 'writing' as const } };
    const files = await this.#files
      .find({ ...counted, first: { $lte: owner }, last: { $gte: owner } })
      .sort({ at: 1, _id: 1 })
      .toArray();
    const archived: Archived = { docs: [], files: files.map(({ _id }) => _id), missing: [] };
    const docs = new Map<string, ArchivedDoc>();
    for (const { _id, blocks = [] } of files) {
      try {
        if (this.#dir === undefined) throw new Error('ARCHIVE_DIR is not set');
        for (const each of await readOwner(this.#dir, { name: _id, blocks }, owner))
          docs.set(`${each.in}/${each.doc._id}`, each);
      } catch (error) {
        archived.missing.push({ file: _id, why: String(error).slice(0, 200) });
      }
    }
    archived.docs = [...docs.values()];
    return archived;
  }

  /**
   * What is older of a kind than this can be in the archive; undefined: nothing has gone there. Everything that is
   * younger is in MongoDB.
   */
  async beginsAt(kind: ArchiveKind): Promise<Date | undefined> {
    const [latest] = await this.#files
      .find({ kind, state: { $ne: 'writing' } }, { projection: { before: 1 } })
      .sort({ before: -1 })
      .limit(1)
      .toArray();
    return latest?.before;
  }

  /** Files, the latest first. */
  files(limit: number): Promise<ArchiveFileDoc[]> {
    return this.#files
      .find({}, { projection: { blocks: 0 } })
      .sort({ at: -1, _id: -1 })
      .limit(limit)
      .toArray();
  }

  /** How much of each kind is in finished files. */
  async sums(): Promise<
    { kind: ArchiveKind; files: number; docs: number; bytes: number; rawBytes: number }[]
  > {
    const sum = (field: string) => ({ $sum: `$${field}` });
    const rows = this.#files.aggregate<{
      _id: ArchiveKind;
      files: number;
      docs: number;
      bytes: number;
      rawBytes: number;
    }>([
      { $match: { state: { $ne: 'writing' } } },
      {
        $group: {
          _id: '$kind',
          files: { $sum: 1 },
          docs: sum('docs'),
          bytes: sum('bytes'),
          rawBytes: sum('rawBytes'),
        },
      },
    ]);
    return (await rows.toArray()).map(({ _id: kind, ...rest }) => ({ kind, ...rest }));
  }

  async latestRun(): Promise<ArchiveRunDoc | undefined> {
    const run = await this.#db.collection<ArchiveRunDoc>(archiveRunsSpec.name).findOne({ _id: 'latest' });
    return run ?? undefined;
  }

  get #files() {
    return this.#db.collection<ArchiveFileDoc>(archiveFilesSpec.name);
  }
}
