// Sends SOAP messages to a camera over HTTP or HTTPS with Digest login (ONVIF Core Specification §5.9). Only the target's host
// and port are contacted, redirects are not followed, and the size of a response is limited.

import { request as requestHttp, type RequestOptions } from 'node:http';
import { messageOf } from '../../base/error.ts';
import { hostInUrl } from '../../base/host.ts';
import { readBody } from '../../base/http-answer.ts';
import { printable } from '../../base/printable.ts';
import { CertificateRefused, connectCamera } from '../reach/connect.ts';
import { AddressRefused } from '../reach/networks.ts';
import type { Reach } from '../reach/reach.ts';
import { Login, LoginError } from '../rtsp/login.ts';
import { LoginRefused, OnvifError } from './error.ts';
import { readEnvelope } from './soap.ts';
import type { OnvifTarget } from './target.ts';
import { MAX_XML_CHARACTERS, XmlError, type XmlElement } from './xml.ts';

interface Message {
  readonly path: string;
  /** `<namespace>/<operation>`. */
  readonly action: string;
  readonly body: string;
}

interface Answer {
  readonly status: number;
  readonly challenges: readonly string[];
  readonly text: string;
}

/** Sends messages to one camera. Once a Digest challenge was answered, later requests answer it in advance. */
export class Exchange {
  readonly #target: OnvifTarget;
  readonly #reach: Reach;
  readonly #login: Login;

  constructor(target: OnvifTarget, reach: Reach) {
    this.#target = target;
    this.#reach = reach;
    // Basic would send the password in clear text; ONVIF does not use it.
    this.#login = new Login({ ...target, basic: 'never' });
  }

  /** The first element of the response body. Throws `OnvifError`, or the signal's reason when it aborts. */
  async ask(message: Message, signal: AbortSignal): Promise<XmlElement> {
    let answer = await this.#post(message, signal);
    if (answer.status === 401 && this.#takes(answer.challenges)) answer = await this.#post(message, signal);
    return readAnswer(answer);
  }

  /** Whether the challenges can be answered by another request. */
  #takes(challenges: readonly string[]): boolean {
    try {
      this.#login.take(challenges);
      return true;
    } catch (err) {
      if (err instanceof LoginError) return false;
      throw err;
    }
  }

  async #post({ path, action, body }: Message, signal: AbortSignal): Promise<Answer> {
    const { host, port } = this.#target;
    const authorization = this.#login.authorize('POST', path);
    const options: RequestOptions = {
      host,
      port,
      path,
      method: 'POST',
      // A new connection for each request, because cheap cameras forget idle ones.
      createConnection: () => connectCamera(this.#target, this.#reach.networks),
      signal,
      headers: {
        host: `${hostInUrl(host.replace(/%.*/, ''))}:${port}`,
        'content-type': `application/soap+xml; charset=utf-8; action="${action}"`,
        'content-length': Buffer.byteLength(body),
        connection: 'close',
        ...(authorization === undefined ? {} : { authorization }),
      },
    };
    try {
      return await send(options, body);
    } catch (err) {
      throw signal.aborted ? (signal.reason as unknown) : connectionError(err);
    }
  }
}

function send(options: RequestOptions, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = requestHttp(options);
    request.on('error', reject);
    request.on('response', (response) => {
      readBody(response, MAX_XML_CHARACTERS, tooLong)
        .then((body) => {
          const challenges = response.headersDistinct['www-authenticate'] ?? [];
          resolve({ status: response.statusCode ?? 0, challenges, text: body.toString('utf8') });
        })
        .catch(reject)
        .finally(() => request.destroy());
    });
    request.end(body);
  });
}

const tooLong = (): OnvifError => new OnvifError('bad-answer', 'the camera sent too long an answer');

function readAnswer({ status, text }: Answer): XmlElement {
  try {
    const content = readEnvelope(text);
    if (status >= 200 && status < 300) return content;
  } catch (err) {
    if (!(err instanceof XmlError)) throw err;
    if (status >= 200 && status < 300) {
      throw new OnvifError('bad-answer', `the camera sent an answer that is no SOAP: ${err.message}`, { cause: err });
    }
  }
  const refused = `the camera refuses the login (HTTP ${status})`;
  if (status === 401) throw new LoginRefused(refused);
  if (status === 403) throw new OnvifError('unauthorized', refused);
  throw new OnvifError('bad-answer', `the camera answered HTTP ${status}`);
}

const SYSTEM_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses the connection',
  ECONNRESET: 'it closed the connection',
  EHOSTUNREACH: 'there is no route to its host',
  ENETUNREACH: 'there is no route to its network',
  ENOTFOUND: 'its name cannot be found',
  EAI_AGAIN: 'its name cannot be looked up',
  ETIMEDOUT: 'it does not answer',
};

function connectionError(err: unknown): OnvifError {
  if (err instanceof OnvifError) return err;
  if (err instanceof AddressRefused) return new OnvifError('address-refused', err.message, { cause: err });
  const code = err instanceof Error && 'code' in err ? String(err.code) : '';
  // Responses that Node's HTTP parser rejects, and paths that are not allowed in a request line.
  if (code.startsWith('HPE_') || code === 'ERR_UNESCAPED_CHARACTERS') {
    return new OnvifError('bad-answer', `the camera does not speak HTTP as it should (${code})`, { cause: err });
  }
  const words =
    SYSTEM_WORDS[code] ??
    (err instanceof CertificateRefused ? err.message : undefined) ??
    printable(messageOf(err), 100);
  return new OnvifError('unreachable', `the camera cannot be reached: ${words}`, { cause: err });
}
