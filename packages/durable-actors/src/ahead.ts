import type { Clock } from './clock.ts';
import type {
  ActorDoc,
  ActorEvent,
  Call,
  CallAnswer,
  Cause,
  MachineDefinition,
  SendOptions,
} from './document.ts';
import type { Log } from './log.ts';
import type { Write } from './mongo.ts';
import { type Planned, type Planner, planStep, updateOf } from './plan.ts';
import { next } from './step.ts';

/**
 * A question and its answer in one commit. A bell makes an actor ask the world, and the answer is its next step: two
 * commits, of which the first says only that somebody is about to ask. Where whoever rang rings again until it is
 * committed, the question may come first. Both steps are taken, as the chart has them, and both have their line.
 */

/** Makes a call whose step is not committed yet. Undefined: it has to be made after that, or its answer is told then. */
export type AskAhead = (machine: string, doc: ActorDoc, call: Call) => Promise<CallAnswer | undefined>;

/** A step of a commit, as listeners hear of it. */
export interface Taken {
  planned: Planned;
  event: ActorEvent;
  cause: Cause;
  from: string;
}

/** What is committed at once: a step, or one that asks and that of the answer. */
export interface Attempt {
  steps: readonly [Taken, ...Taken[]];
  writes: Write[];
}

interface AheadOptions {
  planner: Planner;
  clock: Clock;
  log: Log;
}

export class Ahead {
  readonly #options: AheadOptions;
  /** Set where this process has workers. */
  ask: AskAhead | undefined;

  constructor(options: AheadOptions) {
    this.#options = options;
  }

  /**
   * What is committed with a step: the answer to what it asks, if it may be asked before and answers soon. What that
   * meets (a lost race, a rule of what is stored) it meets again after the step, where it is dealt with: then the
   * step comes without `options`, and is taken alone.
   */
  async withAnswer(
    definition: MachineDefinition,
    doc: ActorDoc,
    asking: Taken,
    options: SendOptions | undefined,
  ): Promise<Attempt> {
    const { planned } = asking;
    const alone: Attempt = { steps: [asking], writes: planned.writes };
    const call = this.ask && options && askedAhead(definition, planned, options);
    const answer = call && (await this.ask?.(definition.name, planned.doc, call));
    if (!answer) return alone;
    try {
      return await this.#together(definition, doc, asking, call, answer);
    } catch (error) {
      this.#options.log.debug({ actor: doc._id, error: String(error) }, 'asked ahead in vain');
      return alone;
    }
  }

  /** The step that asks and that of the answer, and the writes of the commit that they share. */
  async #together(
    definition: MachineDefinition,
    doc: ActorDoc,
    asking: Taken,
    call: Call,
    { event: told, writes }: CallAnswer,
  ): Promise<Attempt> {
    const { planner, clock } = this.#options;
    const { planned } = asking;
    const event = { ...told, at: clock.now() };
    const cause = { kind: 'call', id: call.id } as const;
    const chart = next(definition, planned.doc, planned.doc.timers, event, planned.doc.seq + 1);
    const second = await planStep(planner, definition, planned.doc, planned.doc.state, chart, event, {
      ...{ stepId: call.id, cause, answers: { callId: call.id, factual: false }, owner: call.owner },
      ...(writes ? { writes } : {}),
    });
    const resting = await planner.shared.rest(definition, second.doc);
    const update = updateOf(definition, doc, resting, undefined, chart.fields);
    return {
      steps: [
        { ...asking, planned: { ...planned, newCalls: [] } },
        { planned: second, event, cause, from: planned.doc.state },
      ],
      writes: [update, ...planned.writes.slice(1), ...second.writes.slice(1)],
    };
  }
}

/** What may be asked before the step is committed; undefined: nothing. */
function askedAhead(
  { calls }: MachineDefinition,
  { newCalls }: Planned,
  { mayAskAhead, data }: SendOptions,
): Call | undefined {
  const [call] = newCalls;
  if (!mayAskAhead || data || newCalls.length !== 1) return undefined;
  // One that has an owner is due now, and this process makes it.
  return call?.owner !== undefined && calls[call.type]?.onlyAsks ? call : undefined;
}
