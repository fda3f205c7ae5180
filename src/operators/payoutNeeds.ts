import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { idFloor } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { approvalStates, exportStates, unclearStates } from '../payouts/payouts.ts';
import { type Tile, tallyMoney, tallyStanding, tile } from './tiles.ts';

/** Payouts that came back, or found the wallet empty, are looked at within so long. */
const payoutNewsMs = limits.dayMs;

/** Payouts and destinations that wait for a person, and schedules that something is in the way of. */
export async function payoutNeeds(
  deps: { db: Db; actors: Actors; clock: Clock },
  mode: Mode,
): Promise<Tile[]> {
  const { clock } = deps;
  const since = { _id: { $gte: idFloor('po', clock.now() - 30 * limits.dayMs) } };
  const news = { updatedAt: { $gte: new Date(clock.now() - payoutNewsMs) } };
  const kinds = [
    ['payout_to_approve', approvalStates, {}],
    ['payout_to_export', exportStates, {}],
    ['payout_unclear', unclearStates, {}],
    ['payout_returned', ['returned'], { ...since, ...news }],
    [
      'float_low',
      ['failed.watching', 'failed.resting'],
      { ...since, ...news, 'snapshot.context.failureCode': 'float_insufficient' },
    ],
  ] as const;
  const tiles = kinds.map(async ([kind, states, more]) => {
    const sum = await tallyMoney(deps, { machine: 'payout', mode, states, more });
    const shown = [...new Set(states.map((state) => state.replace(/\.(polling|resting|watching)$/, '')))];
    return tile(kind, `/admin/payouts?mode=${mode}&state=${shown.join(',')}`, sum);
  });
  const [entered, paused] = await Promise.all([
    tallyStanding(deps, { machine: 'destination', mode, states: ['entered'] }),
    tallyStanding(deps, { machine: 'schedule', mode, states: ['paused'] }),
  ]);
  return [
    ...(await Promise.all(tiles)),
    tile('destination_to_confirm', `/admin/destinations?mode=${mode}&state=entered`, entered),
    tile('schedule_paused', `/admin/machines/schedule/actors?mode=${mode}&state=paused`, {
      ...paused,
      machine: 'schedule',
    }),
  ];
}
