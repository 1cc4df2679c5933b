// Signatures of webhooks according to Standard Webhooks (https://www.standardwebhooks.com, specification 1.0.0), for which
// receivers can use existing libraries.

import { createHmac, randomBytes } from 'node:crypto';

export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** The headers of a delivery. `seconds`: time of sending since 1970; receivers refuse deliveries that are minutes old. */
export function signedHeaders(secret: string, id: string, seconds: number, body: string): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` };
}
