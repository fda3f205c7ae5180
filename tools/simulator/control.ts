import { networkStories } from '../../src/rails/rails.ts';
import { behaviours } from './about.ts';
import type { Callbacks } from './callbacks.ts';
import { type Faults, type Operation, readFault } from './faults.ts';
import type { Network } from './network.ts';
import { payoutStories } from './payoutStories.ts';
import type { Sessions } from './sessions.ts';

/** The control plane under /_sim: what moved, whether all is well, and faults on demand. */
export interface Controlled {
  network: Network;
  faults: Faults;
  sessions: Sessions;
  callbacks: Callbacks;
  counts: Record<Operation, number>;
  /** What this network was started with, for people. */
  settings: Readonly<Record<string, unknown>>;
}

interface Answer {
  status: number;
  answer: unknown;
}

export function control(method: string, path: string, body: unknown, parts: Controlled): Answer {
  const { network, faults, sessions, callbacks, counts } = parts;
  switch (`${method} ${path}`) {
    case 'GET /_sim/about':
      return { status: 200, answer: about(parts) };
    case 'GET /_sim/invariants':
      return { status: 200, answer: { ...network.invariants(), ...network.carelessness() } };
    case 'GET /_sim/debits':
      return { status: 200, answer: { debits: network.debits } };
    case 'GET /_sim/payments':
      return {
        status: 200,
        answer: {
          payments: [...network.payments].map(({ scenario, reversals, ...told }) => ({
            ...told,
            reversals: Object.fromEntries(reversals),
          })),
        },
      };
    case 'GET /_sim/payouts':
      return { status: 200, answer: { payouts: network.paidOut } };
    case 'GET /_sim/counts':
      return { status: 200, answer: counts };
    case 'GET /_sim/callbacks':
      return { status: 200, answer: callbacks.heard };
    case 'POST /_sim/withdrawals':
      return moved('withdrawal', body, network);
    case 'POST /_sim/deposits':
      return moved('deposit', body, network);
    case 'DELETE /_sim/sessions':
      void sessions.endAll();
      return { status: 200, answer: sessions.told() };
    case 'GET /_sim/faults':
      return { status: 200, answer: { faults: faults.list() } };
    case 'DELETE /_sim/faults':
      faults.clear();
      return { status: 200, answer: { faults: [] } };
    case 'POST /_sim/faults': {
      const fault = readFault(body);
      if (typeof fault === 'string') return { status: 400, answer: { error: fault } };
      faults.add(fault);
      return { status: 201, answer: fault };
    }
    default:
      return { status: 404, answer: { error: 'see GET /_sim/about' } };
  }
}

function about({ sessions, settings }: Controlled): object {
  const numbers = Object.entries({ ...networkStories, ...payoutStories }).map(([msisdn, { what, ends }]) => [
    msisdn,
    `${what} → ${ends}`,
  ]);
  return {
    settings,
    session: sessions.told(),
    behaviours,
    numbers: { ...Object.fromEntries(numbers), 'any other': 'pays, and is paid' },
  };
}

/** Its owner takes money out of a short code, or puts some in: a reversal or a payout may find too little (INS-2006). */
function moved(kind: 'withdrawal' | 'deposit', body: unknown, network: Network): Answer {
  const { provider, amount } = (typeof body === 'object' && body !== null ? body : {}) as Record<
    string,
    unknown
  >;
  const isGood = typeof provider === 'string' && Number.isSafeInteger(amount) && Number(amount) > 0;
  if (!isGood) return { status: 400, answer: { error: 'provider and a whole amount from 1 are wanted' } };
  void network.move(kind, provider, Number(amount));
  return { status: 201, answer: { provider, balance: network.balanceOf(provider) } };
}
