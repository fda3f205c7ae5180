import type { Chapter, ObjectView, OperationView } from './reference.ts';
import { languages } from './samples.ts';
import type { Field } from './schema.ts';
import { chapterPath, errorsPath, type Site } from './site.ts';

/** Guide and reference as one Markdown document. */
export function wholeText({ title, chapters, errors, guides }: Site): string {
  const rows = errors.map(
    ({ code, status, type, message, remedy }) =>
      `| \`${code}\` | ${status} | \`${type}\` | ${message} | ${remedy} |`,
  );
  return [
    ...guides.map(({ text }) => text.trim()),
    `# ${title} reference`,
    ...chapters.map(chapterText),
    '## Every error',
    ['| code | status | type | it says | what to do |', '|---|---|---|---|---|', ...rows].join('\n'),
  ].join('\n\n');
}

/** What there is to read, for programs that read (llmstxt.org). */
export function indexText({ title, chapters, guides }: Site, baseUrl: string, description: string): string {
  const line = (name: string, path: string, about = '') =>
    `- [${name}](${baseUrl}${path})${about && `: ${about.replaceAll(/\s+/g, ' ')}`}`;
  return [
    `# ${title}\n`,
    `> ${description}\n`,
    '## Documentation\n',
    line('All of it', '/docs.md', 'guide and reference as one Markdown document'),
    line('OpenAPI 3.1', '/v1/openapi.json', 'the interface with every field and error'),
    '\n## Guide\n',
    ...guides.filter(({ isListed }) => isListed).map(({ name, path }) => line(name, path)),
    '\n## Reference\n',
    ...chapters.map((chapter) => line(chapter.title, chapterPath(chapter), chapter.description)),
    line('Errors', errorsPath, 'every code, and what to do about it'),
    '',
  ].join('\n');
}

function chapterText({ title, description, operations, objects }: Chapter): string {
  return [`## ${title}`, description, ...operations.map(operationText), ...objects.map(objectText)].join(
    '\n\n',
  );
}

function operationText({
  title,
  method,
  path,
  description,
  groups,
  call,
  answers,
  errors,
}: OperationView): string {
  return [
    `### ${title}`,
    `\`${method} ${path}\``,
    description,
    ...groups.map((group) => `**${group.title}**\n\n${fieldLines(group.fields, 'required').join('\n')}`),
    `\`\`\`sh\n${languages[0]!.sample(call)}\n\`\`\``,
    ...answers.map(({ status, description, example }) =>
      [`**Answer ${status}**: ${description}`, ...(example === undefined ? [] : [jsonBlock(example)])].join(
        '\n\n',
      ),
    ),
    `**Errors**: ${errors.map(({ code, status }) => `${status} \`${code}\``).join(', ')}`,
  ].join('\n\n');
}

function objectText({ title, fields, example, about }: ObjectView): string {
  const parts = [
    `### The ${title} object`,
    about,
    fieldLines(fields, 'absent').join('\n'),
    jsonBlock(example),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function fieldLines(fields: readonly Field[], marked: 'required' | 'absent', margin = ''): string[] {
  return fields.flatMap(({ name, type, limits, isRequired, description, fields: inner }) => {
    const mark = marked === 'required' ? isRequired && 'required' : !isRequired && 'may be absent';
    const about = [type, mark, limits].filter(Boolean).join(', ');
    const line = `${margin}- \`${name}\` (${about})${description && `: ${description}`}`;
    return [line, ...fieldLines(inner, marked, `${margin}  `)];
  });
}

function jsonBlock(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}
