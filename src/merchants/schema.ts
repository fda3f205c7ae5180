import { Type } from 'typebox';
import { idPattern } from '../ids.ts';

/** CONTRACT 2.7 */
export const PrincipalObject = Type.Object(
  {
    object: Type.Literal('principal'),
    merchant_id: Type.String({ pattern: idPattern('mer') }),
    mode: Type.Enum(['live', 'test'], { description: 'What the key acts in; its prefix says so too.' }),
    key_id: Type.String({ pattern: idPattern('key'), description: 'The key itself is never shown again.' }),
  },
  {
    title: 'Principal',
    additionalProperties: false,
    examples: [
      {
        object: 'principal',
        merchant_id: 'mer_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
        mode: 'test',
        key_id: 'key_01K5J8Q2R3S4T5V6W7X8Y9Z0AC',
      },
    ],
  },
);

/** CONTRACT 2.8 */
export const RevokedKeyObject = Type.Object(
  {
    id: Type.String({ pattern: idPattern('key') }),
    object: Type.Literal('api_key'),
    mode: Type.Enum(['live', 'test']),
    revoked_at: Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' }),
  },
  { title: 'RevokedKey', additionalProperties: false },
);
