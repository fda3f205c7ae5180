import type { Context } from 'koa';
import { place } from './page.ts';
import { type Language, languages } from './words.ts';

const cookieName = 'kusanya_language';
const yearMs = 365 * 24 * 3_600_000;

/** The reader's language: as they chose it, else as their browser asks for it. */
export function languageOf(ctx: Context): Language {
  const chosen = ctx.cookies.get(cookieName);
  return languages.find((each) => each === chosen) ?? asked(ctx.get('Accept-Language'));
}

/** The first of ours that the header names; those it likes more come first. */
function asked(header: string): Language {
  const liked = header
    .slice(0, 200)
    .split(',')
    .map((part) => {
      const [name = '', quality] = part.trim().split(/;\s*q=/);
      return { name: name.toLowerCase().split('-')[0], quality: Number(quality ?? 1) };
    })
    .sort((one, other) => other.quality - one.quality);
  for (const { name, quality } of liked) {
    const known = languages.find((each) => each === name);
    if (known && quality > 0) return known;
  }
  return 'en';
}

/** `?lang=sw` is remembered for a year, and leads to the same page. False where nothing was chosen. */
export function chooseLanguage(ctx: Context): boolean {
  const address = new URL(ctx.originalUrl, 'http://pages');
  const chosen = languages.find((each) => each === address.searchParams.get('lang'));
  if (!chosen || ctx.method !== 'GET') return false;
  ctx.cookies.set(cookieName, chosen, { path: place, maxAge: yearMs, httpOnly: true, sameSite: 'lax' });
  address.searchParams.delete('lang');
  ctx.redirect(`${address.pathname}${address.search}`);
  return true;
}
