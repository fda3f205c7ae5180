import { randomBytes } from 'node:crypto';
import { type AnyEvent, type Kusanya, KusanyaError, type Principal, webhooks } from '@kusanya/client';
import { type Call, command, type Options } from './command.ts';
import { asUsage, exits, Failure, toldOf, usage } from './failure.ts';
import { addressOf, type Forwarded, forward } from './forward.ts';
import { onKeys } from './keyboard.ts';
import { momentOf, spanOf } from './moment.ts';
import type { Output } from './output.ts';
import { behind, type Known, Position, positionPath } from './position.ts';
import { Stopped } from './surroundings.ts';

/** What an endpoint gets that names no types (CONTRACT 12.4). */
const usual = ['collection.succeeded', 'collection.failed', 'collection.expired'];

const options = {
  'forward-to': { type: 'string', value: 'URL', says: 'such as http://localhost:4242/hook, or 4242/hook' },
  events: { type: 'string', value: 'TYPES', says: 'with commas; all, or the three of payments' },
  secret: { type: 'string', value: 'SECRET', says: 'whsec_… to sign with; else the profile has one' },
  since: { type: 'string', value: 'WHEN', says: 'an event’s id, a time, 10m, 2h, 3d or now' },
  'print-secret': { type: 'boolean', says: 'print what it signs with, and end' },
} as const satisfies Options;

export const listen = command({
  name: 'listen',
  says: 'forward webhooks to this machine, none left out',
  about: [
    'It goes on where it stopped: a broken line, a sleep or a crash loses no event.',
    'A crash can send the one in hand twice. An answer other than 2xx is shown and',
    'not repeated: r sends the last one again, q ends.',
  ],
  options,
  run: async (call) => {
    const { values, output } = call;
    const secret = values.secret ?? (await kept(call));
    await asUsage(() => webhooks.sign('{"id":"evt_of_nobody"}', secret));
    if (values['print-secret']) {
      output.result({ secret }, secret);
      return exits.ok;
    }
    const to = values['forward-to'];
    if (!to) throw usage('listen: --forward-to is needed (kusanya listen --help)');
    const listener = new Listener(call, { url: addressOf(to), secret, wants: wanted(values.events) });
    try {
      await listener.run(values.since);
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    }
    return exits.ok;
  },
});

interface Target {
  url: string;
  secret: string;
  wants(type: string): boolean;
}

