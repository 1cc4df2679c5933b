// Typed calls of one camera's ONVIF services. The connection (clock offset and services) is set up by the first call and kept
// until `forget`. Every call ends with a value, an `OnvifError`, or the reason of its signal.

import type { Clock } from '../../base/clock.ts';
import { printable } from '../../base/printable.ts';
import type { Reach } from '../reach/reach.ts';
import { OnvifError } from './error.ts';
import { Exchange } from './exchange.ts';
import type { OnvifRequest, Operation } from './request.ts';
import { capabilityPaths, servicePaths, type ServicePaths } from './services.ts';
import { formatEnvelope } from './soap.ts';
import type { OnvifTarget, Credentials } from './target.ts';
import { at, childOf, childrenOf, escapeXml, textAt, type XmlElement } from '../../base/xml.ts';
import { createHash, randomBytes } from 'node:crypto';

const WSS = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss';

export interface DeviceInformation {
  readonly manufacturer: string;
  readonly model: string;
  readonly firmware: string;
  readonly serial: string;
}

export interface Profile {
  /** As stated by the camera. */
  readonly token: string;
  readonly name: string;
  /** Identifies the sensor or input of the picture; undefined if not stated. */
  readonly sourceToken: string | undefined;
  /** Identifies how that picture is taken; events may name it instead of the input. */
  readonly sourceConfiguration: string | undefined;
  readonly video: VideoEncoding | undefined;
  readonly movable: boolean;
}

interface VideoEncoding {
  /** Such as `H264`, `H265`, `JPEG`. */
  readonly codec: string;
  readonly width: number;
  readonly height: number;
  /** Undefined if not stated. */
  readonly framesPerSecond: number | undefined;
}

export interface Preset {
  readonly token: string;
  readonly name: string;
}

/** Each from -1 to 1; an axis that is left out keeps its motion. */
export interface Velocity {
  readonly panTilt: { readonly x: number; readonly y: number } | undefined;
  readonly zoom: number | undefined;
}

const MAX_PROFILES = 256;
const MAX_PRESETS = 1000;
/** Limit for the token of a profile or preset (ReferenceToken of ONVIF: at most 64 characters). */
const MAX_TOKEN = 256;

/** What was learnt about a camera while connecting. */
interface Connection {
  /** The camera's clock minus ours. */
  readonly clockOffsetMs: number;
  readonly paths: ServicePaths;
}

const NO_CONNECTION: Connection = { clockOffsetMs: 0, paths: new Map() };

export class OnvifClient {
  readonly #target: OnvifTarget;
  readonly #clock: Clock;
  readonly #reach: Reach;
  #exchange: Exchange;
  #connection: Connection | undefined;
  #movable: string | undefined;
  /** Cameras of Bosch and others refuse a move with a timeout. */
  #refusesTimeout = false;
  #movesSent = 0;

  constructor(target: OnvifTarget, deps: { readonly clock: Clock; readonly reach: Reach }) {
    this.#target = target;
    this.#clock = deps.clock;
    this.#reach = deps.reach;
    this.#exchange = new Exchange(target, deps.reach);
  }

  /** Whether the next call needs no connection setup. */
  get connected(): boolean {
    return this.#connection !== undefined;
  }

  /** How many move commands were sent, whether or not the camera got them. */
  get movesSent(): number {
    return this.#movesSent;
  }

  /** The next call sets up a new connection. */
  forget(): void {
    this.#exchange = new Exchange(this.#target, this.#reach);
    this.#connection = undefined;
    this.#movable = undefined;
  }

  async information(signal: AbortSignal): Promise<DeviceInformation> {
    const answer = await this.#call(signal, (cam, ignore) => cam.getDeviceInformation(ignore));
    const text = (name: string): string => printable(textAt(answer, name) ?? '', 64);
    return {
      manufacturer: text('Manufacturer'),
      model: text('Model'),
      firmware: text('FirmwareVersion'),
      serial: text('SerialNumber'),
    };
  }

  async profiles(signal: AbortSignal): Promise<readonly Profile[]> {
    const answer = await this.#call(signal, (cam, ignore) => cam.getProfiles(ignore));
    return childrenOf(answer, 'Profiles')
      .slice(0, MAX_PROFILES)
      .map(toProfile)
      .filter((profile) => profile !== undefined);
  }

