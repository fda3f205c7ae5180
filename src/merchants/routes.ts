import { forMerchants } from '../http/http.ts';
import { PrincipalObject } from './schema.ts';

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
