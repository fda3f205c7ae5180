import { type Static, type TObject, Type } from 'typebox';
import { failureCodes } from '../../machines/collection.ts';
import { createdFilters, directions, printable } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { channels } from '../rails/rails.ts';
import { hasLoneSurrogate, isLongerThan, metadataFaults } from './metadata.ts';
import { isTestPhone, parsePhone, phoneMaxChars } from './phone.ts';

export const statuses = ['created', 'succeeded', 'failed', 'expired'] as const;

/** metadata.ts says the same in better words; here it is for the document. */
const MetadataValues = Type.Record(
  Type.String(),
  Type.Union([
    Type.String({ maxLength: limits.metadataValueMaxChars, pattern: `^[^${directions}]*$` }),
    Type.Number(),
    Type.Boolean(),
  ]),
  {
    maxProperties: limits.metadataMaxKeys,
    propertyNames: {
      type: 'string',
      minLength: 1,
      maxLength: limits.metadataKeyMaxChars,
      pattern: `^[^\\u0000${directions}]*$`,
      not: { enum: ['__proto__', 'constructor', 'prototype', '_bsontype'] },
    },
    description:
      'Yours; keys and values come back as sent, in any order. Up to 50 keys of 1 to 40 characters; values are ' +
      'strings of up to 500 characters, booleans, or numbers that a double carries exactly (send longer ones as ' +
      'strings); at most 16 KiB in all.',
  },
);

/**
 * What `parsePhone` and `referenceFault` take, for the document. At each place of a text at most one way leads on,
 * so that a long one costs no more than its length.
 */
const phonePattern = '^[ -]*(?:(?:\\+[ -]*)?2[ -]*5[ -]*5|0)[ -]*[67](?:[ -]*[0-9]){8}[ -]*$';
export const createPatterns = {
  phone: phonePattern,
  reference: printable,
};

const example = {
  id: 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
  object: 'collection',
  status: 'created',
  amount: 5000,
  fee: 100,
  currency: 'TZS',
  channel: channels[0],
  phone: '255700000000',
  reference: 'order-1001',
  metadata: {},
  mode: 'test',
  created_at: '2026-11-21T09:00:00.000Z',
  expires_at: '2026-11-21T09:01:20.000Z',
};

/** CONTRACT 8.2 and 8.4. Absent means not there. */
export const CollectionObject = Type.Object(
  {
    id: Type.String({ pattern: idPattern('col') }),
    object: Type.Literal('collection'),
    status: Type.Enum([...statuses], {
      description: '`created` is the only status that is not final. Poll while it is `created`.',
    }),
    amount: Type.Integer({
      minimum: 1,
      description: 'Requested from the customer, in whole Tanzanian shillings: 5000 is TZS 5,000.',
    }),
    fee: Type.Integer({
      minimum: 0,
      description: 'In whole shillings. Fixed at creation and deducted from what you receive.',
    }),
    currency: Type.Literal('TZS'),
    channel: Type.Enum([...channels]),
    phone: Type.String({ description: 'The customer’s phone, as you sent it.' }),
    reference: Type.String({ description: 'Yours. Not unique.' }),
    description: Type.Optional(Type.String({ description: 'Present when you sent one.' })),
    metadata: MetadataValues,
    failure_code: Type.Optional(
      Type.Enum([...failureCodes], {
        description:
          'Present when `status` is `failed`. The list may grow: treat others as `provider_error`.',
      }),
    ),
    failure_message: Type.Optional(
      Type.String({ description: 'For people. Present when `status` is `failed`.' }),
    ),
    mode: Type.Enum(['live', 'test']),
    created_at: Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' }),
    completed_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'ISO 8601, UTC. Present for every final status.' }),
    ),
    expires_at: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'ISO 8601, UTC. By then the prompt on the phone has run out, however late it was sent. The final status ' +
          'normally follows within ten minutes, because the network is asked first.',
      }),
    ),
    provider_reference: Type.Optional(
      Type.String({ description: 'The network’s receipt, present once known.' }),
    ),
    late: Type.Optional(
      Type.Literal(true, {
        description: 'Only where a payment was accepted after the collection had ended.',
      }),
    ),
    refunded: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'What has gone back to the customer by refunds, or is on its way. In whole shillings. Absent: nothing.',
      }),
    ),
  },
  {
    title: 'Collection',
    additionalProperties: false,
    examples: [
      example,
      {
        ...example,
        status: 'succeeded',
        completed_at: '2026-11-21T09:00:12.345Z',
        provider_reference: 'SIM0A1B2C3D4E',
      },
    ],
  },
);
export type CollectionObject = Static<typeof CollectionObject>;

