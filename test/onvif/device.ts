// An ONVIF device as a real HTTP server: device, media (both generations), PTZ and event service over SOAP 1.2, logins by
// WS-Security UsernameToken or HTTP Digest, a clock of its own, and whatever misbehaviour a test orders.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { EventService, EVENT_PATHS, type EventOptions } from './events.ts';
import { at, childOf, escapeXml, parseXml, textAt, type XmlElement } from '../../base/xml.ts';

interface DeviceProfile {
  readonly token: string;
  readonly name?: string;
  readonly source?: string;
  readonly sourceConfiguration?: string;
  readonly codec?: string;
  readonly width?: number;
  readonly height?: number;
  readonly framesPerSecond?: number;
  readonly ptz?: boolean;
}

export interface DeviceOptions {
  readonly host?: string;
  readonly port?: number;
  /** Speaks HTTPS with this, PEM. */
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly credentials?: { readonly username: string; readonly password: string };
  /** How it wants to be told who asks. */
  readonly login?: 'ws-security' | 'digest-md5' | 'digest-sha256';
  /** The device's clock less the real one. */
  readonly clockOffsetMs?: number;
  /** Also the time is told only to those who log in, as Panasonic does. */
  readonly timeNeedsLogin?: boolean;
  readonly profiles?: readonly DeviceProfile[];
  /** Media services: `both` lists the newer one, too. */
  readonly media?: 'media1' | 'media2' | 'both';
  /** From before ONVIF 2.1: knows GetCapabilities only. */
  readonly withoutGetServices?: boolean;
  readonly withoutPtzService?: boolean;
  /** What it believes to be its address, as `http://10.0.0.9:8080`; else the one at which it listens. */
  readonly believes?: string;
  readonly streamUri?: (profile: string) => string;
  readonly snapshotUri?: (profile: string) => string;
  readonly information?: Readonly<Record<string, string>>;
  readonly presets?: readonly { readonly token: string; readonly name: string }[];
  /** Profile G: what it has stored; undefined: the card failed. */
  readonly memory?: () => readonly StoredRecording[] | undefined;
  readonly replayUri?: (recording: string) => string;
  /** It tells of events. */
  readonly events?: EventOptions;
  /** The real time; that of this machine when absent. */
  readonly nowMs?: () => number;
}

interface StoredRecording {
  readonly token: string;
  readonly source?: string;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly tracks: readonly ('video' | 'audio' | 'metadata')[];
  readonly isGoingOn?: boolean;
}

/** What it does instead of answering an operation. */
export type Behaviour =
  | { readonly kind: 'fault'; readonly reason: string; readonly code?: string; readonly status?: number }
  | {
      readonly kind: 'raw';
      readonly status?: number;
      readonly body: string | Buffer;
      readonly headers?: Record<string, string>;
    }
  /** These bytes instead of an HTTP answer, after which the connection ends. */
  | { readonly kind: 'bytes'; readonly bytes: string }
  /** No answer until `release`, or ever. */
  | { readonly kind: 'hold' }
  /** Closes the connection, before or within the answer. */
  | { readonly kind: 'close'; readonly after: 'request' | 'half-an-answer' };

interface Call {
  readonly operation: string;
  readonly path: string;
  /** The operation's element. */
  readonly content: XmlElement;
}

const SERVICES = {
  device: 'http://www.onvif.org/ver10/device/wsdl',
  media: 'http://www.onvif.org/ver10/media/wsdl',
  media2: 'http://www.onvif.org/ver20/media/wsdl',
  ptz: 'http://www.onvif.org/ver20/ptz/wsdl',
  search: 'http://www.onvif.org/ver10/search/wsdl',
  replay: 'http://www.onvif.org/ver10/replay/wsdl',
  events: 'http://www.onvif.org/ver10/events/wsdl',
} as const;

const MAX_AGE_MS = 60_000;

const DEFAULT_PROFILES: readonly DeviceProfile[] = [
  { token: 'main', codec: 'H264', width: 1920, height: 1080, framesPerSecond: 25, ptz: true },
];

