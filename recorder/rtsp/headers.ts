// The structured RTSP headers Session, Transport, RTP-Info and Public (RFC 2326 §12).
// Invalid optional parts are dropped; the rest is used.

import { RtspSyntaxError } from './error.ts';
import { parseDecimal, parseParameter, splitOutsideQuotes } from './parameters.ts';

export interface SessionHeader {
  readonly id: string;
  /** As written, including 0; undefined if not stated (then 60, RFC 2326 §12.37). */
  readonly timeoutSeconds: number | undefined;
}

export function parseSession(text: string): SessionHeader {
  const [id, ...parameters] = splitOutsideQuotes(text, ';');
  if (id === undefined || id === '' || /\s/.test(id)) throw new RtspSyntaxError('a Session header without an id');
  let timeoutSeconds: number | undefined;
  for (const part of parameters) {
    const { name, value } = parseParameter(part);
    if (name.toLowerCase() === 'timeout') timeoutSeconds ??= parseDecimal(value, 86_400);
  }
  return { id, timeoutSeconds };
}

/** Two channels or ports: for RTP and for RTCP. */
export type Pair = readonly [number, number];

export interface TransportHeader {
  readonly protocol: 'tcp' | 'udp';
  readonly unicast: boolean;
  readonly interleaved?: Pair;
  readonly clientPorts?: Pair;
  readonly serverPorts?: Pair;
  /** Multicast: the group address, its ports, and the time to live of its packets. */
  readonly destination?: string;
  readonly groupPorts?: Pair;
  readonly timeToLive?: number;
  /** The source address of the media if it is not that of the server. */
  readonly source?: string;
  readonly ssrc?: number;
}

/** `4-5`, or `4` alone, which means `4-5`. */
function parsePair(text: string | undefined, max: number): Pair | undefined {
  const [firstText, secondText] = (text ?? '').split('-');
  const first = parseDecimal(firstText?.trim(), max);
  if (first === undefined) return undefined;
  const second = secondText === undefined ? first + 1 : parseDecimal(secondText.trim(), max);
  return second === undefined || second > max ? undefined : [first, second];
}

function parseSsrc(text: string | undefined): number | undefined {
  // Hikvision pads with a space instead of a zero: `ssrc= d6d6627`.
  const digits = text?.trim() ?? '';
  return /^[0-9a-f]{1,8}$/i.test(digits) ? Number.parseInt(digits, 16) : undefined;
}

/** Parses the first transport of the header; a response has only one. */
export function parseTransport(text: string): TransportHeader {
  const [first = ''] = splitOutsideQuotes(text, ',');
  const [specification = '', ...parameters] = splitOutsideQuotes(first, ';');
  const parts = specification.toUpperCase().split('/');
  if (parts[0] !== 'RTP') throw new RtspSyntaxError('a Transport header that is not about RTP');
  const transport: { -readonly [K in keyof TransportHeader]: TransportHeader[K] } = {
    protocol: parts[2] === 'TCP' ? 'tcp' : 'udp',
    unicast: true,
  };
  for (const part of parameters) {
    const { name, value } = parseParameter(part);
    switch (name.toLowerCase()) {
      case 'multicast':
        transport.unicast = false;
        break;
      case 'interleaved': {
        const pair = parsePair(value, 255);
        if (pair) transport.interleaved = pair;
        break;
      }
      case 'client_port': {
        const pair = parsePair(value, 65_535);
        if (pair) transport.clientPorts = pair;
        break;
      }
      case 'server_port': {
        const pair = parsePair(value, 65_535);
        // OpenIPC sends port 0 or no ports at all.
        if (pair && pair[0] !== 0) transport.serverPorts = pair;
        break;
      }
      case 'destination':
        if (value) transport.destination = value;
        break;
      case 'port': {
        const pair = parsePair(value, 65_535);
        if (pair && pair[0] !== 0) transport.groupPorts = pair;
        break;
      }
      case 'ttl': {
        const timeToLive = parseDecimal(value, 255);
        if (timeToLive !== undefined) transport.timeToLive = timeToLive;
        break;
      }
      case 'source':
        if (value) transport.source = value;
        break;
      case 'ssrc': {
        const ssrc = parseSsrc(value);
        if (ssrc !== undefined) transport.ssrc = ssrc;
        break;
      }
      default:
    }
  }
  // Some cameras omit `/TCP` in their response, but channels make sense only over TCP.
  if (transport.interleaved && !transport.serverPorts) transport.protocol = 'tcp';
  return transport;
}

export function formatTransport(transport: TransportHeader): string {
  const parts = [transport.protocol === 'tcp' ? 'RTP/AVP/TCP' : 'RTP/AVP', transport.unicast ? 'unicast' : 'multicast'];
  if (transport.destination !== undefined) parts.push(`destination=${transport.destination}`);
  if (transport.groupPorts) parts.push(`port=${transport.groupPorts.join('-')}`);
  if (transport.timeToLive !== undefined) parts.push(`ttl=${transport.timeToLive}`);
  if (transport.source !== undefined) parts.push(`source=${transport.source}`);
  if (transport.interleaved) parts.push(`interleaved=${transport.interleaved.join('-')}`);
  if (transport.clientPorts) parts.push(`client_port=${transport.clientPorts.join('-')}`);
  if (transport.serverPorts) parts.push(`server_port=${transport.serverPorts.join('-')}`);
  if (transport.ssrc !== undefined) parts.push(`ssrc=${transport.ssrc.toString(16).padStart(8, '0').toUpperCase()}`);
  return parts.join(';');
}

/** One stream in RTP-Info. Only a hint: many cameras write zeros, -1, or the URL of another stream. */
export interface RtpInfo {
  readonly url: string;
  readonly sequenceNumber?: number;
  readonly rtpTime?: number;
  readonly ssrc?: number;
}

/** More streams than any camera plays at once. */
const MAX_RTP_INFO = 32;

/** Removes trailing white space and commas. */
function withoutCommas(text: string): string {
  let end = text.length;
  while (end > 0 && /[\s,]/.test(text[end - 1] as string)) end--;
  return text.slice(0, end);
}

export function parseRtpInfo(text: string): RtpInfo[] {
  const entries: RtpInfo[] = [];
  // A comma inside a URL must not split it, so entries are split where `url=` follows.
  for (const entryText of text.split(/,(?=\s*url\s*=)/i, MAX_RTP_INFO)) {
    const entry: { -readonly [K in keyof RtpInfo]: RtpInfo[K] } = { url: '' };
    for (const part of splitOutsideQuotes(entryText, ';')) {
      const { name, value } = parseParameter(part);
      // The last value may be followed by a comma.
      const digits = value === undefined ? undefined : withoutCommas(value);
      switch (name.toLowerCase()) {
        case 'url':
          entry.url = digits ?? '';
          break;
        case 'seq': {
          const sequenceNumber = parseDecimal(digits, 0xffff);
          if (sequenceNumber !== undefined) entry.sequenceNumber = sequenceNumber;
          break;
        }
        case 'rtptime': {
          const rtpTime = parseDecimal(digits, 0xffff_ffff);
          if (rtpTime !== undefined) entry.rtpTime = rtpTime;
          break;
        }
        case 'ssrc': {
          const ssrc = parseSsrc(digits);
          if (ssrc !== undefined) entry.ssrc = ssrc;
          break;
        }
        default:
      }
    }
    if (entry.url !== '') entries.push(entry);
  }
  return entries;
}

/** The methods of a Public header, in upper case. */
export function parsePublic(text: string): string[] {
  return splitOutsideQuotes(text, ',').map((method) => method.toUpperCase());
}
