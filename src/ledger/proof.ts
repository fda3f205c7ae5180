import type { Db } from 'mongodb';
import { modes } from '../mode.ts';
import { actorRules, checkSpan, checkTouched, lastOf } from './auditor.ts';
import type { ActorRules, Bounds, Understood } from './captures.ts';
import { type Span, unevenClosings } from './closings.ts';
import { type DayDoc, entriesOf, idsIn, type Slice } from './days.ts';
import { Findings } from './findings.ts';
import { undatedRules } from './holdings.ts';
import { hashed, sealEvents, sealJournal, sealRead } from './seals.ts';

/** Proves one day, or compares it with its seal. */

/** Raised with every rule that is new or changed: days proven by older ones are proven again when it is their turn. */
export const rulesEdition = 4;

const actorsPerSlice = 1_000;

/** What was found in a day, and what its document is to say of it. */
export interface Look {
  findings: Findings;
  isProof: boolean;
  seen: Pick<DayDoc, 'journal' | 'events' | 'actors'>;
}

/**
 * Looks at a day. One that is proven is compared with its seal: its journal and its events must be the same, and rules
 * are asked only of actors that changed since. One that went to the archive is compared with its file, and never proven
 * again. All rules are asked of one that is not, or not as it was sealed, and where
 * `isProof` wants it: of its entries and books, of its closing, of the actors that it made, and of those of earlier days
 * that its entries and events are about.
 */
export async function lookAt(
  db: Db,
  { date, ...span }: Span & { date: string },
  known: DayDoc | undefined,
  isWanted: boolean,
  understood: Understood,
): Promise<Look> {
  const findings = new Findings(db);
  // The seals are made first: what changes between them and the rules is seen the next time.
  const isGone = known?.removedAt !== undefined;
  const journal = isGone ? await sealArchived(known, understood, findings) : [];
  for (const mode of isGone ? [] : modes) journal.push(await sealJournal(db, mode, span));
  const sealed = await sealEvents(db, span);
  // Of events that may have gone to the archive the seal stays what it was when they were all there.
  const events = (known?.sealedAt && (await eventsMayHaveGone(span, understood)) && known.events) || sealed;
  const seen = { journal, events, actors: {} as DayDoc['actors'] };
  if (known?.sealedAt) compare(date, known, seen, findings);
  const isOutdated = !known?.provenAt || known.edition !== rulesEdition;
  const isProof = !isGone && (isWanted || isOutdated || findings.breaches.length > 0);
  if (isProof) {
    await checkSpan(db, span, findings, understood, 'the rest');
    await findings.take('closings', async function* () {
      for await (const wrong of unevenClosings(db, span)) yield { kind: 'closing.differs', ...wrong };
    });
  }
  // Nothing tells of which day these are but what they posted on it: they are asked each time.
  for (const rules of isProof || isGone ? [] : undatedRules) {
    await findings.take(rules.plural, () => checkTouched(db, rules, span, undefined, findings, understood));
  }
  for (const rules of actorRules) {
    // One that has gone is not proven again, so what was wrong with it is asked for each time.
    const isAsked = isProof || (isGone && known.breaches > 0);
    const before = isAsked ? undefined : known?.actors[rules.plural];
    seen.actors[rules.plural] = await lookAtActors(db, rules, span, before, findings, understood);
  }
  return { findings, isProof, seen };
}

/** Of a day that went to the archive: what its file says. Where none can be read, that is what is wrong. */
async function sealArchived(known: DayDoc, { archived }: Understood, { breaches }: Findings) {
  if (!archived || entriesOf(known) === 0) return known.journal;
  try {
    return await sealRead(archived.day(known._id));
  } catch (error) {
    breaches.push({ kind: 'archive.unreadable', what: known._id, why: String(error).slice(0, 300) });
    return known.journal;
  }
}

async function eventsMayHaveGone({ from }: Span, { eventsBegin }: Understood): Promise<boolean> {
  const begin = await eventsBegin?.();
  return begin !== undefined && (from === null || from < begin);
}

/** A sealed day's journal and events never change. */
function compare(date: string, known: DayDoc, seen: Look['seen'], { breaches }: Findings): void {
  for (const { mode, entries, hash } of seen.journal) {
    const sealed = known.journal.find((each) => each.mode === mode);
    if (sealed?.hash === hash) continue;
    const counts = { sealedCount: sealed?.entries ?? 0, foundCount: entries };
    breaches.push({ kind: 'day.differs', mode, date, part: 'journal', ...counts });
  }
  if (known.events.hash === seen.events.hash) return;
  const counts = { sealedCount: known.events.count, foundCount: seen.events.count };
  breaches.push({ kind: 'day.differs', date, part: 'events', ...counts });
}

/** Slice by slice; the rules are asked of those that are not as they were. */
async function lookAtActors(
  db: Db,
  rules: ActorRules,
  span: Span,
  known: readonly Slice[] | undefined,
  findings: Findings,
  understood: Understood,
): Promise<Slice[]> {
  const slices: Slice[] = [];
  let range: Bounds = idsIn(rules.prefix, span);
  for (;;) {
    const before = known?.[slices.length];
    const upTo = before ? before.upTo : ((await lastOf(db, rules, range, actorsPerSlice)) ?? null);
    const ids = upTo === null ? range : { ...range, $lte: upTo };
    const { hash } = await hashed(
      db,
      rules.plural,
      { _id: ids },
      { sort: { _id: 1 }, projection: rules.fields },
    );
    slices.push({ upTo, hash });
    if (hash !== before?.hash) {
      await findings.take(rules.plural, () => rules.check(db, ids, findings.checked, understood));
    }
    if (upTo === null) return slices;
    const { $gte: _, ...end } = range;
    range = { ...end, $gt: upTo };
  }
}