export class OnvifDevice {
  /** Every operation that was let in, in order. */
  readonly calls: Call[] = [];
  /** `Host` headers as they came. */
  readonly hosts = new Set<string>();
  refusedLogins = 0;
  /** What goes on; undefined: it stands still. */
  motion: { pan: number; tilt: number; zoom: number } | undefined;
  clockOffsetMs: number;
  readonly options: DeviceOptions;
  /** Undefined without `events`. */
  readonly events: EventService | undefined;
  readonly #server: Server;
  readonly #behaviours = new Map<string, Behaviour[]>();
  readonly #nonces = new Set<string>();
  readonly #held: { operation: string; release: () => void }[] = [];
  #digestNonce = randomBytes(8).toString('hex');

  private constructor(options: DeviceOptions, server: Server) {
    this.options = options;
    this.clockOffsetMs = options.clockOffsetMs ?? 0;
    this.events = options.events && new EventService(options.events, () => this.#nowMs + this.clockOffsetMs);
    this.#server = server;
    server.on('request', (request, response) => void this.#handle(request, response));
  }

  static async start(options: DeviceOptions = {}): Promise<OnvifDevice> {
    const device = new OnvifDevice(options, options.tls ? createSecureServer(options.tls) : createServer());
    await device.listen();
    return device;
  }

  /** Listens (again, after `close`) where the options say. */
  async listen(port = this.options.port ?? 0): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(port, this.options.host ?? '127.0.0.1', resolve);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get host(): string {
    return this.options.host ?? '127.0.0.1';
  }

  /** Of the device service, with the port that it has. */
  get url(): string {
    return `${this.#base(true)}/onvif/device_service`;
  }

  /** The next calls of an operation behave so, one after the other; without any, as it should again. */
  behave(operation: string, behaviours: readonly Behaviour[]): void {
    if (behaviours.length > 0) this.#behaviours.set(operation, [...behaviours]);
    else this.#behaviours.delete(operation);
  }

  /** Operations that were let in, by name. */
  operations(): string[] {
    return this.calls.map(({ operation }) => operation);
  }

  /** How many requests wait for `release`. */
  get held(): readonly string[] {
    return this.#held.map(({ operation }) => operation);
  }

  release(): void {
    for (const { release } of this.#held.splice(0)) release();
  }

  async close(): Promise<void> {
    this.events?.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    if (request.headers.host !== undefined) this.hosts.add(request.headers.host);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch {
      return;
    }
    // It has no still images.
    if (request.method === 'GET') return void response.writeHead(404).end();
    const envelope = parseXml(Buffer.concat(chunks).toString());
    const content = at(envelope, 'Body')?.children[0];
    if (!content) return void response.writeHead(400).end();
    const operation = content.name;
    const open = operation === 'GetSystemDateAndTime' && this.options.timeNeedsLogin !== true;
    if (!open && !this.#letIn(request, envelope, response)) return;
    this.calls.push({ operation, path: request.url ?? '', content });
    const planned = this.#behaviours.get(operation);
    const behaviour = planned?.shift();
    if (planned?.length === 0) this.#behaviours.delete(operation);
    if (behaviour?.kind === 'hold') {
      await new Promise<void>((release) => this.#held.push({ operation, release }));
    } else if (behaviour) {
      return misbehave(response, behaviour);
    }
    const path = (request.url ?? '').split('?')[0];
    const isEvents = this.events && EVENT_PATHS.some((own) => path === own);
    const answer = isEvents
      ? await this.events?.answer(operation, content, {
          envelope,
          url: request.url ?? '',
          base: this.#base(),
          response,
        })
      : this.#answer(operation, content, path ?? '');
    if (answer === undefined) {
      fault(response, 'Optional Action Not Implemented', 'ter:ActionNotSupported', 500);
    } else if (typeof answer === 'object') {
      fault(response, answer.reason, answer.code, 400);
    } else {
      send(response, 200, answer);
    }
  }

  #letIn(request: IncomingMessage, envelope: XmlElement, response: ServerResponse): boolean {
    const { credentials, login = 'ws-security' } = this.options;
    if (!credentials) return true;
    if (login === 'ws-security') {
      if (this.#isGenuine(envelope, credentials)) return true;
      this.refusedLogins++;
      fault(response, 'Sender not authorized', 'ter:NotAuthorized', 400);
      return false;
    }
    if (at(envelope, 'Header', 'Security')?.attributes.get('mustUnderstand') === '1') {
      fault(response, 'The data in element Security must be understood but cannot be handled', 'MustUnderstand', 500);
      return false;
    }
    const algorithm = login === 'digest-md5' ? 'md5' : 'sha256';
    if (this.#answersDigest(request, credentials, algorithm)) return true;
    if (request.headers.authorization !== undefined) this.refusedLogins++;
    this.#digestNonce = randomBytes(8).toString('hex');
    const challenge = `Digest realm="device", qop="auth", nonce="${this.#digestNonce}", algorithm=${
      algorithm === 'md5' ? 'MD5' : 'SHA-256'
    }`;
    response.writeHead(401, { 'www-authenticate': challenge, 'content-type': 'text/html' }).end('<html>401</html>');
    return false;
  }

  /** WS-Security UsernameToken Profile 1.0 §3.1: not older than a minute by its own clock, and never twice. */
  #isGenuine(envelope: XmlElement, credentials: { username: string; password: string }): boolean {
    const token = at(envelope, 'Header', 'Security', 'UsernameToken');
    const nonce = textAt(token, 'Nonce') ?? '';
    const created = textAt(token, 'Created') ?? '';
    const expected = createHash('sha1')
      .update(Buffer.from(nonce, 'base64'))
      .update(created)
      .update(credentials.password)
      .digest('base64');
    const ageMs = Math.abs(Date.parse(created) - (this.#nowMs + this.clockOffsetMs));
    const genuine =
      textAt(token, 'Username') === credentials.username &&
      textAt(token, 'Password') === expected &&
      ageMs < MAX_AGE_MS &&
      !this.#nonces.has(nonce);
    this.#nonces.add(nonce);
    return genuine;
  }

  #answersDigest(
    request: IncomingMessage,
    { username, password }: { username: string; password: string },
    algorithm: 'md5' | 'sha256',
  ): boolean {
    const header = request.headers.authorization ?? '';
    const field = (name: string): string => new RegExp(`[ ,]${name}="?([^",]*)`).exec(header)?.[1] ?? '';
    const hash = (text: string): string => createHash(algorithm).update(text).digest('hex');
    const ha1 = hash(`${username}:device:${password}`);
    const ha2 = hash(`POST:${request.url}`);
    const expected = hash(`${ha1}:${this.#digestNonce}:${field('nc')}:${field('cnonce')}:auth:${ha2}`);
    return header.startsWith('Digest ') && field('username') === username && field('response') === expected;
  }

  #base(truly = false): string {
    const { believes, tls } = this.options;
    if (believes !== undefined && !truly) return believes;
    return `${tls ? 'https' : 'http'}://${this.host.includes(':') ? `[${this.host}]` : this.host}:${this.port}`;
  }

  #services(): [name: keyof typeof SERVICES, path: string][] {
    const { media = 'media1', withoutPtzService, memory } = this.options;
    return [
      ['device', '/onvif/device_service'],
      ...(media === 'media2' ? [] : [['media', '/onvif/Media'] as ['media', string]]),
      ...(media === 'media1' ? [] : [['media2', '/onvif/media2_service'] as ['media2', string]]),
      ...(withoutPtzService ? [] : [['ptz', '/onvif/PTZ'] as ['ptz', string]]),
      ...(this.events ? [['events', '/onvif/Events'] as ['events', string]] : []),
      ...(memory
        ? (
            [
              ['search', '/onvif/Search'],
              ['replay', '/onvif/Replay'],
            ] as const
          ).map(([name, at]) => [name, at] as ['search' | 'replay', string])
        : []),
    ];
  }

  /** XML of the answer, a fault, or undefined for what it does not know. */
  #answer(operation: string, content: XmlElement, path: string): string | { reason: string; code: string } | undefined {
    const profiles = this.options.profiles ?? DEFAULT_PROFILES;
    const isMedia2 = path === '/onvif/media2_service';
    const profile = profiles.find(({ token }) => token === textAt(content, 'ProfileToken'));
    const noProfile = { reason: 'The requested profile does not exist.', code: 'ter:NoProfile' };
    switch (operation) {
      case 'GetSystemDateAndTime':
        return dateAndTime(this.#nowMs + this.clockOffsetMs);
      case 'GetServices':
        if (this.options.withoutGetServices) return undefined;
        return `<tds:GetServicesResponse>${this.#services()
          .map(
            ([name, at]) =>
              `<tds:Service><tds:Namespace>${SERVICES[name]}</tds:Namespace><tds:XAddr>${this.#base()}${at}</tds:XAddr></tds:Service>`,
          )
          .join('')}</tds:GetServicesResponse>`;
      case 'GetCapabilities':
        return `<tds:GetCapabilitiesResponse><tds:Capabilities>${this.#services()
          .filter(([name]) => name !== 'media2')
          .map(([name, at]) => {
            const tag = name === 'ptz' ? 'PTZ' : `${name[0]?.toUpperCase()}${name.slice(1)}`;
            return `<tt:${tag}><tt:XAddr>${this.#base()}${at}</tt:XAddr></tt:${tag}>`;
          })
          .join('')}</tds:Capabilities></tds:GetCapabilitiesResponse>`;
      case 'GetDeviceInformation': {
        const information = {
          Manufacturer: 'Acme',
          Model: 'Dome 1',
          FirmwareVersion: '1.10',
          SerialNumber: '000123',
          HardwareId: '1',
          ...this.options.information,
        };
        const fields = Object.entries(information).map(
          ([key, value]) => `<tds:${key}>${escapeXml(value)}</tds:${key}>`,
        );
        return `<tds:GetDeviceInformationResponse>${fields.join('')}</tds:GetDeviceInformationResponse>`;
      }
      case 'GetProfiles': {
        const write = isMedia2 ? media2Profile : media1Profile;
        return `<trt:GetProfilesResponse>${profiles.map(write).join('')}</trt:GetProfilesResponse>`;
      }
      case 'GetStreamUri':
      case 'GetSnapshotUri': {
        if (!profile) return noProfile;
        const { streamUri, snapshotUri } = this.options;
        const uri =
          operation === 'GetStreamUri'
            ? (streamUri?.(profile.token) ?? `rtsp://${this.host}:554/${profile.token}`)
            : (snapshotUri?.(profile.token) ?? `${this.#base()}/snap/${profile.token}.jpg`);
        const inner = `<tt:Uri>${escapeXml(uri)}</tt:Uri>`;
        return `<trt:${operation}Response>${isMedia2 ? inner : `<trt:MediaUri>${inner}</trt:MediaUri>`}</trt:${operation}Response>`;
      }
      case 'GetRecordingSummary':
      case 'FindRecordings':
      case 'GetRecordingSearchResults':
      case 'GetRecordingInformation':
      case 'EndSearch':
      case 'GetReplayUri':
        return this.options.memory ? this.#stored(operation, content, this.options.memory()) : undefined;
      default:
        return profile ? this.#ptz(operation, content, profile) : operation.startsWith('Get') ? undefined : noProfile;
    }
  }

  get #nowMs(): number {
    return (this.options.nowMs ?? Date.now)();
  }

  /** ONVIF Recording Search and Replay Control Specifications. */
  #stored(
    operation: string,
    content: XmlElement,
    recordings: readonly StoredRecording[] | undefined,
  ): string | { reason: string; code: string } {
    if (!recordings) return { reason: 'The storage medium is not available.', code: 'ter:Action' };
    const recording = recordings.find(({ token }) => token === textAt(content, 'RecordingToken'));
    const noRecording = { reason: 'The recording does not exist.', code: 'ter:NoRecording' };
    switch (operation) {
      case 'GetRecordingSummary':
        return `<tse:GetRecordingSummaryResponse><tse:Summary>${span(recordings)}<tt:NumberRecordings>${
          recordings.length
        }</tt:NumberRecordings></tse:Summary></tse:GetRecordingSummaryResponse>`;
      case 'FindRecordings':
        return '<tse:FindRecordingsResponse><tse:SearchToken>search-1</tse:SearchToken></tse:FindRecordingsResponse>';
      case 'GetRecordingSearchResults':
        if (textAt(content, 'SearchToken') !== 'search-1')
          return { reason: 'No such search.', code: 'ter:InvalidToken' };
        return (
          '<tse:GetRecordingSearchResultsResponse><tse:ResultList><tt:SearchState>Completed</tt:SearchState>' +
          `${recordings.map(recordingInformation).join('')}</tse:ResultList></tse:GetRecordingSearchResultsResponse>`
        );
      case 'GetRecordingInformation':
        if (!recording) return noRecording;
        return `<tse:GetRecordingInformationResponse>${recordingInformation(recording)}</tse:GetRecordingInformationResponse>`;
      case 'GetReplayUri': {
        if (!recording) return noRecording;
        const uri = this.options.replayUri?.(recording.token) ?? `rtsp://${this.host}:554/replay/${recording.token}`;
        return `<trp:GetReplayUriResponse><trp:Uri>${escapeXml(uri)}</trp:Uri></trp:GetReplayUriResponse>`;
      }
      default:
        return `<tse:${operation}Response/>`;
    }
  }

