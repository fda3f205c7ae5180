/** What pages of HTML are made of: the console's and the documentation's. */
export { type Asset, Assets, assetOf, baseStyle, iconOf } from './assets.ts';
export { pageHeaders, wholePage } from './frame.ts';
export { Html, html, type Part, trusted } from './html.ts';
