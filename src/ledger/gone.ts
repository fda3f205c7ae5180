import type { Db, Document } from 'mongodb';
import { idTime } from '../ids.ts';
import { limits } from '../limits.ts';
import { dateDueAtMs } from '../time.ts';
import { removedUpTo } from './days.ts';
import type { PostedEntry } from './entries.ts';

/** Entries that went to the archive, for whoever asks of an actor what it posted. */

/** What of the journal is in the archive. */
export interface ArchivedJournal {
  /** The entries of a day, some at a time, as they were stored and in their order. @throws where they cannot be read */
  day(date: string): AsyncIterable<readonly Document[]>;
  /** The entries about these actors, numbers plain. @throws where they cannot be read */
  of(ids: readonly string[]): Promise<PostedEntry[]>;
}

/** Clocks of two processes may differ by so much; a settlement asked for in test mode comes so long before its date. */
const idMarginMs = limits.hourMs;
const dateMarginMs = 60 * limits.dayMs;

/** Whether entries about an actor may have gone: it may have posted before the journal begins. */
export function mayHaveGone(id: string, removed: Date | null): boolean {
  if (!removed) return false;
  const [date] = /\d{4}-\d{2}-\d{2}$/.exec(id) ?? [];
  const madeMs = date ? dateDueAtMs(date) - dateMarginMs : timeOf(id) - idMarginMs;
  return madeMs < removed.getTime();
}

/** Of an id that is none of ours: the earliest that there is. */
function timeOf(id: string): number {
  try {
    return idTime(id);
  } catch {
    return 0;
  }
}

/** What the archive has about actors. */
export interface Gone {
  entries: PostedEntry[];
  /** Of these it is not known what they posted: it has gone, and there is nobody to read it or it cannot be read. */
  unknown: string[];
  /** Why it could not be read. */
  fault?: string;
}

/** To be asked after the journal was read: what is not there any more was marked as gone before. */
export async function goneAbout(
  db: Db,
  ids: readonly string[],
  archived: ArchivedJournal | undefined,
): Promise<Gone> {
  const removed = await removedUpTo(db);
  const old = ids.filter((id) => mayHaveGone(id, removed));
  if (old.length === 0 || !archived) return { entries: [], unknown: old };
  try {
    return { entries: await archived.of(old), unknown: [] };
  } catch (error) {
    return { entries: [], unknown: old, fault: String(error).slice(0, 300) };
  }
}

/** Adds what has gone to what is stored. While a day goes, or is put back, the same entry is in both places: once is meant. */
export function withGone<Entry extends { _id: string; postedAt: Date }>(stored: Entry[], gone: Entry): void {
  const isSame = ({ _id, postedAt }: Entry) =>
    _id === gone._id && postedAt.getTime() === gone.postedAt.getTime();
  if (!stored.some(isSame)) stored.push(gone);
}
