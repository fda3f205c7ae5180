import { forMerchants } from '../http/http.ts';
import type { Principal } from '../principal.ts';
import type { Own } from '../whose.ts';
import type { ApiKey } from './merchants.ts';
import { PrincipalObject, RevokedKeyObject } from './schema.ts';

/** GET /v1/whoami: checks that a key works (CONTRACT 2.7). */
export function whoami() {
  return forMerchants({
    doc: {
      id: 'whoami',
      summary: 'Identify the API key',
      description: 'Tells whose key this is and which mode it acts in. Use it to check that a key works.',
      tag: 'Account',
      answers: { 200: { description: 'The key works.', schema: PrincipalObject } },
    },
    handler: ({ principal }) => ({
      status: 200,
      body: {
        object: 'principal',
        merchant_id: principal.merchantId,
        mode: principal.mode,
        key_id: principal.keyId,
      },
    }),
  });
}

/** Ends the key of a request. */
export type RevokeOwnKey = (principal: Principal) => Promise<Own<ApiKey>>;

/** DELETE /v1/api_keys/self (CONTRACT 2.8). Keys make no keys: one that leaked would outlive its own end. */
export function revokeOwnKey(revoke: RevokeOwnKey) {
  return forMerchants({
    doc: {
      id: 'revokeOwnKey',
      summary: 'Revoke the API key',
      description:
        'An addition to the interface. Ends the key that this request is sent with, for good and everywhere within 5 ' +
        'seconds: for a key that others may have seen. Sent again it is `api_key_invalid`, like everything with this ' +
        'key. Only the operator gives a new one.',
      tag: 'Account',
      answers: { 200: { description: 'The key is revoked.', schema: RevokedKeyObject } },
    },
    handler: async ({ principal }) => {
      const { _id: id, mode, revokedAt } = await revoke(principal);
      return { status: 200, body: { id, object: 'api_key', mode, revoked_at: revokedAt?.toISOString() } };
    },
  });
}
