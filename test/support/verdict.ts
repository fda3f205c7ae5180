import { webhooks } from '@kusanya/client';

/** What a receiver finds that verifies a webhook with our client. */
export async function verdictOf(
  ...given: Parameters<typeof webhooks.verify>
): Promise<{ ok: true } | { ok: false; reason: webhooks.VerifyRefusal }> {
  try {
    await webhooks.verify(...given);
    return { ok: true };
  } catch (error) {
    if (error instanceof webhooks.SignatureRefused) return { ok: false, reason: error.reason };
    throw error;
  }
}
