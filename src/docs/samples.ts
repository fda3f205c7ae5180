/** A request as the samples show it. */
export interface Call {
  method: string;
  /** With real values in it, and the query. */
  path: string;
  /** An API key is sent. */
  hasKey: boolean;
  idempotencyKey: string | undefined;
  /** Undefined: none is sent. */
  body: unknown;
  /** There is something to read in the answer. */
  isAnswered: boolean;
}

interface Language {
  /** In the address of a page: `?lang=node`. */
  id: string;
  name: string;
  /** What the sample is written in. */
  syntax: 'sh' | 'js' | 'php' | 'python';
  sample(call: Call): string;
}

/** Each sample can be run as it is printed, with KUSANYA_BASE_URL and KUSANYA_API_KEY set. */
export const languages: readonly Language[] = [
  { id: 'curl', name: 'curl', syntax: 'sh', sample: curl },
  { id: 'node', name: 'Node', syntax: 'js', sample: node },
  { id: 'php', name: 'PHP', syntax: 'php', sample: php },
  { id: 'python', name: 'Python', syntax: 'python', sample: python },
];

/** Names and values, without the key to the interface, which each language reads in its own way. */
function headersOf({ idempotencyKey, body }: Call): [string, string][] {
  return [
    ...(idempotencyKey === undefined ? [] : [['Idempotency-Key', idempotencyKey] as [string, string]]),
    ...(body === undefined ? [] : [['Content-Type', 'application/json'] as [string, string]]),
  ];
}

function curl(call: Call): string {
  const { method, path, hasKey, body } = call;
  const isUsual = method === (body === undefined ? 'GET' : 'POST');
  return [
    `curl -sS --fail-with-body${isUsual ? '' : ` -X ${method}`}`,
    `"$KUSANYA_BASE_URL${path}"`,
    ...(hasKey ? ['-H "Authorization: Bearer $KUSANYA_API_KEY"'] : []),
    ...headersOf(call).map(([name, value]) => `-H "${name}: ${value}"`),
    ...(body === undefined ? [] : [`-d '${written(body, json).replaceAll("'", "'\\''")}'`]),
  ].join(' \\\n  ');
}

function node(call: Call): string {
  const { method, path, hasKey, body, isAnswered } = call;
  const headers = [
    ...(hasKey ? [['Authorization', template('key', '', 'Bearer ')]] : []),
    ...headersOf(call).map(([name, value]) => [/\W/.test(name) ? `'${name}'` : name, `'${value}'`]),
  ].map(([name, value]) => `${name}: ${value}`);
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}',`]),
    ...(headers.length > 1 ? ['headers: {', ...headers.map((line) => `  ${line},`), '},'] : []),
    ...(headers.length === 1 ? [`headers: { ${headers[0]} },`] : []),
    ...(body === undefined ? [] : [`body: JSON.stringify(${written(body, javascript)}),`]),
  ];
  const lines = options.flatMap((option) => option.split('\n')).map((line) => `  ${line}`);
  return [
    'const base = process.env.KUSANYA_BASE_URL;',
    ...(hasKey ? ['const key = process.env.KUSANYA_API_KEY;'] : []),
    `const response = await fetch(${template('base', path)}${lines.length > 0 ? ', {' : ');'}`,
    ...(lines.length > 0 ? [...lines, '});'] : []),
    ...(isAnswered ? ['const answer = await response.json();'] : []),
    `if (!response.ok) throw new Error(${isAnswered ? 'answer.error.message' : 'await response.text()'});`,
    `console.log(${isAnswered ? 'answer' : 'response.status'});`,
  ].join('\n');
}

/** A template of JavaScript: a variable between two texts. */
function template(name: string, after: string, before = ''): string {
  return `\`${before}\${${name}}${after}\``;
}

