import type { ActorDoc, Clock, Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { newId } from './ids.ts';
import { limits } from './limits.ts';
import type { Log } from './log.ts';
import type { Mode } from './mode.ts';
import { isoTime } from './time.ts';

/** Something a person must know about. Written in the commit of what caused it, and told afterwards. */
export interface AlertDoc extends Doc {
  kind: string;
  at: Date;
  /** Id of the actor or record it is about. */
  about: string;
  merchantId?: string;
  mode?: Mode;
  detail?: Record<string, unknown>;
  /** Not told yet: when it is to be tried, and how often it was. */
  tellAt?: Date;
  tries?: number;
  toldAt?: Date;
  /** Nobody took it; it is here and in the log only. */
  untoldAt?: Date;
}

export const alertsSpec: MongoCollectionSpec = {
  name: 'alerts',
  indexes: [
    { key: { at: -1 } },
    { key: { about: 1 } },
    { key: { tellAt: 1 }, partial: { tellAt: { $type: 'date' } } },
  ],
};

/** The write that raises an alert. `kind` is a stable code. */
export function raiseAlert(alert: Omit<AlertDoc, '_id' | 'at'> & { at: number }): Write {
  const at = new Date(alert.at);
  const doc = { ...alert, _id: newId('alr', alert.at), at, tellAt: at };
  return { op: 'insert', into: alertsSpec.name, doc, onDuplicate: 'refuse' };
}

/** The write that raises one about an actor, for the commit of its step; `more`: about another, or with details. */
export function alertOf(
  { doc, at }: { doc: Pick<ActorDoc, '_id' | 'merchantId' | 'mode'>; at: number },
  kind: string,
  more: Partial<Pick<AlertDoc, 'about' | 'detail'>> = {},
): Write {
  const { _id: about, merchantId, mode } = doc;
  return raiseAlert({ kind, at, about, merchantId, mode, ...more });
}

/** The alert of an actor that is set aside, for its commit. */
export function quarantineAlert(doc: ActorDoc, why: string, at: number): Write[] {
  return [alertOf({ doc, at }, 'actor_quarantined', { detail: { why } })];
}

interface AlertTellerOptions {
  db: Db;
  clock: Clock;
  log: Log;
  /** `ALERT_WEBHOOK_URL`; undefined: alerts are logged and nothing more. */
  url: string | undefined;
  /** For one request, in milliseconds. */
  timeoutMs?: number;
}

/** One kind is posted at most this often: what comes in between goes with the next. */
const apartMs = limits.minuteMs;
/** Of one kind in one post. */
const dueMax = 2_000;
const shownMax = 20;
/** Waits after failed posts; then it is left to the log and the overview. */
const retryMs = [10_000, limits.minuteMs, 5 * limits.minuteMs, 15 * limits.minuteMs];
const usualTimeoutMs = 5_000;

/**
 * Tells alerts to the log and to a webhook of the operators' own. It reads what was committed, so nothing that
 * matters waits for it, and an alert that was raised while nobody told any is told later.
 */
export class AlertTeller {
  readonly #options: AlertTellerOptions;
  readonly #postedAt = new Map<string, number>();

  constructor(options: AlertTellerOptions) {
    this.#options = options;
  }

  /** Tells what is due. For every few seconds, by one process. */
  async tell(): Promise<void> {
    const { clock, log, url } = this.#options;
    const isDue = { tellAt: { $lte: new Date(clock.now()), $type: 'date' as const } };
    // By kind, so that a storm of one keeps no other waiting.
    for (const kind of await this.#alerts.distinct('kind', isDue)) {
      const lastMs = this.#postedAt.get(kind);
      if (lastMs !== undefined && Math.abs(clock.now() - lastMs) < apartMs) continue;
      const alerts = await this.#alerts
        .find({ kind, ...isDue })
        .sort({ tellAt: 1 })
        .limit(dueMax)
        .toArray();
      for (const { _id, about, mode, tries } of alerts)
        if (tries === undefined) log.warn({ alert: _id, kind, about, mode }, 'alert');
      if (url !== undefined) this.#postedAt.set(kind, clock.now());
      await this.#settle(alerts, url === undefined || (await this.#post(url, kind, alerts)));
    }
  }

  async #post(url: string, kind: string, alerts: readonly AlertDoc[]): Promise<boolean> {
    const { log, timeoutMs = usualTimeoutMs } = this.#options;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'User-Agent': 'Kusanya/1' },
        body: JSON.stringify(messageOf(kind, alerts)),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      if (response.ok) return true;
      log.warn({ kind, status: response.status }, 'alert not taken');
    } catch (error) {
      // Not the whole error: addresses of such webhooks are secrets.
      log.warn({ kind, error: (error as Error).name }, 'alert not posted');
    }
    return false;
  }

  /** Told; or to be tried again later; or, after several times, given up. */
  async #settle(alerts: readonly AlertDoc[], isTold: boolean): Promise<void> {
    const { clock, log } = this.#options;
    const now = clock.now();
    const byTries = new Map<number, AlertDoc[]>();
    for (const alert of alerts) addTo(byTries, alert.tries ?? 0, alert);
    for (const [tries, same] of byTries) {
      const these = { _id: { $in: same.map(({ _id }) => _id) } };
      const waitMs = retryMs[tries];
      if (!isTold && waitMs !== undefined) {
        const change = { tellAt: new Date(now + waitMs), tries: tries + 1 };
        await this.#alerts.updateMany(these, { $set: change });
        continue;
      }
      if (!isTold) log.error({ kind: same[0]!.kind, count: same.length }, 'alert given up: nobody takes it');
      const change = { [isTold ? 'toldAt' : 'untoldAt']: new Date(now) };
      await this.#alerts.updateMany(these, { $set: change, $unset: { tellAt: '' } });
    }
  }

  get #alerts() {
    return this.#options.db.collection<AlertDoc>(alertsSpec.name);
  }
}

/** One message for all of a kind, each subject once. `text` is for chat rooms that show it as it is. */
function messageOf(kind: string, alerts: readonly AlertDoc[]) {
  const subjects = new Map<string, AlertDoc[]>();
  for (const alert of alerts) addTo(subjects, alert.about, alert);
  const shown = [...subjects.values()].slice(0, shownMax).map((same) => {
    const { _id, about, at, merchantId, mode } = same.at(-1)!;
    return {
      ...{ id: _id, about, at: isoTime(at.getTime()), times: same.length },
      ...{ merchant_id: merchantId ?? null, mode: mode ?? null },
    };
  });
  const others = subjects.size > 1 ? ` and ${subjects.size - 1} more` : '';
  return {
    object: 'alert',
    kind,
    count: alerts.length,
    text: `Kusanya: ${kind} (${alerts[0]!.mode ?? 'both modes'}), ${alerts[0]!.about}${others}`,
    alerts: shown,
  };
}

function addTo<Key>(groups: Map<Key, AlertDoc[]>, key: Key, alert: AlertDoc): void {
  const group = groups.get(key);
  if (group) group.push(alert);
  else groups.set(key, [alert]);
}
