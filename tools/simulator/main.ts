import process from 'node:process';
import { parseArgs } from 'node:util';
import { loadOrMakeKeys } from './keys.ts';
import { type Limits, readLimits } from './limits.ts';
import { startSimulator, usualProvider } from './simulator.ts';

/** `npm run simulator`: a mobile-money network on this machine, for rehearsals of live mode. */
const usage = `npm run simulator -- [options]

  --port 4010                  port on 127.0.0.1
  --data .data/simulator       keys and debits; what it holds goes on where it stood
  --mode sync                  sync: the call waits for the customer; async: a callback follows
  --speed 1                    all durations are divided by it
  --activation 30              seconds until a new session is live
  --session 3600               seconds that a session lives
  --spread 0.35                how unlike customers and calls are; 0: each customer takes 12 s
  --latency 150                milliseconds that a call takes besides its customer
  --seed rehearsal             what those are drawn with
  --limit count=100            repeated: single, count, value, customer-count, customer-value (per session),
                               per-second, hours=6-22, without=reversal
  --short-code 000000          repeated: the short codes of the application
  --origin 10.0.0.1            repeated: its trusted sources; without any, every Origin is taken
  --callback-url URL           http://127.0.0.1:3000/rails/MPESA_TZ/<secret>
`;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '4010' },
    data: { type: 'string', default: '.data/simulator' },
    mode: { type: 'string', default: 'sync' },
    speed: { type: 'string', default: '1' },
    activation: { type: 'string', default: '30' },
    session: { type: 'string', default: '3600' },
    spread: { type: 'string', default: '0.35' },
    latency: { type: 'string', default: '150' },
    seed: { type: 'string', default: 'rehearsal' },
    limit: { type: 'string', multiple: true, default: [] },
    'short-code': { type: 'string', multiple: true, default: [usualProvider] },
    origin: { type: 'string', multiple: true, default: [] },
    'callback-url': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const { port, speed, activation, session, spread, latency } = values;
const numbers = [port, speed, activation, session, spread, latency].map(Number);
const limits = limitsOf(values.limit);
const isWrong = numbers.some((number) => !(number >= 0)) || !/^(sync|async)$/.test(values.mode);
if (values.help || isWrong || numbers[1] === 0 || typeof limits === 'string') {
  say(typeof limits === 'string' ? `${limits}\n\n${usage}` : usage);
  process.exit(values.help ? 0 : 78);
}
const keys = await loadOrMakeKeys(values.data);
const simulator = await startSimulator({
  keys,
  dataDir: values.data,
  port: numbers[0],
  mode: values.mode as 'sync' | 'async',
  speed: numbers[1],
  activationMs: numbers[2]! * 1_000,
  sessionLifeMs: numbers[3]! * 1_000,
  spread: numbers[4],
  latencyMs: numbers[5],
  ...{ seed: values.seed, limits, providers: values['short-code'], origins: values.origin },
  ...(values['callback-url'] ? { callbackUrl: values['callback-url'] } : {}),
});
const isSync = values.mode === 'sync';
say(`
A simulated M-Pesa network. No money moves, and nothing here is Vodacom's: see /_sim/about.

Start the service with:

  MPESA_BASE_URL=${simulator.baseUrl} \\
  MPESA_API_KEY=${simulator.apiKey} \\
  MPESA_PUBLIC_KEY=${simulator.publicKey} \\
  MPESA_SERVICE_PROVIDER_CODE=${values['short-code'][0]} \\
  MPESA_SYNCHRONOUS=${isSync} \\
  MPESA_CALLBACK_SECRET=a-secret-of-your-choice npm start

  numbers and sources   ${new URL('/_sim/about', simulator.baseUrl)}
  debits                ${new URL('/_sim/debits', simulator.baseUrl)}
  is all well           ${new URL('/_sim/invariants', simulator.baseUrl)}
  faults on demand      POST ${new URL('/_sim/faults', simulator.baseUrl)}

Ctrl-C ends it; ${values.data} remembers.`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void simulator.close().then(() => process.exit(0)));
}

/** The limits, or what is wrong with them. */
function limitsOf(texts: readonly string[]): Limits | string {
  try {
    return readLimits(texts);
  } catch (error) {
    return (error as RangeError).message;
  }
}
