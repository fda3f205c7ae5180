/** Where the engine tells what happened. Any logger with these four (pino's, for one) will do. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
