import { chart, doctor, stuck } from './admin.ts';
import { createCollection, getCollection, listCollections, waitForCollection } from './collections.ts';
import type { Command } from './command.ts';
import { completionOf } from './completion.ts';
import { listEvents, resendEvent } from './events.ts';
import { listen } from './listen.ts';
import { login, whoami } from './login.ts';
import { openPayment } from './open.ts';
import { trigger } from './trigger.ts';
import { verifyWebhook } from './verify.ts';

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  login,
  whoami,
  listen,
  trigger,
  createCollection,
  listCollections,
  getCollection,
  waitForCollection,
  listEvents,
  resendEvent,
  verifyWebhook,
  openPayment,
  doctor,
  stuck,
  chart,
  completionOf(() => commands),
];