  #ptz(
    operation: string,
    content: XmlElement,
    profile: DeviceProfile,
  ): string | { reason: string; code: string } | undefined {
    if (!profile.ptz) return { reason: 'The profile has no PTZ configuration.', code: 'ter:NoPTZProfile' };
    const done = `<tptz:${operation}Response/>`;
    const presets = this.options.presets ?? [];
    switch (operation) {
      case 'ContinuousMove': {
        const velocity = childOf(content, 'Velocity');
        const number = (tag: string, name: string, before: number): number => {
          const element = childOf(velocity, tag);
          return element ? Number(element.attributes.get(name)) : before;
        };
        const { pan, tilt, zoom } = this.motion ?? { pan: 0, tilt: 0, zoom: 0 };
        this.motion = {
          pan: number('PanTilt', 'x', pan),
          tilt: number('PanTilt', 'y', tilt),
          zoom: number('Zoom', 'x', zoom),
        };
        return done;
      }
      case 'Stop':
        this.motion = undefined;
        return done;
      case 'GetPresets': {
        const list = presets.map(
          ({ token, name }) =>
            `<tptz:Preset token="${escapeXml(token)}"><tt:Name>${escapeXml(name)}</tt:Name></tptz:Preset>`,
        );
        return `<tptz:GetPresetsResponse>${list.join('')}</tptz:GetPresetsResponse>`;
      }
      case 'GotoPreset':
        if (presets.some(({ token }) => token === textAt(content, 'PresetToken'))) return done;
        return { reason: 'The requested preset token does not exist.', code: 'ter:NoToken' };
      default:
        return undefined;
    }
  }
}

