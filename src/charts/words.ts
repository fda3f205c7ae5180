import type { Box, Note } from './read.ts';

/** Notes as lines of text, broken so that none is wider than asked for. */
export type Tone = 'event' | 'guard' | 'effect' | 'quiet' | 'place';

/** A run of characters in one tone. */
export interface Span {
  text: string;
  tone: Tone;
}

export type Line = Span[];

/** Continued lines stand in by this much, so that the eye finds where the next transition begins. */
const indent = '  ';

/** `push.failed [isLate] → inner / post, record`, as lines of at most `chars` characters. */
export function linesOf(note: Note, chars: number): Line[] {
  return broken(wordsOf(note), chars);
}

/**
 * The lines beside an arrow. What comes from the same nested state stands under its name. Assignments are left
 * out, since the arrow shows that something happens, and what then reads the same is said once.
 */
export function linesOfArrow(notes: readonly Note[], chars: number): Line[] {
  const short = merged(
    notes.map((note) => ({ ...note, actions: note.actions.filter(({ isEffect }) => isEffect) })),
  );
  const places = [...new Set(short.map(({ within }) => within))];
  return places.flatMap((within) => {
    const lines = short.filter((note) => note.within === within).flatMap((note) => linesOf(note, chars));
    return within ? [[{ text: `from ${within}`, tone: 'place' as const }], ...lines] : lines;
  });
}

function merged(notes: readonly Note[]): Note[] {
  const byRest = new Map<string, Note>();
  for (const { events, ...rest } of notes) {
    const key = JSON.stringify(rest);
    const known = byRest.get(key);
    byRest.set(key, { ...rest, events: [...new Set([...(known?.events ?? []), ...events])] });
  }
  return [...byRest.values()];
}

/** Words that may not be broken; a space stands between them unless one is glued to the one before. */
interface Word extends Span {
  isGlued?: boolean;
  /** A space stands before it, but no line may end there. */
  isBound?: boolean;
}

function wordsOf(note: Note): Word[] {
  const { kind, events, guard, actions, into, reenters } = note;
  const words: Word[] = [];
  if (kind === 'event') {
    for (const [index, text] of events.entries()) {
      if (index > 0) words.push({ text: ',', tone: 'quiet', isGlued: true });
      words.push({ text, tone: 'event' });
    }
  } else if (kind === 'after') {
    words.push({ text: `after ${events.join(', ')}`, tone: 'event' });
  } else if (kind === 'entry' || kind === 'exit') {
    words.push({ text: kind, tone: 'place' });
  }
  if (guard) words.push({ text: `[${guard}]`, tone: 'guard' });
  if (kind === 'always' && !guard) words.push({ text: 'always', tone: 'event' });
  if (into) words.push({ text: `→ ${into}`, tone: 'place' });
  if (reenters) words.push({ text: '↻', tone: 'place' });
  if (kind === 'event' && !note.leads && actions.length === 0)
    words.push({ text: '(no change)', tone: 'quiet' });
  for (const [index, { text, isEffect }] of actions.entries()) {
    if (index > 0) words.push({ text: ',', tone: 'quiet', isGlued: true });
    else words.push({ text: '/', tone: 'quiet' });
    words.push({ text, tone: isEffect ? 'effect' : 'quiet', isBound: index === 0 });
  }
  return words;
}

function broken(words: readonly Word[], chars: number): Line[] {
  const lines: Line[] = [];
  let line: Line = [];
  for (const [index, word] of words.entries()) {
    const isFree = line.length > 0 && !word.isGlued && !word.isBound;
    if (isFree && lengthOf(line) + 1 + lengthOf(boundWith(words, index)) > chars) {
      lines.push(line);
      line = [{ text: indent, tone: 'quiet' }];
    } else if (line.length > 0 && !word.isGlued) {
      line.push({ text: ' ', tone: 'quiet' });
    }
    line.push({ text: word.text, tone: word.tone });
  }
  if (line.length > 0) lines.push(line);
  return lines;
}

/** A word and what must stay on its line: the comma after it, the action after a slash. */
function boundWith(words: readonly Word[], index: number): Span[] {
  const spans: Span[] = [words[index]!];
  for (let next = index + 1; words[next]?.isGlued || words[next]?.isBound; next += 1) {
    if (words[next]!.isBound) spans.push({ text: ' ', tone: 'quiet' });
    spans.push(words[next]!);
  }
  return spans;
}

export function lengthOf(line: Line): number {
  return line.reduce((sum, { text }) => sum + text.length, 0);
}

/** The text of a note on one line, for formats that break lines by themselves. */
export function textOf(note: Note): string {
  const [line] = linesOf(note, Number.POSITIVE_INFINITY);
  const text = (line ?? []).map((span) => span.text).join('');
  return note.within ? `from ${note.within}, ${text}` : text;
}

/** All boxes, outer ones first. */
export function allBoxes(box: Box): Box[] {
  return [box, ...box.children.flatMap(allBoxes)];
}
