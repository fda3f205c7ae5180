import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chartStyle } from '../charts/charts.ts';

/** Our own style sheet and script, under names that change with what is in them, so that browsers may keep them. */
interface Asset {
  path: string;
  type: string;
  text: string;
}

export const style = assetOf('console.css', 'text/css; charset=utf-8', chartStyle());
export const script = assetOf('console.js', 'text/javascript; charset=utf-8');
export const inspectorStyle = assetOf('inspector.css', 'text/css; charset=utf-8');
export const inspectorScript = assetOf('inspector.js', 'text/javascript; charset=utf-8');
export const icon = assetOf('icon.svg', 'image/svg+xml');

export const assets: ReadonlyMap<string, Asset> = new Map(
  [style, script, inspectorStyle, inspectorScript, icon].map((asset) => [asset.path, asset]),
);

function assetOf(name: string, type: string, after = ''): Asset {
  const text = `${readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8')}${after}`;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  return { path: `/console/assets/${hash}/${name}`, type, text };
}
