import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import ts from 'typescript-api';
import { root } from './support/files.ts';
import {
  at,
  cycleFrom,
  declaredEffects,
  effectNames,
  hasChart,
  lineAt,
  listOf,
  mentions,
  nameOf,
  namesIn,
  nodesOf,
  readFolder,
  type Source,
} from './support/sources.ts';

/**
 * The house rules (docs/ARCHITECTURE.md, "Layout"). Each is checked on the source text; a fault names the file, the
 * line and what to do instead.
 */
/** Rooms of src, each with the rooms it may import besides machines and tools. Payments never walk back. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  archive: [],
  charts: [],
  collections: ['events', 'ledger', 'merchants', 'rails', 'webhooks'],
  console: ['charts', 'http', 'pages'],
  dashboard: ['http', 'pages'],
  desk: ['archive', 'http'],
  docs: ['http', 'pages'],
  events: [],
  http: [],
  inspector: ['http'],
  ledger: ['archive'],
  merchants: [],
  metrics: ['archive', 'collections', 'ledger', 'settlement', 'webhooks'],
  operators: [
    'archive',
    'charts',
    'collections',
    'desk',
    'events',
    'http',
    'ledger',
    'merchants',
    'payouts',
    'rails',
    'reconciliation',
    'refunds',
    'settlement',
    'tallies',
    'webhooks',
  ],
  pages: ['http'],
  payouts: ['collections', 'events', 'ledger', 'merchants', 'rails', 'webhooks'],
  rails: [],
  reconciliation: ['collections', 'ledger', 'payouts', 'rails', 'refunds'],
  refunds: ['collections', 'events', 'ledger', 'rails'],
  settlement: ['ledger'],
  tallies: ['events', 'ledger', 'webhooks'],
  webhooks: ['events', 'merchants'],
};

/** Files of src that know all rooms. Every other file beside them is a tool, which knows none. */
const frame = ['main.ts', 'service.ts', 'wiring.ts', 'stores.ts', 'listeners.ts', 'app.ts', 'openapi.ts'];

/** The console and the dashboard are typed by the index of the routes that they show. */
const indexTypes = { from: ['src/console/page.ts', 'src/dashboard/page.ts'], target: 'src/app.ts' };

/** Operators' routes: `admin.ts`, and `feeAdmin.ts` beside it where a room has several. */
const adminFile = /^(admin|[a-z][A-Za-z]*Admin)\.ts$/;

/**
 * Merchants' routes, `routes.ts` and `endpointRoutes.ts` beside it, and operators'. They stand above their rooms: app.ts
 * alone imports them.
 */
const routesFile = new RegExp(`^(routes|[a-z][A-Za-z]*Routes)\\.ts$|${adminFile.source}`);

/** What operators see and do in one room touches others: every room that a payment visits, and the operators' kit. */
const adminMayImport: readonly string[] = [
  'archive',
  'collections',
  'desk',
  'events',
  'http',
  'ledger',
  'merchants',
  'payouts',
  'rails',
  'reconciliation',
  'refunds',
  'settlement',
  'tallies',
  'webhooks',
];

/** Inner files of rooms that some files of the frame may import too. */
const sideDoors: Readonly<Record<string, RegExp>> = {
  'src/wiring.ts': /^effects\.ts$/,
  'src/service.ts': /^effects\.ts$/,
  'src/app.ts': routesFile,
};

/** Files that read the local clock, and why it may not be the service's. */
const ownTime: Readonly<Record<string, string>> = {
  'packages/durable-actors/src/clock.ts': 'it is the clock',
  'packages/client/src/time.ts': 'it runs at merchants; there is no service around it',
  'packages/cli/src/surroundings.ts': 'so does this',
};

/** Files that wait for the first of several, and for what. */
const ownRaces: Readonly<Record<string, string>> = {
  'packages/durable-actors/src/time-limit.ts': 'it is the tool',
  'packages/durable-actors/src/batch.ts': 'for room among those at work',
  'packages/durable-actors/src/sweep.ts': 'for room among those at work',
  'packages/durable-actors/src/patience.ts': 'its limit begins anew when the call does',
  'tools/embedded/server.ts': 'for a server to be ready, or to have ended',
};

