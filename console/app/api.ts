// Requests to the recorder. Errors are problems with the recorder's words.

import { signal } from '@preact/signals';
import { heard, lost } from './contact.ts';
import { takeEarly, type TimedResponse } from './early.ts';

interface FieldError {
  readonly field: string;
  readonly detail: string;
}

/** An error answer of the recorder: a problem of RFC 9457, as in docs/api.md. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  /** From `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  /** Of settings: each wrong one by its path. */
  readonly errors: readonly FieldError[];

  constructor(
    status: number,
    code: string,
    detail: string,
    {
      retryAfterSeconds,
      errors = [],
    }: { readonly retryAfterSeconds?: number | undefined; readonly errors?: readonly FieldError[] } = {},
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
    this.errors = errors;
  }
}

/** Counts the answers 401: session.ts then shows the sign-in screen. */
export const refusals = signal(0);

/** A machine that was switched off does not close its connections: after this time without an answer, a request is sent again. */
const ANSWER_MS = 30_000;

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** The base URL of another node, as `camera.base`. */
  readonly base?: string | undefined;
  /** An error status whose body is an answer as well. */
  readonly answersWith?: number;
}

/** The JSON of an answer; undefined without one. Rejects with Problem for an error status, and with another error without an answer. */
export async function api<T>(path: string, asked: Asked = {}): Promise<T> {
  const response = await request(path, asked);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

/** Returns the answer itself, for its headers or if the body is not JSON. */
export const request = async (path: string, asked: Asked = {}): Promise<Response> =>
  (await timedRequest(path, asked)).response;

export async function timedRequest(path: string, asked: Asked): Promise<TimedResponse> {
  const { method = 'GET', signal: abort, base, answersWith } = asked;
  let timed: TimedResponse;
  try {
    const early = method === 'GET' && base === undefined ? await takeEarly(path) : undefined;
    timed = early ?? (await timedFetch(path, asked));
  } catch (error) {
    if (!abort?.aborted && isOwn(base)) lost();
    throw error;
  }
  const { response } = timed;
  if (isOwn(base)) heard();
  if (response.ok || response.status === answersWith) return timed;
  if (response.status === 401 && isOwn(base)) refusals.value++;
  // A proxy answers in another format.
  const problem = (await response.json().catch(() => ({}))) as {
    code?: string;
    detail?: string;
    errors?: readonly FieldError[];
  };
  const retryAfter = Number(response.headers.get('retry-after') ?? NaN);
  throw new Problem(
    response.status,
    problem.code ?? '',
    problem.detail ?? `the recorder answers with status ${response.status}`,
    { retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined, errors: problem.errors ?? [] },
  );
}

async function timedFetch(
  path: string,
  { method = 'GET', body, headers, signal, base }: Asked,
): Promise<TimedResponse> {
  const sentMs = Date.now();
  const response = await fetch(mediaAddress(path, base), {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: limited(method, signal),
  });
  return { response, sentMs, receivedMs: Date.now() };
}

/** The page repeats a read that failed. A change has no time limit, because it must not be made twice. */
function limited(method: string, abort: AbortSignal | undefined): AbortSignal | null {
  if (method !== 'GET') return abort ?? null;
  const limit = AbortSignal.timeout(ANSWER_MS);
  return abort ? AbortSignal.any([abort, limit]) : limit;
}

/** The text to show for a request that failed. */
export const wordsOf = (error: unknown): string =>
  error instanceof Problem ? sentence(error.message) : 'The recorder cannot be reached.';

/** The texts of wrong fields by the field; those of others, and of all else that fails, are under the empty name. */
export function fieldProblems(error: unknown, fields: readonly string[]): Readonly<Record<string, string>> {
  if (!(error instanceof Problem) || error.errors.length === 0) return { '': wordsOf(error) };
  const problems: Record<string, string> = {};
  for (const { field, detail } of error.errors) {
    const name = fields.includes(field) ? field : '';
    const words = sentence(name === '' ? `${field}: ${detail}` : detail);
    problems[name] = [problems[name], words].filter(Boolean).join(' ');
  }
  return problems;
}

/** Reasons of the recorder begin in lower case and have no full stop. */
export const sentence = (text: string): string =>
  text === '' ? '' : `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? '' : '.'}`;

const isOwn = (base: string | undefined): boolean => base === undefined || base === window.location.origin;

/** `base` may have a path, that of a node that is reached through this one. The session's cookie is sent as well. */
export const mediaAddress = (path: string, base?: string): string =>
  new URL(`${base ?? ''}${path}`, window.location.origin).href;
