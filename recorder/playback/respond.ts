// A representation and a request in; the answer with its ranges and conditions out, streamed (RFC 9110 §13 to §15).

import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../../base/log.ts';
import { ApiError, pathOf } from '../http/problem.ts';
import type { ArchiveFile } from './archive-file.ts';
import type { Piece } from './body.ts';
import { slice, totalSize } from './body.ts';
import type { ByteRange } from '../http/byte-range.ts';
import { contentRange, parseRange } from '../http/byte-range.ts';
import { evaluate, rangeApplies } from '../http/conditions.ts';
import type { Representation } from './recording.ts';
import { SendAborted, type Sender } from './sender.ts';

export interface Answer {
  readonly representation: Representation;
  /** Undefined when all of the body is in memory. */
  readonly file: ArchiveFile | undefined;
  readonly contentType: string;
  readonly cacheControl: string;
}

export class Responder {
  readonly sender: Sender;
  readonly #log: Log;

  constructor(sender: Sender, log: Log) {
    this.sender = sender;
    this.#log = log;
  }

  /** Answers GET and HEAD. Resolves when the last byte was taken, or the client is gone. */
  async respond(request: FastifyRequest, reply: FastifyReply, answer: Answer): Promise<void> {
    const { representation, contentType, cacheControl } = answer;
    const { pieces, sizeBytes, etag, modifiedMs } = representation;
    reply.headers({
      etag,
      'last-modified': new Date(modifiedMs).toUTCString(),
      'accept-ranges': 'bytes',
      'cache-control': cacheControl,
      'x-content-type-options': 'nosniff',
    });
    const outcome = evaluate(request.headers, representation);
    if (outcome === 'failed') throw new ApiError(412, 'precondition-failed', 'the recording is in another state');
    if (outcome === 'not-modified') return this.stream(request, reply, 304, async () => {});
    // A range of a HEAD request means nothing (§14.2).
    const ranged = request.method === 'GET' && rangeApplies(request.headers, representation);
    const asked = parseRange(ranged ? request.headers.range : undefined, sizeBytes);
    if (asked.kind === 'unsatisfiable') {
      reply.header('content-range', `bytes */${sizeBytes}`);
      throw new ApiError(416, 'range-not-satisfiable', `Range: the recording has ${sizeBytes} bytes`);
    }
    reply.header('content-type', contentType);
    if (asked.kind === 'whole') return this.#send(request, reply, 200, answer.file, pieces);
    const [first] = asked.ranges as [ByteRange];
    if (asked.ranges.length === 1) {
      reply.header('content-range', contentRange(first, sizeBytes));
      return this.#send(request, reply, 206, answer.file, slice(pieces, first));
    }
    const boundary = randomBytes(12).toString('hex');
    reply.header('content-type', `multipart/byteranges; boundary=${boundary}`);
    return this.#send(request, reply, 206, answer.file, multipart(answer, asked.ranges, boundary));
  }

  /** Takes the reply over from fastify and lets `send` write its body; one that fails ends the connection. */
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
      // The head is gone already: only a broken connection says that the body is not whole.
      raw.destroy();
      if (err instanceof SendAborted) return;
      this.#log.error({ err, method: request.method, path: pathOf(request.url) }, 'request failed');
    }
  }

  #send(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    file: ArchiveFile | undefined,
    body: readonly Piece[],
  ): Promise<void> {
    reply.header('content-length', totalSize(body));
    return this.stream(request, reply, status, (raw) => this.sender.send(raw, file, body));
  }
}

/** §14.6 */
function multipart({ representation, contentType }: Answer, ranges: readonly ByteRange[], boundary: string): Piece[] {
  const { pieces, sizeBytes } = representation;
  const body: Piece[] = [];
  for (const range of ranges) {
    const fields = `Content-Type: ${contentType}\r\nContent-Range: ${contentRange(range, sizeBytes)}`;
    body.push(Buffer.from(`\r\n--${boundary}\r\n${fields}\r\n\r\n`), ...slice(pieces, range));
  }
  body.push(Buffer.from(`\r\n--${boundary}--\r\n`));
  return body;
}

/** Hands many small pieces to the socket at once. Waits for nothing: they are in memory, and stay there. */
export async function sendTogether(raw: ServerResponse, pieces: readonly Buffer[]): Promise<void> {
  raw.cork();
  for (const piece of pieces) raw.write(piece);
  raw.uncork();
}