/** Source files that nothing imports, and who uses them. */
const entries: Readonly<Record<string, string>> = {
  'src/charts/thread.ts': 'charts.ts begins a thread with it',
};

const bannedNames: Readonly<Record<string, string>> = {
  utils: 'name it after what it does',
  util: 'name it after what it does',
  helpers: 'name it after what it helps with',
  helper: 'name it after what it helps with',
  common: 'put it into the room it belongs to, or make it a tool',
  services: 'name the room after its noun',
  models: 'put each one into the room of its noun',
  misc: 'name it after what it does',
};

const linesMax = { function: 70, source: 400, machine: 800 };

/** A machine may not know when or where it runs: time and ids arrive in events and input. */
const impure =
  /^(Date|performance|crypto|process|Math\.random|setTimeout|setInterval|setImmediate|fetch|newId)$/;

const sources = ['src', 'machines', 'packages', 'tools', 'test'].flatMap(readFolder);
const ofSrc = sources.filter(({ path }) => path.startsWith('src/'));
const ofPackages = sources.filter(({ path }) => path.startsWith('packages/'));
/** What runs at a user's, the embedded servers of `npm start` among it. */
const ofProduct = [
  ...ofSrc,
  ...ofPackages.filter(({ path }) => !isTest(path)),
  ...sources.filter(({ path }) => path.startsWith('tools/embedded/')),
];
const ofMachines = sources.filter(({ path }) => path.startsWith('machines/'));
const ofTests = sources.filter(({ path }) => isTest(path));