/**
 * The body of POST /v1/collections. What a schema cannot say, or cannot say in good words, is in
 * `createFaults`; the bounds of `amount` are the merchant's and so are only there, and which phones are taken depends on
 * the network (its sandbox has numbers of its own).
 */
export const CreateCollection = Type.Object(
  {
    amount: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'Whole Tanzanian shillings, no cents: 5000 is TZS 5,000. 100 to 5,000,000 unless agreed otherwise.',
    }),
    phone: Type.String({
      maxLength: 25,
      description:
        'A Tanzanian mobile number: 255XXXXXXXXX, +255XXXXXXXXX or 0XXXXXXXXX; spaces and dashes are fine.',
    }),
    reference: Type.String({
      minLength: 1,
      maxLength: limits.referenceMaxChars,
      pattern: createPatterns.reference,
      description: 'Yours, such as an order number: 1 to 100 printable characters. Need not be unique.',
    }),
    description: Type.Optional(
      Type.String({
        maxLength: limits.descriptionMaxChars,
        pattern: `^[^${directions}]*$`,
        description: 'Up to 255 characters.',
      }),
    ),
    metadata: Type.Optional(MetadataValues),
  },
  { title: 'CreateCollection', additionalProperties: false },
);
export type CreateCollection = Static<typeof CreateCollection>;

/** The same for the document, with the bounds that hold for merchants who have none of their own, and real phones. */
export function documentedCreateCollection({ minTzs, maxTzs }: AmountBounds): TObject {
  const { amount, phone, ...others } = CreateCollection.properties;
  const bounded = Type.Integer({ ...amount, minimum: minTzs, maximum: maxTzs });
  const spelt = Type.String({ ...phone, pattern: createPatterns.phone });
  return Type.Object(
    { amount: bounded, phone: spelt, ...others },
    { title: 'CreateCollection', additionalProperties: false },
  );
}

/** The body of POST /v1/test_helpers/collections/:id/outcome. */
export const SetTestOutcome = Type.Object(
  {
    outcome: Type.Enum(['succeeded', 'failed', 'expired', 'late'], {
      description: '`late`: expired, and then the customer pays after all.',
    }),
    failure_code: Type.Optional(
      Type.Enum([...failureCodes], { description: 'With `failed`; `declined` when absent.' }),
    ),
  },
  { title: 'SetTestOutcome', additionalProperties: false },
);

/** A reason for what is no failure is a mistake. */
export function outcomeFaults(body: Readonly<Record<string, unknown>>): CreateFault[] {
  if (body.failure_code === undefined || body.outcome === undefined || body.outcome === 'failed') return [];
  const message = 'failure_code goes with the outcome failed only.';
  return [{ param: 'failure_code', code: 'parameter_invalid', message }];
}

/** Filters of GET /v1/collections beside `limit` and `starting_after` (CONTRACT 8.6). */
export const collectionFilters = {
  status: Type.Optional(Type.Enum([...statuses])),
  reference: Type.Optional(Type.String({ minLength: 1, maxLength: limits.referenceMaxChars })),
  phone: Type.Optional(
    Type.String({ maxLength: phoneMaxChars, pattern: phonePattern, description: 'In any spelling.' }),
  ),
  provider_reference: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'The network’s receipt, as it is told.' }),
  ),
  ...createdFilters(),
};

/** In whole shillings, both included. */
export interface AmountBounds {
  minTzs: number;
  maxTzs: number;
}

