// One delivery to a webhook: an event in, whether it was taken out. Nothing is followed elsewhere, and nothing is connected to
// that the rules of the networks refuse.

import { readFile } from 'node:fs/promises';
import { Agent, request } from 'undici';
import { AddressRefused, type CameraNetworks } from '../reach/networks.ts';
import type { NodeEvent } from './event.ts';
import { signedHeaders, WEBHOOK_SECRET } from './signature.ts';

/** Where events go. */
export interface WebhookTarget {
  readonly url: string;
  /** Or a file that holds it, which is read at each delivery: it may be another one meanwhile. */
  readonly secret?: string | undefined;
  readonly secretFile?: string | undefined;
}

/** `problem`: why it was not taken, without what may be secret in the address. */
export type Delivery = { readonly taken: true } | { readonly taken: false; readonly problem: string };

/** A receiver that says nothing for so long has not taken it. */
const ANSWER_MS = 10_000;
/** Of an answer nobody reads more than its status. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Connections to receivers. TLS is verified, with the authorities of the system and of NODE_EXTRA_CA_CERTS. */
export const webhookAgent = (networks: CameraNetworks): Agent =>
  new Agent({ connect: { lookup: networks.lookup, timeout: ANSWER_MS }, connections: 1, pipelining: 1 });

/** Never rejects. */
export async function postEvent(
  { url, secret, secretFile }: WebhookTarget,
  event: NodeEvent,
  deps: { readonly networks: CameraNetworks; readonly agent: Agent; readonly wallMs: number },
  signal: AbortSignal,
): Promise<Delivery> {
  try {
    const { hostname } = new URL(url);
    deps.networks.check(hostname.replace(/^\[|\]$/g, ''));
    const key = secret ?? (await readFile(secretFile ?? '', 'utf8')).trim();
    if (!WEBHOOK_SECRET.test(key)) return refused('secretFile holds no secret of the form whsec_…');
    const headers = {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'user-agent': 'kube-nvr',
      ...signedHeaders(key, String(event.id), Math.floor(deps.wallMs / 1000), event.json),
    };
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers,
      body: event.json,
      dispatcher: deps.agent,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    await body.dump({ limit: MAX_ANSWER_BYTES }).catch(() => {});
    return statusCode >= 200 && statusCode < 300 ? { taken: true } : refused(`it answered ${statusCode}`);
  } catch (err) {
    return refused(problemOf(err));
  }
}

const refused = (problem: string): Delivery => ({ taken: false, problem });

function problemOf(err: unknown): string {
  if (!(err instanceof Error)) return 'it failed';
  if (err instanceof AddressRefused) return `events are not sent to this address: ${err.message}`;
  if (err.name === 'TimeoutError') return `it did not answer within ${ANSWER_MS / 1000} s`;
  const { code } = err as NodeJS.ErrnoException;
  // The message of a name that cannot be looked up, or of a file, says which; no message says the whole address.
  return code === undefined ? err.message : `${code}: ${err.message}`;
}
