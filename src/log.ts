import { type DestinationStream, type Logger, pino } from 'pino';

export type Log = Logger;

/** Structured logs on stdout. Secrets and phones are redacted here, whatever a caller passes. */
export function createLog(level: string, destination?: DestinationStream): Log {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          'authorization',
          'secret',
          'token',
          'phone',
          'msisdn',
          '*.authorization',
          '*.secret',
          '*.token',
          '*.phone',
          '*.msisdn',
        ],
        censor: '[redacted]',
      },
    },
    destination ?? pino.destination({ fd: 1, sync: false }),
  );
}

/** `255700001234` → `2557****1234`: enough to recognise a customer in a call, not enough to ring them. */
export function maskPhone(msisdn: string): string {
  return `${msisdn.slice(0, 4)}****${msisdn.slice(-4)}`;
}
