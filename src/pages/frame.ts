import type { Asset } from './assets.ts';
import { type Html, html, type Part } from './html.ts';

/** What a page may have of this service; everything else, and everybody else, is forbidden. */
type Source = 'script-src' | 'style-src' | 'img-src' | 'connect-src' | 'form-action';

/** The headers of every page: nothing comes from elsewhere, nothing is written into the page, nobody frames it. */
export function pageHeaders(own: readonly Source[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    ...own.map((source) => `${source} 'self'`),
    ...(own.includes('form-action') ? [] : ["form-action 'none'"]),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ];
  return {
    'Content-Security-Policy': policy.join('; '),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'same-origin',
    'X-Frame-Options': 'DENY',
  };
}

interface Head {
  title: string;
  /** Of what is said on it; English where nothing is said. */
  language?: string;
  icon: Asset;
  style: Asset;
  script: Asset;
  /** Further lines of the head. */
  more?: Part;
  /** Of `<body>`. */
  attributes?: Part;
}

/** A whole document around its body. */
export function wholePage(
  { title, language = 'en', icon, style, script, more, attributes }: Head,
  body: Html,
): string {
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Kusanya</title>
<link rel="icon" href="${icon.path}">
<link rel="stylesheet" href="${style.path}">
<script src="${script.path}" defer></script>${more}
</head>
<body ${attributes}>
${body}
</body>
</html>
`.toString();
}
