import { basename, dirname, join, normalize } from 'node:path';
import ts from 'typescript-api';
import { textsIn } from './files.ts';

/** The source files of the repository, parsed, for rules about them. */

export interface Source {
  /** `src/http/auth.ts` */
  path: string;
  text: string;
  tree: ts.SourceFile;
  imports: Import[];
}

export interface Import {
  line: number;
  /** `koa`, or the path of a file of ours. */
  target: string;
  isOurs: boolean;
}

/** Everything below a node, outer ones first. */
export function nodesOf(top: ts.Node): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(top, visit);
  return nodes;
}

/** `src/http/auth.ts:12` */
export function at(path: string, tree: ts.SourceFile, node: ts.Node): string {
  return `${path}:${lineAt(tree, node.getStart(tree))}`;
}

export function lineAt(tree: ts.SourceFile, position: number): number {
  return tree.getLineAndCharacterOfPosition(position).line + 1;
}

/** The files of a folder of the repository, parsed. */
export function readFolder(folder: string): Source[] {
  return textsIn(folder).map(({ path, text }) => {
    const tree = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
    return { path, text, tree, imports: importsOf(path, tree) };
  });
}

/** Imports and re-exports, types included, `import()` too. */
function importsOf(path: string, tree: ts.SourceFile): Import[] {
  return nodesOf(tree).flatMap((node) => {
    const isStatic = ts.isImportDeclaration(node) || ts.isExportDeclaration(node);
    const isDynamic = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
    const specifier = isStatic ? node.moduleSpecifier : isDynamic ? node.arguments[0] : undefined;
    if (!specifier || !ts.isStringLiteral(specifier)) return [];
    const isOurs = specifier.text.startsWith('.');
    const target = isOurs ? normalize(join(dirname(path), specifier.text)) : specifier.text;
    return [{ line: lineAt(tree, node.getStart(tree)), target, isOurs }];
  });
}

/** The names of files that a text has in quotes, perhaps to start one as a process: `new URL('./receiver.ts', …)`. */
export function namesIn(text: string): string[] {
  return [...text.matchAll(/['/]([\w.-]+)'/g)].map(([, name]) => name!);
}

/** The strings of a constant list. */
export function listOf(tree: ts.SourceFile, name: string): string[] {
  const list = nodesOf(tree).find(
    (node) => ts.isVariableDeclaration(node) && node.name.getText(tree) === name,
  );
  return list
    ? nodesOf(list)
        .filter(ts.isStringLiteral)
        .map(({ text }) => text)
    : [];
}

function setupOf(tree: ts.SourceFile): ts.CallExpression | undefined {
  return nodesOf(tree)
    .filter(ts.isCallExpression)
    .find((node) => node.expression.getText(tree) === 'setup');
}

/** A file of machines that only holds what charts share has none. */
export function hasChart(tree: ts.SourceFile): boolean {
  return setupOf(tree) !== undefined;
}

/** The actions that a machine declares and leaves to the house: all that are no assignments to its context. */
export function declaredEffects(tree: ts.SourceFile): string[] {
  const setup = setupOf(tree)?.arguments[0];
  if (!setup || !ts.isObjectLiteralExpression(setup)) return [];
  return setup.properties
    .filter(ts.isPropertyAssignment)
    .filter(({ name }) => nameOf(name) === 'actions')
    .flatMap(({ initializer }) => [...(initializer as ts.ObjectLiteralExpression).properties])
    .filter(
      (action) => !ts.isPropertyAssignment(action) || !action.initializer.getText(tree).startsWith('assign('),
    )
    .map(({ name }) => nameOf(name!));
}

/** The keys of the object that an effects function returns, wherever its room is. */
export function effectNames(sources: readonly Source[], name: string): string[] | undefined {
  for (const { path, tree } of sources) {
    if (basename(path) !== 'effects.ts') continue;
    const effects = tree.statements.find(
      (node) => ts.isFunctionDeclaration(node) && node.name?.text === name,
    );
    const last = (effects as ts.FunctionDeclaration | undefined)?.body?.statements.at(-1);
    if (!last || !ts.isReturnStatement(last) || !last.expression) continue;
    return (last.expression as ts.ObjectLiteralExpression).properties.map((property) =>
      nameOf(property.name!),
    );
  }
  return undefined;
}

/** The text of a property's name, quoted or not. */
export function nameOf(name: ts.PropertyName): string {
  return 'text' in name ? name.text : name.getText();
}

/** Where a name such as `Date.now` is used, outside comments and strings. */
export function mentions(
  within: readonly Source[],
  name: string,
  except: readonly string[],
  advice: string,
): string[] {
  return within
    .filter(({ path }) => !except.includes(path))
    .flatMap(({ path, tree }) =>
      nodesOf(tree)
        .filter((node) => ts.isPropertyAccessExpression(node) && node.getText(tree) === name)
        .map((node) => `${at(path, tree, node)}: ${name} is banned; ${advice}`),
    );
}

/** A way from a room back to itself, said with the files that make it; empty when there is none. */
export function cycleFrom(
  room: string,
  needs: Map<string, Map<string, string>>,
  trail: string[] = [],
): string[] {
  for (const [to, where] of needs.get(room) ?? []) {
    const walked = [...trail, `${room} → ${to} (${where})`];
    if (trail.length > 0 && trail[0]!.startsWith(`${to} `)) return [walked.join(', ')];
    if (walked.length <= needs.size && !trail.some((step) => step.startsWith(`${to} `))) {
      const cycle = cycleFrom(to, needs, walked);
      if (cycle.length > 0) return cycle;
    }
  }
  return [];
}
