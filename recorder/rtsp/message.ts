// Parses and formats RTSP requests and responses (RFC 2326 §6 and §7). Header names ignore case and values are trimmed, because
// cameras write `Cseq`, `CSeq: 1 ` and worse.

import { RtspSyntaxError } from './error.ts';

/** Limits above any real message; what exceeds them is ignored. */
const MAX_FIELDS = 128;
const MAX_VALUE_LENGTH = 8 * 1024;

/** Header fields in order; a name may occur more than once. */
export class HeaderFields {
  readonly #fields: { readonly name: string; readonly value: string }[] = [];

  add(name: string, value: string): this {
    if (this.#fields.length < MAX_FIELDS && value.length <= MAX_VALUE_LENGTH) this.#fields.push({ name, value });
    return this;
  }

  /** The first field of that name. */
  get(name: string): string | undefined {
    const key = name.toLowerCase();
    return this.#fields.find((field) => field.name.toLowerCase() === key)?.value;
  }

  all(name: string): string[] {
    const key = name.toLowerCase();
    return this.#fields.filter((field) => field.name.toLowerCase() === key).map((field) => field.value);
  }

  /** Extends the value of the last field by a folded line (RFC 2822 §2.2.3). */
  continueLast(text: string): void {
    const last = this.#fields.at(-1);
    if (!last || last.value.length + text.length >= MAX_VALUE_LENGTH) return;
    const value = last.value === '' ? text : `${last.value} ${text}`;
    this.#fields[this.#fields.length - 1] = { name: last.name, value };
  }

  [Symbol.iterator](): Iterator<{ readonly name: string; readonly value: string }> {
    return this.#fields[Symbol.iterator]();
  }
}

export interface RtspResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly reason: string;
  readonly headers: HeaderFields;
  readonly body: string;
}

export interface RtspRequest {
  readonly kind: 'request';
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderFields;
  readonly body: string;
}

export type RtspMessage = RtspResponse | RtspRequest;

/** Parses the head of a message, up to the empty line; the caller fills in `body`. */
export function parseHead(text: string): RtspMessage {
  const lines = text.split(/\r?\n/);
  const startLine = (lines[0] ?? '').trim();
  const headers = new HeaderFields();
  for (const line of lines.slice(1)) {
    if (line.trim() === '') continue;
    if (line.startsWith(' ') || line.startsWith('\t')) {
      headers.continueLast(line.trim());
      continue;
    }
    const colon = line.indexOf(':');
    // A line without a colon is ignored; the others are used.
    if (colon > 0) headers.add(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  const response = /^RTSP\/\d+\.\d+\s+(\d{3})(?:\s+([^]*))?$/i.exec(startLine);
  if (response) {
    return { kind: 'response', status: Number(response[1]), reason: response[2]?.trim() ?? '', headers, body: '' };
  }
  const request = /^([A-Z_]+)\s+(\S+)\s+RTSP\/\d+\.\d+$/.exec(startLine);
  if (request) return { kind: 'request', method: request[1] ?? '', url: request[2] ?? '', headers, body: '' };
  if (/^HTTP\//i.test(startLine)) throw new RtspSyntaxError('an HTTP answer: this port does not speak RTSP');
  throw new RtspSyntaxError('a message whose first line is neither a request nor a response');
}

/** Length of the body in bytes; 0 if the header is absent or not a number. */
export function contentLength(headers: HeaderFields): number {
  const text = headers.get('Content-Length');
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/** CSeq; undefined if it is absent or not a number. */
export function sequenceOf(headers: HeaderFields): number | undefined {
  const text = headers.get('CSeq');
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** Keeps a value on one line, so that text from a camera or the configuration cannot inject a header. */
function singleLine(value: string): string {
  return value.replace(/[\r\n\0]+/g, ' ');
}

export function formatMessage(message: RtspMessage): string {
  const startLine =
    message.kind === 'request'
      ? `${message.method} ${message.url} RTSP/1.0`
      : `RTSP/1.0 ${message.status} ${message.reason}`;
  let text = `${singleLine(startLine)}\r\n`;
  for (const { name, value } of message.headers) text += `${singleLine(name)}: ${singleLine(value)}\r\n`;
  if (message.body !== '' && message.headers.get('Content-Length') === undefined)
    text += `Content-Length: ${Buffer.byteLength(message.body)}\r\n`;
  return `${text}\r\n${message.body}`;
}
