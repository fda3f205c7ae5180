import { Type } from 'typebox';
import { errorTable } from './errors.ts';

const errorTypes = [...new Set(Object.values(errorTable).map((row) => row.type))];
const errorCodes = Object.keys(errorTable);

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
