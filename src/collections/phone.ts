import type { Config } from '../config.ts';

/**
 * The customer's phone: read in the three usual spellings, kept as `255XXXXXXXXX` for the rail and for search,
 * and echoed as it was sent (CONTRACT 7.1).
 */
export type ParsedPhone = { msisdn: string } | { fault: string };

const spellings = 'Send 255XXXXXXXXX, +255XXXXXXXXX or 0XXXXXXXXX, such as 255712345678.';
/** Twelve digits with a separator after each, and a plus sign. */
export const phoneMaxChars = 25;

/** Whether the live rail's address is M-Pesa's sandbox (`https://openapi.m-pesa.com/sandbox`): no money moves there. */
export function isSandbox({ mpesa }: Partial<Pick<Config, 'mpesa'>>): boolean {
  return mpesa !== undefined && new URL(mpesa.baseUrl).pathname.split('/')[1] === 'sandbox';
}

/** What M-Pesa's sandbox has for customers: no number of any country, so nowhere else does it mean anybody. */
const sandboxPhone = /^0{11}[1-9]$/;

/**
 * `+255 712-345 678` → `{ msisdn: '255712345678' }`; otherwise what is wrong, in words for the merchant.
 * Never judges by operator prefix: numbers are portable. `isSandbox`: the network is M-Pesa's sandbox, whose own numbers
 * (`000000000001`) are taken too.
 */
export function parsePhone(sent: string, isSandbox = false): ParsedPhone {
  if (isSandbox && sandboxPhone.test(sent)) return { msisdn: sent };
  if (sent.length > phoneMaxChars) return { fault: `phone is too long. ${spellings}` };
  const compact = sent.replace(/[ -]/g, '');
  if (compact === '') return { fault: `phone is empty. ${spellings}` };
  if (!/^\+?\d+$/.test(compact)) {
    return { fault: `phone may hold digits, spaces and dashes, and one + in front. ${spellings}` };
  }
  const national = /^(?:\+?255|0)(\d*)$/.exec(compact)?.[1];
  if (national === undefined) return { fault: `phone does not begin with 255, +255 or 0. ${spellings}` };
  if (national.length !== 9) {
    return { fault: `phone has ${national.length} digits after the prefix instead of 9. ${spellings}` };
  }
  if (!/^[67]/.test(national)) {
    return {
      fault: `phone is not a mobile number: after the prefix it must go on with 6 or 7. ${spellings}`,
    };
  }
  return { msisdn: `255${national}` };
}

/** What each documented test number does in test mode (CONTRACT 10.2); every other one succeeds. */
export const testPhones: Readonly<Record<string, string>> = {
  '255700000000': 'succeeds after 10–20 s',
  '255700000001': 'fails: `insufficient_funds`',
  '255700000002': 'fails: `declined`',
  '255700000003': 'fails: `cancelled`',
  '255700000004': 'fails at once: `rejected`',
  '255700000005': 'nobody approves: `expired` within about 30 s',
  '255700000006': 'fails: `invalid_pin`',
  '255700000007': 'fails: `payer_not_found`',
  '255700000008': 'fails: `payer_limit_reached`',
  '255700000020': 'the network’s callback is lost; succeeds within about 60 s',
  '255700000021': 'the network never knows: stays `created`, under review',
  '255700000022': 'late success: expires, then the customer pays 30 s later',
  '255700000023': 'succeeds; every callback comes three times',
  '255700000024': 'a forged failure callback, then succeeds',
  '255700000025': 'succeeds; the webhook comes twice at the same moment',
  '255700000026': 'expires, then the late payment counts; its webhook comes before that of the expiry',
  '255700000030': 'succeeds; a refund of it fails: `rejected`',
  '255700000031':
    'succeeds; the network never says what became of a refund: it stays `created`, under review',
  '255700000032': 'succeeds; a refund of it fails: `float_insufficient`',
};

/**
 * The hundred numbers kept for tests, refused with a live key: nobody's phone has them (prefix 70 is assigned to
 * no network), and a test number that is added later must not have been good for live money before.
 */
export function isTestPhone(msisdn: string): boolean {
  return /^2557000000\d\d$/.test(msisdn);
}
