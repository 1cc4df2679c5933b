// The camera's half of RTSP on the wire (RFC 2326 §4, §10.12): bytes in, requests, replies and `$` frames out; replies to
// bytes. Written apart from the recorder's parser, so that the two do not share a mistake.

export interface RtspRequest {
  readonly method: string;
  /** The URI of the request line, as sent. */
  readonly uri: string;
  /** Names and values as sent, in order. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** The camera's clock when it came. */
  readonly atMs: number;
  /** Counts the camera's connections from 0. */
  readonly connectionIndex: number;
}

export interface RtspReply {
  status: number;
  reason: string;
  headers: [string, string][];
  body: string;
}

export type Incoming =
  | { readonly kind: 'request'; readonly request: Omit<RtspRequest, 'atMs' | 'connectionIndex'> }
  | { readonly kind: 'reply'; readonly status: number; readonly headers: readonly (readonly [string, string])[] }
  | { readonly kind: 'frame'; readonly channel: number; readonly data: Buffer };

/** The value of the first header of that name, in any case. */
export function header(message: { headers: readonly (readonly [string, string])[] }, name: string): string | undefined {
  return message.headers.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  301: 'Moved Permanently',
  302: 'Moved Temporarily',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  453: 'Not Enough Bandwidth',
  454: 'Session Not Found',
  455: 'Method Not Valid in This State',
  461: 'Unsupported Transport',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  551: 'Option Not Supported',
};

export function reply(status: number, headers: [string, string][] = [], body = ''): RtspReply {
  return { status, reason: REASONS[status] ?? 'Status', headers, body };
}

/** A copy of the reply with a header set, or taken away when `value` is undefined. */
export function withHeader(message: RtspReply, name: string, value: string | undefined): RtspReply {
  const others = message.headers.filter(([key]) => key.toLowerCase() !== name.toLowerCase());
  return { ...message, headers: value === undefined ? others : [...others, [name, value]] };
}

export function formatReply(message: RtspReply): Buffer {
  const body = Buffer.from(message.body);
  const lines = [`RTSP/1.0 ${message.status} ${message.reason}`];
  for (const [name, value] of message.headers) lines.push(`${name}: ${value}`);
  if (body.length > 0) lines.push(`Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]);
}

/** Collects bytes and yields whole messages. Throws on anything that a well-behaved client does not send. */
export class MessageReader {
  #pending: Buffer = Buffer.alloc(0);

  push(bytes: Buffer): Incoming[] {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    const messages: Incoming[] = [];
    for (;;) {
      const message = this.#next();
      if (!message) return messages;
      messages.push(message);
    }
  }

  #next(): Incoming | undefined {
    const pending = this.#pending;
    if (pending.length < 4) return undefined;
    if (pending[0] === 0x24) {
      const end = 4 + pending.readUInt16BE(2);
      if (pending.length < end) return undefined;
      this.#pending = pending.subarray(end);
      return { kind: 'frame', channel: pending[1] as number, data: pending.subarray(4, end) };
    }
    const headEnd = pending.indexOf('\r\n\r\n');
    if (headEnd < 0) return undefined;
    const [start = '', ...lines] = pending.subarray(0, headEnd).toString('latin1').split('\r\n');
    const headers = lines.map((line): readonly [string, string] => {
      const colon = line.indexOf(':');
      if (colon < 1) throw new Error(`header line without a name: ${JSON.stringify(line)}`);
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
    const end = headEnd + 4 + Number(header({ headers }, 'Content-Length') ?? 0);
    if (pending.length < end) return undefined;
    this.#pending = pending.subarray(end);
    const body = pending.subarray(headEnd + 4, end);
    const status = /^RTSP\/1\.0 (\d{3}) /.exec(start);
    if (status) return { kind: 'reply', status: Number(status[1]), headers };
    const request = /^([A-Z_]+) (\S+) RTSP\/1\.0$/.exec(start);
    if (!request) throw new Error(`no request line: ${JSON.stringify(start)}`);
    return { kind: 'request', request: { method: request[1] ?? '', uri: request[2] ?? '', headers, body } };
  }
}
