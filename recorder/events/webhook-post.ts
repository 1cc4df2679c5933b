// Delivers one event to a webhook. Redirects are not followed, and only addresses that the network rules allow are contacted.

import { readFile } from 'node:fs/promises';
import { Agent, request } from 'undici';
import { hostOfUrl } from '../../base/host.ts';
import { quietly } from '../../base/error.ts';
import { HTTP_1 } from '../../base/http-answer.ts';
import { AddressRefused, type CameraNetworks } from '../reach/networks.ts';
import type { NodeEvent } from '../contract/event.ts';
import { WEBHOOK_SECRET } from '../config/values.ts';
import { signedHeaders } from './signature.ts';

/** Where events are sent. */
interface WebhookTarget {
  readonly url: string;
  /** Or a file with the secret; it is read at each delivery, because it may change. */
  readonly secret?: string | undefined;
  readonly secretFile?: string | undefined;
}

/** `problem`: why the event was not accepted, without secret parts of the address. */
export type Delivery = { readonly taken: true } | { readonly taken: false; readonly problem: string };

/** A receiver that does not respond within this time has not accepted the event. */
const ANSWER_MS = 10_000;
/** Only the status of a response is used. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** The connections to receivers. TLS is verified with the CAs of the system and of NODE_EXTRA_CA_CERTS. */
export const webhookAgent = (networks: CameraNetworks): Agent =>
  new Agent({ ...HTTP_1, connect: { lookup: networks.lookup, timeout: ANSWER_MS }, connections: 1, pipelining: 1 });

/** Never rejects. */
export async function postEvent(
  { url, secret, secretFile }: WebhookTarget,
  event: NodeEvent,
  deps: { readonly networks: CameraNetworks; readonly agent: Agent; readonly wallMs: number },
  signal: AbortSignal,
): Promise<Delivery> {
  try {
    deps.networks.check(hostOfUrl(new URL(url)));
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
    await quietly(body.dump({ limit: MAX_ANSWER_BYTES }));
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
  // The message for a name that cannot be resolved, or for a file, contains it; no message contains the whole address.
  return code === undefined ? err.message : `${code}: ${err.message}`;
}
