import { filterForm, type Html, html } from '../pages/pages.ts';
import { formOf } from './forms.ts';
import { card, narrowed, pager, table } from './layout.ts';
import { idLink, withLinks } from './links.ts';
import { address, queryOf, type RowOf, type Show, type Visit } from './page.ts';
import type { ShownSession } from './session.ts';
import { ago, moment } from './words.ts';

/** Who may do what here. */
type Person = RowOf<'/admin/operators'>;

export const showOperators: Show = async (visit) => {
  const { operator } = visit;
  const about = html`<p class="hint">You are <b>${operator.name}</b>, ${operator.role}. A viewer looks, an operator also acts, an admin also issues keys and lets people in.</p>`;
  const isAdmin = operator.role === 'admin';
  const body = html`<div class="top"><h1>Operators</h1></div>
${card('You', about)}
${card('Where you are signed in', await sessionsOf(visit))}
${isAdmin ? await everybody(visit) : ''}`;
  return { title: 'Operators', nav: 'operators', body };
};

async function sessionsOf(visit: Visit): Promise<Html> {
  const sessions = await visit.sessions();
  const rows = table<ShownSession>(
    [
      { head: 'Browser', kind: 'wide', cell: ({ agent }) => agent || 'says nothing of itself' },
      { head: 'Since', cell: ({ since }) => moment(since) },
      {
        head: 'Last seen',
        cell: ({ isThis, lastSeenAt }) =>
          isThis ? html`<span class="pill good">this one</span>` : html`${ago(lastSeenAt, visit.nowMs)} ago`,
      },
    ],
    sessions,
    'Nowhere.',
  );
  if (sessions.every(({ isThis }) => isThis)) return rows;
  return html`${rows}<form method="post" action="/console/end-others">
<input type="hidden" name="form_token" value="${visit.formToken}"><input type="hidden" name="back" value="${visit.here}">
<p class="hint">One that you do not know? End the others, and have an admin revoke your token.</p>
<p class="buttons"><button>End all others</button></p></form>`;
}

async function everybody(visit: Visit): Promise<Html> {
  const after = visit.query.get('starting_after') ?? undefined;
  const list = await visit.read('/admin/operators', { query: { starting_after: after } });
  const rows = table<Person>(
    [
      { head: 'Name', cell: ({ name }) => name },
      { head: 'Role', cell: ({ role }) => role },
      {
        head: 'Let in',
        cell: ({ created_at, created_by }) =>
          html`${moment(created_at)} <span class="quiet">by ${created_by}</span>`,
      },
      {
        head: 'State',
        cell: ({ revoked_at }) =>
          revoked_at
            ? html`<span class="pill">revoked ${moment(revoked_at)}</span>`
            : html`<span class="pill good">good</span>`,
      },
      {
        head: 'Change',
        kind: 'wide',
        cell: ({ id, revoked_at }) =>
          revoked_at
            ? ''
            : formOf(visit, {
                id: `revoke-${id}`,
                to: 'DELETE /admin/operators/:id',
                params: { id },
                title: 'Revoke',
                hint: 'Ends the token and every session with it.',
                submit: 'Revoke',
                isDangerous: true,
              }),
      },
    ],
    list.data,
    'Nobody beside the holder of OPERATOR_TOKEN.',
  );
  const letIn = formOf(visit, {
    id: 'let-in',
    to: 'POST /admin/operators',
    title: 'Let somebody in',
    hint: 'Their token is shown once.',
    submit: 'Let in',
  });
  return html`${card('Who was let in', html`${rows}${pager(visit, list)}`)}${card('Another one', letIn)}`;
}

type AuditRow = RowOf<'/admin/audit'>;

function auditTable(visit: Visit, rows: readonly AuditRow[]): Html {
  return table<AuditRow>(
    [
      { head: 'At', cell: ({ at }) => moment(at) },
      { head: 'Who', cell: ({ by }) => html`<a href="${auditBy(visit, { by })}">${by}</a>` },
      {
        head: 'What',
        cell: ({ action }) => html`<a href="${auditBy(visit, { action })}"><code>${action}</code></a>`,
      },
      { head: 'To what', cell: ({ target }) => idLink(visit, target) },
      { head: 'Why', kind: 'wide', cell: ({ reason }) => html`<q>${withLinks(visit, reason)}</q>` },
      { head: 'Change', kind: 'wide', cell: ({ before, after }) => changeOf(visit, before, after) },
    ],
    rows,
    'Nobody changed anything.',
  );
}

/** The audit's lines of one person, or of one kind. */
function auditBy(visit: Visit, by: Record<string, string>): string {
  return address(visit, `/audit?${new URLSearchParams(by)}`);
}

/** What differs between before and after. */
function changeOf(visit: Visit, before: AuditRow['before'], after: AuditRow['after']): Html {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const text = (value: unknown) =>
    value === undefined || value === null
      ? '–'
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
  const rows = names
    .filter((name) => text(before?.[name]) !== text(after?.[name]))
    .map(
      (name) =>
        html`<li>${name}: ${before ? html`<del>${withLinks(visit, text(before[name]))}</del> ` : ''}<ins>${withLinks(visit, text(after?.[name]))}</ins></li>`,
    );
  if (rows.length === 0) return html`–`;
  return html`<details><summary>${rows.length} ${rows.length === 1 ? 'field' : 'fields'}</summary><ul class="changes">${rows}</ul></details>`;
}

export const showAudit: Show = async (visit) => {
  const list = await visit.read('/admin/audit', { query: queryOf(visit) });
  const modes = await Promise.all(list.data.map((line) => modeOfLine(visit, line)));
  const ours = list.data.filter((_line, index) => modes[index] === undefined || modes[index] === visit.mode);
  const others = list.data.length - ours.length;
  const note =
    others > 0 ? html`<p class="quiet">Lines of the other mode on this page of the list: ${others}.</p>` : '';
  const body = html`<div class="top"><h1>Audit</h1></div>
<div class="filters">${narrowed(visit, ['merchant'])}</div>
${filterForm(visit, {
  id: 'lines',
  fields: [
    { name: 'by', text: 'who' },
    { name: 'action', text: 'what, such as merchant.updated' },
    { name: 'target', text: 'to what (an id)' },
    { name: 'from', text: 'from', type: 'date' },
    { name: 'to', text: 'to, not included', type: 'date' },
  ],
  hint: 'Days in Dar es Salaam. A name or an action in the list below shows all of its kind.',
})}
${card('What people changed, newest first', html`${auditTable(visit, ours)}${note}${pager(visit, list)}`)}`;
  return { title: 'Audit', nav: 'audit', body };
};

/** Whose money a line is about; undefined where it is about both, or about none. */
async function modeOfLine(visit: Visit, { target, before, after }: AuditRow): Promise<string | undefined> {
  const told = after?.mode ?? before?.mode ?? /^stl\.(live|test)\./.exec(target)?.[1];
  if (typeof told === 'string') return told;
  if (!/^(col|rf|dlv|we|rpl|dif)_|^(brk|rec)\./.test(target)) return undefined;
  const actor = await visit.read('/admin/actors/:id', { params: { id: target } }).catch(() => undefined);
  return actor?.mode;
}

/** The lines of one actor. */
export async function auditOf(visit: Visit, target: string): Promise<Html> {
  const list = await visit.read('/admin/audit', { query: { target } });
  return auditTable(visit, list.data);
}
