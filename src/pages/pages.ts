/** What pages of HTML are made of: the console's, the dashboard's and the documentation's. */
export { type ActPlace, act, backOf, type Outcome } from './act.ts';
export {
  type AnsweredOf,
  type AskedOf,
  type CommandOf,
  type PathOf,
  queryText,
  type RowIn,
} from './answered.ts';
export {
  type Asset,
  Assets,
  assetOf,
  baseStyle,
  iconOf,
  liveScript,
  picturesStyle,
  piecesStyle,
} from './assets.ts';
export { filterForm } from './filterForm.ts';
export { readForm } from './formBody.ts';
export { type FormSpec, formOf } from './forms.ts';
export { pageHeaders, wholePage } from './frame.ts';
export { Html, html, type Part, trusted } from './html.ts';
export {
  bars,
  type CalendarDay,
  type Column,
  calendar,
  lines,
  type Picture,
  type PictureWords,
  type Series,
  type Shade,
  shades,
  shortFigure,
} from './pictures.ts';
export { anyHost, card, choices, facts, type List, pager, table } from './pieces.ts';
export {
  checkFormToken,
  formToken,
  idOf,
  keepCookie,
  newCookie,
  type SessionDoc,
  StoredSessions,
  seeOther,
} from './sessions.ts';
export { readSent, type SentForm } from './uploadBody.ts';
export type { FormOperation, PageVisit, PieceWords, Trial } from './visit.ts';
export { sendZipped, type Zipped, zippedOf } from './zipped.ts';