function php(call: Call): string {
  const { method, path, hasKey, body, isAnswered } = call;
  const headers = [
    ...(hasKey ? ["'Authorization: Bearer ' . getenv('KUSANYA_API_KEY')"] : []),
    ...headersOf(call).map(([name, value]) => `'${name}: ${value}'`),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`CURLOPT_CUSTOMREQUEST => '${method}',`]),
    ...(headers.length > 0
      ? ['CURLOPT_HTTPHEADER => [', ...headers.map((line) => `    ${line},`), '],']
      : []),
    ...(body === undefined ? [] : [`CURLOPT_POSTFIELDS => json_encode(${written(body, phpWords)}),`]),
    'CURLOPT_RETURNTRANSFER => true,',
    'CURLOPT_TIMEOUT => 20,',
  ];
  return [
    '<?php',
    "$request = curl_init(getenv('KUSANYA_BASE_URL')",
    `    . '${path}');`,
    'curl_setopt_array($request, [',
    ...options.flatMap((option) => option.split('\n')).map((line) => `    ${line}`),
    ']);',
    '$answer = curl_exec($request);',
    '$status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);',
    'if ($answer === false || $status >= 400) {',
    '    throw new Exception($answer ?: curl_error($request));',
    '}',
    isAnswered ? 'print_r(json_decode($answer, true));' : 'echo $status;',
  ].join('\n');
}

function python(call: Call): string {
  const { method, path, hasKey, body, isAnswered } = call;
  const headers = [
    ...(hasKey ? ['"Authorization": f"Bearer {key}"'] : []),
    ...headersOf(call).map(([name, value]) => `"${name}": "${value}"`),
  ];
  const given = [
    `base + "${path}",`,
    ...(method === 'GET' ? [] : [`method="${method}",`]),
    ...(headers.length > 0 ? ['headers={', ...headers.map((line) => `    ${line},`), '},'] : []),
    ...(body === undefined ? [] : [`data=json.dumps(${written(body, pythonWords)}).encode(),`]),
  ];
  return [
    ...(isAnswered || body !== undefined ? ['import json'] : []),
    'import os',
    'from urllib.request import Request, urlopen',
    '',
    'base = os.environ["KUSANYA_BASE_URL"]',
    ...(hasKey ? ['key = os.environ["KUSANYA_API_KEY"]'] : []),
    'request = Request(',
    ...given.flatMap((line) => line.split('\n')).map((line) => `    ${line}`),
    ')',
    'with urlopen(request, timeout=20) as answer:',
    `    print(${isAnswered ? 'json.load(answer)' : 'answer.status'})`,
  ].join('\n');
}

/** How a language writes values. */
interface Words {
  text(value: string): string;
  /** `true`, `false` and `null`. */
  word(value: boolean | null): string;
  name(key: string): string;
  object: readonly [open: string, close: string];
  empty: string;
  indent: number;
  /** After the last one too. */
  hasLastComma: boolean;
}

const quoted = (value: string) => `'${value.replaceAll(/[\\']/g, '\\$&')}'`;

const json: Words = {
  text: (value) => JSON.stringify(value),
  word: String,
  name: (key) => `${JSON.stringify(key)}: `,
  ...{ object: ['{', '}'], empty: '{}', indent: 2, hasLastComma: false },
};
const javascript: Words = {
  text: quoted,
  word: String,
  name: (key) => `${/^[A-Za-z_]\w*$/.test(key) ? key : quoted(key)}: `,
  ...{ object: ['{', '}'], empty: '{}', indent: 2, hasLastComma: true },
};
const phpWords: Words = {
  text: quoted,
  word: String,
  name: (key) => `${quoted(key)} => `,
  // An empty list of PHP would be sent as a list.
  ...{ object: ['[', ']'], empty: 'new stdClass()', indent: 4, hasLastComma: true },
};
const pythonWords: Words = {
  text: (value) => JSON.stringify(value),
  word: (value) => (value === null ? 'None' : value ? 'True' : 'False'),
  name: (key) => `${JSON.stringify(key)}: `,
  ...{ object: ['{', '}'], empty: '{}', indent: 4, hasLastComma: true },
};

function written(value: unknown, words: Words, margin = ''): string {
  if (typeof value === 'string') return words.text(value);
  if (typeof value === 'boolean' || value === null) return words.word(value);
  if (typeof value !== 'object') return String(value);
  const isList = Array.isArray(value);
  const inner = margin + ' '.repeat(words.indent);
  const lines = Object.entries(value).map(
    ([key, each]) => `${inner}${isList ? '' : words.name(key)}${written(each, words, inner)}`,
  );
  if (lines.length === 0) return isList ? '[]' : words.empty;
  const [open, close] = isList ? ['[', ']'] : words.object;
  return `${open}\n${lines.join(',\n')}${words.hasLastComma ? ',' : ''}\n${margin}${close}`;
}
