// Removes from a capture what must not be shown: the camera's identity and address, how to log in, and what it saw and heard.
//
// What distinguishes cameras is kept: the dialogue, the order, sizes, times and headers of packets, parameter sets, and the first
// bytes of each slice. The rest of a packet is overwritten, so that its length stays the same.

import { hostInUrl } from '../../base/host.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { RtpPacket } from '../rtp/packet.ts';

/** Bytes of a slice that are kept: its header and hardly any of the picture. */
const SLICE_BYTES = 32;
/** Bytes of a packet in another format that are kept: enough for payload headers (RFC 2435, AV1, AAC, and others). */
const OTHER_BYTES = 24;
/** A byte that cannot be mistaken for a start code or for the end of a header. */
const FILL = 0xff;
const PLACE = 'camera';
const PATH = '/stream';

/** The confidential parts of the source's URL. */
interface Secrets {
  /** Host and port in all forms of an address, longest first. */
  readonly hosts: readonly string[];
  /** Path and query of the stream; empty if there is none. */
  readonly path: string;
}

/** `source`: the stream's URL, with or without user and password. Throws `RtspError` if it is not valid. */
export function secretsOf(source: string): Secrets {
  const { host, port, request } = parseRtspUrl(source);
  const name = hostInUrl(host);
  const [, path = ''] = /^[a-z+]+:\/\/[^/?]*(.*)$/i.exec(request) ?? [];
  return { hosts: [`${name}:${port}`, name], path: path === '/' ? '' : path };
}

/** Header fields that identify the caller or the camera or contain a secret. Of a challenge only the scheme is kept. */
const SECRET_FIELDS = /^(?:authorization|proxy-authorization|location|x-sessioncookie|x-accept-dynamic-rate):.*$/i;
/** Session-level lines of an SDP with names, serial numbers and addresses (RFC 8866 §5). */
const SECRET_LINES = /^([osiuep])=.*$/;
const SDP_STAND_INS: Readonly<Record<string, string>> = { o: 'o=- 0 0 IN IP4 0.0.0.0', s: 's=-' };

/** An RTSP message as text, without confidential parts. */
export function redactMessage(text: string, { hosts, path }: Secrets): string {
  let clean = text.replaceAll(/(rtspu?s?:\/\/)[^\s/@]*@/gi, '$1');
  if (path !== '') clean = clean.replaceAll(path, PATH);
  for (const host of hosts) clean = clean.replaceAll(host, PLACE);
  const lines = clean.split('\r\n').flatMap((line) => {
    if (SECRET_FIELDS.test(line)) return [];
    const letter = SECRET_LINES.exec(line)?.[1];
    if (letter !== undefined) return SDP_STAND_INS[letter] ?? [];
    return [line.replaceAll(/\b(realm|nonce|opaque|username|response|cname)=("[^"]*"|[^\s,;]*)/gi, '$1="x"')];
  });
  return lines.join('\r\n').replaceAll(/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, '0.0.0.0');
}

export type Coding = 'h264' | 'h265' | 'other';

const packetView = new RtpPacket();

/** A copy of an RTP packet that shows no picture and contains no sound. */
export function redactPacket(packet: Buffer, coding: Coding): Buffer {
  const copy = Buffer.from(packet);
  if (!packetView.parse(copy, 0, copy.length)) return copy.fill(FILL, Math.min(copy.length, OTHER_BYTES));
  const { payloadStart, payloadEnd } = packetView;
  if (coding === 'h264') redactH264(copy, payloadStart, payloadEnd);
  else if (coding === 'h265') redactH265(copy, payloadStart, payloadEnd);
  else keep(copy, payloadStart, payloadEnd, OTHER_BYTES);
  return copy;
}

/** Keeps the first `bytes` of `buffer[start, end)` and overwrites the rest. */
function keep(buffer: Buffer, start: number, end: number, bytes: number): void {
  if (start + bytes < end) buffer.fill(FILL, start + bytes, end);
}

/** RFC 6184 §5.4. */
function redactH264(buffer: Buffer, start: number, end: number): void {
  if (start >= end) return;
  const type = (buffer[start] as number) & 0x1f;
  if (type === 24) return aggregate(buffer, start + 1, end, redactH264);
  if (type === 28 || type === 29) return fragment(buffer, start, end, 2);
  if (type >= 7 && type <= 9) return;
  keep(buffer, start, end, type === 6 ? 4 : SLICE_BYTES);
}

/** RFC 7798 §4.4. */
function redactH265(buffer: Buffer, start: number, end: number): void {
  if (start >= end) return;
  const type = ((buffer[start] as number) >> 1) & 0x3f;
  if (type === 48) return aggregate(buffer, start + 2, end, redactH265);
  if (type === 49) return fragment(buffer, start, end, 3);
  if (type >= 32 && type <= 35) return;
  keep(buffer, start, end, type === 39 || type === 40 ? 5 : SLICE_BYTES);
}

/** The units of an aggregation packet, each after a 16-bit size. */
function aggregate(
  buffer: Buffer,
  start: number,
  end: number,
  redact: (buffer: Buffer, start: number, end: number) => void,
): void {
  for (let at = start; at + 2 <= end;) {
    const next = at + 2 + buffer.readUInt16BE(at);
    redact(buffer, at + 2, Math.min(next, end));
    at = next;
  }
}

/** A fragment: the first one contains the slice header. `header`: number of bytes before the data. */
function fragment(buffer: Buffer, start: number, end: number, header: number): void {
  const isFirst = ((buffer[start + header - 1] ?? 0) & 0x80) !== 0;
  keep(buffer, start, end, header + (isFirst ? SLICE_BYTES : 0));
}
