import { type Html, html } from '../pages/pages.ts';
import { card, facts, table } from './layout.ts';
import type { Answered, Show } from './page.ts';
import { ago, figures, moment, span } from './words.ts';

type Archive = Answered<'/admin/archive'>;
type Kind = Archive['kinds'][number];
type File = Archive['files'][number];
type Kept = Archive['kept'][number];

/** What is kept, what went to the archive, when and how much. Settings decide; nothing here changes anything. */
export const showArchive: Show = async (visit) => {
  const archive = await visit.read('/admin/archive');
  const body = html`
<div class="top"><h1>Archive</h1></div>
<p class="quiet">Of both modes. What has ended and was not touched for its retention goes to files at night. A payment's own page stays, and reads its steps from there.</p>
<div id="archive" data-live>
${card('By kind', kindTable(archive.kinds))}
${runCard(visit.nowMs, archive)}
${card('Files, the latest first', fileTable(archive.files))}
${card('What MongoDB keeps', keptTable(archive.kept))}
</div>`;
  return { title: 'Archive', nav: 'machines', live: 'often', body };
};

function kindTable(kinds: readonly Kind[]): Html {
  return table<Kind>(
    [
      { head: 'Kind', cell: ({ kind }) => html`<b>${kind}</b>` },
      { head: 'What', kind: 'wide', cell: ({ what }) => what },
      { head: 'Kept for', cell: ({ retention_ms: ms }) => (ms === null ? 'ever' : span(ms)) },
      { head: 'Older is in files', cell: ({ begins_at: at }) => (at ? moment(at) : '–') },
      { head: 'Documents', kind: 'right', cell: ({ documents }) => figures(documents) },
      { head: 'Files', kind: 'right', cell: ({ files }) => figures(files) },
      { head: 'Size', kind: 'right', cell: ({ bytes }) => size(bytes) },
      { head: 'As lines', kind: 'right', cell: ({ raw_bytes: bytes }) => size(bytes) },
    ],
    kinds,
    'Nothing can go.',
  );
}

function runCard(nowMs: number, { latest_run: run, folder }: Archive): Html {
  if (!run) return card('Latest run', html`<p class="quiet">None yet. Folder: ${folder ?? 'not set'}.</p>`);
  const { fault } = run;
  const state = run.complete ? 'all that was due' : 'not all: it goes on the next night';
  return card(
    'Latest run',
    html`${fault ? html`<p class="fault">${fault}</p>` : ''}${facts([
      ['began', html`${ago(run.at, nowMs)} ago`],
      ['took', span(run.took_ms)],
      ['moved', `${figures(run.documents)} documents into ${figures(run.files)} files, ${state}`],
      ['stayed because they changed', figures(run.left)],
      ['folder', folder ?? 'not set'],
    ])}`,
    { tone: fault ? 'bad' : '' },
  );
}

function fileTable(files: readonly File[]): Html {
  return table<File>(
    [
      { head: 'File', kind: 'wide', cell: ({ name }) => html`<code class="wrap">${name}</code>` },
      { head: 'Written', cell: ({ at }) => moment(at) },
      { head: 'Of before', cell: ({ before }) => moment(before) },
      { head: 'State', cell: ({ state }) => state },
      { head: 'Documents', kind: 'right', cell: ({ documents }) => figures(documents) },
      { head: 'Size', kind: 'right', cell: ({ bytes }) => size(bytes) },
    ],
    files,
    'No file.',
  );
}

function keptTable(kept: readonly Kept[]): Html {
  return table<Kept>(
    [
      { head: 'Stored in', cell: ({ stored_in: name }) => html`<code>${name}</code>` },
      {
        head: 'Kept',
        kind: 'wide',
        cell: ({ why, expires }) => (why ? `for ever: ${why}` : `goes by itself ${expires ?? ''}`),
      },
    ],
    kept,
    'Nothing.',
  );
}

function size(bytes: number): string {
  return bytes < 1e6 ? `${figures(Math.ceil(bytes / 1e3))} kB` : `${figures(Math.round(bytes / 1e6))} MB`;
}
