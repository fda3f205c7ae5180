import { Type } from 'typebox';

const retention = (what: string, words: Record<string, string> = {}) =>
  Type.String({
    description: `${what} goes to the archive when it has ended and was not touched for so long. \`keep\`: never.`,
    format: 'retention',
    default: 'keep',
    ...words,
  });

/** What MongoDB need not keep for ever, and where it goes. */
export const retentionSettings = {
  RETENTION_HISTORY: retention('The steps of payments and all other actors, but deliveries,', {
    section: 'Archive (docs/OPERATING.md)',
  }),
  RETENTION_EVENTS: retention('An event with its deliveries and their attempts'),
  RETENTION_EVIDENCE: retention('What networks answered and called back'),
  RETENTION_JOURNAL: Type.String({
    description:
      'The journal goes to the archive day by day, when the day is proven, sealed and so old. `keep`: never; at least 400 days.',
    format: 'retentionOfBooks',
    default: 'keep',
  }),
  ARCHIVE_DIR: Type.Optional(
    Type.String({
      description:
        'Folder of the archive, the same for all processes: workers write it, and what operators open is read from it.',
    }),
  ),
};