/** Follows the events of a key and forwards them, one after the other. */
class Listener {
  readonly #call: Call;
  readonly #target: Target;
  #last: { event: AnyEvent; attempts: number } | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(call: Call, target: Target) {
    this.#call = call;
    this.#target = target;
  }

  /** Goes on until somebody ends it. @throws {Stopped} then. @throws {KusanyaError} for a refusal. */
  async run(since: string | undefined): Promise<void> {
    const { around, merchant } = this.#call;
    const { signal } = around;
    const kusanya = await merchant({ fetch: this.#line() });
    const principal = await kusanya.whoami({ signal });
    const position = await this.#position(kusanya, principal, since);
    this.#greet(principal, position);
    const stopKeys = onKeys(around, {
      r: () => void this.#inTurn(() => this.#again(kusanya, position)).catch((error) => this.#shown(error)),
      q: () => around.end(),
    });
    try {
      for await (const event of kusanya.events.tail({ after: position.after, signal })) {
        if (position.has(event)) continue;
        await this.#inTurn(async () => {
          if (this.#target.wants(event.type)) await this.#forward(event);
          await position.add(event);
        });
      }
    } catch (error) {
      const isGone = error instanceof KusanyaError && error.code === 'resource_not_found';
      if (!isGone) throw error;
      throw new Failure(exits.refused, 'position_gone', 'the last event is there no more: give --since');
    } finally {
      stopKeys();
    }
  }

  /** Where it stopped, or where it is told to begin; else now. */
  async #position(kusanya: Kusanya, { merchant_id, mode }: Principal, since: string | undefined) {
    const { around, output } = this.#call;
    const path = positionPath(around, { merchant_id, mode, to: this.#target.url });
    const found = since === undefined ? await Position.resume(path) : undefined;
    if (!found) return await Position.begin(path, await this.#before(kusanya, since));
    const span = found.atMs === undefined ? 'the first event' : `${spanOf(around.nowMs() - found.atMs)} ago`;
    output.note(`Goes on from ${span}; --since now leaves out what happened since then.`);
    return found;
  }

  /** The newest event before a beginning, and those that a tail from there would give once more. */
  async #before({ events }: Kusanya, since: string | undefined): Promise<Known[]> {
    const { signal, nowMs } = this.#call.around;
    const start = since?.startsWith('evt_')
      ? { starting_after: (await events.retrieve(since, { signal })).id }
      : since === undefined || since === 'now'
        ? {}
        : { created_at: { lt: momentOf(since, nowMs()) } };
    const [newest] = (await events.list({ limit: 1, ...start }, { signal })).data;
    if (!newest) return [];
    const found: Known[] = [];
    for await (const { id, created_at } of events.list({ created_at: behind(newest) }, { signal }))
      if (id <= newest.id) found.push({ id, created_at });
    return found;
  }

  /** Tells once that the line to the service is broken, and once that it is back. */
  #line(): typeof fetch {
    const { around, output, profiles } = this.#call;
    let isBroken = false;
    const turn = async (broken: boolean) => {
      if (isBroken === broken || around.signal.aborted) return;
      isBroken = broken;
      const url = await profiles.need('base_url');
      const words = broken ? 'no answer; it asks again, and no event is lost' : 'answers again';
      output.result(
        { kind: broken ? 'broken' : 'back', url },
        output.paint(broken ? 'warn' : 'good', `${url}: ${words}`),
      );
    };
    return async (url, init) => {
      try {
        const answer = await fetch(url, init);
        await turn(answer.status >= 500);
        return answer;
      } catch (error) {
        await turn(true);
        throw error;
      }
    };
  }

  #greet({ merchant_id, mode }: Principal, { after }: Position): void {
    const { output, around } = this.#call;
    const { url, secret } = this.#target;
    output.result(
      { kind: 'ready', merchant_id, mode, forward_to: url, secret, after },
      `Ready: events of ${merchant_id} (${mode}) go to ${url}`,
      `Signed with ${secret}`,
      ...(around.stdin.isTTY ? [output.paint('quiet', 'r sends the last one again, q ends')] : []),
    );
  }

  async #again({ events }: Kusanya, { after }: Position): Promise<void> {
    const { output, around } = this.#call;
    const last = this.#last?.event ?? (after === null ? undefined : await events.retrieve(after, around));
    if (last) await this.#forward(last);
    else output.note('There is no event yet.');
  }

  /** What a key asked for and did not get does not end the listening. */
  #shown(error: unknown): void {
    if (!(error instanceof Stopped)) this.#call.output.fail(toldOf(error));
  }

  async #forward(event: AnyEvent): Promise<void> {
    const { around, output } = this.#call;
    const attempt = this.#last?.event.id === event.id ? this.#last.attempts + 1 : 1;
    this.#last = { event, attempts: attempt };
    const { signal } = around;
    const forwarded = await forward(event, { ...this.#target, attempt, signal });
    const line = lineOf(event, forwarded, { output, nowMs: around.nowMs() });
    output.result({ kind: 'forwarded', attempt, ...forwarded, event }, line);
  }

  /** One at a time: what a key asks for does not come between an event and its place on disk. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(task);
    this.#turn = done.catch(() => {});
    return done;
  }
}

/** `12:01:33  200  collection.succeeded  evt_…  of col_…  in 12 ms` */
function lineOf(
  event: AnyEvent,
  { ok, status, why, ms }: Forwarded,
  to: { output: Output; nowMs: number },
): string {
  const { output } = to;
  const time = output.paint('quiet', new Date(to.nowMs).toTimeString().slice(0, 8));
  const told = output.paint(ok ? 'good' : 'bad', status === undefined ? 'ERR' : String(status));
  const end = ok ? output.paint('quiet', `in ${ms} ms`) : output.paint('bad', why || 'not taken');
  return `${time}  ${told}  ${event.type}  ${event.id}  of ${event.data.id}  ${end}`;
}

/** The environment's secret, or the profile's, which is made here the first time. */
async function kept({ profiles, around }: Call): Promise<string> {
  const known = around.env.KUSANYA_WEBHOOK_SECRET || (await profiles.own()).webhook_secret;
  if (known) return known;
  const made = `whsec_${randomBytes(32).toString('base64')}`;
  await profiles.keep({ webhook_secret: made });
  return made;
}

function wanted(given: string | undefined): (type: string) => boolean {
  if (given === 'all') return () => true;
  const types = given === undefined ? usual : given.split(',').map((each) => each.trim());
  const wrong = types.find((type) => !/^[a-z_]+\.[a-z_]+$/.test(type));
  if (wrong !== undefined)
    throw usage(`--events: ${wrong || 'nothing'} is no type such as collection.failed, nor all`);
  return (type) => types.includes(type);
}
