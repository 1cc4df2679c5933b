// Parses the body of a response to DESCRIBE (RFC 4566, RFC 2326 appendix C). Only `m=` and `a=` lines are used: cameras omit,
// repeat and misspell the others.

import { RtspSyntaxError } from './error.ts';
import { parseDecimal } from './parameters.ts';

type Direction = 'sendrecv' | 'recvonly' | 'sendonly' | 'inactive';

interface MediaFormat {
  readonly payloadType: number;
  /** Encoding name in upper case, such as `H264`, `MPEG4-GENERIC`, `PCMA`; empty if the camera does not state it. */
  readonly encodingName: string;
  /** RTP clock rate in Hz; 0 if it is neither stated nor known. */
  readonly clockRate: number;
  /** Audio channels; 1 when not stated. */
  readonly channels: number;
  /** The parameters of `a=fmtp` by lower-case name; values as written (`sprop-parameter-sets`, `config`, …). */
  readonly formatParameters: ReadonlyMap<string, string>;
}

/** One `m=` section; the fields of MediaFormat are those of its first format. */
export interface Media extends MediaFormat {
  /** `video`, `audio`, `application` or anything else that the camera states, in lower case. */
  readonly kind: string;
  /** All payload types of the section, in order; the packets show which one is sent. */
  readonly formats: readonly MediaFormat[];
  /** Over SRTP (`RTP/SAVP`, `RTP/SAVPF`): the packets are encrypted. */
  readonly encrypted: boolean;
  /** `a=control` as written; undefined when absent. */
  readonly control: string | undefined;
  readonly direction: Direction;
  /** Pixels, from `a=framesize` (RFC 6064 §3.1.3) or `a=x-dimensions`; undefined if not stated. */
  readonly pictureSize: { readonly width: number; readonly height: number } | undefined;
  /** The backchannel to the camera's loudspeaker; such a section is never set up. */
  readonly backchannel: boolean;
}

/** The media that a camera offers under one URL. */
export interface Presentation {
  /** `a=control` of the session section, as written. */
  readonly control: string | undefined;
  /** In the order of the SDP; this program identifies media by their index. */
  readonly media: readonly Media[];
}

/** The longest real descriptions have a few thousand characters. */
const MAX_LENGTH = 64 * 1024;
/** Longer lines are ignored. The longest real ones contain parameter sets in base64. */
const MAX_LINE_LENGTH = 20 * 1024;
/** Limits above any real description; what exceeds them is ignored. */
const MAX_MEDIA = 32;
const MAX_FORMATS = 16;
const MAX_FORMAT_PARAMETERS = 64;

interface Encoding {
  readonly encodingName: string;
  readonly clockRate: number;
  readonly channels: number;
}

/** RFC 3551 §6, tables 4 and 5: payload types that need no rtpmap. */
const STATIC_ENCODINGS: ReadonlyMap<number, Encoding> = new Map([
  [0, { encodingName: 'PCMU', clockRate: 8_000, channels: 1 }],
  [3, { encodingName: 'GSM', clockRate: 8_000, channels: 1 }],
  [8, { encodingName: 'PCMA', clockRate: 8_000, channels: 1 }],
  [9, { encodingName: 'G722', clockRate: 8_000, channels: 1 }],
  [10, { encodingName: 'L16', clockRate: 44_100, channels: 2 }],
  [11, { encodingName: 'L16', clockRate: 44_100, channels: 1 }],
  [14, { encodingName: 'MPA', clockRate: 90_000, channels: 1 }],
  [26, { encodingName: 'JPEG', clockRate: 90_000, channels: 1 }],
  [32, { encodingName: 'MPV', clockRate: 90_000, channels: 1 }],
  [33, { encodingName: 'MP2T', clockRate: 90_000, channels: 1 }],
]);

/** A payload type with its `rtpmap` and `fmtp` attributes. */
interface StatedFormat {
  readonly payloadType: number;
  encoding: Encoding | undefined;
  parameters: Map<string, string> | undefined;
}

/** A section while it is parsed. */
interface Section {
  readonly kind: string;
  readonly encrypted: boolean;
  readonly formats: readonly StatedFormat[];
  /** The attributes by payload type, including types that the section does not list. */
  readonly said: Map<number, StatedFormat>;
  control: string | undefined;
  direction: Direction | undefined;
  pictureSize: Media['pictureSize'];
}

