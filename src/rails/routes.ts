import { Type } from 'typebox';
import { AppError, forAnyone } from '../http/http.ts';
import type { Callbacks } from './callbacks.ts';

const bodyMaxBytes = 16 * 1024;

/** POST /rails/:rail/:secret (CONTRACT 19.4). A wrong address looks as if there were no such route. */
export function receiveCallback(callbacks: Pick<Callbacks, 'receive'>) {
  return forAnyone({
    doc: {
      id: 'receiveCallback',
      summary: 'A rail calls back',
      description: 'Stored, answered in the rail’s own format, and then the rail is asked.',
      tag: 'About',
      answers: { 200: { description: 'Taken.', schema: Type.Object({}, { additionalProperties: true }) } },
    },
    params: Type.Object({
      rail: Type.String({ maxLength: 40 }),
      secret: Type.String({ maxLength: 200 }),
    }),
    rawMaxBytes: bodyMaxBytes,
    handler: async ({ params, raw }) => {
      const reply = await callbacks.receive(params.rail, params.secret, raw ?? Buffer.alloc(0));
      if (!reply) throw new AppError('route_not_found');
      return { status: reply.status, body: reply.body, headers: { 'Content-Type': reply.contentType } };
    },
  });
}
