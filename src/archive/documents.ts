import type { Doc, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Manifest } from './file.ts';
import type { ArchiveKind } from './retention.ts';

/** What MongoDB knows of the archive: where things are, and what the latest run did. */

/**
 * A file; `_id` is its name. `writing`: it does not count, and goes when its process is dead. `removing`: it is whole and
 * was read back; what is in it is being removed.
 */
export interface ArchiveFileDoc
  extends Doc,
    Partial<
      Pick<Manifest, 'docs' | 'counts' | 'bytes' | 'rawBytes' | 'sha256' | 'linesSha256' | 'spans' | 'blocks'>
    > {
  kind: ArchiveKind;
  state: 'writing' | 'removing' | 'done';
  /** The process that writes it. */
  owner: string;
  at: Date;
  /** Only what is older is in it. */
  before: Date;
  /** The day of the books that is in it, whole. */
  date?: string;
  /** Documents that stayed stored too, because they changed meanwhile. */
  left?: number;
}

export const archiveFilesSpec: MongoCollectionSpec = {
  name: 'archive_files',
  indexes: [
    { key: { kind: 1, 'spans.last': 1 } },
    { key: { kind: 1, before: -1 } },
    { key: { kind: 1, date: 1 }, partial: { date: { $exists: true } } },
  ],
  retired: ['kind_1_last_1'],
};

/** The latest run; `_id` is `latest`. */
export interface ArchiveRunDoc extends Doc {
  at: Date;
  tookMs: number;
  files: number;
  docs: number;
  left: number;
  isComplete: boolean;
  fault?: string;
}

export const archiveRunsSpec: MongoCollectionSpec = { name: 'archive_runs' };
