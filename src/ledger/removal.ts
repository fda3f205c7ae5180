import type { Clock, Doc } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type Archive, type ArchivedDoc, type DaySource, docsPerPage, exact } from '../archive/archive.ts';
import { modes } from '../mode.ts';
import {
  type Day,
  type DayDoc,
  daysOf,
  daysSpec,
  entriesOf,
  markRemoved,
  timesIn,
  verifiedUpTo,
} from './days.ts';
import type { PostedEntry } from './entries.ts';
import type { ArchivedJournal } from './gone.ts';
import { bothModes } from './postings.ts';
import { sealRead } from './seals.ts';

/**
 * The journal goes to the archive by whole days, the earliest first: only days that are proven, sealed and followed on
 * from, and only where the file that was read back has the very hash of the seal. What refers to an entry that has gone
 * reads it from there.
 */

/** The archive of an installation, as the ledger asks it. */
export function archivedJournal(archive: Archive): ArchivedJournal {
  return {
    day: (date) => archive.day('journal', date),
    of: async (ids) => {
      const { docs, missing } = await archive.of('journal', ...ids);
      const [fault] = missing;
      if (fault) throw new Error(`${fault.file}: ${fault.why}`);
      return docs.map(({ doc }) => doc as Doc & PostedEntry);
    },
  };
}

/** Days as the archiver takes them. One whose entries were put back goes again. */
export function journalSource(db: Db, clock: Clock): DaySource {
  const journal = db.collection<Doc>('journal_entries');
  return {
    kind: 'journal',
    days: async function* (beforeMs) {
      for (const day of await daysOf(db)) {
        if (day.until.getTime() > beforeMs) return;
        if (entriesOf(day) === 0) continue;
        const isStored = day.removedAt ? journal.findOne({ ...bothModes, postedAt: timesIn(day) }) : day;
        if (!(await isStored)) continue;
        const verified = await verifiedUpTo(db);
        if (!day.removedAt && (!verified || verified < day.until)) return;
        yield { date: day._id, until: day.until, pages: pagesOf(db, day) };
      }
    },
    release: async (date, docs) => {
      const day = await db.collection<DayDoc>(daysSpec.name).findOne({ _id: date });
      if (!day) throw new Error(`${date} is no day of the books`);
      const read = await sealRead(entriesIn(docs));
      for (const { mode, entries, hash } of day.journal) {
        const found = read.find((each) => each.mode === mode);
        if (found?.hash !== hash)
          throw new Error(
            `${date} in ${mode} mode was sealed with ${entries} entries; ${found?.entries} are others`,
          );
      }
      if (!day.removedAt) await markRemoved(db, day.until, clock.now());
    },
    remove: async (docs) => {
      await journal.deleteMany({ _id: { $in: docs.map(({ doc }) => doc._id) } });
      return 0;
    },
  };
}

async function* entriesIn(docs: AsyncIterable<readonly ArchivedDoc[]>): AsyncGenerator<Doc[]> {
  for await (const page of docs) yield page.map(({ doc }) => doc);
}

/** A day's entries in the order of its seal. */
async function* pagesOf(db: Db, day: Day): AsyncGenerator<ArchivedDoc[]> {
  for (const mode of modes) {
    const found = db
      .collection<Doc>('journal_entries')
      .find({ mode, postedAt: timesIn(day) }, exact)
      .sort({ postedAt: 1, _id: 1 })
      .batchSize(docsPerPage);
    while (await found.hasNext()) {
      const docs = found.readBufferedDocuments();
      yield docs.map((doc) => ({ of: String(doc.source.id), in: 'journal_entries', doc }));
    }
  }
}
