import { type ListFilter, type ListPlan, modesOf, restOf } from '../listPlan.ts';

/** The index that answers an operator's list of payments: by the phone, the reference or why they failed. */
export function planOfCollections(filter: ListFilter): ListPlan | undefined {
  const { merchantId, msisdn, reference, failureCode } = filter;
  const mode = { $in: modesOf(filter) };
  if (msisdn) {
    const match = { 'data.msisdn': { $eq: msisdn } };
    return { match, hint: { 'data.msisdn': 1, _id: -1 }, rest: restOf(filter, 'msisdn') };
  }
  if (reference !== undefined) {
    const hint = { 'data.reference': 1, merchantId: 1, mode: 1, _id: -1 };
    const match = { 'data.reference': { $eq: reference } };
    // Many merchants may use one: they are not in the order of time.
    if (!merchantId) return { match, hint, rest: restOf(filter, 'reference'), isUnsorted: true };
    const ofOne = { ...match, merchantId: { $eq: merchantId }, mode };
    return { match: ofOne, hint, rest: restOf(filter, 'merchantId', 'mode', 'reference') };
  }
  if (failureCode && !merchantId) {
    const match = { mode, status: 'failed', 'snapshot.context.failureCode': { $eq: failureCode } };
    const hint = { mode: 1, 'snapshot.context.failureCode': 1, _id: -1 };
    return { match, hint, rest: restOf(filter, 'mode', 'failureCode') };
  }
  return undefined;
}
