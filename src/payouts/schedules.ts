import type { Actors, NewActor } from '@kusanya/durable-actors';
import type { Plan, ScheduleInput } from '../../machines/schedule.ts';
import type { Config } from '../config.ts';
import { derivedId, idTime } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import type { Whose } from '../whose.ts';
import type { ScheduleDoc } from './documents.ts';

/** Schedules: payouts that are made by themselves, at most one on a day (CONTRACT 22.14). When, the chart says. */

/** While something is in the way, between two looks. */
const retryMs = limits.hourMs;

/** The schedule of a merchant and mode: there is one at most, so its id follows from them. */
export function scheduleIdOf(merchantId: string, mode: Mode): string {
  return derivedId('sch', idTime(merchantId), `${merchantId}.${mode}`);
}

interface SchedulesOptions {
  actors: Actors;
  config: Pick<Config, 'payouts'>;
}

/** What operators set and see. */
export class Schedules {
  readonly #options: SchedulesOptions;

  constructor(options: SchedulesOptions) {
    this.#options = options;
  }

  async find(merchantId: string, mode: Mode): Promise<ScheduleDoc | undefined> {
    const ref = { machine: 'schedule', id: scheduleIdOf(merchantId, mode) };
    return (await this.#options.actors.read(ref)) as ScheduleDoc | undefined;
  }

  /** When on a day it looks, after 00:00 in Dar es Salaam. */
  get dayTimeMs(): number {
    return this.#options.config.payouts.scheduleAtMs;
  }

  /** A schedule to be created. */
  newSchedule({ merchantId, mode }: Whose, plan: Plan, at: number): NewActor {
    const input = { at, plan, dayTimeMs: this.dayTimeMs, retryMs } satisfies ScheduleInput;
    return { machine: 'schedule', id: scheduleIdOf(merchantId, mode), input, merchantId, mode, data: {} };
  }
}
