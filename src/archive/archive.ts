import type { Doc } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type ArchiveFileDoc, type ArchiveRunDoc, archiveFilesSpec, archiveRunsSpec } from './documents.ts';
import { type ArchivedDoc, familyOf, mayHave, readBlocks, readOwners } from './file.ts';
import type { ArchiveKind } from './retention.ts';

/** What is too old for MongoDB, in files: written by the archiver, read here. */
export { type ArchivePlan, type ArchiveReport, Archiver, archivePoints } from './archiver.ts';
export { archiveFilesSpec, archiveRunsSpec } from './documents.ts';
export type { ArchivedDoc } from './file.ts';
export { type ArchiveKind, archiveKinds, type Fate, fates, kindWords } from './retention.ts';
export { type DaySource, type DueDay, docsPerPage, exact } from './sources.ts';

/** What an owner has in the archive. */
export interface Archived {
  docs: ArchivedDoc[];
  /** The files that may hold something of it. */
  files: string[];
  /** Files that this process cannot read, with the reason. */
  missing: { file: string; why: string }[];
}

const finished = { state: { $ne: 'writing' as const } };

export const nothingArchived: Archived = { docs: [], files: [], missing: [] };

export class Archive {
  readonly #db: Db;
  readonly #dir: string | undefined;

  constructor({ db, dir }: { db: Db; dir: string | undefined }) {
    this.#db = db;
    this.#dir = dir;
  }

  /** What of these actors was archived; each document once, however many files have it. */
  async of(kind: ArchiveKind, ...owners: string[]): Promise<Archived> {
    const wanted = owners.toSorted();
    const files = await this.#filesWith(kind, wanted);
    const archived: Archived = { docs: [], files, missing: [] };
    const docs = new Map<string, ArchivedDoc>();
    for (const name of files) {
      try {
        const file = await this.#files.findOne({ _id: name }, { projection: { blocks: 1 } });
        const blocks = { name, blocks: file?.blocks ?? [] };
        for (const each of await readOwners(this.#folder, blocks, wanted))
          docs.set(`${each.in}/${each.doc._id}`, each);
      } catch (error) {
        archived.missing.push({ file: name, why: String(error).slice(0, 200) });
      }
    }
    archived.docs = [...docs.values()];
    return archived;
  }

  /** A day that went whole, some documents at a time, as they were. @throws where no file has it, or it cannot be read */
  async *day(kind: ArchiveKind, date: string): AsyncGenerator<Doc[]> {
    const [file] = await this.#files
      .find({ kind, date, ...finished })
      .sort({ at: -1 })
      .limit(1)
      .toArray();
    if (!file) throw new Error(`no file of the archive has the ${kind} of ${date}`);
    const blocks = { name: file._id, blocks: file.blocks ?? [] };
    for await (const docs of readBlocks(this.#folder, blocks, 'exact')) yield docs.map(({ doc }) => doc);
  }

  /**
   * What is older of a kind than this can be in the archive; undefined: nothing has gone there. Everything that is
   * younger is in MongoDB.
   */
  async beginsAt(kind: ArchiveKind): Promise<Date | undefined> {
    const [latest] = await this.#files
      .find({ kind, ...finished }, { projection: { before: 1 } })
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
      { $match: finished },
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

  /** The files that may have something of one of these, the earliest first. */
  async #filesWith(kind: ArchiveKind, owners: readonly string[]): Promise<string[]> {
    const families = new Map<string, string[]>();
    for (const owner of owners) {
      const family = familyOf(owner);
      families.set(family, [...(families.get(family) ?? []), owner]);
    }
    const spans = [...families.values()].map((own) => ({
      spans: { $elemMatch: { first: { $lte: own.at(-1)! }, last: { $gte: own[0]! } } },
    }));
    if (spans.length === 0) return [];
    const files = this.#files
      .find({ kind, ...finished, $or: spans }, { projection: { spans: 1 } })
      .sort({ at: 1, _id: 1 });
    const found: string[] = [];
    for await (const { _id, spans: own = [] } of files) if (mayHave(own, owners)) found.push(_id);
    return found;
  }

  get #folder(): string {
    if (this.#dir === undefined) throw new Error('ARCHIVE_DIR is not set');
    return this.#dir;
  }

  get #files() {
    return this.#db.collection<ArchiveFileDoc>(archiveFilesSpec.name);
  }
}
