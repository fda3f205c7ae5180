import { readFileSync } from 'node:fs';
import { chartStyle } from '../charts/charts.ts';
import {
  Assets,
  assetOf,
  baseStyle,
  iconOf,
  liveScript,
  picturesStyle,
  piecesStyle,
} from '../pages/pages.ts';

const place = '/console';
const read = (name: string) => readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');

export const style = assetOf(
  place,
  'console.css',
  `${baseStyle}${piecesStyle}${picturesStyle}${read('console.css')}${chartStyle()}`,
);
export const script = assetOf(place, 'console.js', `${liveScript}${read('console.js')}`);
export const inspectorStyle = assetOf(place, 'inspector.css', read('inspector.css'));
export const inspectorScript = assetOf(place, 'inspector.js', read('inspector.js'));
export const icon = iconOf(place);

export const assets = new Assets(place, [style, script, inspectorStyle, inspectorScript, icon]);
