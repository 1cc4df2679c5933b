// Sends one request over HTTP or HTTPS on its own connection and reads a short answer. For commands, which ask once and exit.

import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { hostOfUrl } from './host.ts';
import { readBody } from './http-answer.ts';
import { parseJson } from './parse-json.ts';

interface ShortRequest {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly tls?: RequestOptions;
  /** For the whole answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

interface ShortAnswer {
  readonly status: number;
  /** The parsed JSON; undefined if the answer is not JSON. */
  readonly value: unknown;
}

/** Rejects with the system's error, or with an Error whose message says that the answer is too long or came too late. */
export async function shortRequest(
  url: URL,
  { body, timeoutMs, maxBytes, ...options }: ShortRequest,
): Promise<ShortAnswer> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await answerTo(url, { ...options, signal }, body);
    const bytes = await readBody(response, maxBytes, () => new Error('the answer is too long'));
    return { status: response.statusCode ?? 0, value: parseJson(bytes.toString('utf8')) };
  } catch (err) {
    throw signal.aborted ? new Error('it did not answer in time', { cause: err }) : err;
  }
}

/** Resolves when the head of the answer is there. Rejects with the system's error. */
export function answerTo(
  url: URL,
  { tls, headers, ...options }: Pick<RequestOptions, 'method' | 'signal'> & Pick<ShortRequest, 'headers' | 'tls'>,
  body?: unknown,
): Promise<IncomingMessage> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const common = {
    ...options,
    agent: false as const,
    headers: {
      ...headers,
      ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    },
  };
  // The server name of TLS must not be an IP address (RFC 6066 §3).
  const servername = isIP(hostOfUrl(url)) ? '' : url.hostname;
  const sent =
    url.protocol === 'https:' ? requestHttps(url, { servername, ...tls, ...common }) : requestHttp(url, common);
  sent.on('response', resolve).on('error', reject).end(text);
  return promise;
}
