import process from 'node:process';
import { parseArgs } from 'node:util';
import { ConfigError, loadConfig } from '../../src/config.ts';
import { loadOrCreateSecrets, readFirstMerchant } from '../embedded/embedded.ts';
import { type Bridge, openBrowser, startBridge } from './bridge.ts';

/** `npm run inspect`: what a running service does in test mode, in Stately's inspector on this machine. */
const usage = `npm run inspect -- [options]

  --actor col_…        one actor; without it the last few
  --machine collection
  --merchant mer_…
  --last 20            of how many actors it begins with
  --url URL            the operators' listener; by default that of a service on this machine
  --token TOKEN        an operator's token; by default OPERATOR_TOKEN, or that of npm start
  --port 8484          where the page is served, on this machine only
  --no-open            prints the address and opens no browser

It shows test mode only. Stately's page is on stately.ai, so the browser needs the internet; without it there is
/console/inspector. What it shows stays in the browser.
`;

const exitUsage = 78;
const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

function stop(why: string, code: number): never {
  say(why);
  process.exit(code);
}

function readArgs() {
  try {
    const text = { type: 'string' } as const;
    return parseArgs({
      allowNegative: true,
      options: {
        ...{ actor: text, machine: text, merchant: text, last: text, url: text, token: text },
        port: { ...text, default: '8484' },
        open: { type: 'boolean', default: true },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    return stop(`${(error as Error).message}\n\n${usage}`, exitUsage);
  }
}

/** The address and the token of the service that these settings start. */
async function ownService(): Promise<{ url: string; token: string | undefined }> {
  try {
    const { adminPort, dataDir, operatorToken } = loadConfig();
    const isKept = !operatorToken && (await readFirstMerchant(dataDir)) !== undefined;
    const kept = isKept ? (await loadOrCreateSecrets(dataDir)).operatorToken : undefined;
    return { url: `http://127.0.0.1:${adminPort}`, token: operatorToken || kept };
  } catch (error) {
    return stop(error instanceof ConfigError ? error.faults.join('\n') : String(error), exitUsage);
  }
}

async function main(): Promise<void> {
  const { port, open, help, url, token, ...filter } = readArgs();
  if (help) stop(usage, 0);
  if (!/^\d{1,5}$/.test(port)) stop(`--port ${port} is no port.`, exitUsage);
  const own = await ownService();
  const secret = token ?? own.token;
  if (!secret) return stop('No operator token: give --token, or set OPERATOR_TOKEN.', exitUsage);
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query[name] = value;
  const options = { url: url ?? own.url, token: secret, query, port: Number(port), say };
  const bridge: Bridge = await startBridge(options).catch((error: Error) => stop(error.message, 1));
  say(`Reading ${options.url}, test mode: ${query.actor ?? `the last ${query.last ?? 20} actors`}.`);
  say(`Stately's inspector, fed with it: ${bridge.url}   (Ctrl-C ends it)`);
  if (open) openBrowser(bridge.url);
}

await main();
