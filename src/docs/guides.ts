import { readdirSync, readFileSync } from 'node:fs';

/** A document of the repository that is a page too. */
export interface Guide {
  /** `/docs/client` */
  path: string;
  name: string;
  /** `packages/client/README.md` */
  file: string;
  text: string;
  /** In the contents; another is linked from one that is. */
  isListed: boolean;
}

const root = new URL('../../', import.meta.url);

/** Addresses, names in the contents, files. The first one is the guide. */
const listed = [
  ['/docs', 'Merchant guide', 'docs/API.md'],
  ['/docs/client', 'JavaScript client', 'packages/client/README.md'],
  ['/docs/examples', 'Examples', 'examples/README.md'],
] as const;

/** What is printed as the address of `npm start` becomes that of this service. */
export function readGuides(baseUrl: string): Guide[] {
  const examples = readdirSync(new URL('examples', root), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => [`/docs/examples/${name}`, name, `examples/${name}/README.md`] as const);
  const read = ([path, name, file]: readonly [string, string, string], isListed: boolean): Guide => {
    const text = readFileSync(new URL(file, root), 'utf8').replaceAll('http://127.0.0.1:3000', baseUrl);
    return { path, name, file, text, isListed };
  };
  return [...listed.map((each) => read(each, true)), ...examples.map((each) => read(each, false))];
}
