import { Worker } from 'node:worker_threads';
import type { AnyStateMachine } from 'xstate';
import { type Detail, planOf, svgOf } from './drawing.ts';
import { layOut, type Placed } from './layout.ts';
import type { Box } from './read.ts';
import type { Lighting } from './svg.ts';

export { chartMermaid, type Detail } from './drawing.ts';
export { chartStyle, type Lighting } from './svg.ts';

/**
 * Statecharts to look at, made from the machines themselves: what is drawn is what runs. `npm run charts` writes
 * them to docs/charts; operators see the same drawing with an actor's states lit.
 */

/**
 * Laying out the largest chart takes a second or two, in which nobody would be answered. It is done in a thread of
 * its own, and once: a definition never changes.
 */
const laidOut = new WeakMap<AnyStateMachine, Map<string, Promise<Placed>>>();

/** As `chartSvg` of drawing.ts, while the process goes on with everything else. */
export async function chartSvg(
  machine: AnyStateMachine,
  detail: Detail = 'full',
  lighting: Lighting = {},
  { isInline = false } = {},
): Promise<string> {
  const { box, width, key } = planOf(machine, detail, lighting);
  const known = laidOut.get(machine) ?? new Map<string, Promise<Placed>>();
  laidOut.set(machine, known);
  const placed = known.get(key) ?? layOutAside(box, width);
  known.set(key, placed);
  return svgOf(machine, await placed, detail, lighting, isInline);
}

/** What the thread is given (src/charts/thread.ts). */
export interface Order {
  box: Box;
  width: number | undefined;
}

/** One thread at a time: drawings are for a few people, and the other processors are the service's. */
let before: Promise<unknown> = Promise.resolve();

function layOutAside(box: Box, width: number | undefined): Promise<Placed> {
  // Where there can be no thread, as in a bundle without the thread's file, a late drawing is better than none.
  const placed = before
    .then(() => inThread({ box, width }))
    .catch((error: Error) => {
      process.emitWarning(`A chart was laid out beside everything else: ${error.message}`, 'ChartThread');
      return layOut(box, width);
    });
  before = placed;
  return placed;
}

function inThread(order: Order): Promise<Placed> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./thread.mjs', import.meta.url), { workerData: order, execArgv: [] });
    thread.unref();
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the thread ended without a drawing')));
  });
}
