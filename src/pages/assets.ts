import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Context } from 'koa';
import { sendZipped, type Zipped, zippedOf } from './zipped.ts';

/** A style sheet, script or picture of ours. */
export interface Asset {
  path: string;
  type: string;
  body: Zipped;
}

const types = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const own = (name: string) => readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');

/** What every sheet begins with: colours, type, the bar. */
export const baseStyle = own('base.css');
/** What comes after it where there are bars, cards, tables and forms. */
export const piecesStyle = own('pieces.css');
/** What comes after that where there are pictures over time. */
export const picturesStyle = own('pictures.css');
/** How pages move by themselves. */
export const liveScript = own('live.js');

/** `/docs/assets/<hash>/docs.css`: the name changes with what is in it, so browsers may keep it. */
export function assetOf(place: string, name: string, text: string): Asset {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const type = types[name.split('.').at(-1) as keyof typeof types];
  return { path: `${place}/assets/${hash}/${name}`, type, body: zippedOf(text) };
}

export function iconOf(place: string): Asset {
  return assetOf(place, 'icon.svg', own('icon.svg'));
}

/** The assets of one place, sent where a request asks for one. */
export class Assets {
  readonly #byName: ReadonlyMap<string, Asset>;
  readonly #pattern: RegExp;

  constructor(place: string, assets: readonly Asset[]) {
    this.#byName = new Map(assets.map((asset) => [asset.path.split('/').at(-1)!, asset]));
    this.#pattern = new RegExp(`^${place}/assets/[0-9a-f]{16}/([\\w.]+)$`);
  }

  /**
   * False where the request asks for something else. A page that another version of the service made, and a browser or a
   * neighbouring process still has, gets what there is now, and does not keep it.
   */
  send(ctx: Context): boolean {
    const name = this.#pattern.exec(ctx.path)?.[1];
    const asset = name === undefined ? undefined : this.#byName.get(name);
    if (!asset || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return false;
    if (asset.path === ctx.path) ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
    ctx.type = asset.type;
    sendZipped(ctx, asset.body);
    return true;
  }
}
