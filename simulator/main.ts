import process from 'node:process';
import { parseArgs } from 'node:util';
import { loadOrMakeKeys } from './keys.ts';
import { startSimulator } from './simulator.ts';

/** `npm run simulator`: a mobile-money network on this machine, for rehearsals of live mode. */
const usage = `npm run simulator -- [options]

  --port 4010                  port on 127.0.0.1
  --data .data/simulator       keys and debits; what it holds goes on where it stood
  --mode sync                  sync: the call waits for the customer; async: a callback follows
  --speed 1                    all durations are divided by it
  --activation 30              seconds until a new session is live
  --session 3600               seconds that a session lives
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
    'callback-url': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const numbers = [values.port, values.speed, values.activation, values.session].map(Number);
const isWrong = numbers.some((number) => !(number >= 0)) || !/^(sync|async)$/.test(values.mode);
if (values.help || isWrong || numbers[1] === 0) {
  say(usage);
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
  ...(values['callback-url'] ? { callbackUrl: values['callback-url'] } : {}),
});
const isSync = values.mode === 'sync';
say(`
A simulated M-Pesa network. No money moves, and nothing here is Vodacom's: see /_sim/about.

Start the service with:

  MPESA_BASE_URL=${simulator.baseUrl} \\
  MPESA_API_KEY=${simulator.apiKey} \\
  MPESA_PUBLIC_KEY=${simulator.publicKey} \\
  MPESA_SERVICE_PROVIDER_CODE=000000 \\
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
