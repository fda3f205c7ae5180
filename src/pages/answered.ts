/** What pages know of the routes that they show: their own types, as the index has them, and no copies of them. */

interface AnyLine {
  method: string;
  path: string;
  operation: { handler(request: never): unknown };
}
type ReadRoute<Line extends AnyLine> = Extract<Line, { method: 'GET' }>;
type HandlerAt<Line extends AnyLine, Path> = Extract<ReadRoute<Line>, { path: Path }>['operation']['handler'];
type RequestAt<Line extends AnyLine, Path> = Parameters<HandlerAt<Line, Path>>[0];

/** What may be read of an index. */
export type PathOf<Line extends AnyLine> = ReadRoute<Line>['path'];

/** What may be asked of a route: the parts of its path, and its query, or a page's own. */
export interface AskedOf<Line extends AnyLine, Path> {
  params?: RequestAt<Line, Path>['params'];
  query?: Partial<RequestAt<Line, Path>['query']> | URLSearchParams;
}

/** What a route answers, as it comes over the wire: times are text there. */
export type AnsweredOf<Line extends AnyLine, Path> =
  Awaited<ReturnType<HandlerAt<Line, Path>>> extends { body: infer Body } ? Wire<Body> : never;

/** What a list holds. */
export type RowIn<List> = List extends { data: readonly (infer Row)[] } ? Row : never;

type Wire<T> = T extends Date ? string : T extends object ? { [Name in keyof T]: Wire<T[Name]> } : T;

/** A line of an index that a form may be sent to. */
export type CommandOf<Line extends AnyLine> =
  Exclude<Line, { method: 'GET' }> extends infer Command
    ? Command extends { method: infer M extends string; path: infer P extends string }
      ? `${M} ${P}`
      : never
    : never;

/** A query as it is sent; what is undefined is not. */
export function queryText(query: object | undefined): URLSearchParams | undefined {
  if (query === undefined || query instanceof URLSearchParams) return query;
  const told = Object.entries(query).filter(([, value]) => value !== undefined);
  return new URLSearchParams(told.map(([name, value]): [string, string] => [name, String(value)]));
}