function dateAndTime(ms: number): string {
  const date = new Date(ms);
  const time = `<tt:Time><tt:Hour>${date.getUTCHours()}</tt:Hour><tt:Minute>${date.getUTCMinutes()}</tt:Minute><tt:Second>${date.getUTCSeconds()}</tt:Second></tt:Time>`;
  const day = `<tt:Date><tt:Year>${date.getUTCFullYear()}</tt:Year><tt:Month>${date.getUTCMonth() + 1}</tt:Month><tt:Day>${date.getUTCDate()}</tt:Day></tt:Date>`;
  return `<tds:GetSystemDateAndTimeResponse><tds:SystemDateAndTime><tt:UTCDateTime>${time}${day}</tt:UTCDateTime></tds:SystemDateAndTime></tds:GetSystemDateAndTimeResponse>`;
}

const dateTime = (ms: number): string => new Date(ms).toISOString();

function span(recordings: readonly StoredRecording[]): string {
  if (recordings.length === 0)
    return '<tt:DataFrom>1970-01-01T00:00:00Z</tt:DataFrom><tt:DataUntil>1970-01-01T00:00:00Z</tt:DataUntil>';
  const from = Math.min(...recordings.map(({ fromMs }) => fromMs));
  const until = Math.max(...recordings.map(({ untilMs }) => untilMs));
  return `<tt:DataFrom>${dateTime(from)}</tt:DataFrom><tt:DataUntil>${dateTime(until)}</tt:DataUntil>`;
}

