// Sends SOAP messages to a camera over HTTP or HTTPS with Digest login (ONVIF Core Specification §5.9). Only the target's host
// and port are contacted, redirects are not followed, and the size of a response is limited.

import { errors, type Agent } from 'undici';
import { errorCode, messageOf } from '../../base/error.ts';
import { hostInUrl } from '../../base/host.ts';
import { readBody } from '../../base/http-answer.ts';
import { printable } from '../../base/printable.ts';
import { CertificateRefused } from '../reach/connect.ts';
import { openCameraClient } from '../reach/http.ts';
import { AddressRefused } from '../reach/networks.ts';
import type { Reach } from '../reach/reach.ts';
import { Login, LoginError } from '../rtsp/login.ts';
import { LoginRefused, OnvifError } from './error.ts';
import { readEnvelope } from './soap.ts';
import type { OnvifTarget } from './target.ts';
import { MAX_XML_CHARACTERS, XmlError, type XmlElement } from '../../base/xml.ts';

interface Message {
  readonly path: string;
  /** `<namespace>/<operation>`. */
  readonly action: string;
  readonly body: string;
}

interface SoapResponse {
  readonly status: number;
  readonly challenges: readonly string[];
  readonly text: string;
}

/** Sends messages to one camera. Once a Digest challenge was answered, later requests answer it in advance. */
export class Exchange {
  readonly #target: OnvifTarget;
  readonly #client: Agent;
  readonly #login: Login;

  constructor(target: OnvifTarget, reach: Reach) {
    this.#target = target;
    // It goes to the target whatever the origin of a request says, which has no zone.
    this.#client = openCameraClient(() => target, reach.networks);
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

  async #post({ path, action, body }: Message, signal: AbortSignal): Promise<SoapResponse> {
    const { secure, host, port } = this.#target;
    const authorization = this.#login.authorize('POST', path);
    try {
      const answer = await this.#client.request({
        origin: `${secure ? 'https' : 'http'}://${hostInUrl(host.replace(/%.*/, ''))}:${port}`,
        path,
        method: 'POST',
        headers: {
          'content-type': `application/soap+xml; charset=utf-8; action="${action}"`,
          ...(authorization === undefined ? {} : { authorization }),
        },
        body,
        signal,
      });
      const text = (await readBody(answer.body, MAX_XML_CHARACTERS, tooLong)).toString('utf8');
      const challenges = answer.headers['www-authenticate'] ?? [];
      return {
        status: answer.statusCode,
        challenges: typeof challenges === 'string' ? [challenges] : challenges,
        text,
      };
    } catch (err) {
      throw signal.aborted ? (signal.reason as unknown) : connectionError(err);
    }
  }
}

const tooLong = (): OnvifError => new OnvifError('bad-answer', 'the answer of the camera is too long');

function readAnswer({ status, text }: SoapResponse): XmlElement {
  try {
    const content = readEnvelope(text);
    if (status >= 200 && status < 300) return content;
  } catch (err) {
    if (!(err instanceof XmlError)) throw err;
    if (status >= 200 && status < 300) {
      throw new OnvifError('bad-answer', `the answer of the camera is not SOAP: ${err.message}`, { cause: err });
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
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
  UND_ERR_SOCKET: 'it closed the connection',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'it closed the connection',
};

function connectionError(err: unknown): OnvifError {
  if (err instanceof OnvifError) return err;
  if (err instanceof AddressRefused) return new OnvifError('address-refused', err.message, { cause: err });
  const code = errorCode(err) ?? '';
  // Responses that the HTTP parser rejects, and paths that are not allowed in a request line.
  if (err instanceof errors.HTTPParserError || err instanceof errors.InvalidArgumentError) {
    const what = printable(err.message, 100);
    return new OnvifError('bad-answer', `the camera does not speak HTTP as it should: ${what}`, { cause: err });
  }
  const words =
    SYSTEM_WORDS[code] ??
    (err instanceof CertificateRefused ? err.message : undefined) ??
    printable(messageOf(err), 100);
  return new OnvifError('unreachable', `the camera cannot be reached: ${words}`, { cause: err });
}
