// The body of a DESCRIBE reply in, the media it offers out (RFC 4566, RFC 2326 appendix C). Only `m=` and `a=` lines
// matter: cameras leave out, double and misspell the others.

import { RtspSyntaxError } from './error.ts';
import { parseDecimal } from './parameters.ts';

export type Direction = 'sendrecv' | 'recvonly' | 'sendonly' | 'inactive';

/** One `m=` section. */
export interface Media {
  /** `video`, `audio`, `application` or what else the camera says, in lower case. */
  readonly kind: string;
  /** RTP payload type, the first of the section. */
  readonly payloadType: number;
  /** Encoding name in upper case, as `H264`, `MPEG4-GENERIC`, `PCMA`; empty when a camera does not name it. */
  readonly encodingName: string;
  /** RTP timestamp units a second, as stated; 0 when not stated and not known. */
  readonly clockRate: number;
  /** Audio channels; 1 when not stated. */
  readonly channels: number;
  /** The parameters of `a=fmtp`, by name in lower case, values as written (`sprop-parameter-sets`, `config`, …). */
  readonly formatParameters: ReadonlyMap<string, string>;
  /** `a=control` as written; undefined when absent. */
  readonly control: string | undefined;
  readonly direction: Direction;
  /** True for the way back to the camera's loudspeaker: such a section is never set up. */
  readonly backchannel: boolean;
}

/** What a camera offers under one URL. */
export interface Presentation {
  /** `a=control` of the session part, as written. */
  readonly control: string | undefined;
  /** In the order of the SDP; the index is the media's name in this program. */
  readonly media: readonly Media[];
}

/** More sections than any camera offers; the rest is ignored. */
const MAX_MEDIA = 32;
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

/** One section while it is read. */
interface Section {
  readonly kind: string;
  readonly payloadType: number;
  encoding: Encoding | undefined;
  readonly formatParameters: Map<string, string>;
  control: string | undefined;
  direction: Direction | undefined;
}

/** `video 0 RTP/AVP 96`; undefined for a section that is not RTP or has no payload type (TP-Link's `smart/1/90000`). */
function parseMediaLine(value: string): Section | undefined {
  const [kind = '', , protocol = '', ...formats] = value.split(/\s+/);
  if (!/^RTP\//i.test(protocol)) return undefined;
  const payloadType = parseDecimal(formats[0], 127);
  if (payloadType === undefined) return undefined;
  return {
    kind: kind.toLowerCase(),
    payloadType,
    encoding: undefined,
    formatParameters: new Map(),
    control: undefined,
    direction: undefined,
  };
}

/** `<payload type> <rest>` of an rtpmap or fmtp attribute. */
function splitPayloadType(value: string): { payloadType: number | undefined; rest: string } {
  const match = /^(\d{1,3})(?:\s+(.*))?$/.exec(value);
  return { payloadType: parseDecimal(match?.[1], 127), rest: match?.[2]?.trim() ?? '' };
}

/** `H264/90000`, `MPEG4-GENERIC/48000/2`. */
function parseEncoding(text: string, kind: string): Encoding | undefined {
  const [name = '', clockRateText, channelsText] = text.split('/').map((part) => part.trim());
  if (name === '') return undefined;
  return {
    encodingName: name.toUpperCase(),
    // Every video payload format in use counts in 90 kHz.
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

function parseMediaAttribute(section: Section, name: string, value: string): void {
  switch (name) {
    case 'rtpmap': {
      const { payloadType, rest } = splitPayloadType(value);
      // The rtpmap wins over the static table: cameras redefine 0 and 8.
      if (payloadType === section.payloadType) section.encoding ??= parseEncoding(rest, section.kind);
      break;
    }
    case 'fmtp': {
      const { payloadType, rest } = splitPayloadType(value);
      if (payloadType === section.payloadType) parseFormatParameters(rest, section.formatParameters);
      break;
    }
    case 'control':
      section.control ??= value;
      break;
    default:
      if (DIRECTIONS.has(name)) section.direction = name as Direction;
  }
}

function toMedia(section: Section, defaultDirection: Direction): Omit<Media, 'backchannel'> {
  const encoding = section.encoding ??
    STATIC_ENCODINGS.get(section.payloadType) ?? { encodingName: '', clockRate: 0, channels: 1 };
  return {
    kind: section.kind,
    payloadType: section.payloadType,
    ...encoding,
    formatParameters: section.formatParameters,
    control: section.control,
    direction: section.direction ?? defaultDirection,
  };
}

/** Throws `RtspSyntaxError` when not one usable `m=` section is found. */
export function parseSdp(text: string): Presentation {
  const sections: Section[] = [];
  /** `undefined`: before the first `m=` line; `ignored`: in a section that is not understood. */
  let current: Section | 'ignored' | undefined;
  let control: string | undefined;
  let direction: Direction = 'sendrecv';
  for (const line of text.split(/[\r\n]+/)) {
    const match = /^\s*([ma])\s*=\s*(.*)$/i.exec(line);
    if (!match) continue;
    const value = (match[2] ?? '').trim();
    if (match[1]?.toLowerCase() === 'm') {
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
    else if (DIRECTIONS.has(attribute)) direction = attribute as Direction;
  }
  if (sections.length === 0) throw new RtspSyntaxError('a description without any RTP media');
  const media = sections.map((section) => toMedia(section, direction));
  // Some cameras call all their media `sendonly`, from their own point of view: then none is a backchannel.
  const allSendonly = media.every((m) => m.direction === 'sendonly');
  return { control, media: media.map((m) => ({ ...m, backchannel: !allSendonly && m.direction === 'sendonly' })) };
}
