import { Type } from 'typebox';
import { intervals, type Plan } from '../../machines/schedule.ts';
import {
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  ModeField,
} from '../desk/desk.ts';
import { actionNotAllowed, faulty, forOperators } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { memoryOf } from '../memory.ts';
import type { Merchants } from '../merchants/merchants.ts';
import { modes } from '../mode.ts';
import { timeOrNull } from '../time.ts';
import { isOwn, type Whose } from '../whose.ts';
import { type DestinationDoc, destinationsSpec, type ScheduleDoc, type Schedules } from './payouts.ts';

/** Payouts by themselves: what was agreed on, and how it goes. Stopped and started by what is told to the actor. */
export interface ScheduleAdminDeps extends CommandDeps {
  merchants: Merchants;
  schedules: Schedules;
}

const Tzs = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

function presentSchedule(doc: ScheduleDoc) {
  const { plan, dueAtMs, pausedBy, payout, amountTzs } = memoryOf(doc);
  return {
    id: doc._id,
    object: 'schedule',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    state: doc.state,
    interval: plan?.interval ?? null,
    weekday: plan?.weekday ?? null,
    destination: plan?.destinationId ?? null,
    minimum: plan?.minimumTzs ?? null,
    retain: plan?.retainTzs ?? null,
    cap: plan?.capTzs ?? null,
    due_at: doc.state === 'stopped' ? null : timeOrNull(dueAtMs),
    paused_by: pausedBy ?? null,
    latest_payout: payout ?? null,
    latest_amount: amountTzs ?? null,
  };
}

/** GET /admin/merchants/:id/schedules: at most one of each mode. */
export function listSchedules({ merchants, schedules }: ScheduleAdminDeps) {
  return forOperators({
    doc: described('listSchedules', 'When a merchant is paid out by itself, in each mode', 200),
    params: idParam('mer'),
    handler: async ({ params }) => {
      const { _id: id } = await found(merchants.find(params.id));
      const both = await Promise.all(modes.map((mode) => schedules.find(id, mode)));
      const data = both.flatMap((doc) => (doc ? [presentSchedule(doc)] : []));
      return { status: 200, body: { object: 'list', data, has_more: false } };
    },
  });
}

/** POST /admin/merchants/:id/schedules: makes the schedule of a mode, or gives it another plan. */
export function setSchedule(deps: ScheduleAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'setSchedule',
      'Pay a merchant out by itself',
      200,
      'On each of its days at PAYOUT_SCHEDULE_AT what is available goes to the destination: above `minimum`, less ' +
        '`retain`, at most `cap`. There is one for each mode; set again, it goes by the new plan.',
      ['action_not_allowed'],
    ),
    params: idParam('mer'),
    body: commandBody('SetSchedule', {
      mode: ModeField,
      interval: Type.Enum([...intervals]),
      weekday: Type.Optional(Type.Integer({ minimum: 1, maximum: 7 })),
      destination: Type.String({ maxLength: 40, pattern: idPattern('dst') }),
      minimum: Type.Optional(Tzs),
      retain: Type.Optional(Tzs),
      cap: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    }),
    handler: async (command, { params, body }) => {
      const { _id: merchantId } = await found(deps.merchants.find(params.id));
      const { mode, interval, weekday, destination: destinationId } = body;
      if ((interval === 'weekly') !== (weekday !== undefined))
        throw wrong('weekday', 'weekday (1 Monday to 7 Sunday) goes with weekly, and with nothing else.');
      const destination = await deps.db
        .collection<DestinationDoc>(destinationsSpec.name)
        .findOne({ _id: { $eq: destinationId } });
      if (!destination || !isOwn({ merchantId, mode }, destination) || destination.state === 'removed')
        throw wrong('destination', 'destination is none of this merchant’s in this mode, or was removed.');
      const { minimum: minimumTzs = 0, retain: retainTzs = 0, cap: capTzs = null } = body;
      const plan: Plan = { interval, weekday: weekday ?? null, destinationId, minimumTzs, retainTzs, capTzs };
      return { status: 200, body: presentSchedule(await set(deps, command, { merchantId, mode, plan })) };
    },
  });
}

type SetCommand = Parameters<Parameters<typeof forCommands>[1]['handler']>[0];

async function set(
  { schedules }: ScheduleAdminDeps,
  command: SetCommand,
  { merchantId, mode, plan }: Whose & { plan: Plan },
): Promise<ScheduleDoc> {
  const before = await schedules.find(merchantId, mode);
  const actor = schedules.newSchedule({ merchantId, mode }, plan, command.at);
  const about = { target: String(actor.id), merchantId, after: { mode, ...plan } };
  if (!before) return (await command.create(actor, { ...about, action: 'schedule.set' })) as ScheduleDoc;
  const event = { type: 'operator.planned', plan, dayTimeMs: schedules.dayTimeMs };
  const then = { action: event.type, before: { ...memoryOf(before).plan } };
  const sent = await command.send({ machine: 'schedule', id: before._id }, event, { ...about, ...then });
  if (sent.outcome !== 'stepped') throw actionNotAllowed(`It takes no plan in ${sent.doc.state}.`);
  return sent.doc as ScheduleDoc;
}

function wrong(param: string, message: string) {
  return faulty([{ param, code: 'parameter_invalid', message }]);
}
