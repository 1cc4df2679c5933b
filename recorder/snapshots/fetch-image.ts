// Fetches a camera's still image: Basic and Digest logins, redirects within the camera, and nothing that the camera states is
// trusted.

import type { IncomingHttpHeaders } from 'undici/types/header.d.ts';
import { errors, request, type Agent } from 'undici';
import { errorCode, firstError } from '../../base/error.ts';
import { isRedirect } from '../../base/http-answer.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import { CertificateRefused, type CameraTls } from '../reach/connect.ts';
import { CONNECT_TIMEOUT_MS, openCameraClient } from '../reach/http.ts';
import { AddressRefused } from '../reach/networks.ts';
import type { Reach } from '../reach/reach.ts';
import { LoginError, type Login } from '../rtsp/login.ts';
import { staysAtCamera, type Origin } from '../rtsp/origin.ts';
import { StillError } from './error.ts';
import { imageTypeOf, MAGIC_BYTES } from './image-type.ts';

export interface FetchedImage {
  /** Its media type, determined from its bytes. */
  readonly type: string;
  readonly body: Buffer;
}

/** The largest picture of a 30-megapixel camera has half of this. */
const MAX_IMAGE_BYTES = 16 * 1024 * 1024;
const MAX_REDIRECTS = 3;
/** A nonce can be stale once when it is used. */
const MAX_LOGINS = 3;

/** The HTTP client for the still images of a camera; destroy it when it is no longer needed. */
export const openAgent = (tls: CameraTls, { networks }: Reach): Agent =>
  openCameraClient(({ hostname: host, port, protocol }) => {
    const secure = protocol === 'https:';
    return { host, port: Number(port) || (secure ? 443 : 80), secure, tls };
  }, networks);

type ImageResponse = Awaited<ReturnType<typeof request>>;

/** Throws StillError, or the reason of `signal`. */
export async function fetchImage(
  url: URL,
  loginAt: (place: Origin) => Login,
  agent: Agent,
  memory: MemoryAccount,
  signal: AbortSignal,
): Promise<FetchedImage> {
  let target = url;
  let login = loginAt(originOf(url));
  let logins = 0;
  let redirects = 0;
  for (;;) {
    const answer = await ask(target, login, agent, signal);
    const { statusCode: status, headers } = answer;
    if (status === 200) {
      login.accepted();
      return readImage(answer, memory, signal);
    }
    // The body is useless and may be endless.
    answer.body.on('error', () => {}).destroy();
    if (status === 401) {
      takeChallenge(headers, login, ++logins);
    } else if (isRedirect(status)) {
      if (++redirects > MAX_REDIRECTS) throw new StillError('camera-error', 'the camera redirects too often');
      const from = target;
      target = redirected(from, headers.location);
      if (target.protocol !== from.protocol) {
        login.ledToTls();
        login = loginAt(originOf(target));
      }
    } else throw new StillError('camera-error', `the camera answered ${status}`);
  }
}

async function ask(url: URL, login: Login, agent: Agent, signal: AbortSignal): Promise<ImageResponse> {
  const authorization = login.authorize('GET', url.pathname + url.search);
  try {
    return await request(url, {
      dispatcher: agent,
      signal,
      headers: {
        accept: 'image/*, */*;q=0.5',
        'user-agent': 'kube-nvr',
        ...(authorization === undefined ? {} : { authorization }),
      },
    });
  } catch (err) {
    throw failure(err, signal);
  }
}