describe('the house', () => {
  it('imports only in the direction in which a payment walks', () => {
    const faults = ofSrc.flatMap(({ path, imports }) =>
      imports.flatMap(({ line, target }) => {
        const [from, to] = [roomOf(path), roomOf(target)];
        if (target.startsWith('tools/') && path !== 'src/main.ts')
          return [`${path}:${line}: imports ${target}; only main.ts may start a tool`];
        const isFrame = to === undefined && frame.includes(target.slice('src/'.length));
        const isIndexType = indexTypes.from.includes(path) && target === indexTypes.target;
        if (isFrame && !isOfFrame(path) && !isIndexType)
          return [`${path}:${line}: imports ${target}; nothing but the frame may`];
        if (to === undefined || to === from || isOfFrame(path)) return [];
        if (from === undefined) return [`${path}:${line}: is a tool and must import no room, not ${target}`];
        const isWeb = to === 'http' && (routesFile.test(basename(path)) || basename(path) === 'schema.ts');
        const isAdmin = adminFile.test(basename(path)) && adminMayImport.includes(to);
        if (isWeb || isAdmin || mayImport[from]?.includes(to)) return [];
        const allowed = [...(mayImport[from] ?? []), 'machines', 'tools'].join(', ');
        return [`${path}:${line}: ${from} must not import ${to}; it may import ${allowed}`];
      }),
    );
    none(faults);
  });

  it('gives every room a door, and has no room that the table of directions leaves out', () => {
    const rooms = new Set(ofSrc.map(({ path }) => roomOf(path)).filter((room) => room !== undefined));
    const files = new Set(ofSrc.map(({ path }) => path));
    const faults = [...rooms].flatMap((room) => [
      ...(files.has(doorOf(room)) ? [] : [`src/${room}: has no door, ${doorOf(room)}`]),
      ...(room in mayImport ? [] : [`src/${room}: is not in the table of test/tidy.test.ts`]),
    ]);
    none(faults);
  });

  it('enters other rooms by their doors', () => {
    const faults = sources
      .filter(({ path }) => !path.startsWith('test/'))
      .flatMap(({ path, imports }) =>
        imports.flatMap(({ line, target }) => {
          const to = roomOf(target);
          if (to === undefined) return [];
          // A folder inside a room is a room of its own for the files around it.
          const folder = dirname(target);
          const isInside = dirname(path) === folder || dirname(path).startsWith(`${folder}/`);
          if (isInside || target === `${folder}/${basename(folder)}.ts`) return [];
          const sideDoor = adminFile.test(basename(path)) ? adminFile : sideDoors[path];
          if (folder === `src/${to}` && sideDoor?.test(basename(target))) return [];
          return [`${path}:${line}: imports ${target}; import ${folder}/${basename(folder)}.ts instead`];
        }),
      );
    none(faults);
  });

  it('has no two rooms that need each other, directly or around a corner', () => {
    const needs = new Map<string, Map<string, string>>();
    for (const { path, imports } of ofSrc) {
      const from = roomOf(path);
      if (from === undefined) continue;
      for (const { line, target } of imports) {
        const to = roomOf(target);
        if (to === undefined || to === from) continue;
        const known = needs.get(from) ?? new Map<string, string>();
        needs.set(from, known.set(to, known.get(to) ?? `${path}:${line}`));
      }
    }
    none([...needs.keys()].flatMap((room) => cycleFrom(room, needs)));
  });

  it('uses a package by its name, and no package knows of the service', () => {
    const faults = sources.flatMap(({ path, imports }) =>
      imports.flatMap(({ line, target, isOurs }) => {
        const [from, to] = [packageOf(path), packageOf(target)];
        if (isTest(path) && /^(test\/support|tools\/embedded)\//.test(target)) return []; // it may use our servers
        if (from !== undefined && isOurs && to !== from)
          return [`${path}:${line}: imports ${target}; a package stands alone`];
        if (from !== undefined || to === undefined || isTest(path)) return [];
        return [`${path}:${line}: imports ${target}; import the package by its name`];
      }),
    );
    none(faults);
  });

  it('keeps money out of the engine, in its words too', () => {
    const money =
      /\b(merchants?|payments?|payers?|money|shillings?|tzs|phones?|prompts?|pushes|rails?|m-?pesa|kusanya_\w+)\b/i;
    const faults = ofPackages
      .filter(({ path }) => path.startsWith('packages/durable-actors/src/'))
      .flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) =>
            money.test(line) ? [`${path}:${index + 1}: ${line.trim()}: say it without money`] : [],
          ),
      );
    none(faults);
  });

  it('writes imports of its own files with their ending', () => {
    const faults = sources.flatMap(({ path, imports }) =>
      imports.flatMap(({ line, target, isOurs }) =>
        !isOurs || /\.(ts|json|js)$/.test(target) ? [] : [`${path}:${line}: write ${target}.ts`],
      ),
    );
    none(faults);
  });

  it(`has no function of more than ${linesMax.function} lines`, () => {
    const faults = [...ofSrc, ...ofMachines].flatMap(({ path, tree }) =>
      nodesOf(tree).flatMap((node) => {
        if (!ts.isFunctionLike(node) || !('body' in node) || !node.body) return [];
        const first = lineAt(tree, node.getStart(tree));
        const count = lineAt(tree, node.getEnd()) - first + 1;
        return count > linesMax.function
          ? [`${path}:${first}: ${count} lines; take a part out and give it a name`]
          : [];
      }),
    );
    none(faults);
  });

  it(`has no file of more than ${linesMax.source} lines (a chart is one page of ${linesMax.machine})`, () => {
    // What a program writes is as long as what it is made of, and divided as that is.
    const byHand = [...ofProduct, ...ofMachines].filter(({ path }) => !path.includes('/src/written/'));
    const faults = byHand.flatMap(({ path, text }) => {
      const most = path.startsWith('machines/') ? linesMax.machine : linesMax.source;
      const count = text.trimEnd().split('\n').length;
      return count > most ? [`${path}: ${count} lines; divide it by what it is about`] : [];
    });
    none(faults);
  });

  it('keeps machines pure: no import but xstate and what charts share, no clock, no id, no chance', () => {
    const shared = ofMachines.filter(({ tree }) => !hasChart(tree)).map(({ path }) => path);
    const faults = ofMachines.flatMap(({ path, tree, imports }) => [
      ...imports
        .filter(({ target }) => target !== 'xstate' && !shared.includes(target))
        .map(
          ({ line, target }) =>
            `${path}:${line}: imports ${target}; a machine imports xstate, and files beside it that hold no chart`,
        ),
      ...nodesOf(tree)
        .filter(
          (node) =>
            (ts.isIdentifier(node) || ts.isPropertyAccessExpression(node)) && impure.test(node.getText(tree)),
        )
        .filter((node) => !(ts.isPropertyAccessExpression(node.parent) && node.parent.name === node))
        .map(
          (node) =>
            `${at(path, tree, node)}: ${node.getText(tree)} is banned; let it arrive in the event or the input`,
        ),
    ]);
    none(faults);
  });

  it('has nothing in a chart that cannot be stored and restored', () => {
    const banned: Readonly<Record<string, string>> = {
      invoke: 'ask for a call and hear its answer as an event',
      history: 'name the target',
      final: 'late facts must still be heard: let the state rest',
      parallel: 'an actor is in one branch at a time: make it two machines',
    };
    const spawning =
      /^(spawn|spawnChild|enqueueActions|sendTo|sendParent|forwardTo|raise|emit|stopChild|fromPromise)$/;
    const faults = ofMachines.flatMap(({ path, tree }) =>
      nodesOf(tree).flatMap((node) => {
        if (ts.isPropertyAssignment(node)) {
          const name = nameOf(node.name);
          const value = ts.isStringLiteral(node.initializer) ? node.initializer.text : '';
          const word = name === 'type' ? value : name;
          if (word in banned) return [`${at(path, tree, node)}: ${word} is banned; ${banned[word]}`];
          if (/(^|\.)\*$/.test(name))
            return [`${at(path, tree, node)}: wildcards are banned; name the events`];
          if (/^\d+$/.test(name) && isInAfter(node)) return [`${at(path, tree, node)}: name the delay`];
        }
        const isCall = ts.isCallExpression(node) && spawning.test(node.expression.getText(tree));
        return isCall
          ? [`${at(path, tree, node)}: ${node.expression.getText(tree)} is banned; ask for a call`]
          : [];
      }),
    );
    none(faults);
  });

  it('has one effect for each action that a chart leaves to the house, in the order of the chart', () => {
    none(ofMachines.flatMap(effectFaults));
  });

  it('reads the environment in one place', () => {
    none(mentions(ofProduct, 'process.env', ['src/config.ts'], 'read it in src/config.ts'));
  });

  it('reads the clock in one place', () => {
    const reason = `use clock.now(), or say in ownTime (${basename(import.meta.filename)}) why not`;
    const except = Object.keys(ownTime);
    const faults = ofProduct
      .filter(({ path }) => !except.includes(path))
      .flatMap(({ path, tree }) =>
        nodesOf(tree)
          .filter(
            (node) =>
              ts.isNewExpression(node) && node.expression.getText(tree) === 'Date' && !node.arguments?.length,
          )
          .map((node) => `${at(path, tree, node)}: new Date() is banned; ${reason}`),
      );
    none([...mentions(ofProduct, 'Date.now', except, reason), ...faults]);
  });

  it('reaches the stores by clients that wait for no answer for ever', () => {
    const clients: Readonly<Record<string, { files: readonly string[]; instead: string }>> = {
      MongoClient: {
        files: ['packages/durable-actors/src/mongo.ts', 'tools/embedded/mongod.ts'],
        instead: 'call connectMongo',
      },
      Redis: { files: ['packages/durable-actors/src/redis.ts'], instead: 'use the one of Queues' },
    };
    const made = ofProduct.flatMap(({ path, tree }) =>
      nodesOf(tree)
        .filter(ts.isNewExpression)
        .flatMap((node) => {
          const client = clients[node.expression.getText(tree)];
          const isAllowed = !client || client.files.includes(path);
          return isAllowed ? [] : [`${at(path, tree, node)}: sets no limit of its own; ${client.instead}`];
        }),
    );
    const patient = ['src/mongo.ts', 'src/service.ts'];
    const reason = 'only indexes and the audit may take as long as they like';
    none([...made, ...mentions(ofProduct, 'connectPatiently', patient, reason)]);
  });

  it('names files beside its own by paths that are there', () => {
    const named =
      /\b(?:join\(\s*import\.meta\.dirname,\s*'([^']+)'|new URL\('([^']+)', import\.meta\.url)\s*\)/g;
    none(
      sources.flatMap(({ path, text }) =>
        [...text.matchAll(named)]
          .map(([, beside, url]) => beside ?? url!)
          .filter((to) => !existsSync(join(root, dirname(path), to)))
          .map((to) => `${path}: ${to} is not there; a file that moved takes its paths along`),
      ),
    );
  });

  it('sets limits of time with one tool', () => {
    const except = Object.keys(ownRaces);
    none(
      mentions(ofProduct, 'Promise.race', except, 'use inTime of durable-actors, or say in ownRaces why not'),
    );
  });

  it('makes no type of another by way of unknown, any or never', () => {
    const faults = [...ofProduct, ...ofMachines].flatMap(({ path, tree }) =>
      nodesOf(tree)
        .filter((node) => {
          if (!ts.isAsExpression(node)) return false;
          if (/^(any|never)(\[\])?$/.test(node.type.getText(tree))) return true;
          let inner = node.expression;
          while (ts.isParenthesizedExpression(inner)) inner = inner.expression;
          return ts.isAsExpression(inner) && /^(unknown|any|never)$/.test(inner.type.getText(tree));
        })
        .map((node) => `${at(path, tree, node)}: let the type say what it is, or look (a type guard)`),
    );
    none(faults);
  });

  it('calls own only what was read for its merchant and mode', () => {
    const claimed = /\b(as |(find|findOne|aggregate|collection|project)<)(readonly )?Own</;
    const faults = ofProduct
      .filter(({ path }) => path !== 'src/whose.ts')
      .flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) =>
            claimed.test(line) ? [`${path}:${index + 1}: read it by ownOf or isOwn of src/whose.ts`] : [],
          ),
      );
    none(faults);
  });

  it('asks a partial index only for what it can see to lie in it', () => {
    const partial = /partial: \{ '?([\w.]+)'?: \{ \$type/g;
    const fields = ofProduct.flatMap(({ text }) => [...text.matchAll(partial)].map(([, field]) => field!));
    expect(fields.length, 'partial indexes').to.be.above(4);
    const names = [...new Set(fields)].map((field) => field.replaceAll('.', '\\.')).join('|');
    const asked = new RegExp(`[\\s{](?:'(?:${names})'|(?:${names})): \\{ \\$in:[^}]*\\}`, 'g');
    const faults = ofProduct.flatMap(({ path, text, tree }) =>
      [...text.matchAll(asked)]
        .filter(([filter]) => !filter.includes('$type'))
        .map(
          ({ index, 0: filter }) => `${path}:${lineAt(tree, index)}: give${filter} its $type, or all is read`,
        ),
    );
    none(faults);
  });

  it('says in one place what modes there are', () => {
    const union = /'live' \| 'test'|'test' \| 'live'/;
    const faults = ofSrc
      .filter(({ path }) => path !== 'src/mode.ts')
      .flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) =>
            union.test(line) ? [`${path}:${index + 1}: import Mode from src/mode.ts`] : [],
          ),
      );
    none(faults);
  });

  it('never writes to the console', () => {
    const faults = sources.flatMap(({ path, tree }) =>
      nodesOf(tree)
        .filter((node) => ts.isPropertyAccessExpression(node) && node.expression.getText(tree) === 'console')
        .map((node) => `${at(path, tree, node)}: ${node.getText(tree)} is banned; use the log`),
    );
    none(faults);
  });

  it('names folders and files after what they are', () => {
    const faults = sources.flatMap(({ path }) =>
      path.split('/').flatMap((part) => {
        const advice = bannedNames[part.replace(/\..*$/, '').toLowerCase()];
        return advice ? [`${path}: ${part} says nothing; ${advice}`] : [];
      }),
    );
    none([...new Set(faults)]);
  });

  it('leaves no work for later', () => {
    const later = new RegExp(
      `\\b(${['TO', 'FIX'].map((word, index) => word + ['DO', 'ME'][index]).join('|')}|X{3})\\b`,
    );
    const faults = sources.flatMap(({ path, text }) =>
      text
        .split('\n')
        .flatMap((line, index) =>
          later.test(line) ? [`${path}:${index + 1}: do it now, or write an issue`] : [],
        ),
    );
    none(faults);
  });

  it('states facts in the titles of its tests', () => {
    const faults = ofTests.flatMap(({ path, tree }) =>
      nodesOf(tree).flatMap((node) => {
        if (
          !ts.isCallExpression(node) ||
          !/^(it|describe|specify)(\.\w+)?$/.test(node.expression.getText(tree))
        )
          return [];
        const title = node.arguments[0]?.getText(tree).slice(1) ?? '';
        return /^should\b/i.test(title)
          ? [`${at(path, tree, node)}: say what it does, not what it should do`]
          : [];
      }),
    );
    none(faults);
  });

  it('locks what every platform installs, also where this registry does not serve it', () => {
    type Locked = { packages: Record<string, { optionalDependencies?: Record<string, string> }> };
    const { packages }: Locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
    none(
      Object.entries(packages).flatMap(([holder, { optionalDependencies }]) =>
        Object.keys(optionalDependencies ?? {})
          .filter(
            (name) => !(`node_modules/${name}` in packages || `${holder}/node_modules/${name}` in packages),
          )
          .map((name) => `package-lock.json: ${holder} wants ${name}, which npm ci will miss; add its entry`),
      ),
    );
  });

  it('has no file that nobody uses', () => {
    const scripts =
      readFileSync(join(root, 'package.json'), 'utf8') + readFileSync(join(root, '.mocharc.json'), 'utf8');
    const isEntry = (path: string) =>
      path in entries ||
      /\.test\.ts$/.test(path) ||
      /^packages\/[^/]+\/src\/index\.ts$/.test(path) ||
      scripts.includes(path);
    const used = new Set(sources.filter(({ path }) => isEntry(path)).map(({ path }) => path));
    // A file of src that only a test imports is dead; what tests and the bench start by its name is not.
    for (const inside of [sources.filter(({ path }) => !path.startsWith('test/')), ofTests]) {
      const found = inside.filter(({ path }) => used.has(path));
      for (const { text, imports } of found) {
        const names = new Set(namesIn(text));
        const targets = new Set(imports.map(({ target }) => target));
        const others = inside.filter(
          ({ path }) => !used.has(path) && (targets.has(path) || names.has(basename(path))),
        );
        for (const other of others) used.add(other.path);
        found.push(...others);
      }
    }
    none(
      sources
        .filter(({ path }) => !used.has(path))
        .map(({ path }) => `${path}: is imported by nobody; remove it`),
    );
  });
});

