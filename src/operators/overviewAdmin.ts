import { Type } from 'typebox';
import { type AlertDoc, alertsSpec } from '../alerts.ts';
import { described, ModeField } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import type { Mode } from '../mode.ts';
import { isoTime } from '../time.ts';
import { readMachinery, readMoney, readRail, readWebhooks } from './health.ts';
import { type OverviewDeps, readNeeds } from './needs.ts';

/** Alerts shown beside the tiles, newest first, of both modes and looked for among the newest so many. */
const alertsShown = 10;
const alertsLooked = 200;

/**
 * The first page of an operator: what needs a person, and below it how the service does. Every figure comes
 * from an index or is counted no further than a bound, so it may be asked every few seconds.
 */
export function showOverview(deps: OverviewDeps) {
  return forOperators({
    doc: described(
      'getOverview',
      'What needs a person, and how the service does',
      200,
      'No tile in `needs_you` means there is nothing to do. Each `link` is the list behind its tile. Counts stop at 1,000 (`is_more`).',
    ),
    query: Type.Object({ mode: ModeField }, { additionalProperties: false }),
    handler: async ({ query }) => {
      const mode = query.mode;
      const [needs, rail, webhooks, money, machinery, alerts] = await Promise.all([
        readNeeds(deps, mode),
        readRail(deps, mode),
        readWebhooks(deps, mode),
        readMoney(deps, mode),
        readMachinery(deps),
        readAlerts(deps, mode),
      ]);
      const body = {
        object: 'overview',
        mode,
        at: isoTime(deps.clock.now()),
        is_green: needs.length === 0,
        needs_you: needs,
        ...{ rail, webhooks, money, machinery, alerts },
      };
      return { status: 200, body };
    },
  });
}

async function readAlerts({ db }: OverviewDeps, mode: Mode) {
  const newest = await db
    .collection<AlertDoc>(alertsSpec.name)
    .find({})
    .sort({ at: -1 })
    .limit(alertsLooked)
    .toArray();
  return newest
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
