import { Router } from '@koa/router';

/** What a path leads to, and the parts of it that its pattern names, decoded. */
export interface PathMatch<Target> {
  /** The pattern: `/console/:mode/merchants/:id`. */
  pattern: string;
  params: Readonly<Record<string, string>>;
  target: Target;
}

/** Finds what a path leads to, by the patterns and the matcher that the routes have. */
export function pathMatcher<Target>(
  entries: readonly (readonly [pattern: string, target: Target])[],
): (path: string) => PathMatch<Target> | undefined {
  const router = new Router({ sensitive: true, strict: true });
  const targets = new Map(entries);
  for (const [pattern] of entries) router.register(pattern, ['GET'], () => {});
  return (path) => {
    const [layer] = router.match(path, 'GET').pathAndMethod;
    if (!layer) return undefined;
    const pattern = String(layer.path);
    const params = layer.params(path, layer.captures(path));
    return { pattern, params, target: targets.get(pattern)! };
  };
}
