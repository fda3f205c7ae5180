/** Orders, and how they come to be paid. Nothing here knows the web framework. */
import { DatabaseSync } from 'node:sqlite';
import { Kusanya, KusanyaError } from '@kusanya/client';

/** Whole shillings: 5000 is TZS 5,000. Ours to say, never the browser's. */
export const price = 5000;
const retryMs = 15 * 60_000;
const overlapMs = 10 * 60_000; // a late commit shows an event 2 minutes behind others, and clocks differ

const { KUSANYA_API_KEY, KUSANYA_BASE_URL, DATABASE = 'shop.db' } = process.env;
// A customer waits for the page: two short attempts. What they leave open, poll() sends again.
const kusanya = new Kusanya(KUSANYA_API_KEY, { baseUrl: KUSANYA_BASE_URL, timeoutMs: 5_000, maxRetries: 1 });
const db = new DatabaseSync(DATABASE, { timeout: 5_000 });
db.exec(`
  PRAGMA journal_mode = WAL;
  CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, -- also the idempotency key and the reference of its payment
    phone TEXT NOT NULL,
    amount INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending', -- then paid, unpaid, or held for a person to decide
    collection_id TEXT UNIQUE,
    note TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
  ) STRICT;
  CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS polled (id INTEGER PRIMARY KEY CHECK (id = 1), until TEXT NOT NULL) STRICT;
`);
const run = (sql, ...values) => db.prepare(sql).run(...values).changes;

export const find = (id) => db.prepare('SELECT * FROM orders WHERE id = ?').get(id);

/** The form made the id: a button that is pressed twice is one order, and one prompt. */
export async function place(id, phone) {
  run('INSERT OR IGNORE INTO orders (id, phone, amount) VALUES (?, ?, ?)', id, phone, price);
  await send(find(id)); // only now that the key is stored
}

async function send({ id, phone, amount, status, collection_id }) {
  if (collection_id || status !== 'pending') return;
  try {
    const made = await kusanya.collections.create({ amount, phone, reference: id }, { idempotencyKey: id });
    run('UPDATE orders SET collection_id = ? WHERE id = ?', made.id, id);
  } catch (error) {
    if (!(error instanceof KusanyaError)) throw error;
    // A wrong number stays wrong. Anything else may pass, or was carried out without our hearing of it.
    if (error.type === 'invalid_request_error') end(id, error.message);
    else console.error(`order ${id} is not sent yet: ${error.message}`);
  }
}

/** Takes what a webhook or the poller brings: each event once, in any order. */
export function take({ id, type, data }) {
  if (data.object !== 'collection') return; // such as an operator's endpoint.test
  db.exec('BEGIN IMMEDIATE');
  try {
    if (run('INSERT OR IGNORE INTO events (id, type) VALUES (?, ?)', id, type) === 1) settle(data);
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

function settle({ id, reference, status, late, failure_message }) {
  if (status !== 'succeeded') return end(reference, failure_message ?? 'Nobody approved in time.');
  // The customer may have bought again, or have left: nothing is shipped, and nothing forgotten.
  const [next, note] = late ? ['held', 'Paid after it had ended: deliver, or give it back.'] : ['paid', ''];
  const update = 'UPDATE orders SET status = ?, note = ?, collection_id = ? WHERE id = ?';
  if (run(update, next, note, id, reference) === 0)
    console.error(`${id} was paid for no order: ${reference}`);
}

/** Money has the last word: what was paid never becomes unpaid. */
function end(id, note) {
  run("UPDATE orders SET status = 'unpaid', note = ? WHERE id = ? AND status = 'pending'", note, id);
}

/** Sends what a crash or a broken line left unsent, and fetches the events whose webhooks were lost. */
export async function poll() {
  const unsent = db.prepare("SELECT * FROM orders WHERE status = 'pending' AND collection_id IS NULL").all();
  for (const order of unsent)
    await (Date.now() - Date.parse(order.created_at) < retryMs ? send(order) : lookFor(order));
  const since = 'SELECT coalesce((SELECT until FROM polled), min(created_at)) AS time FROM orders';
  const { time } = db.prepare(since).get();
  if (!time) return; // no order yet
  let newest = time;
  const gte = new Date(Date.parse(time) - overlapMs);
  for await (const event of kusanya.events.list({ created_at: { gte } })) {
    if (event.created_at > newest) newest = event.created_at;
    take(event);
  }
  run('INSERT OR REPLACE INTO polled VALUES (1, ?)', newest);
}

/** Who ordered long ago expects no prompt any more. But perhaps it was sent, and only the answer was lost. */
async function lookFor({ id }) {
  const [made] = (await kusanya.collections.list({ reference: id, limit: 1 })).data;
  if (made) run('UPDATE orders SET collection_id = ? WHERE id = ?', made.id, id);
  else end(id, 'The payment could not be asked for.');
}
