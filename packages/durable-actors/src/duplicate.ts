import { MongoBulkWriteError, MongoServerError } from 'mongodb';

const duplicateKey = 11_000;

/**
 * Whether a write was refused only because its key is there already. Of a bulk: whether that was all that was refused
 * (a write concern that was not met is another fault).
 */
export function isDuplicateKey(error: unknown): error is MongoServerError {
  if (error instanceof MongoBulkWriteError) {
    const refused = [error.writeErrors].flat();
    return (
      refused.length > 0 &&
      refused.every(isDuplicateCode) &&
      error.result.getWriteConcernError() === undefined
    );
  }
  return error instanceof MongoServerError && isDuplicateCode(error);
}

export function isDuplicateCode({ code }: { code?: number | string }): boolean {
  return code === duplicateKey;
}