function recordingInformation({
  token,
  source = 'source-0',
  fromMs,
  untilMs,
  tracks,
  isGoingOn,
}: StoredRecording): string {
  const track = (kind: string): string =>
    `<tt:Track><tt:TrackToken>${kind}001</tt:TrackToken><tt:TrackType>${kind[0]?.toUpperCase()}${kind.slice(1)}</tt:TrackType>` +
    `<tt:Description/><tt:DataFrom>${dateTime(fromMs)}</tt:DataFrom><tt:DataTo>${dateTime(untilMs)}</tt:DataTo></tt:Track>`;
  return (
    `<tt:RecordingInformation><tt:RecordingToken>${escapeXml(token)}</tt:RecordingToken>` +
    `<tt:Source><tt:SourceId>${escapeXml(source)}</tt:SourceId><tt:Name/><tt:Location/><tt:Description/><tt:Address/></tt:Source>` +
    `<tt:EarliestRecording>${dateTime(fromMs)}</tt:EarliestRecording><tt:LatestRecording>${dateTime(untilMs)}</tt:LatestRecording>` +
    `<tt:Content/>${tracks.map(track).join('')}<tt:RecordingStatus>${isGoingOn ? 'Recording' : 'Stopped'}</tt:RecordingStatus></tt:RecordingInformation>`
  );
}

