import type { Archived } from '../archive/archive.ts';

/** What of an answer was in the archive; null: nothing. `missing`: files that this process cannot read, and why. */
export function presentArchived({ docs, files, missing }: Archived) {
  return docs.length === 0 && missing.length === 0 ? null : { documents: docs.length, files, missing };
}
