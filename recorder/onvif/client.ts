// Typed calls of one camera's ONVIF services. The connection (clock offset and services) is set up by the first call and kept
// until `forget`. Every call ends with a value, an `OnvifError`, or the reason of its signal.

import type { Clock } from '../../base/clock.ts';
import type { Reach } from '../reach/reach.ts';
import { OnvifError } from './error.ts';
import { Exchange } from './exchange.ts';
import { invoke, type Connection, type Done, type OnvifOperations } from './library.ts';
import { printable } from './printable.ts';
import type { OnvifTarget } from './target.ts';
import { at, childOf, childrenOf, escapeXml, textAt, type XmlElement } from './xml.ts';

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
  readonly video: VideoEncoding | undefined;
  readonly movable: boolean;
}

export interface VideoEncoding {
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
    const answer = await this.#call(signal, (cam, done) => cam.getDeviceInformation(done));
    const text = (name: string): string => printable(textAt(answer, name) ?? '', 64);
    return {
      manufacturer: text('Manufacturer'),
      model: text('Model'),
      firmware: text('FirmwareVersion'),
      serial: text('SerialNumber'),
    };
  }

  async profiles(signal: AbortSignal): Promise<readonly Profile[]> {
    const answer = await this.#call(signal, (cam, done) => cam.getProfiles(done));
    return childrenOf(answer, 'Profiles')
      .slice(0, MAX_PROFILES)
      .map(toProfile)
      .filter((profile) => profile !== undefined);
  }

  /** As stated by the camera; not validated. */
  async streamUri(profileToken: string, signal: AbortSignal): Promise<string | undefined> {
    const options = { profileToken: escapeXml(profileToken), protocol: 'RTSP' };
    const answer = await this.#call(signal, (cam, done) => cam.getStreamUri(options, done));
    return textAt(answer, 'MediaUri', 'Uri') ?? textAt(answer, 'Uri');
  }

  /** As stated by the camera; not validated. */
  async snapshotUri(profileToken: string, signal: AbortSignal): Promise<string | undefined> {
    const options = { profileToken: escapeXml(profileToken) };
    const answer = await this.#call(signal, (cam, done) => cam.getSnapshotUri(options, done));
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
      this.#call(signal, (cam, done) => cam.continuousMove({ ...options, ...(timeout ? { timeout } : {}) }, done));
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
    await this.#call(signal, (cam, done) => cam.stop({ profileToken, panTilt: true, zoom: true }, done));
  }

  async presets(signal: AbortSignal): Promise<readonly Preset[]> {
    const profileToken = await this.#movableProfile(signal);
    const answer = await this.#call(signal, (cam, done) => cam.getPresets({ profileToken }, done));
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
    await this.#call(signal, (cam, done) => cam.gotoPreset(options, done));
  }

  async #call(signal: AbortSignal, start: (cam: OnvifOperations, done: Done) => void): Promise<XmlElement> {
    this.#connection ??= await this.#connect(signal);
    return this.#invoke(this.#connection, signal, start);
  }

  #invoke(
    connection: Connection,
    signal: AbortSignal,
    start: (cam: OnvifOperations, done: Done) => void,
  ): Promise<XmlElement> {
    const wallMs = () => this.#clock.wallMs();
    return invoke({ target: this.#target, exchange: this.#exchange, connection, wallMs }, signal, start);
  }

  /** Reads the camera's clock first, because messages with a wrong time are refused. */
  async #connect(signal: AbortSignal): Promise<Connection> {
    const clockOffsetMs = await this.#clockOffset(signal);
    const connection = { clockOffsetMs, paths: new Map<string, string>() };
    return { clockOffsetMs, paths: await this.#servicePaths(connection, signal) };
  }

  async #clockOffset(signal: AbortSignal): Promise<number> {
    let answer: XmlElement;
    try {
      answer = await this.#invoke(NO_CONNECTION, signal, (cam, done) => cam.getSystemDateAndTime(done));
    } catch (err) {
      // A camera that does not state its time may have the right one; a wrong login shows in the next call.
      if (err instanceof OnvifError && (err.code === 'fault' || err.code === 'unauthorized')) return 0;
      throw err;
    }
    const cameraMs = readDateAndTime(childOf(answer, 'SystemDateAndTime'));
    return cameraMs === undefined ? 0 : cameraMs - this.#clock.wallMs();
  }

  /** GetServices, or GetCapabilities for cameras older than ONVIF 2.1. */
  async #servicePaths(connection: Connection, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    try {
      const answer = await this.#invoke(connection, signal, (cam, done) => cam.getServices(false, done));
      const paths = servicesOf(answer);
      if (paths.size > 0) return paths;
    } catch (err) {
      if (!(err instanceof OnvifError && (err.code === 'fault' || err.code === 'bad-answer'))) throw err;
    }
    return capabilitiesOf(await this.#invoke(connection, signal, (cam, done) => cam.getCapabilities(done)));
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

/** The path of an address from the camera, whatever host it names. */
function pathOf(address: string | undefined): string | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined;
  const { protocol, pathname, search } = new URL(address);
  return protocol === 'http:' || protocol === 'https:' ? pathname + search : undefined;
}

/** `http://www.onvif.org/ver20/ptz/wsdl` gives `ptz`; the second media service gives `media2`. */
function serviceName(namespace: string | undefined): string | undefined {
  const match = /^https?:\/\/www\.onvif\.org\/(ver\d+)\/(\w+)\//i.exec(namespace ?? '');
  if (!match) return undefined;
  const [, version, name = ''] = match;
  return name === 'media' && version === 'ver20' ? 'media2' : name.toLowerCase();
}

function servicesOf(answer: XmlElement): Map<string, string> {
  const paths = new Map<string, string>();
  for (const service of childrenOf(answer, 'Service')) {
    const name = serviceName(textAt(service, 'Namespace'));
    const path = pathOf(textAt(service, 'XAddr'));
    if (name !== undefined && path !== undefined && !paths.has(name)) paths.set(name, path);
  }
  return paths;
}

function capabilitiesOf(answer: XmlElement): Map<string, string> {
  const paths = new Map<string, string>();
  for (const capability of childOf(answer, 'Capabilities')?.children ?? []) {
    const path = pathOf(textAt(capability, 'XAddr'));
    if (path !== undefined) paths.set(capability.name.toLowerCase(), path);
  }
  return paths;
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