const encoder = ({ codec = 'H264', width = 1920, height = 1080, framesPerSecond = 25 }: DeviceProfile): string =>
  `<tt:Encoding>${codec}</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution>` +
  `<tt:RateControl><tt:FrameRateLimit>${framesPerSecond}</tt:FrameRateLimit></tt:RateControl>`;

function media1Profile(profile: DeviceProfile): string {
  const { token, name = token, source = 'source-0', sourceConfiguration = 'vsc', ptz } = profile;
  return (
    `<trt:Profiles token="${escapeXml(token)}" fixed="true"><tt:Name>${escapeXml(name)}</tt:Name>` +
    `<tt:VideoSourceConfiguration token="${escapeXml(sourceConfiguration)}"><tt:SourceToken>${escapeXml(source)}</tt:SourceToken></tt:VideoSourceConfiguration>` +
    `<tt:VideoEncoderConfiguration token="vec">${encoder(profile)}</tt:VideoEncoderConfiguration>` +
    `${ptz ? '<tt:PTZConfiguration token="ptz"><tt:NodeToken>node</tt:NodeToken></tt:PTZConfiguration>' : ''}</trt:Profiles>`
  );
}

function media2Profile(profile: DeviceProfile): string {
  const { token, name = token, source = 'source-0', sourceConfiguration = 'vsc', ptz } = profile;
  return (
    `<tr2:Profiles token="${escapeXml(token)}" fixed="true"><tr2:Name>${escapeXml(name)}</tr2:Name><tr2:Configurations>` +
    `<tr2:VideoSource token="${escapeXml(sourceConfiguration)}"><tt:SourceToken>${escapeXml(source)}</tt:SourceToken></tr2:VideoSource>` +
    `<tr2:VideoEncoder token="vec">${encoder(profile)}</tr2:VideoEncoder>` +
    `${ptz ? '<tr2:PTZ token="ptz"><tt:NodeToken>node</tt:NodeToken></tr2:PTZ>' : ''}</tr2:Configurations></tr2:Profiles>`
  );
}

const envelope = (body: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<env:Envelope xmlns:env="http://www.w3.org/2003/05/soap-envelope" ` +
  `xmlns:tds="${SERVICES.device}" xmlns:trt="${SERVICES.media}" xmlns:tr2="${SERVICES.media2}" xmlns:tptz="${SERVICES.ptz}" ` +
  `xmlns:tev="${SERVICES.events}" xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2" ` +
  `xmlns:wsa5="http://www.w3.org/2005/08/addressing" xmlns:tns1="http://www.onvif.org/ver10/topics" ` +
  `xmlns:tse="${SERVICES.search}" xmlns:trp="${SERVICES.replay}" ` +
  `xmlns:tt="http://www.onvif.org/ver10/schema" xmlns:ter="http://www.onvif.org/ver10/error"><env:Body>${body}</env:Body></env:Envelope>`;

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/soap+xml; charset=utf-8' }).end(envelope(body));
}

function fault(response: ServerResponse, reason: string, code: string, status: number): void {
  const subcode = `<env:Subcode><env:Value>${code}</env:Value></env:Subcode>`;
  send(
    response,
    status,
    `<env:Fault><env:Code><env:Value>env:Sender</env:Value>${subcode}</env:Code><env:Reason><env:Text xml:lang="en">${escapeXml(reason)}</env:Text></env:Reason></env:Fault>`,
  );
}

function misbehave(response: ServerResponse, behaviour: Exclude<Behaviour, { kind: 'hold' }>): void {
  switch (behaviour.kind) {
    case 'fault':
      return fault(response, behaviour.reason, behaviour.code ?? 'ter:Action', behaviour.status ?? 400);
    case 'raw':
      return void response.writeHead(behaviour.status ?? 200, behaviour.headers).end(behaviour.body);
    case 'bytes':
      return void response.socket?.end(behaviour.bytes);
    case 'close':
      if (behaviour.after === 'request') return void response.socket?.destroy();
      response.writeHead(200, { 'content-length': '1000' }).write('<env:Envelope');
      setImmediate(() => response.socket?.destroy());
  }
}
