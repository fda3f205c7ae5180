import { webhooks } from '@kusanya/client';

/** It takes the bytes as they came: nothing may read the body before it. */
export async function POST(request) {
  const { take } = await import('../../orders.js');
  return webhooks.handler({ secret: process.env.KUSANYA_WEBHOOK_SECRET, onEvent: take })(request);
}
