import { type Html, html, type Part } from '../pages/pages.ts';

/** A tokenizer of a few lines: strings, comments, numbers, words. What it does not know stays as it is. */
const comments: Readonly<Record<string, string>> = {
  sh: '(?<=^|\\s)#[^\\n]*',
  js: '//[^\\n]*',
  php: '//[^\\n]*',
  python: '#[^\\n]*',
};

const keywords: Readonly<Record<string, string>> = {
  sh: 'curl|export|npm|npx',
  js: 'async|await|break|catch|const|continue|else|export|for|from|function|if|import|instanceof|let|new|of|return|throw|try',
  php: 'array|echo|else|fn|foreach|function|if|new|return|throw',
  python: 'and|as|def|else|for|from|if|import|in|is|not|or|return|with',
  json: 'true|false|null',
};

const patterns = new Map(
  ['sh', 'js', 'php', 'python', 'json'].map((syntax) => {
    const parts = [
      ...(syntax === 'json' ? ['(?<name>"(?:\\\\.|[^"\\\\])*"(?=\\s*:))'] : []),
      `(?<text>"(?:\\\\.|[^"\\\\])*"|'(?:\\\\.|[^'\\\\])*'${syntax === 'js' ? '|`(?:\\\\.|[^`\\\\])*`' : ''})`,
      ...(comments[syntax] ? [`(?<comment>${comments[syntax]})`] : []),
      `(?<word>(?<![\\w$.-])(?:${keywords[syntax]})(?![\\w-]))`,
      '(?<number>(?<![\\w.-])\\d[\\d_.]*(?![\\w-]))',
    ];
    return [syntax, new RegExp(parts.join('|'), 'gm')] as const;
  }),
);

/** Code as HTML, with `<span class="text">` and the like around its tokens. */
export function highlighted(code: string, syntax: string): Html {
  const pattern = patterns.get(syntax);
  if (!pattern) return html`${code}`;
  const parts: Part[] = [];
  let from = 0;
  for (const { 0: token, index, groups } of code.matchAll(pattern)) {
    const [kind] = Object.entries(groups ?? {}).find(([, value]) => value !== undefined) ?? [];
    parts.push(code.slice(from, index), html`<span class="${kind}">${token}</span>`);
    from = index + token.length;
  }
  return html`${parts}${code.slice(from)}`;
}
