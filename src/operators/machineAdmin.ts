import {
  type ActorDoc,
  type Actors,
  type Clock,
  dueIn,
  dueIndex,
  dueOf,
  type MachineDefinition,
  versionOf,
} from '@kusanya/durable-actors';
import type { Db, Document } from 'mongodb';
import { Type } from 'typebox';
import { chartMermaid, chartSvg } from '../charts/charts.ts';
import {
  ageFields,
  described,
  listActors,
  listedAnswer,
  ModeField,
  madeBounds,
  pageFields,
  StateFilter,
} from '../desk/desk.ts';
import { faulty, forOperators, pageOf, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { modes } from '../mode.ts';
import { statesIn } from '../standing.ts';
import { countState } from './health.ts';

/** The machines: their definitions and drawings, and the actors that stand on each. */
export interface MachineAdminDeps {
  db: Db;
  clock: Clock;
  actors: Actors;
}

const MachineName = Type.Object({ machine: Type.String({ maxLength: 40, pattern: '^[a-z]+$' }) });
export const Detail = Type.Optional(Type.Enum(['full', 'overview'], { default: 'full' }));

/** Of how many actors, newest, oldest and next due, the versions are looked at. */
const versionsLooked = 500;

/** The machine of this name, or the 404 that says no more than that. */
function definitionOf(actors: Actors, name: string): MachineDefinition {
  const found = actors.definitions.find((each) => each.name === name);
  if (!found) throw resourceNotFound();
  return found;
}

async function presentMachine(db: Db, definition: MachineDefinition) {
  const { name, machine } = definition;
  const counted = modes.map(async (mode) =>
    Promise.all(
      (await statesIn(db, definition, mode)).map(async (state) => ({
        mode,
        state,
        ...(await countState(db, definition, { mode, state })),
      })),
    ),
  );
  return {
    id: name,
    object: 'machine',
    version: versionOf(definition),
    events: machine.events.filter((type) => type !== '' && !type.startsWith('xstate.')).sort(),
    writes: Object.keys(definition.writes),
    calls: Object.keys(definition.calls),
    /** Counted to a thousand each. */
    actors: (await Promise.all(counted)).flat().filter(({ count }) => count > 0),
  };
}

export function listMachines({ db, actors }: MachineAdminDeps) {
  return forOperators({
    doc: described(
      'listMachines',
      'The machines, and how many actors are in each state',
      200,
      'Counts stop at 1,000 (`is_more`).',
    ),
    handler: async () => {
      const data = await Promise.all(actors.definitions.map((each) => presentMachine(db, each)));
      return { status: 200, body: { object: 'list', data, has_more: false } };
    },
  });
}

export function showMachine({ db, actors }: MachineAdminDeps) {
  return forOperators({
    doc: described(
      'getMachine',
      'A machine: its definition, the versions in use, its actors by state',
      200,
      '`versions` are those of the newest, the oldest and the next due actors, 500 of each.',
    ),
    params: MachineName,
    handler: async ({ params }) => {
      const definition = definitionOf(actors, params.machine);
      const body = {
        ...(await presentMachine(db, definition)),
        versions: await versionsIn(db, definition.plural),
        definition: definition.machine.config,
      };
      return { status: 200, body };
    },
  });
}

/** The versions of documents, among samples: an old one shows among the oldest or those still at work. */
async function versionsIn(db: Db, plural: string): Promise<number[]> {
  const sample = async (match: Document, by: Record<string, 1 | -1>, hint: Document = { _id: 1 }) => {
    const found = await db
      .collection(plural)
      .aggregate<{ _id: number }>(
        [
          { $match: match },
          { $sort: by },
          { $limit: versionsLooked },
          { $group: { _id: '$machineVersion' } },
        ],
        { hint },
      )
      .toArray();
    return found.map(({ _id }) => _id);
  };
  const samples = await Promise.all([
    sample({}, { _id: -1 }),
    sample({}, { _id: 1 }),
    sample(dueIn({}), { dueAt: 1 }, dueIndex),
  ]);
  return [...new Set(samples.flat())].sort((a, b) => a - b);
}

/** The documentation of a drawing. */
export function drawing(id: string, summary: string, contentType: string) {
  const answers = { 200: { description: 'The drawing.', contentType, schema: Type.String() } };
  return { ...described(id, summary, 200), answers };
}

export const svgHeaders = { 'Content-Type': 'image/svg+xml; charset=utf-8' };

export function drawMachine({ actors }: MachineAdminDeps) {
  return forOperators({
    doc: drawing('getMachineSvg', 'A machine’s chart as SVG', 'image/svg+xml'),
    params: MachineName,
    query: Type.Object({ detail: Detail }, { additionalProperties: false }),
    handler: async ({ params, query }) => {
      const { machine } = definitionOf(actors, params.machine);
      const body = await chartSvg(machine, query.detail);
      return { status: 200, body, headers: svgHeaders };
    },
  });
}

export function drawMermaid({ actors }: MachineAdminDeps) {
  return forOperators({
    doc: drawing('getMachineMermaid', 'A machine’s chart as a Mermaid diagram', 'text/plain'),
    params: MachineName,
    handler: ({ params }) => ({
      status: 200,
      body: chartMermaid(definitionOf(actors, params.machine).machine),
      headers: { 'Content-Type': 'text/plain; charset=utf-8' },
    }),
  });
}

/** Ids of these carry no time. */
const timeless = ['settlement', 'breaker', 'reconciliation'];

export function listMachineActors({ db, clock, actors }: MachineAdminDeps) {
  return forOperators({
    doc: described(
      'listActors',
      'Actors of a machine, newest first',
      200,
      '`state` takes names of states, also outer ones, separated by commas. `overdue`: due more than a minute ago; ' +
        'of more than a thousand those that have waited longest. Go on with `starting_after` set to `next`.',
    ),
    params: MachineName,
    query: Type.Object(
      {
        mode: Type.Optional(ModeField),
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        state: StateFilter,
        overdue: Type.Optional(Type.Boolean()),
        quarantined: Type.Optional(Type.Boolean()),
        ...ageFields,
        ...pageFields('^[0-9A-Za-z._-]+$'),
      },
      { additionalProperties: false },
    ),
    handler: async ({ params, query }) => {
      const { name } = definitionOf(actors, params.machine);
      const made = madeBounds(query, clock.now());
      if (timeless.includes(name) && Object.keys(made).length > 0) throw noAge(name);
      const filter = {
        mode: query.mode,
        merchantId: query.merchant,
        states: query.state?.split(','),
        ...(query.overdue ? { overdueAt: clock.now() } : {}),
        ...(query.quarantined ? { quarantined: true } : {}),
        ...made,
      };
      const page = pageOf(query);
      return {
        status: 200,
        body: listedAnswer(await listActors({ db, actors }, name, filter, page), (doc) =>
          actorRow(name, doc),
        ),
      };
    },
  });
}

function noAge(machine: string) {
  const message = `The ids of a ${machine} tell no time.`;
  return faulty([{ param: 'older_than', code: 'parameter_invalid', message }]);
}

/** What every list and page of actors says of one. */
export function actorRow(machine: string, doc: ActorDoc) {
  return {
    id: doc._id,
    object: 'actor',
    machine,
    machine_version: doc.machineVersion,
    seq: doc.seq,
    state: doc.state,
    merchant_id: doc.merchantId,
    mode: doc.mode,
    due_at: dueOf(doc)?.toISOString() ?? null,
    quarantined: doc.quarantined ? { at: doc.quarantined.at.toISOString(), why: doc.quarantined.why } : null,
    updated_at: doc.updatedAt.toISOString(),
  };
}
