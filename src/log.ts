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
    scrubbed(destination ?? pino.destination({ fd: 1, sync: false })),
  );
}

/**
 * For lines of fixed fields, written for every request and step: looking for the names of secret fields would be four
 * fifths of their cost. The last sieve is still there.
 */
export function withoutFieldNames(log: Log): Log {
  return log.child({}, { redact: [] });
}

/** Our own secrets, and Tanzanian mobile numbers as they are written. Ids and longer numbers are let be. */
const secretPattern = /\b(kusanya_[a-z]+_(?:sk_)?|whsec_)[\w+/-]{8,}={0,2}/g;
const phonePattern = /(?<![\w.])(\+?255|0)([67])\d{4}(\d{4})(?!\w)/g;

/** The last sieve: an error's text may quote what a person sent, or a document that a store refused. */
function scrubbed(destination: DestinationStream): DestinationStream {
  return {
    write: (line) => {
      const text = line.replace(secretPattern, '$1[redacted]').replace(phonePattern, '$1$2****$3');
      destination.write(text);
    },
  };
}

/** `255700001234` → `2557****1234`: enough to recognise a customer in a call, not enough to ring them. */
export function maskPhone(msisdn: string): string {
  return `${msisdn.slice(0, 4)}****${msisdn.slice(-4)}`;
}

/** A number of Tanzania's mobile networks within a text, in each of its spellings. */
const phoneInText = /(?<!\d)(?:\+?255|0)[67]\d{8}(?!\d)/g;

export function maskPhonesIn(text: string): string {
  return text.replace(phoneInText, maskPhone);
}
