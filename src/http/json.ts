import type { Fault } from './errors.ts';

/**
 * What a JSON text says that its parsed value does not: a number of more digits than a double holds would come back
 * as another number, and of two fields with one name only the last would count. Both are refused, because two texts
 * that mean different things to their sender must never be the same request here.
 */
const marks = new Set('{}[],');

/** The strings, numbers and marks (not the colons) of a text that is JSON. */
function* tokensOf(text: string): Generator<string> {
  let at = 0;
  while (at < text.length) {
    const from = at;
    const first = text[at++]!;
    if (first === '"') {
      while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
      yield text.slice(from, ++at);
    } else if (first === '-' || (first >= '0' && first <= '9')) {
      while (at < text.length && /[\d.eE+-]/.test(text[at]!)) at += 1;
      yield text.slice(from, at);
    } else if (marks.has(first)) {
      yield first;
    }
  }
}

interface Open {
  /** Of an object, those it has named so far; undefined for an array. */
  names: Set<string> | undefined;
  /** The name, or the place, of the value that is being read. */
  at: string | number;
  awaitsName: boolean;
}

/** The faults of a text that `JSON.parse` has taken. Walks it once, without recursion. */
export function lostInParsing(text: string): Fault[] {
  const faults: Fault[] = [];
  const open: Open[] = [];
  for (const token of tokensOf(text)) {
    const inner = open.at(-1);
    if (token === '{') open.push({ names: new Set(), at: '', awaitsName: true });
    else if (token === '[') open.push({ names: undefined, at: 0, awaitsName: false });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',') goOn(inner!);
    else if (token.startsWith('"')) {
      if (!inner?.names || !inner.awaitsName) continue;
      inner.at = JSON.parse(token) as string;
      inner.awaitsName = false;
      if (inner.names.has(inner.at)) faults.push(faultAt(open, 'is given twice'));
      inner.names.add(inner.at);
    } else if (!isExact(token)) {
      faults.push(
        faultAt(open, `is a number that JSON cannot carry exactly; send ${token.slice(0, 40)} as a string`),
      );
    }
  }
  return faults;
}

function goOn(inner: Open): void {
  if (inner.names) inner.awaitsName = true;
  else inner.at = Number(inner.at) + 1;
}

/** One field's fault; `path` ends with the name, or the place, of the value at fault. */
function faultAt(path: readonly Pick<Open, 'at'>[], is: string): Fault {
  const param = path.map(({ at }) => at).join('.');
  return { param, code: codeOf(param), message: `${param} ${is}.` };
}

function codeOf(param: string): Fault['code'] {
  return /^metadata(?:\.|$)/.test(param) ? 'metadata_invalid' : 'parameter_invalid';
}

/** Whether the double that is read says the same decimal as what was written: 1.10 does, 2^53 + 1 does not. */
function isExact(number: string): boolean {
  if (number.length <= 15 && /^-?\d+$/.test(number)) return true;
  const value = Number(number);
  return Number.isFinite(value) && decimalOf(number) === decimalOf(String(value));
}

/** A decimal number with neither zeros in front nor behind, so that equal ones are equal texts. */
function decimalOf(number: string): string {
  const [mantissa = '', exponent = '0'] = number.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = `${whole}${fraction}`;
  let from = 0;
  let to = digits.length;
  while (digits[from] === '0') from += 1;
  while (to > from && digits[to - 1] === '0') to -= 1;
  const kept = digits.slice(from, to);
  if (kept === '') return '0';
  const shift = Number(exponent) - fraction.length + (digits.length - to);
  return `${number.startsWith('-') ? '-' : ''}${kept}e${shift}`;
}

/** Characters that make a text read otherwise than it is stored (U+202E and its kin), and halves of a pair. */
const misleading = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const halfOfAPair = /\p{Cs}/u;

/** Texts in a body, names of fields included, that could not be shown as they were sent. */
export function textFaults(body: Readonly<Record<string, unknown>>): Fault[] {
  const faults: Fault[] = [];
  const left: [path: string[], value: unknown][] = [[[], body]];
  for (let next = left.pop(); next; next = left.pop()) {
    const [path, value] = next;
    if (typeof value === 'string') {
      const fault = textFault(value);
      if (fault)
        faults.push(
          faultAt(
            path.map((at) => ({ at })),
            fault,
          ),
        );
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        const within = [...path, shownName(name)];
        const fault = textFault(name);
        if (fault)
          faults.push(
            faultAt(
              within.map((at) => ({ at })),
              fault,
            ),
          );
        left.push([within, inner]);
      }
    }
  }
  return faults;
}

function textFault(text: string): string | undefined {
  if (misleading.test(text)) return 'contains a character that changes the direction of writing';
  return halfOfAPair.test(text) ? 'contains half of a surrogate pair, which is not valid Unicode' : undefined;
}

/** A name as it may stand in an answer. */
function shownName(name: string): string {
  return name.replace(/[\p{Cs}\p{Bidi_Control}]/gu, '\u{FFFD}');
}
