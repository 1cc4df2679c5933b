// Signatures of webhooks as of Standard Webhooks (https://www.standardwebhooks.com, specification 1.0.0): receivers check them
// with the libraries that there are.

import { createHmac, randomBytes } from 'node:crypto';

/** `whsec_` and 24 to 64 bytes in base64. */
export const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;

export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Headers of a delivery. `seconds`: since 1970, when it is sent: receivers refuse what is older than minutes. */
export function signedHeaders(secret: string, id: string, seconds: number, body: string): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` };
}
