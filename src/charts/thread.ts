import { parentPort } from 'node:worker_threads';
import type { Order } from './charts.ts';
import { layOut } from './layout.ts';

/** Lays out one chart after the other, until it is ended. */
parentPort!.on('message', ({ box, width }: Order) => parentPort!.postMessage(layOut(box, width)));
