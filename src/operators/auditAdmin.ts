import type { Db, Document } from 'mongodb';
import { Type } from 'typebox';
import {
  type AuditDoc,
  auditSpec,
  described,
  idRange,
  listedAnswer,
  Moment,
  pageFields,
  periodOf,
  readPage,
} from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { ListPlan } from '../listPlan.ts';
import { isoTime } from '../time.ts';

/** What people changed: read only. Lines are written in the commit of what they describe, and never again. */
export interface AuditAdminDeps {
  db: Db;
}

function presentLine(line: AuditDoc) {
  return {
    id: line._id,
    object: 'audit_line',
    at: isoTime(line.at.getTime()),
    by: line.by,
    action: line.action,
    target: line.target,
    merchant_id: line.merchantId ?? null,
    reason: line.reason,
    request_id: line.requestId,
    before: line.before ?? null,
    after: line.after ?? null,
  };
}

/** In this order: what is asked for by the first goes over its index. */
const indexed = ['target', 'merchantId', 'by', 'action'] as const;

function planOf(asked: Document): ListPlan {
  const field = indexed.find((each) => each in asked);
  if (!field) return { match: {}, hint: { _id: 1 }, rest: {} };
  const { [field]: value, ...rest } = asked;
  return { match: { [field]: value }, hint: { [field]: 1, _id: -1 }, rest };
}

export function listAudit({ db }: AuditAdminDeps) {
  return forOperators({
    doc: described(
      'listAudit',
      'What people changed, newest first',
      200,
      'Who, when, what, why, before and after. `from` is inclusive, `to` exclusive: a time, or a date in Dar es Salaam. Go on with `starting_after` set to `next`.',
    ),
    query: Type.Object(
      {
        target: Type.Optional(Type.String({ minLength: 1, maxLength: 80 })),
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        by: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
        action: Type.Optional(Type.String({ maxLength: 64, pattern: '^[A-Za-z_.]+$' })),
        from: Moment,
        to: Moment,
        ...pageFields(idPattern('aud')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const { target, merchant, by, action, from, to } = query;
      const asked = {
        ...(target === undefined ? {} : { target: { $eq: target } }),
        ...(merchant === undefined ? {} : { merchantId: { $eq: merchant } }),
        ...(by === undefined ? {} : { by: { $eq: by } }),
        ...(action === undefined ? {} : { action: { $eq: action } }),
      };
      const plan = planOf(asked);
      const ids = idRange('aud', periodOf({ from, to }), query.starting_after);
      const within = ids ? { ...plan, match: { ...plan.match, _id: ids } } : plan;
      const listed = await readPage<AuditDoc>(
        db.collection(auditSpec.name),
        within,
        query.limit ?? limits.listDefault,
      );
      return { status: 200, body: listedAnswer(listed, presentLine) };
    },
  });
}
