import { type AlertDoc, alertsSpec } from '../alerts.ts';
import { isoTime } from '../time.ts';
import { readMachinery, readMoney, readRail, readWebhooks } from './health.ts';
import { type NeedsOptions, readNeeds } from './needs.ts';

/** Alerts shown beside the tiles, newest first, of both modes and looked for among the newest so many. */
const alertsShown = 10;
const alertsLooked = 200;

/**
 * The first page of an operator: what needs a person, and below it how the service does. Every figure comes
 * from an index or is counted no further than a bound, so it may be asked every few seconds.
 */
export class OverviewReader {
  readonly #options: NeedsOptions;

  constructor(options: NeedsOptions) {
    this.#options = options;
  }

  async read(mode: 'live' | 'test') {
    const options = this.#options;
    const [needs, rail, webhooks, money, machinery, alerts] = await Promise.all([
      readNeeds(options, mode),
      readRail(options, mode),
      readWebhooks(options, mode),
      readMoney(options, mode),
      readMachinery(options),
      this.#alerts(mode),
    ]);
    return {
      object: 'overview',
      mode,
      at: isoTime(options.clock.now()),
      is_green: needs.length === 0,
      needs_you: needs,
      ...{ rail, webhooks, money, machinery, alerts },
    };
  }

  async #alerts(mode: 'live' | 'test') {
    const found = await this.#options.db
      .collection<AlertDoc>(alertsSpec.name)
      .find({})
      .sort({ at: -1 })
      .limit(alertsLooked)
      .toArray();
    return found
      .filter((alert) => alert.mode === undefined || alert.mode === mode)
      .slice(0, alertsShown)
      .map(({ _id, kind, at, about, merchantId }) => ({
        id: _id,
        kind,
        at: isoTime(at.getTime()),
        about,
        merchant_id: merchantId ?? null,
      }));
  }
}
