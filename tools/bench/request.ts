import { Ajv2020 } from 'ajv/dist/2020.js';

/** The check of a create's body by the ways that ours is measured against. */
export const validate = new Ajv2020({ allErrors: true }).compile({
  type: 'object',
  additionalProperties: false,
  required: ['amount', 'phone', 'reference'],
  properties: {
    amount: { type: 'integer', minimum: 100, maximum: 5_000_000 },
    phone: { type: 'string', maxLength: 25, pattern: '^\\+?[0-9 -]+$' },
    reference: { type: 'string', minLength: 1, maxLength: 100 },
    description: { type: 'string', maxLength: 255 },
    metadata: { type: 'object' },
  },
});
