// Sends one request over HTTP or HTTPS on its own connection and reads a short answer. For commands, which ask once and exit.

import { request as requestHttp } from 'node:http';
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
export async function shortRequest(url: URL, options: ShortRequest): Promise<ShortAnswer> {
  const { method, headers, body, tls, timeoutMs, maxBytes } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { promise, resolve, reject } = Promise.withResolvers<ShortAnswer>();
  const common = {
    method,
    signal,
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
  sent.on('response', (response) => {
    readBody(response, maxBytes, () => new Error('the answer is too long')).then(
      (bytes) => resolve({ status: response.statusCode ?? 0, value: parseJson(bytes.toString('utf8')) }),
      reject,
    );
  });
  sent.on('error', (err) => reject(signal.aborted ? new Error('it did not answer in time', { cause: err }) : err));
  sent.end(text);
  return promise;
}
