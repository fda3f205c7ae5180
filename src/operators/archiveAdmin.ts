import { Type } from 'typebox';
import { type Archive, type Archiver, archiveKinds, fates, kindWords } from '../archive/archive.ts';
import { described } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';

/** What is kept for ever, what goes to the archive, and what is there. */
interface ArchiveAdminDeps {
  archive: Archive;
  archiver: Archiver;
  config: { archive: { dir: string | undefined; keptMs: Readonly<Record<string, number | undefined>> } };
}

const filesShown = 100;

export function showArchive({ archive, config }: ArchiveAdminDeps) {
  return forOperators({
    doc: described(
      'getArchive',
      'What is kept, and what has gone to the archive',
      200,
      '`retention_ms` null: kept for ever. What is older than `begins_at` can be in files; the latest hundred are listed.',
    ),
    handler: async () => {
      const [sums, files, run, begins] = await Promise.all([
        archive.sums(),
        archive.files(filesShown),
        archive.latestRun(),
        Promise.all(archiveKinds.map((kind) => archive.beginsAt(kind))),
      ]);
      const kinds = archiveKinds.map((kind, index) => {
        const sum = sums.find((each) => each.kind === kind);
        return {
          kind,
          what: kindWords[kind],
          stored_in: Object.keys(fates).filter((name) => fateOf(name).archived === kind),
          retention_ms: config.archive.keptMs[kind] ?? null,
          begins_at: begins[index]?.toISOString() ?? null,
          files: sum?.files ?? 0,
          documents: sum?.docs ?? 0,
          bytes: sum?.bytes ?? 0,
          raw_bytes: sum?.rawBytes ?? 0,
        };
      });
      const kept = Object.keys(fates).flatMap((name) => {
        const { kept: why, expires } = fateOf(name);
        return why || expires ? [{ stored_in: name, why: why ?? null, expires: expires ?? null }] : [];
      });
      const body = {
        object: 'archive',
        folder: config.archive.dir ?? null,
        kinds,
        latest_run: run
          ? {
              at: run.at.toISOString(),
              took_ms: run.tookMs,
              files: run.files,
              documents: run.docs,
              left: run.left,
              complete: run.isComplete,
              fault: run.fault ?? null,
            }
          : null,
        files: files.map((file) => ({
          name: file._id,
          kind: file.kind,
          state: file.state,
          at: file.at.toISOString(),
          before: file.before.toISOString(),
          documents: file.docs ?? 0,
          bytes: file.bytes ?? 0,
          raw_bytes: file.rawBytes ?? 0,
          sha256: file.sha256 ?? null,
        })),
        kept,
      };
      return { status: 200, body };
    },
  });
}

function fateOf(name: string): { kept?: string; archived?: string; expires?: string } {
  return fates[name] ?? {};
}

export function showArchivePlan({ archiver }: ArchiveAdminDeps) {
  return forOperators({
    doc: described(
      'getArchivePlan',
      'What the next night would archive',
      200,
      'A dry run: it counts for ten seconds at the most and writes nothing. `has_more`: there is more than was counted.',
    ),
    query: Type.Object({}, { additionalProperties: false }),
    handler: async () => {
      const plans = await archiver.plan();
      const data = plans.map(({ kind, before, counts, isMore }) => ({
        object: 'archive_plan',
        kind,
        before,
        documents: counts,
        has_more: isMore,
      }));
      return { status: 200, body: { object: 'list', data, has_more: false } };
    },
  });
}