const nothingSaid = (payloadType: number): StatedFormat => ({
  payloadType,
  encoding: undefined,
  parameters: undefined,
});

/** Parses `video 0 RTP/AVP 96`; undefined for a section that is not RTP or has no payload type (TP-Link's `smart/1/90000`). */
function parseMediaLine(value: string): Section | undefined {
  const [kind = '', , protocol = '', ...formats] = value.split(/\s+/, 3 + MAX_FORMATS);
  const profile = /^(?:UDP\/TLS\/|TCP\/(?:TLS\/)?)?RTP\/(S?)/i.exec(protocol);
  const payloadTypes = formats.map((text) => parseDecimal(text, 127)).filter((type) => type !== undefined);
  if (!profile || payloadTypes.length === 0) return undefined;
  return {
    kind: kind.toLowerCase(),
    encrypted: profile[1] !== '',
    formats: [...new Set(payloadTypes)].map(nothingSaid),
    said: new Map(),
    control: undefined,
    direction: undefined,
    pictureSize: undefined,
  };
}

/** Splits the `<payload type> <rest>` of an rtpmap or fmtp attribute. */
function splitPayloadType(value: string): { payloadType: number | undefined; rest: string } {
  const blank = value.search(/\s/);
  const payloadType = parseDecimal(blank < 0 ? value : value.slice(0, blank), 127);
  return { payloadType, rest: blank < 0 ? '' : value.slice(blank).trim() };
}

/** Parses `1920-1080` or `1920,1080`. */
function parsePictureSize(text: string): Media['pictureSize'] {
  const [width, height] = text.split(/[-,x]/).map((part) => parseDecimal(part.trim(), 0xffff));
  return width && height ? { width, height } : undefined;
}

/** Parses `H264/90000` or `MPEG4-GENERIC/48000/2`. */
function parseEncoding(text: string, kind: string): Encoding | undefined {
  const [name = '', clockRateText, channelsText] = text.split('/').map((part) => part.trim());
  if (name === '') return undefined;
  return {
    encodingName: name.toUpperCase(),
    // All video payload formats in use have a clock rate of 90 kHz.
    clockRate: parseDecimal(clockRateText, 10_000_000) || (kind === 'video' ? 90_000 : 0),
    channels: parseDecimal(channelsText, 255) || 1,
  };
}

function parseFormatParameters(text: string, into: Map<string, string>): void {
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    const name = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
    const value = equals < 0 ? '' : part.slice(equals + 1).trim();
    if (name === '' || into.has(name) || into.size >= MAX_FORMAT_PARAMETERS) continue;
    into.set(name, /^".*"$/.test(value) ? value.slice(1, -1) : value);
  }
}

const DIRECTIONS: ReadonlySet<string> = new Set<Direction>(['sendrecv', 'recvonly', 'sendonly', 'inactive']);

/** Adds an `rtpmap` or `fmtp` attribute; the first rtpmap of a payload type counts, and all its fmtp lines. */
function parseFormatAttribute(
  all: Map<number, StatedFormat>,
  name: 'rtpmap' | 'fmtp',
  value: string,
  kind: string,
): void {
  const { payloadType, rest } = splitPayloadType(value);
  if (payloadType === undefined) return;
  const said = all.get(payloadType) ?? nothingSaid(payloadType);
  all.set(payloadType, said);
  if (name === 'rtpmap') said.encoding ??= parseEncoding(rest, kind);
  else parseFormatParameters(rest, (said.parameters ??= new Map()));
}

function parseMediaAttribute(section: Section, name: string, value: string): void {
  if (name === 'rtpmap' || name === 'fmtp') parseFormatAttribute(section.said, name, value, section.kind);
  else if (name === 'control') section.control ??= value;
  else if (name === 'framesize') section.pictureSize ??= parsePictureSize(splitPayloadType(value).rest);
  else if (name === 'x-dimensions') section.pictureSize ??= parsePictureSize(value);
  else if (DIRECTIONS.has(name)) section.direction = name as Direction;
}

