/**
 * What an error on the way means: one stable reason per attempt, and whether the endpoint is charged with it
 * (CONTRACT 13.5: our own faults are never charged). The table is the whole truth; the first row that fits wins.
 */
export type FailureReason =
  | 'timeout'
  | 'blocked_address'
  | 'dns_error'
  | 'connect_error'
  | 'tls_error'
  | 'redirect'
  | 'http_status'
  | 'connection_reset'
  | 'invalid_response'
  | 'sender_fault';

/** How far an attempt had come. */
export type Phase = 'gate' | 'dns' | 'connect' | 'tls' | 'answer';

export interface Fault {
  reason: FailureReason;
  charged: boolean;
  /** The bare error code (`ECONNREFUSED`, `CERT_HAS_EXPIRED`), for operators. Never a message: those hold addresses. */
  detail?: string;
}

interface Row {
  code?: RegExp;
  phase?: Phase;
  reason: FailureReason;
  charged?: false;
}

/** Codes of our own making. */
export const faultCodes = {
  timeout: 'attempt_timeout',
  /** The timer itself rang far too late: this process was asleep or busy, and the receiver is not to blame. */
  lateTimeout: 'attempt_timeout_late',
  upgrade: 'unasked_upgrade',
  tooManyInterim: 'too_many_1xx',
} as const;

export const faultTable: readonly Row[] = [
  { code: /^attempt_timeout$/, reason: 'timeout' },
  { code: /^attempt_timeout_late$/, reason: 'timeout', charged: false },
  { code: /^blocked_address$/, reason: 'blocked_address' },
  { code: /^dns_error$/, reason: 'dns_error' },
  // Out of file handles, buffers, memory or ports; our network is down, or our own firewall said no.
  { code: /^(?:EMFILE|ENFILE|ENOBUFS|ENOMEM|EADDRNOTAVAIL)$/, reason: 'sender_fault', charged: false },
  {
    code: /^(?:ENETDOWN|ENETUNREACH|EPERM|EACCES)$/,
    phase: 'connect',
    reason: 'sender_fault',
    charged: false,
  },
  { code: /^(?:HPE_|ERR_HTTP_|unasked_upgrade$|too_many_1xx$)/, reason: 'invalid_response' },
  { code: /^(?:EPROTO$|ERR_SSL_|ERR_TLS_)/, reason: 'tls_error' },
  { phase: 'gate', reason: 'blocked_address' },
  { phase: 'dns', reason: 'dns_error' },
  { phase: 'connect', reason: 'connect_error' },
  { phase: 'tls', reason: 'tls_error' },
  { reason: 'connection_reset' },
];

interface CodedError {
  code?: unknown;
  detail?: unknown;
  address?: unknown;
  errors?: unknown;
}

/**
 * The fault that an error amounts to.
 *
 * @param error whatever a request, a socket or the gate failed with. Of several (one per address that was tried)
 *   the first that is not our own fault speaks: the endpoint is charged as soon as it has a part in it.
 * @param phase where the attempt stood when it failed.
 */
export function faultOf(error: unknown, phase: Phase): Fault {
  const { errors } = error as CodedError;
  const faults =
    Array.isArray(errors) && errors.length > 0 ? errors.map((one) => faultOfOne(one, phase)) : [];
  return faults.find((fault) => fault.charged) ?? faults[0] ?? faultOfOne(error, phase);
}

function faultOfOne(error: unknown, phase: Phase): Fault {
  const { code, detail, address } = error as CodedError;
  const name = typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : 'unknown';
  // No route over IPv6 is no fault of ours: an endpoint that exists there alone is not publicly reachable.
  const isIPv6Only = name === 'ENETUNREACH' && String(address).includes(':');
  const row = faultTable.find(
    (each) =>
      (each.code?.test(name) ?? true) &&
      (each.phase ?? phase) === phase &&
      !(isIPv6Only && each.reason === 'sender_fault'),
  );
  const known = typeof detail === 'string' && /^\w{1,64}$/.test(detail) ? detail : name;
  return { reason: row!.reason, charged: row!.charged ?? true, detail: known };
}