  /** As stated by the camera; not validated. */
  async streamUri(profileToken: string, signal: AbortSignal): Promise<string | undefined> {
    const options = { profileToken: escapeXml(profileToken), protocol: 'RTSP' };
    const answer = await this.#call(signal, (cam, ignore) => cam.getStreamUri(options, ignore));
    return textAt(answer, 'MediaUri', 'Uri') ?? textAt(answer, 'Uri');
  }

  /** As stated by the camera; not validated. */
  async snapshotUri(profileToken: string, signal: AbortSignal): Promise<string | undefined> {
    const options = { profileToken: escapeXml(profileToken) };
    const answer = await this.#call(signal, (cam, ignore) => cam.getSnapshotUri(options, ignore));
    return textAt(answer, 'MediaUri', 'Uri') ?? textAt(answer, 'Uri');
  }

  /** `endsAfterMs`: the camera stops by itself after this time, if it can. */
  async move({ panTilt, zoom }: Velocity, endsAfterMs: number, signal: AbortSignal): Promise<void> {
    const profileToken = await this.#movableProfile(signal);
    const options = {
      profileToken,
      ...(panTilt ? panTilt : { onlySendZoom: true }),
      ...(zoom === undefined ? { onlySendPanTilt: true } : { zoom }),
    };
    const start = (timeout: number | undefined) =>
      this.#call(signal, (cam, ignore) => cam.continuousMove({ ...options, ...(timeout ? { timeout } : {}) }, ignore));
    this.#movesSent++;
    if (this.#refusesTimeout) return void (await start(undefined));
    try {
      await start(endsAfterMs);
    } catch (err) {
      if (!(err instanceof OnvifError && err.code === 'fault' && /time-?\s?out/i.test(err.message))) throw err;
      await start(undefined);
      this.#refusesTimeout = true;
    }
  }

  async stop(signal: AbortSignal): Promise<void> {
    const profileToken = await this.#movableProfile(signal);
    await this.#call(signal, (cam, ignore) => cam.stop({ profileToken, panTilt: true, zoom: true }, ignore));
  }

  async presets(signal: AbortSignal): Promise<readonly Preset[]> {
    const profileToken = await this.#movableProfile(signal);
    const answer = await this.#call(signal, (cam, ignore) => cam.getPresets({ profileToken }, ignore));
    return childrenOf(answer, 'Preset')
      .map((preset) => ({ token: preset.attributes.get('token') ?? '', name: textAt(preset, 'Name') ?? '' }))
      .filter(({ token }) => token !== '' && token.length <= MAX_TOKEN)
      .slice(0, MAX_PRESETS)
      .map(({ token, name }) => ({ token, name: printable(name || token, 100) }));
  }

  /** `speed`: 0 to 1; undefined: the camera's default. */
  async gotoPreset(preset: string, speed: number | undefined, signal: AbortSignal): Promise<void> {
    const profileToken = await this.#movableProfile(signal);
    const options = {
      profileToken,
      preset: escapeXml(preset),
      ...(speed === undefined ? {} : { speed: { x: speed, y: speed, zoom: speed } }),
    };
    await this.#call(signal, (cam, ignore) => cam.gotoPreset(options, ignore));
  }

  /** The names of the camera's services, such as `media` and `replay`. */
  async services(signal: AbortSignal): Promise<ReadonlySet<string>> {
    this.#connection ??= await this.#connect(signal);
    return new Set(this.#connection.paths.keys());
  }

  /** The time that the camera states now, in whole seconds as milliseconds since 1970; undefined if it states none. */
  async statedTime(signal: AbortSignal): Promise<number | undefined> {
    return readDateAndTime(childOf(await this.#dateAndTime(signal), 'SystemDateAndTime'));
  }

  /** The content of the response to an operation of the package, or to one that it does not have. */
  async ask(request: Operation | OnvifRequest, signal: AbortSignal): Promise<XmlElement> {
    return this.#call(signal, request);
  }

  async #call(signal: AbortSignal, operation: Operation | OnvifRequest): Promise<XmlElement> {
    this.#connection ??= await this.#connect(signal);
    return this.#ask(this.#connection, operation, signal);
  }

  /** Sends one operation with the configured login, dated with the camera's clock. */
  #ask(
    { clockOffsetMs, paths }: Connection,
    operation: Operation | OnvifRequest,
    signal: AbortSignal,
  ): Promise<XmlElement> {
    const { credentials } = this.#target;
    const security = credentials ? securityHeader(credentials, this.#clock.wallMs() + clockOffsetMs) : undefined;
    return this.#send(operation, paths, security, signal);
  }

  async #send(
    operation: Operation | OnvifRequest,
    paths: ServicePaths,
    security: string | undefined,
    signal: AbortSignal,
  ): Promise<XmlElement> {
    const request = typeof operation === 'function' ? await built(operation, paths.has('media2')) : operation;
    const path = request.path ?? (request.service === 'device' ? this.#target.path : paths.get(request.service));
    if (path === undefined) throw new OnvifError('fault', `the camera has no service "${request.service}"`);
    const body = formatEnvelope(request.operation, (security ?? '') + (request.header ?? ''));
    return this.#exchange.ask({ path, action: request.action, body }, signal);
  }

  /** Reads the camera's clock first, because messages with a wrong time are refused. */
  async #connect(signal: AbortSignal): Promise<Connection> {
    const clockOffsetMs = await this.#clockOffset(signal);
    return { clockOffsetMs, paths: await this.#servicePaths({ clockOffsetMs, paths: new Map() }, signal) };
  }

  async #clockOffset(signal: AbortSignal): Promise<number> {
    let answer: XmlElement;
    try {
      answer = await this.#dateAndTime(signal);
    } catch (err) {
      // A camera that does not state its time may have the right one; a wrong login shows in the next call.
      if (err instanceof OnvifError && (err.code === 'fault' || err.code === 'unauthorized')) return 0;
      throw err;
    }
    const cameraMs = readDateAndTime(childOf(answer, 'SystemDateAndTime'));
    return cameraMs === undefined ? 0 : cameraMs - this.#clock.wallMs();
  }

  /** Without a login, as ONVIF wants it; some cameras of Panasonic and others require one. */
  async #dateAndTime(signal: AbortSignal): Promise<XmlElement> {
    const operation: Operation = (cam, ignore) => cam.getSystemDateAndTime(ignore);
    try {
      return await this.#send(operation, NO_CONNECTION.paths, undefined, signal);
    } catch (err) {
      if (!(err instanceof OnvifError && err.code === 'unauthorized')) throw err;
      return this.#ask(NO_CONNECTION, operation, signal);
    }
  }

  /** GetServices, or GetCapabilities for cameras older than ONVIF 2.1. */
  async #servicePaths(connection: Connection, signal: AbortSignal): Promise<ServicePaths> {
    try {
      const answer = await this.#ask(connection, (cam, ignore) => cam.getServices(false, ignore), signal);
      const paths = servicePaths(answer);
      if (paths.size > 0) return paths;
    } catch (err) {
      if (!(err instanceof OnvifError && (err.code === 'fault' || err.code === 'bad-answer'))) throw err;
    }
    return capabilityPaths(await this.#ask(connection, (cam, ignore) => cam.getCapabilities(ignore), signal));
  }

  /** The escaped token of the first profile with PTZ. */
  async #movableProfile(signal: AbortSignal): Promise<string> {
    if (this.#movable !== undefined) return this.#movable;
    let profiles: readonly Profile[] = [];
    const movable = (profile: Profile): boolean => profile.movable;
    try {
      profiles = await this.profiles(signal);
    } catch (err) {
      if (!(err instanceof OnvifError && err.code === 'fault')) throw err;
      if (!this.#connection?.paths.has('media2')) throw err;
    }
    // D-Link DCS-8635LH and others list a second media service that fails or does not know about PTZ.
    if (!profiles.some(movable) && this.#leaveMedia2()) profiles = await this.profiles(signal);
    if (this.#connection?.paths.has('ptz') === false) {
      throw new OnvifError('no-ptz', 'the camera cannot be moved: it has no PTZ service');
    }
    const chosen = profiles.find(movable);
    if (!chosen) throw new OnvifError('no-ptz', 'the camera cannot be moved: none of its profiles has PTZ');
    this.#movable = escapeXml(chosen.token);
    return this.#movable;
  }

  /** Uses the older media service from now on; false if there is none. */
  #leaveMedia2(): boolean {
    const connection = this.#connection;
    if (!connection?.paths.has('media2') || !connection.paths.has('media')) return false;
    const paths = new Map(connection.paths);
    paths.delete('media2');
    this.#connection = { ...connection, paths };
    return true;
  }
}

/** ONVIF Core Specification §8.4.1: UTC, or local time for cameras that state nothing else. Undefined if invalid. */
function readDateAndTime(element: XmlElement | undefined): number | undefined {
  const moment = childOf(element, 'UTCDateTime') ?? childOf(element, 'LocalDateTime');
  const number = (...path: string[]): number => Number(textAt(moment, ...path) ?? NaN);
  const date = [number('Date', 'Year'), number('Date', 'Month') - 1, number('Date', 'Day')] as const;
  const time = [number('Time', 'Hour'), number('Time', 'Minute'), number('Time', 'Second')] as const;
  const ms = Date.UTC(...date, ...time);
  // Other years do not have four digits.
  return ms > Date.UTC(1970) && ms < Date.UTC(9999) ? ms : undefined;
}

function toProfile(element: XmlElement): Profile | undefined {
  const token = element.attributes.get('token') ?? '';
  if (token === '' || token.length > MAX_TOKEN) return undefined;
  // Media2 (ver20) has the parts of a profile one level deeper, with shorter names.
  const parts = childOf(element, 'Configurations') ?? element;
  const part = (name: string): XmlElement | undefined => childOf(parts, `${name}Configuration`) ?? childOf(parts, name);
  return {
    token,
    name: printable(textAt(element, 'Name') ?? token, 64),
    sourceToken: textAt(part('VideoSource'), 'SourceToken'),
    sourceConfiguration: part('VideoSource')?.attributes.get('token'),
    video: toVideo(part('VideoEncoder')),
    movable: part('PTZ') !== undefined,
  };
}

function toVideo(encoder: XmlElement | undefined): VideoEncoding | undefined {
  const codec = textAt(encoder, 'Encoding');
  if (codec === undefined) return undefined;
  const size = at(encoder, 'Resolution');
  const number = (text: string | undefined): number => {
    const value = Number(text ?? 0);
    return Number.isFinite(value) && value > 0 && value < 1e6 ? value : 0;
  };
  return {
    codec: printable(codec, 16),
    width: Math.round(number(textAt(size, 'Width'))),
    height: Math.round(number(textAt(size, 'Height'))),
    framesPerSecond: number(textAt(encoder, 'RateControl', 'FrameRateLimit')) || undefined,
  };
}

/** The package behind it is loaded for the first camera that is asked: most nodes ask none. */
async function built(operation: Operation, media2: boolean): Promise<OnvifRequest> {
  const { buildRequest } = await import('./request.ts');
  return buildRequest(operation, media2);
}

interface DigestInput {
  readonly nonce: Buffer;
  /** As in the element `Created`. */
  readonly created: string;
  readonly password: string;
}

/** Base64 of the SHA-1 of nonce, time and password. */
function passwordDigest({ nonce, created, password }: DigestInput): string {
  return createHash('sha1').update(nonce).update(created).update(password, 'utf8').digest('base64');
}

/**
 * `cameraMs`: the current time on the camera's clock; cameras refuse old messages to prevent replays. `mustUnderstand` is left
 * out, because cameras with HTTP Digest only would have to refuse the header.
 */
function securityHeader({ username, password }: Credentials, cameraMs: number): string {
  const nonce = randomBytes(16);
  const created = new Date(cameraMs).toISOString();
  const digest = passwordDigest({ nonce, created, password });
  return (
    `<Security xmlns="${WSS}-wssecurity-secext-1.0.xsd"><UsernameToken>` +
    `<Username>${escapeXml(username)}</Username>` +
    `<Password Type="${WSS}-username-token-profile-1.0#PasswordDigest">${digest}</Password>` +
    `<Nonce EncodingType="${WSS}-soap-message-security-1.0#Base64Binary">${nonce.toString('base64')}</Nonce>` +
    `<Created xmlns="${WSS}-wssecurity-utility-1.0.xsd">${created}</Created>` +
    `</UsernameToken></Security>`
  );
}
