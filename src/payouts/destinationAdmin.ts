import { Type } from 'typebox';
import {
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  listActors,
  listedAnswer,
  ModeField,
  maskingFor,
  pageFields,
  StateFilter,
} from '../desk/desk.ts';
import { type Fault, faulty, forOperators, pageOf } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { memoryOf } from '../memory.ts';
import type { Merchants } from '../merchants/merchants.ts';
import { channels } from '../rails/rails.ts';
import { isoTime, timeOrNull } from '../time.ts';
import { accountFault } from './destinations.ts';
import {
  byHand,
  type DestinationDoc,
  type Destinations,
  destinationKinds,
  maskedAccount,
} from './payouts.ts';

/** Where merchants' money may go. Confirmed and removed by what is told to the actor. */
export interface DestinationAdminDeps extends CommandDeps {
  merchants: Merchants;
  destinations: Destinations;
}

/** Whole for those who confirm it, masked for those who only look. */
function presentDestination(doc: DestinationDoc, isMasked: boolean) {
  const { data } = doc;
  const context = memoryOf(doc);
  return {
    id: doc._id,
    object: 'destination',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    state: doc.state,
    account: isMasked ? maskedAccount(data.account) : data.account,
    rail: data.rail,
    entered_by: context.enteredBy ?? null,
    confirmed_by: context.confirmedBy ?? null,
    usable_at: timeOrNull(context.usableAt),
    removed_at: timeOrNull(context.removedAt),
    created_at: isoTime(data.createdAt.getTime()),
  };
}

export function enterDestination(deps: DestinationAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'enterDestination',
      'Enter where a merchant’s money may go',
      201,
      'Another operator confirms it with `operator.confirmed`; then a live one rests for PAYOUT_DESTINATION_REST.',
    ),
    once: true,
    params: idParam('mer'),
    body: commandBody('NewDestination', {
      mode: ModeField,
      kind: Type.Enum([...destinationKinds]),
      name: Type.String({ minLength: 1, maxLength: 100, pattern: '\\S' }),
      number: Type.String({ minLength: 4, maxLength: 34 }),
      bank: Type.Optional(Type.String({ minLength: 2, maxLength: 60, pattern: '\\S' })),
      rail: Type.Optional(Type.Enum([byHand, ...channels])),
    }),
    handler: async (command, { params, body }) => {
      const { _id: merchantId } = await found(deps.merchants.find(params.id));
      const { mode, kind, name, number, bank, rail } = body;
      const entered = {
        merchantId,
        mode,
        kind,
        name: name.trim(),
        number: number.trim(),
        rail,
        ...(bank === undefined ? {} : { bank: bank.trim() }),
      };
      refuseFaulty(deps.destinations, entered);
      const actor = deps.destinations.newDestination(entered, command.by, command.at);
      const about = {
        ...{ action: 'destination.entered', target: actor.id, merchantId },
        after: { mode, kind, name, rail: rail ?? null },
      };
      const doc = await command.create(actor, about);
      return { status: 201, body: presentDestination(doc as DestinationDoc, false) };
    },
  });
}

function refuseFaulty(destinations: Destinations, entered: Parameters<Destinations['railFault']>[0]): void {
  const account = accountFault(entered);
  const rail = destinations.railFault(entered);
  const faults: Fault[] = [
    ...(account ? [{ ...account, code: 'parameter_invalid' as const }] : []),
    ...(rail ? [{ param: 'rail', code: 'parameter_invalid' as const, message: rail }] : []),
  ];
  if (faults.length > 0) throw faulty(faults);
}

export function listDestinations({ db, actors }: DestinationAdminDeps) {
  return forOperators({
    doc: described('listDestinations', 'Where merchants’ money may go, newest first', 200),
    query: Type.Object(
      {
        mode: Type.Optional(ModeField),
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        state: StateFilter,
        ...pageFields(idPattern('dst')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ principal, query }) => {
      const filter = { mode: query.mode, merchantId: query.merchant, states: query.state?.split(',') };
      const page = pageOf(query);
      const listed = await listActors<DestinationDoc>({ db, actors }, 'destination', filter, page);
      const { isOn } = maskingFor(principal);
      return { status: 200, body: listedAnswer(listed, (doc) => presentDestination(doc, isOn)) };
    },
  });
}
