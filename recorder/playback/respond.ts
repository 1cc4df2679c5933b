// Streams a representation as the answer to a request, with its conditions and ranges (RFC 9110 §13 to §15).

import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../../base/log.ts';
import { pathOf } from '../http/problem.ts';
import { select } from '../http/selection.ts';
import type { ArchiveFile } from '../footage/archive-file.ts';
import { HolderLost } from '../footage/remote-file.ts';
import type { Piece } from '../footage/sample-runs.ts';
import { slice, totalSize } from './body.ts';
import { contentRange, type ByteRange } from '../http/byte-range.ts';
import type { Representation } from './recording.ts';
import { SendAborted, type Sender } from './sender.ts';

interface PlaybackResponse {
  readonly representation: Representation;
  /** Undefined when the whole body is in memory. */
  readonly file: ArchiveFile | undefined;
  readonly contentType: string;
  readonly cacheControl: string;
  /** The answer does not state its length, but ends with a chunk of no bytes. */
  readonly isChunked?: boolean;
}

export class Responder {
  readonly sender: Sender;
  readonly #log: Log;

  constructor(sender: Sender, log: Log) {
    this.sender = sender;
    this.#log = log;
  }

  /** Answers GET and HEAD. Resolves when the last byte was sent, or the client has disconnected. */
  async respond(request: FastifyRequest, reply: FastifyReply, answer: PlaybackResponse): Promise<void> {
    const { representation, contentType, cacheControl } = answer;
    const { pieces, sizeBytes } = representation;
    const selected = select(request, reply, representation, { what: 'recording', cacheControl });
    if (selected === 'not-modified') return this.stream(request, reply, 304, async () => {});
    reply.header('content-type', contentType);
    if (selected === 'whole') return this.#send(request, reply, 200, answer, pieces);
    const [first, second] = selected;
    if (first && !second) {
      reply.header('content-range', contentRange(first, sizeBytes));
      return this.#send(request, reply, 206, answer, slice(pieces, first));
    }
    const boundary = randomBytes(12).toString('hex');
    reply.header('content-type', `multipart/byteranges; boundary=${boundary}`);
    return this.#send(request, reply, 206, answer, multipart(answer, selected, boundary));
  }

  /** Takes the reply over from fastify and lets `send` write the body. If `send` fails, the connection is closed. */
  async stream(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    send: (raw: ServerResponse) => Promise<void>,
  ): Promise<void> {
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(status, reply.getHeaders() as Record<string, string | string[]>);
    try {
      if (request.method !== 'HEAD' && status !== 304) await send(raw);
      raw.end();
    } catch (err) {
      // The head was sent already: only a broken connection tells the client that the body is incomplete.
      raw.destroy();
      if (err instanceof SendAborted || err instanceof HolderLost) return;
      this.#log.error({ err, method: request.method, path: pathOf(request.url) }, 'a request failed');
    }
  }

  #send(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    { file, isChunked = false }: PlaybackResponse,
    body: readonly Piece[],
  ): Promise<void> {
    if (!isChunked || request.method === 'HEAD') reply.header('content-length', totalSize(body));
    return this.stream(request, reply, status, (raw) => this.sender.send(raw, file, body));
  }
}

/** §14.6 */
function multipart(
  { representation, contentType }: PlaybackResponse,
  ranges: readonly ByteRange[],
  boundary: string,
): Piece[] {
  const { pieces, sizeBytes } = representation;
  const body: Piece[] = [];
  for (const range of ranges) {
    const fields = `Content-Type: ${contentType}\r\nContent-Range: ${contentRange(range, sizeBytes)}`;
    body.push(Buffer.from(`\r\n--${boundary}\r\n${fields}\r\n\r\n`), ...slice(pieces, range));
  }
  body.push(Buffer.from(`\r\n--${boundary}--\r\n`));
  return body;
}

/** Writes many small pieces to the socket in one go. Does not wait for the socket: the pieces stay in memory anyway. */
export async function sendTogether(raw: ServerResponse, pieces: readonly Buffer[]): Promise<void> {
  raw.cork();
  for (const piece of pieces) raw.write(piece);
  raw.uncork();
}
