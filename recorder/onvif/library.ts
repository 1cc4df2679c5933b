// Our wrapper of the package `onvif`. We use only its knowledge of requests: operations of both media services, the PTZ service,
// and where a device lists its services. `Exchange` sends the requests and we parse the responses, because the package's own
// transport has no size limit, may never call back when a connection breaks within a response, and converts every token or
// version that looks like a number to one. Its code runs only inside `invoke`, which catches everything it throws, so that it can
// neither end the process nor leave a caller waiting.

import onvif from 'onvif';
import { OnvifError } from './error.ts';
import type { Exchange } from './exchange.ts';
import { securityHeader } from './security.ts';
import type { OnvifTarget } from './target.ts';
import type { XmlElement } from './xml.ts';

/** What was learnt about a camera while connecting. */
export interface Connection {
  /** The camera's clock minus ours. */
  readonly clockOffsetMs: number;
  /** Paths of the services by the package's names: `media`, `media2`, `ptz`, … The hosts that a camera states are dropped. */
  readonly paths: ReadonlyMap<string, string>;
}

interface RequestOptions {
  readonly body: string;
  readonly service?: string;
}

/** How a request ends for the package; for an error it also examines the text. */
type RequestCallback = (error: Error, data: undefined, text: string) => void;

export interface Context {
  readonly target: OnvifTarget;
  readonly exchange: Exchange;
  readonly connection: Connection;
  readonly wallMs: () => number;
}

interface Outcome {
  readonly resolve: (content: XmlElement) => void;
  readonly reject: (error: unknown) => void;
}

const ENVELOPE = '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope">';

/** The package's camera with two methods replaced: the header of the envelope and the transport. Used for one operation. */
class Cam extends onvif.Cam {
  readonly #context: Context;
  readonly #signal: AbortSignal;
  readonly #outcome: Outcome;
  /** The camera's own error, where the package replaces it by another one. */
  failure: unknown;

  constructor(context: Context, signal: AbortSignal, outcome: Outcome) {
    const { host, port, path } = context.target;
    super({ hostname: host, port, path, autoconnect: false });
    this.#context = context;
    this.#signal = signal;
    this.#outcome = outcome;
    this.media2Support = context.connection.paths.has('media2');
  }

  /**
   * Overridden for UTF-8 passwords, escaped names, random nonces, and the camera's clock even where the camera does not state it.
   */
  _envelopeHeader(open?: boolean): string {
    const { target, connection, wallMs } = this.#context;
    const security = target.credentials ? securityHeader(target.credentials, wallMs() + connection.clockOffsetMs) : '';
    const header = `${ENVELOPE}<s:Header>${security}`;
    return open === true ? header : `${header}</s:Header><s:Body>`;
  }

  /** Overridden. A response is the outcome; after an error the package may try in another way. */
  _request({ body, service }: RequestOptions, callback: RequestCallback): void {
    this.#ask(body, service).then(this.#outcome.resolve, (error: unknown) => {
      this.failure = error;
      const text = error instanceof OnvifError ? error.code : '';
      try {
        callback.call(this, error instanceof Error ? error : new Error('aborted'), undefined, text);
      } catch {
        this.#outcome.reject(error);
      }
    });
  }

  async #ask(body: string, service: string | undefined): Promise<XmlElement> {
    const { target, exchange, connection } = this.#context;
    const path = service === undefined ? target.path : connection.paths.get(service);
    if (path === undefined) throw new OnvifError('fault', `the camera has no service "${service}"`);
    const operation = /<s:Body[^>]*><(\w+) xmlns="([^"]+)"/.exec(body);
    const action = operation ? `${operation[2]}/${operation[1]}` : '';
    return exchange.ask({ path, action, body }, this.#signal);
  }
}

export type OnvifOperations = Pick<
  InstanceType<typeof onvif.Cam>,
  | 'getSystemDateAndTime'
  | 'getServices'
  | 'getCapabilities'
  | 'getDeviceInformation'
  | 'getProfiles'
  | 'getStreamUri'
  | 'getSnapshotUri'
  | 'continuousMove'
  | 'stop'
  | 'getPresets'
  | 'gotoPreset'
>;

/** Called by the package at the end; the outcome of a success is known before. */
export type Done = (error?: Error | null) => void;

/**
 * Runs one operation of the package; resolves with the first element of the response body. Rejects with an `OnvifError` or the
 * reason of `signal`.
 */
export function invoke(
  context: Context,
  signal: AbortSignal,
  start: (cam: OnvifOperations, done: Done) => void,
): Promise<XmlElement> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    // Also if the package forgot to call back.
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    const outcome: Outcome = {
      resolve: (content) => {
        signal.removeEventListener('abort', abort);
        resolve(content);
      },
      reject: (error) => {
        signal.removeEventListener('abort', abort);
        reject(error);
      },
    };
    const cam = new Cam(context, signal, outcome);
    start(cam, (error) => {
      if (error) outcome.reject(cam.failure ?? error);
    });
  });
}