/**
 * Gives each format the attributes of its payload type. Attributes of a type that no format has (Acti writes `rtpmap:104` and
 * `fmtp:97` for one stream) belong to the only format without any; static types need neither rtpmap nor fmtp.
 */
function settle(formats: readonly StatedFormat[], all: ReadonlyMap<number, StatedFormat>): void {
  for (const format of formats) {
    const said = all.get(format.payloadType);
    format.encoding ??= said?.encoding;
    format.parameters ??= said?.parameters;
  }
  const spare = [...all.values()].filter((said) => !formats.some((format) => format.payloadType === said.payloadType));
  const dynamic = formats.filter((format) => !STATIC_ENCODINGS.has(format.payloadType));
  const [unnamed, ...moreUnnamed] = dynamic.filter((format) => !format.encoding);
  const encoding = spare.find((said) => said.encoding)?.encoding;
  if (unnamed && encoding && moreUnnamed.length === 0) unnamed.encoding = encoding;
  const [plain, ...morePlain] = dynamic.filter((format) => !format.parameters);
  const parameters = spare.find((said) => said.parameters)?.parameters;
  if (plain && parameters && morePlain.length === 0) plain.parameters = parameters;
}

function toMedia(section: Section, defaultDirection: Direction): Omit<Media, 'backchannel'> {
  const formats = section.formats.map(({ payloadType, encoding, parameters }) => ({
    payloadType,
    // The rtpmap takes precedence over the static table: cameras redefine 0 and 8.
    ...(encoding ?? STATIC_ENCODINGS.get(payloadType) ?? { encodingName: '', clockRate: 0, channels: 1 }),
    formatParameters: parameters ?? new Map<string, string>(),
  }));
  return {
    ...(formats[0] as MediaFormat),
    kind: section.kind,
    formats,
    encrypted: section.encrypted,
    control: section.control,
    direction: section.direction ?? defaultDirection,
    pictureSize: section.pictureSize,
  };
}

/** Throws `RtspSyntaxError` if there is no usable `m=` section. */
export function parseSdp(text: string): Presentation {
  if (text.length > MAX_LENGTH) throw new RtspSyntaxError(`a description of more than ${MAX_LENGTH / 1024} KiB`);
  const sections: Section[] = [];
  const said = new Map<number, StatedFormat>();
  /** `undefined` before the first `m=` line; `ignored` in an unusable section. */
  let current: Section | 'ignored' | undefined;
  let control: string | undefined;
  let direction: Direction = 'sendrecv';
  for (const line of text.split(/[\r\n]+/)) {
    const equals = line.indexOf('=');
    if (equals < 0 || line.length > MAX_LINE_LENGTH) continue;
    const type = line.slice(0, equals).trim().toLowerCase();
    if (type !== 'm' && type !== 'a') continue;
    const value = line.slice(equals + 1).trim();
    if (type === 'm') {
      current = (sections.length < MAX_MEDIA ? parseMediaLine(value) : undefined) ?? 'ignored';
      if (current !== 'ignored') sections.push(current);
      continue;
    }
    if (current === 'ignored') continue;
    const colon = value.indexOf(':');
    const attribute = (colon < 0 ? value : value.slice(0, colon)).trim().toLowerCase();
    const attributeValue = colon < 0 ? '' : value.slice(colon + 1).trim();
    if (current) parseMediaAttribute(current, attribute, attributeValue);
    else if (attribute === 'control') control ??= attributeValue;
    else if (attribute === 'rtpmap' || attribute === 'fmtp') parseFormatAttribute(said, attribute, attributeValue, '');
    else if (DIRECTIONS.has(attribute)) direction = attribute as Direction;
  }
  if (sections.length === 0) throw new RtspSyntaxError('a description without any RTP media');
  for (const section of sections) settle(section.formats, section.said);
  settle(
    sections.flatMap((section) => section.formats),
    said,
  );
  const media = sections.map((section) => toMedia(section, direction));
  // Some cameras mark all their media `sendonly`, from their own point of view; then none is a backchannel.
  const allSendonly = media.every((m) => m.direction === 'sendonly');
  return { control, media: media.map((m) => ({ ...m, backchannel: !allSendonly && m.direction === 'sendonly' })) };
}
