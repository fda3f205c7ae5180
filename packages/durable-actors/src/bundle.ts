import type { Errand } from './lanes.ts';
import type { NewJob } from './queue.ts';

/**
 * Errands as jobs of a queue. A job costs Redis some ten commands however small it is, so those that belong to one
 * moment share one. A job that comes twice, or is redone whole because its worker died, does no harm: what is to be
 * done stands in the documents.
 */

/** An errand and when it is to be run (ms). `again`: its job is in hand just now, so the new one needs another name. */
export interface Due {
  errand: Errand;
  runAt: number;
  again?: true;
}

/** Calls that are made at once share a job by so many. */
const callsMax = 50;
/** Wake-ups share the job of their moment by so many. */
const wakesMax = 100;
/** A wake-up so far ahead comes up to so much after its time; a nearer one has a job of its own, at its very time. */
const moments = [
  { aheadMs: 2_000, lengthMs: 200 },
  { aheadMs: 500, lengthMs: 50 },
] as const;

let bundled = 0;

/**
 * The jobs for some calls of one kind: those for now together, each later one by itself. What comes again shares the
 * job of its moment. `owner` tells the jobs of processes apart.
 */
export function callJobs(dues: readonly Due[], now: number, owner: string): NewJob[] {
  const later = dues.filter(({ runAt, again }) => runAt > now && !again);
  const first = dues.filter(({ runAt, again }) => runAt <= now && !again).map(({ errand }) => errand);
  const again = dues.filter((due) => due.again);
  return [
    ...bundles(first, callsMax).map((errands) => ({ id: nameOf(errands), data: { errands } })),
    ...[...later, ...again.filter(({ runAt }) => momentOf(runAt, now) === undefined)].map(
      ({ errand, runAt }) => ({
        id: `${errand.call}@${runAt}`,
        data: { errands: [errand] },
        delayMs: runAt - now,
      }),
    ),
    ...momentJobs(again, { now, owner, most: callsMax }),
  ];
}

/** The jobs for some wake-ups: one for each moment, one for all that are due. `owner` tells the jobs of processes apart. */
export function wakeJobs(dues: readonly Due[], now: number, owner: string): NewJob[] {
  const alone = dues.filter(({ runAt }) => momentOf(runAt, now) === undefined);
  return [
    ...alone.map(({ errand, runAt, again }) => ({
      id: `${wakeId(errand.actor, runAt)}${again ? `@${now}` : ''}`,
      data: { errands: [errand] },
      delayMs: runAt - now,
    })),
    ...momentJobs(dues, { now, owner, most: wakesMax }),
  ];
}

/** Those that belong to a moment, in jobs that are named after none of them. */
function momentJobs(
  dues: readonly Due[],
  { now, owner, most }: { now: number; owner: string; most: number },
): NewJob[] {
  const moments = new Map<number, Errand[]>();
  for (const { errand, runAt } of dues) {
    const moment = momentOf(runAt, now);
    if (moment === undefined) continue;
    const errands = moments.get(moment);
    if (errands) errands.push(errand);
    else moments.set(moment, [errand]);
  }
  return [...moments].flatMap(([moment, all]) =>
    bundles(all, most).map((errands) => {
      bundled += 1;
      return { id: `${moment}.${owner}.${bundled}`, data: { errands }, delayMs: moment - now };
    }),
  );
}

function bundles(errands: readonly Errand[], most: number): Errand[][] {
  return Array.from({ length: Math.ceil(errands.length / most) }, (_, at) =>
    errands.slice(at * most, (at + 1) * most),
  );
}

/** The end of the moment in which a wake-up comes; undefined: it stands alone. */
function momentOf(runAt: number, now: number): number | undefined {
  if (runAt <= now) return now;
  const length = moments.find(({ aheadMs }) => runAt - now >= aheadMs)?.lengthMs;
  return length && Math.ceil(runAt / length) * length;
}

/** The errands of a job, also of one that an older version of this code added. */
export function errandsOf(data: unknown): Errand[] {
  const { errands, ...older } = data as { errands?: Errand[] } & Errand;
  return errands ?? [older];
}

/** The job id of a wake-up alone, from the moment it is for: the same one is added once, leftovers are harmless. */
export function wakeId(actor: string, dueAtMs: number): string {
  return `${actor}.${dueAtMs}`;
}

/** One call's job is called after it, so that it is queued once. */
function nameOf(errands: readonly Errand[]): string {
  const [first] = errands;
  return errands.length === 1 ? first!.call! : `${first!.call}+${errands.length - 1}`;
}
