// A camera's address in, the image that it answers with out: Basic and Digest logins, redirects within the camera, and
// nothing that a camera says believed. One connection a request: cameras close them without saying so.

import type { IncomingHttpHeaders } from 'undici/types/header.d.ts';
import { Agent, errors, request } from 'undici';
import { Authorizer } from '../rtsp/authorization.ts';
import { parseChallenges, strongest } from '../rtsp/challenge.ts';
import type { Credentials } from '../rtsp/url.ts';
import type { StillAddress } from './address.ts';
import { StillError } from './error.ts';
import { imageTypeOf, MAGIC_BYTES } from './image-type.ts';

export interface FetchedImage {
  /** Its media type, by its bytes. */
  readonly type: string;
  readonly body: Buffer;
}

/** The largest picture of a camera with 30 megapixels has half of it. */
const MAX_IMAGE_BYTES = 16 * 1024 * 1024;
/** A camera that is gone: the next question must not wait for the connection of this one. */
const CONNECT_TIMEOUT_MS = 9_000;
const MAX_REDIRECTS = 3;
/** A nonce can be stale when it comes back, once. */
const MAX_LOGINS = 3;

/** What cameras are asked with; close it to end what is under way. */
export const openAgent = (verify: boolean): Agent =>
  new Agent({
    pipelining: 0,
    // The caller's signal is the bound for all of it together.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: CONNECT_TIMEOUT_MS,
      rejectUnauthorized: verify,
      // As for rtsps: old cameras are still better off with this than without.
      ...(verify ? {} : { minVersion: 'TLSv1', ciphers: 'DEFAULT:@SECLEVEL=0' }),
    },
  });

type Answer = Awaited<ReturnType<typeof request>>;

/** Throws StillError, or the reason of `signal`. */
export async function fetchImage(
  { url, credentials }: StillAddress,
  agent: Agent,
  signal: AbortSignal,
): Promise<FetchedImage> {
  let target = url;
  let login: Authorizer | undefined;
  let logins = 0;
  let redirects = 0;
  for (;;) {
    const answer = await ask(target, login, agent, signal);
    const { statusCode: status, headers } = answer;
    if (status === 200) return readImage(answer, signal);
    // Nothing of the body is of use, and it may have no end.
    answer.body.on('error', () => {}).destroy();
    if (status === 401) {
      login = nextLogin(headers, credentials, login);
      if (++logins > MAX_LOGINS) throw refused('the camera asks for a login again and again');
    } else if (isRedirect(status)) {
      if (++redirects > MAX_REDIRECTS) throw new StillError('camera-error', 'the camera redirects again and again');
      target = redirected(target, headers.location);
    } else throw new StillError('camera-error', `the camera answered ${status}`);
  }
}

async function ask(url: URL, login: Authorizer | undefined, agent: Agent, signal: AbortSignal): Promise<Answer> {
  try {
    return await request(url, {
      dispatcher: agent,
      signal,
      headers: {
        accept: 'image/*, */*;q=0.5',
        'user-agent': 'kube-nvr',
        ...(login ? { authorization: login.authorize('GET', url.pathname + url.search) } : {}),
      },
    });
  } catch (err) {
    throw failure(err, signal);
  }
}

async function readImage({ body, headers }: Answer, signal: AbortSignal): Promise<FetchedImage> {
  const chunks: Buffer[] = [];
  let size = 0;
  let type: string | undefined;
  try {
    if (Number(headers['content-length']) > MAX_IMAGE_BYTES) throw tooLarge();
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_IMAGE_BYTES) throw tooLarge();
      // At once: a page, or a stream of pictures, may go on for ever.
      if (type === undefined && size >= MAGIC_BYTES) type = checkedType(chunks);
    }
    return { type: type ?? checkedType(chunks), body: Buffer.concat(chunks) };
  } catch (err) {
    throw failure(err, signal);
  } finally {
    body.on('error', () => {}).destroy();
  }
}

function checkedType(chunks: readonly Buffer[]): string {
  const type = imageTypeOf(Buffer.concat(chunks));
  if (type === undefined) throw new StillError('not-an-image', 'the camera answered with something that is no image');
  return type;
}

function nextLogin(
  headers: IncomingHttpHeaders,
  credentials: Credentials | undefined,
  before: Authorizer | undefined,
): Authorizer {
  const lines = headers['www-authenticate'] ?? [];
  const challenge = strongest(parseChallenges(typeof lines === 'string' ? [lines] : lines));
  if (!challenge) throw refused('the camera asks for a login in a way that is not known');
  if (!credentials) throw refused('the camera asks for a login, and neither snapshot nor source has one');
  const isStale = challenge.scheme === 'digest' && challenge.stale;
  if (before && !isStale) throw refused('the camera refused user or password');
  return new Authorizer(challenge, credentials);
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

/**
 * Only to the camera itself: to where it was asked, or to https on the same host. Behind one address with many ports
 * there are many cameras, and whoever can answer for a camera must not make the recorder ask others.
 */
function redirected(from: URL, location: string | string[] | undefined): URL {
  const text = typeof location === 'string' ? location : location?.[0];
  if (text === undefined || !URL.canParse(text, from.href)) {
    throw new StillError('camera-error', 'the camera redirects to nowhere');
  }
  const to = new URL(text, from);
  const isUpgrade = from.protocol === 'http:' && to.protocol === 'https:' && to.hostname === from.hostname;
  if (to.origin !== from.origin && !isUpgrade) {
    throw new StillError('redirected-elsewhere', 'the camera redirects to another host, port or scheme');
  }
  to.username = '';
  to.password = '';
  return to;
}

const refused = (message: string): StillError => new StillError('camera-refused-login', message);

const tooLarge = (): StillError =>
  new StillError('image-too-large', `the image is larger than ${MAX_IMAGE_BYTES / 1024 / 1024} MiB`);

/** What the client throws, as the camera's fault. */
function failure(err: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (err instanceof StillError) return err;
  if (err instanceof errors.ConnectTimeoutError) {
    const seconds = CONNECT_TIMEOUT_MS / 1000;
    return new StillError('camera-timeout', `the camera did not take a connection within ${seconds} s`, { cause: err });
  }
  const code = codeOf(err);
  const isProtocol = err instanceof errors.HTTPParserError || err instanceof errors.ResponseContentLengthMismatchError;
  if (isProtocol) return new StillError('camera-error', `the camera's answer is broken (${code})`, { cause: err });
  return new StillError('camera-unreachable', `the camera cannot be reached: ${code}`, { cause: err });
}

function codeOf(err: unknown): string {
  const one: unknown = err instanceof AggregateError ? err.errors[0] : err;
  if (!(one instanceof Error)) return 'failed';
  return 'code' in one && typeof one.code === 'string' ? one.code : one.name;
}
