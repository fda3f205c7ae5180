import { described, found, idParam, maskingFor } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import { type Events, testEventType } from './events.ts';

/** An event as operators see it: what it tells, and of what. */
export function showEvent({ events }: { events: Pick<Events, 'find'> }) {
  return forOperators({
    doc: described(
      'getAdminEvent',
      'An event, as it is signed and sent',
      200,
      '`about`: the payment that it tells of, or the endpoint that was tested. A viewer is shown its body with phones masked (`is_masked`).',
    ),
    params: idParam('evt'),
    handler: async ({ params, principal }) => {
      const masking = maskingFor(principal);
      const { _id, type, mode, merchantId, collectionId, createdAt, body } = await found(
        events.find(params.id),
      );
      return {
        status: 200,
        body: {
          id: _id,
          object: 'event',
          ...{ type, mode },
          merchant_id: merchantId,
          about: type === testEventType ? collectionId.replace('sample.', '') : collectionId,
          created_at: createdAt.toISOString(),
          body: masking.text(body),
          is_masked: masking.isOn,
        },
      };
    },
  });
}
