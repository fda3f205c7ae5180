import type { Write } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { forMerchants, limitPerMinute, type RateLimiter, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Resend, Resent } from './webhooks.ts';

export interface ResendDeps {
  /** Sends an event again, and stores the write in its commit; undefined: there is no such event or endpoint. */
  resendEvent(asked: Resend, record: (resent: readonly Resent[]) => Write): Promise<Resent[] | undefined>;
  rateLimiter: Pick<RateLimiter, 'take'>;
}

const ResendObject = Type.Object(
  {
    object: Type.Literal('resend'),
    event: Type.String({ pattern: idPattern('evt') }),
    deliveries: Type.Array(
      Type.Object(
        {
          id: Type.String({ pattern: idPattern('dlv') }),
          object: Type.Literal('delivery'),
          endpoint: Type.String({ pattern: idPattern('we') }),
        },
        { additionalProperties: false },
      ),
      {
        description:
          'One for each endpoint. One that is under way, or held for a disabled endpoint, just goes on.',
      },
    ),
  },
  { title: 'Resend', additionalProperties: false },
);

const perMinute = limits.resendsPerMinute;

/** POST /v1/events/:id/resend (CONTRACT 13.11). */
export function resend({ resendEvent, rateLimiter }: ResendDeps) {
  return forMerchants({
    doc: {
      id: 'resendEvent',
      summary: 'Send an event again',
      description:
        'An addition to the interface. One more attempt to the named endpoint, or to each that wants events of this ' +
        'type, outside of the schedule of retries; the same bytes, signed anew. An endpoint that is younger than the ' +
        `event gets it as a new delivery. At most ${perMinute} a minute.`,
      tag: 'Events',
      answers: { 202: { description: 'The attempts are on their way.', schema: ResendObject } },
    },
    idempotent: true,
    params: Type.Object({
      id: Type.String({ maxLength: 30, pattern: idPattern('evt'), description: 'The event’s id.' }),
    }),
    body: Type.Object(
      {
        endpoint: Type.Optional(
          Type.String({
            maxLength: 30,
            pattern: idPattern('we'),
            description: 'One endpoint; all when absent.',
          }),
        ),
      },
      { title: 'ResendEvent', additionalProperties: false },
    ),
    handler: async ({ principal, params, body, idempotencyKey, requestId, recordWrite }) => {
      const { merchantId, mode } = principal;
      const message = `At most ${perMinute} events are sent again in a minute.`;
      await limitPerMinute(rateLimiter, `${merchantId}.${mode}.resends`, perMinute, message);
      const answerOf = (resent: readonly Resent[]) =>
        JSON.stringify({
          object: 'resend',
          event: params.id,
          deliveries: resent.map(({ deliveryId: id, endpointId: endpoint }) => ({
            id,
            object: 'delivery',
            endpoint,
          })),
        });
      const asked = { merchantId, mode, eventId: params.id, endpointId: body.endpoint, requestId };
      const key = String(idempotencyKey);
      const resent = await resendEvent({ ...asked, idempotencyKey: key }, (done) =>
        recordWrite(202, answerOf(done)),
      );
      if (!resent) throw resourceNotFound();
      return { status: 202, body: answerOf(resent) };
    },
  });
}
