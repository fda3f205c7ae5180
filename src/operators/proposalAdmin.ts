import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { described, ModeField } from '../desk/desk.ts';
import { forOperators, listAnswer } from '../http/http.ts';
import { limits } from '../limits.ts';
import { presentProposal, waitingProposals } from './secondPerson.ts';

/** What one person proposed and another has to agree to. */
export function listProposals({ db, clock }: { db: Db; clock: Clock }) {
  return forOperators({
    doc: described(
      'listProposals',
      'Decisions that wait for a second person, newest first',
      200,
      'Each is made by sending `event` to `actor`, as whoever proposed it did. They lapse after a day (`until`).',
    ),
    query: Type.Object({ mode: ModeField }, { additionalProperties: false }),
    handler: async ({ query }) => {
      const waiting = await waitingProposals(db, query.mode, clock.now(), limits.listMax + 1);
      const shown = waiting.slice(0, limits.listMax).map(presentProposal);
      return { status: 200, body: listAnswer(shown, waiting.length > limits.listMax) };
    },
  });
}