export interface CreateFault {
  param: string;
  code: 'parameter_invalid' | 'amount_too_small' | 'amount_too_large' | 'phone_invalid' | 'metadata_invalid';
  message: string;
}

/**
 * Faults in a create body, one per field at most (one per key in metadata). Fields that are missing are left to
 * the schema. `mode` matters because test numbers are refused with a live key, and those of the network's sandbox are
 * good for nothing but the sandbox (`isSandbox`).
 */
export function createFaults(
  body: Readonly<Record<string, unknown>>,
  bounds: AmountBounds,
  mode: Mode,
  isSandbox = false,
): CreateFault[] {
  const faults: CreateFault[] = [];
  const fault = (param: string, code: CreateFault['code'], message: string | undefined) => {
    if (message !== undefined) faults.push({ param, code, message });
  };
  const amount = body.amount === undefined ? undefined : amountFault(body.amount, bounds);
  if (amount) faults.push({ param: 'amount', ...amount });
  if (body.phone !== undefined) fault('phone', 'phone_invalid', phoneFault(body.phone, mode, isSandbox));
  if (body.reference !== undefined) fault('reference', 'parameter_invalid', referenceFault(body.reference));
  if (body.description !== undefined) {
    fault('description', 'parameter_invalid', descriptionFault(body.description));
  }
  if (body.metadata !== undefined) {
    for (const { param, message } of metadataFaults(body.metadata)) fault(param, 'metadata_invalid', message);
  }
  return faults;
}

function amountFault(
  amount: unknown,
  { minTzs, maxTzs }: AmountBounds,
): Omit<CreateFault, 'param'> | undefined {
  if (typeof amount !== 'number') {
    const message = 'amount must be a JSON number of whole shillings, such as 5000 for TZS 5,000.';
    return { code: 'parameter_invalid', message };
  }
  // Before the fraction: beyond 2^53 every number counts as whole, and Infinity (1e999) as none.
  if (amount > maxTzs) return { code: 'amount_too_large', message: tooLarge(maxTzs) };
  if (amount < minTzs) return { code: 'amount_too_small', message: tooSmall(minTzs) };
  if (!Number.isInteger(amount)) {
    const message = 'amount must be whole shillings, without a fraction, such as 5000 for TZS 5,000.';
    return { code: 'parameter_invalid', message };
  }
  return undefined;
}

/** Says the unit, because sending cents (500000 for TZS 5,000) is the mistake people make. */
function tooLarge(maxTzs: number): string {
  return `amount must be at most ${maxTzs} TZS. It is in whole shillings, not cents: 5000 is TZS 5,000.`;
}

function tooSmall(minTzs: number): string {
  return `amount must be at least ${minTzs} TZS (whole shillings).`;
}

function phoneFault(phone: unknown, mode: Mode, isSandbox: boolean): string | undefined {
  if (typeof phone !== 'string') return 'phone must be a string, such as "255712345678".';
  const parsed = parsePhone(phone, mode === 'live' && isSandbox);
  if ('fault' in parsed) return parsed.fault;
  if (mode === 'live' && isTestPhone(parsed.msisdn)) {
    return 'phone is a test number, which works with a test key only.';
  }
  return undefined;
}

function referenceFault(reference: unknown): string | undefined {
  if (typeof reference !== 'string') return 'reference must be a string, such as "order-1001".';
  if (reference.trim() === '') return 'reference may not be blank.';
  if (isLongerThan(reference, limits.referenceMaxChars)) return 'reference may have at most 100 characters.';
  // Controls, halves of surrogate pairs, and the separators of lines and paragraphs.
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(reference)) {
    return 'reference may hold printable characters only (no line breaks or other control characters).';
  }
  return undefined;
}

function descriptionFault(description: unknown): string | undefined {
  if (typeof description !== 'string') return 'description must be a string.';
  if (isLongerThan(description, limits.descriptionMaxChars)) {
    return 'description may have at most 255 characters.';
  }
  if (hasLoneSurrogate(description)) {
    return 'description contains half of a surrogate pair, which is not valid Unicode.';
  }
  return undefined;
}
