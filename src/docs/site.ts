import { posix } from 'node:path';
import type { Html } from '../pages/pages.ts';
import type { Guide } from './guides.ts';
import type { Heading, Links } from './markdown.ts';
import type { Chapter, ErrorView } from './reference.ts';
import { languages } from './samples.ts';

/** What every page knows of the others. */
export interface Site {
  title: string;
  chapters: readonly Chapter[];
  errors: readonly ErrorView[];
  guides: readonly Guide[];
}

export interface Page {
  path: string;
  title: string;
  sections: readonly Pick<Heading, 'id' | 'text'>[];
  body: Html;
}

/** The address of a page with its samples in a language. */
export function address(path: string, language: string, place = ''): string {
  const query = language === languages[0]!.id ? '' : `?lang=${language}`;
  return `${path}${query}${place && `#${place}`}`;
}

export function chapterPath({ slug }: Pick<Chapter, 'slug'>): string {
  return `/docs/${slug}`;
}

export const errorsPath = '/docs/errors';

/** The place of an object by its title; undefined where none has it. */
export function placeOf({ chapters }: Pick<Site, 'chapters'>, title: string) {
  for (const chapter of chapters) {
    const object = chapter.objects.find((each) => each.title === title);
    if (object) return { path: chapterPath(chapter), id: object.id };
  }
  return undefined;
}

/** Links of a text: those of a file of the repository lead to its page, code to what explains it. */
export function linksIn(site: Site, language: string, file = ''): Links {
  const explained = new Map([
    ...site.errors.map(({ code }) => [code as string, { path: errorsPath, id: code as string }] as const),
    ...site.chapters.flatMap((chapter) =>
      chapter.operations.flatMap(({ id, method, path }) => {
        const place = { path: chapterPath(chapter), id };
        return [[`${method} ${path}`, place] as const, ...(method === 'GET' ? [[path, place] as const] : [])];
      }),
    ),
  ]);
  return {
    code: (text) => {
      const place = explained.get(text);
      return place && address(place.path, language, place.id);
    },
    target: (href) => {
      if (/^(https:\/\/|#|\/)/.test(href)) return href;
      const [path = '', place] = href.split('#');
      const guide = site.guides.find((each) => each.file === posix.join(posix.dirname(file), path));
      return guide && address(guide.path, language, place);
    },
  };
}
