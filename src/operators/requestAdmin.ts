import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { described } from '../desk/desk.ts';
import { forOperators, type RefusalDoc, readRefusals, resourceNotFound } from '../http/http.ts';

/** What became of a request that was refused; what an accepted one made is found by the search. */
interface RequestAdminDeps {
  db: Db;
}

function presentRefusal(refusal: RefusalDoc) {
  const { requestId, at, method, route, status, code, message, errors } = refusal;
  return {
    id: requestId,
    object: 'refused_request',
    at: at.toISOString(),
    ...{ method, route, status, code, message, errors },
    merchant_id: refusal.merchantId ?? null,
    mode: refusal.mode ?? null,
    key_id: refusal.keyId ?? null,
    operator: refusal.operator ?? null,
  };
}

export function showRequest({ db }: RequestAdminDeps) {
  return forOperators({
    doc: described(
      'getRequest',
      'Why a request was refused',
      200,
      'By the request id of its answer, for seven days; several where a client sent the same id again. Phones are masked.',
    ),
    params: Type.Object({ id: Type.String({ maxLength: 64, pattern: '^[\\w-]{8,64}$' }) }),
    handler: async ({ params }) => {
      const refusals = await readRefusals(db, params.id);
      if (refusals.length === 0) throw resourceNotFound();
      return { status: 200, body: { object: 'list', data: refusals.map(presentRefusal), has_more: false } };
    },
  });
}