async function readImage(
  { body, headers }: ImageResponse,
  memory: MemoryAccount,
  signal: AbortSignal,
): Promise<FetchedImage> {
  const chunks: Buffer[] = [];
  let size = 0;
  let type: string | undefined;
  try {
    if (Number(headers['content-length']) > MAX_IMAGE_BYTES) throw tooLarge();
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (!memory.take(chunk.length)) {
        throw new StillError('too-many-thumbnails', 'memory is short: ask again in a while');
      }
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_IMAGE_BYTES) throw tooLarge();
      // Checked at once: a page or a stream of pictures may be endless.
      if (type === undefined && size >= MAGIC_BYTES) type = checkedType(chunks);
    }
    return { type: type ?? checkedType(chunks), body: Buffer.concat(chunks) };
  } catch (err) {
    throw failure(err, signal);
  } finally {
    memory.giveBack(size);
    body.on('error', () => {}).destroy();
  }
}

function checkedType(chunks: readonly Buffer[]): string {
  const type = imageTypeOf(Buffer.concat(chunks));
  if (type === undefined) throw new StillError('not-an-image', 'the camera did not answer with an image');
  return type;
}

/** Throws StillError if there is no login, or if it was refused. */
function takeChallenge(headers: IncomingHttpHeaders, login: Login, logins: number): void {
  const lines = headers['www-authenticate'] ?? [];
  const isRepeated = login.challenge !== undefined;
  try {
    login.checkRefused();
    const challenge = login.take(typeof lines === 'string' ? [lines] : lines);
    const isStale = challenge.scheme === 'digest' && challenge.stale;
    if ((!isRepeated || isStale) && logins <= MAX_LOGINS) return;
  } catch (err) {
    if (!(err instanceof LoginError)) throw err;
    if (err.code === 'none')
      throw refused('the camera asks for a login: neither snapshot has one, nor source on the same host');
    if (err.code === 'downgraded') throw new StillError('camera-login-downgraded', err.message, { cause: err });
    throw refused(err.message);
  }
  login.refused();
  throw refused('the camera refused user or password');
}

const originOf = ({ hostname: host, port, protocol }: URL): Origin => {
  const secure = protocol === 'https:';
  return { host, port: port === '' ? (secure ? 443 : 80) : Number(port), secure };
};

/** Only within the camera: its responses must not make the recorder contact other hosts. */
function redirected(from: URL, location: string | string[] | undefined): URL {
  const text = typeof location === 'string' ? location : location?.[0];
  if (text === undefined || !URL.canParse(text, from.href)) {
    throw new StillError('camera-error', 'the camera redirects without a valid address');
  }
  const to = new URL(text, from);
  if (!/^https?:$/.test(to.protocol) || !staysAtCamera(originOf(from), originOf(to))) {
    throw new StillError('redirected-elsewhere', 'the camera redirects to another host, port or scheme');
  }
  to.username = '';
  to.password = '';
  return to;
}

const refused = (message: string): StillError => new StillError('camera-refused-login', message);

const tooLarge = (): StillError =>
  new StillError('image-too-large', `the image is larger than ${MAX_IMAGE_BYTES / 1024 / 1024} MiB`);

/** Converts errors of the HTTP client to errors of the camera. */
function failure(err: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (err instanceof StillError) return err;
  if (err instanceof errors.ConnectTimeoutError) {
    const seconds = CONNECT_TIMEOUT_MS / 1000;
    return new StillError('camera-timeout', `the camera did not accept a connection within ${seconds} s`, {
      cause: err,
    });
  }
  if (err instanceof AddressRefused) {
    return new StillError('address-refused', 'cameraNetworks does not allow the address of snapshot', { cause: err });
  }
  if (err instanceof CertificateRefused) {
    return new StillError('camera-unreachable', `the camera cannot be reached: ${err.message}`, { cause: err });
  }
  const code = codeOf(err);
  const isProtocol = err instanceof errors.HTTPParserError || err instanceof errors.ResponseContentLengthMismatchError;
  if (isProtocol) return new StillError('camera-error', `the camera's answer is broken (${code})`, { cause: err });
  return new StillError('camera-unreachable', `the camera cannot be reached: ${code}`, { cause: err });
}

function codeOf(err: unknown): string {
  const one = firstError(err);
  return errorCode(one) ?? (one instanceof Error ? one.name : 'failed');
}
