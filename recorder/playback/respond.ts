// A representation and a request in; the answer with its ranges and conditions out, streamed (RFC 9110 §13 to §15).

import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../http/problem.ts';
import type { ArchiveFile } from './archive-file.ts';
import type { Piece } from './body.ts';
import { slice, totalSize } from './body.ts';
import type { ByteRange } from './byte-range.ts';
import { contentRange, parseRange } from './byte-range.ts';
import { evaluate, rangeApplies } from './conditions.ts';
import type { Representation } from './recording.ts';
import { SendAborted, type Sender } from './sender.ts';

export interface Answer {
  readonly representation: Representation;
  /** Undefined when all of the body is in memory. */
  readonly file: ArchiveFile | undefined;
  readonly contentType: string;
  readonly cacheControl: string;
}

/** Answers GET and HEAD. Resolves when the last byte was taken, or the client is gone. */
export async function respond(
  request: FastifyRequest,
  reply: FastifyReply,
  sender: Sender,
  answer: Answer,
): Promise<void> {
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
  if (outcome === 'not-modified') return start(reply, 304, {}, []);
  // A range of a HEAD request means nothing (§14.2).
  const ranged = request.method === 'GET' && rangeApplies(request.headers, representation);
  const asked = parseRange(ranged ? request.headers.range : undefined, sizeBytes);
  switch (asked.kind) {
    case 'unsatisfiable':
      reply.header('content-range', `bytes */${sizeBytes}`);
      throw new ApiError(416, 'range-not-satisfiable', `Range: the recording has ${sizeBytes} bytes`);
    case 'whole':
      return start(reply, 200, { 'content-type': contentType }, pieces);
    case 'ranges': {
      const [first] = asked.ranges as [ByteRange];
      if (asked.ranges.length > 1) return sendMultipart(asked.ranges);
      const head = { 'content-type': contentType, 'content-range': contentRange(first, sizeBytes) };
      return start(reply, 206, head, slice(pieces, first));
    }
  }

  function sendMultipart(ranges: readonly ByteRange[]): Promise<void> {
    const boundary = randomBytes(12).toString('hex');
    const body: Piece[] = [];
    for (const range of ranges) {
      const head = `\r\n--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Range: ${contentRange(range, sizeBytes)}\r\n\r\n`;
      body.push(Buffer.from(head), ...slice(pieces, range));
    }
    body.push(Buffer.from(`\r\n--${boundary}--\r\n`));
    return start(reply, 206, { 'content-type': `multipart/byteranges; boundary=${boundary}` }, body);
  }

  async function start(
    reply: FastifyReply,
    status: number,
    head: Readonly<Record<string, string>>,
    body: readonly Piece[],
  ): Promise<void> {
    reply.headers(head);
    if (status !== 304) reply.header('content-length', totalSize(body));
    await stream(request, reply, status, (raw) => sender.send(raw, answer.file, body));
  }
}

/** Takes the reply over from fastify and lets `send` write its body; an aborted one ends the connection. */
export async function stream(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  send: (raw: FastifyReply['raw']) => Promise<void>,
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
    if (!(err instanceof SendAborted)) throw err;
  }
}

/** Hands many small pieces to the socket at once. Waits for nothing: they are in memory, and stay there. */
export async function sendTogether(raw: FastifyReply['raw'], pieces: readonly Buffer[]): Promise<void> {
  raw.cork();
  for (const piece of pieces) raw.write(piece);
  raw.uncork();
}
