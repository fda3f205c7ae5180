import { type Html, html, type Part } from '../pages/pages.ts';
import { address, type Visit } from './page.ts';
import { label, shortId } from './words.ts';

/** Ids as ways to what they name: every page writes them by this, so none is a dead end. */
type Place = (id: string) => string;

const actor: Place = (id) => `/actors/${id}`;
const changes: Place = (id) => `/audit?target=${id}`;
/** What has no page of its own has a route that finds it. */
const found: Place = (id) => `/search?q=${id}`;

const places: Readonly<Record<string, Place>> = {
  col_: actor,
  rf_: actor,
  dlv_: actor,
  we_: actor,
  rpl_: actor,
  po_: actor,
  dst_: actor,
  sch_: actor,
  bkf_: () => '/payouts/files',
  'stl.': actor,
  'brk.': actor,
  'rec.': (id) => `/reconciliations/${id}`,
  dif_: actor,
  mer_: (id) => `/merchants/${id}`,
  evt_: (id) => `/events/${id}`,
  key_: changes,
  opr_: changes,
  fee_: () => '/fees',
  aud_: found,
  dsh_: found,
  req_: (id) => `/requests/${id}`,
  stl_: found,
  txn_: found,
};

const ulid = '[0-9A-HJKMNP-TV-Z]{26}';
const idIn = new RegExp(
  `\\b(?:(?:${Object.keys(places)
    .filter((prefix) => prefix.endsWith('_'))
    .map((prefix) => prefix.slice(0, -1))
    .join(
      '|',
    )})_${ulid}\\b|stl\\.(?:live|test)\\.mer_${ulid}\\.\\d{4}-\\d\\d-\\d\\d|brk\\.[A-Z_]+\\.[a-z]+|rec\\.[A-Z_]+\\.\\d{4}-\\d\\d-\\d\\d)`,
  'g',
);

/** Where an id is looked at, judged by its beginning; undefined of what no page shows. */
function placeOf(id: string): string | undefined {
  const prefix = Object.keys(places).find((each) => id.startsWith(each));
  return prefix && places[prefix]!(id);
}

/** An id, or other words for it, with the way to what it names. */
export function idLink(visit: Pick<Visit, 'mode'>, id: string, text: Part = shortId(id)): Html {
  const place = placeOf(id);
  if (place === undefined) return html`${text}`;
  return html`<a href="${address(visit, place)}" title="${id}">${text}</a>`;
}

/** A text with each whole id in it made a link. */
export function withLinks(visit: Pick<Visit, 'mode'>, text: string): Part {
  const parts: Part[] = [];
  let end = 0;
  for (const { 0: id, index } of text.matchAll(idIn)) {
    parts.push(text.slice(end, index), idLink(visit, id, id));
    end = index + id.length;
  }
  return [...parts, text.slice(end)];
}

/** `test:TZS:merchant_pending:mer_…` → `merchant pending mer_…`: the page says the mode, and there is one currency. */
export function accountWords(visit: Pick<Visit, 'mode'>, account: string): Html {
  const [, , kind = account, whose] = account.split(':');
  return html`<span title="${account}">${label(kind)}${whose ? html` ${whose.startsWith('mer_') ? idLink(visit, whose) : whose}` : ''}</span>`;
}
