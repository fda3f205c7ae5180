import { parentPort, workerData } from 'node:worker_threads';
import type { Order } from './charts.ts';
import { layOut } from './layout.ts';

/** Lays out one chart and ends. */
const { box, width } = workerData as Order;
parentPort!.postMessage(layOut(box, width));
