import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import type { Page } from 'playwright-core';

/**
 * What axe-core finds wrong on an open page: one line for each rule, with the first places. The page must have been
 * opened with `bypassCSP`, since our own policy lets no script of others in.
 */
export async function faultsOf(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate<AxeResults>(
    `${axe}\naxe.run(document, { resultTypes: ['violations'] })`,
  );
  return violations.map(({ id, nodes }) => {
    const places = nodes.slice(0, 3).map(({ target, any }) => `${target.join(' ')} ${any[0]?.message ?? ''}`);
    return `${id} (${nodes.length}): ${places.join(' | ')}`;
  });
}

/** Whether something sticks out at the side, so that a reader has to push the page about. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > innerWidth');
}

/**
 * Each width and colour scheme that a page is looked at in, without reading it anew. `SHOTS=<folder>` keeps what it looks
 * like, named after its path.
 */
export async function inEveryLook(page: Page, look: (about: string) => Promise<void>): Promise<void> {
  for (const [width, height] of [
    [1280, 900],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await look(`${width}, ${colorScheme}`);
      await keepShot(page, `${width}-${colorScheme}`);
    }
  }
}

/** Where `SHOTS` names a folder, puts a picture of the whole page there. */
export async function keepShot(page: Page, about: string): Promise<void> {
  const folder = process.env.SHOTS;
  if (!folder) return;
  const { pathname, search } = new URL(page.url());
  const name = `${pathname}${search}`.replaceAll(/[^\w]+/g, '-').slice(1, 120);
  await page.screenshot({ path: join(folder, `${name}-${about}.png`), fullPage: true });
}

interface AxeResults {
  violations: { id: string; nodes: { target: string[]; any: { message: string }[] }[] }[];
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
