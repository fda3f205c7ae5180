import { Type } from 'typebox';
import { limits } from '../limits.ts';
import { errorTable } from './errors.ts';

const errorTypes = [...new Set(Object.values(errorTable).map((row) => row.type))];
const errorCodes = Object.keys(errorTable);

/** Characters that make a text read otherwise than it is stored; refused in every text of a body. */
export const directions = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
const controls = `\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029${directions}`;
const blanks = ' \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufeff';

/**
 * Printable, and not blank. At each place of a text at most one way leads on, so that a long one costs no more than its
 * length.
 */
export const printable = `^[${blanks}]*[^${blanks}${controls}][^${controls}]*$`;

/** What a merchant calls a thing. */
export const OwnReference = Type.String({
  minLength: 1,
  maxLength: limits.referenceMaxChars,
  pattern: printable,
  description: 'Yours: 1 to 100 printable characters. Need not be unique.',
});

/** CONTRACT 4.1: the one shape of every answer that is not a success. */
export const ErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        type: Type.Enum(errorTypes, { description: 'The family of the error.' }),
        code: Type.Enum(errorCodes, { description: 'What is wrong, for programs. The list may grow.' }),
        message: Type.String({ description: 'What is wrong and what to send instead, for people.' }),
        param: Type.Optional(
          Type.String({ description: 'The field at fault, such as `metadata.order_id`.' }),
        ),
        request_id: Type.String({ description: 'Quote this when you ask the operator for help.' }),
        errors: Type.Optional(
          Type.Array(
            Type.Object(
              { param: Type.String(), code: Type.Enum(errorCodes), message: Type.String() },
              { additionalProperties: false },
            ),
            { description: 'Every bad field at once; only where fields were checked.' },
          ),
        ),
      },
      { additionalProperties: false },
    ),
  },
  { title: 'Error', additionalProperties: false },
);