/** The actions of one machine against its lists of writes and calls, and those against the room's effects. */
function effectFaults({ path, tree }: Source): string[] {
  const machine = basename(path, '.ts');
  const lists = { write: listOf(tree, `${machine}Writes`), call: listOf(tree, `${machine}Calls`) };
  const declared = declaredEffects(tree);
  const asked = [...lists.write, ...lists.call];
  const faults = [
    ...declared
      .filter((name) => !asked.includes(name))
      .map((name) => `${name} is neither a write nor a call nor an assign`),
    ...asked
      .filter((name) => !declared.includes(name))
      .map((name) => `${name} is listed but not declared in setup()`),
    ...(new Set(asked).size < asked.length ? ['an action is listed twice'] : []),
  ];
  for (const [kind, names] of Object.entries(lists)) {
    if (names.length === 0) continue;
    const name = `${machine}${kind === 'write' ? 'Write' : 'Call'}Effects`;
    const effects = effectNames(ofSrc, name);
    if (effects?.join() !== names.join()) {
      faults.push(
        `${name} has ${effects?.join(', ') ?? 'no function in any effects.ts'}; the chart's order is ${names.join(', ')}`,
      );
    }
  }
  return faults.map((fault) => `${path}: ${fault}`);
}

function none(faults: readonly string[]): void {
  expect(faults.join('\n'), 'faults').to.equal('');
}

function packageOf(path: string): string | undefined {
  return /^packages\/([^/]+)\//.exec(path)?.[1];
}

/** Belongs to the tests: of the service, or of a package with its examples. */
function isTest(path: string): boolean {
  return /^(packages\/[^/]+\/)?(test|examples)\//.test(path);
}

function roomOf(path: string): string | undefined {
  return /^src\/([^/]+)\//.exec(path)?.[1];
}

function doorOf(room: string): string {
  return `src/${room}/${room}.ts`;
}

function isOfFrame(path: string): boolean {
  return path.startsWith('src/') && frame.includes(path.slice('src/'.length));
}

function isInAfter(node: ts.Node): boolean {
  const holder = node.parent.parent;
  return ts.isPropertyAssignment(holder) && nameOf(holder.name) === 'after';
}
