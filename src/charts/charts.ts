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

/** A drawing takes a few seconds at most; a thread that has drawn nothing for so long has nothing to draw. */
const idleMs = 30_000;

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

/** The thread that draws, while there is something to draw: to begin one costs as much as a drawing. */
let thread: Worker | undefined;

function inThread(order: Order): Promise<Placed> {
  thread ??= begun();
  const worker = thread;
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error('the thread ended without a drawing'));
    worker.once('error', reject).once('exit', ended);
    worker.once('message', (placed: Placed) => {
      worker.off('error', reject).off('exit', ended);
      resolve(placed);
    });
    worker.postMessage(order);
  });
}

/** Ends by itself once nothing was drawn for a while, and holds no process that wants to end. */
function begun(): Worker {
  const worker = new Worker(new URL('./thread.mjs', import.meta.url), { execArgv: [] });
  worker.unref();
  const forget = () => {
    if (thread === worker) thread = undefined;
  };
  const idle = setTimeout(() => {
    forget();
    void worker.terminate();
  }, idleMs).unref();
  worker.on('message', () => idle.refresh());
  worker.once('exit', forget);
  return worker;
}
