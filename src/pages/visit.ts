import type { Fault, Operation } from '../http/http.ts';
import type { Html } from './html.ts';

/** What the pieces of every page are given of who looks at it, and where. Each place's own `Visit` is one. */
export interface PageVisit {
  /** Where the place is: `/console`. Its forms are sent to `act` below it. */
  place: string;
  /** Path and query of the page, where its forms lead back to. */
  here: string;
  formToken: string;
  trial: Trial | undefined;
  query: URLSearchParams;
  /** What the pieces say by themselves, in the reader's language. */
  pieces: PieceWords;
  /** The operation behind a line of the index; undefined also where it is not open to this visitor. */
  operationOf(name: string): FormOperation | undefined;
}

/** What a form needs to know of an operation. */
export type FormOperation = Pick<Operation<never>, 'body' | 'query'>;

/** A form that came back: refused, or a rehearsal. */
export interface Trial {
  /** The id of the form. */
  form: string;
  values: ReadonlyMap<string, string[]>;
  message: string | undefined;
  faults: readonly Fault[];
  /** What a dry run answered. */
  outlook: Record<string, unknown> | undefined;
}

/** The words of lists and forms. */
export interface PieceWords {
  newest: string;
  older: string;
  further: string;
  show: string;
  all: string;
  yes: string;
  no: string;
  reason: string;
  kept: string;
  sayWhy: string;
  tryFirst: string;
  /** What is written to have the default back; undefined where no field may be given back. */
  byDefault: string;
  restores: string;
  /** A field by its name in the schema, and what the schema says of it: shown as it is where that is undefined. */
  label(name: string): string;
  hint?(name: string): string | undefined;
  fault?(fault: Fault): Html | string;
}
