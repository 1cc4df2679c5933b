// A capture of one connection to a camera as lines of JSON: all messages, and all packets with their times. Users attach it to
// reports about a camera, and `hack/camera --replay FILE` plays it back.
//
//   {"capture":1,"recorder":"0.1.0","transport":"tcp"}
//   {"ms":3,"from":"recorder","text":"DESCRIBE rtsp://camera/stream RTSP/1.0\r\n..."}
//   {"ms":9,"from":"camera","text":"RTSP/1.0 200 OK\r\n..."}
//   {"ms":40,"stream":0,"rtp":"gGAAAQ..."}                      base64; `rtcp` for RTCP
//
// The file is compressed with gzip (RFC 1952).

import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { messageOf } from '../../base/error.ts';

const CAPTURE_VERSION = 1;
/** Maximum uncompressed size: half a minute of most cameras. Later data is left out. */
export const MAX_CAPTURE_BYTES = 256 * 1024 * 1024;

const Head = z.object({
  capture: z.literal(CAPTURE_VERSION),
  recorder: z.string(),
  transport: z.enum(['tcp', 'udp', 'multicast']),
});
const Said = z.object({ ms: z.number(), from: z.enum(['recorder', 'camera']), text: z.string() });
const Packet = z.object({
  ms: z.number(),
  /** Index among the streams that were set up. */
  stream: z.number().int().min(0).max(31),
  rtp: z.base64().optional(),
  rtcp: z.base64().optional(),
});
const Line = z.union([Said, Packet]);

type CaptureHead = z.output<typeof Head>;
export type Message = z.output<typeof Said>;
export type CapturedPacket = z.output<typeof Packet>;

export interface Capture {
  readonly head: CaptureHead;
  /** In order of time; `ms` is relative to the start of the connection. */
  readonly lines: readonly (Message | CapturedPacket)[];
}

/** The file is not a capture; the message names the line. */
export class CaptureError extends Error {
  override readonly name = 'CaptureError';
}

export function formatCapture({ head, lines }: Capture): Buffer {
  return gzipSync([head, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''));
}

/** Throws `CaptureError`. */
export function parseCapture(file: Buffer): Capture {
  let text: string;
  try {
    text = gunzipSync(file, { maxOutputLength: 2 * MAX_CAPTURE_BYTES }).toString();
  } catch (err) {
    throw new CaptureError(`no capture: ${messageOf(err)}`, { cause: err });
  }
  const [first = '', ...rest] = text.split('\n');
  return {
    head: lineOf(Head, first, 1),
    lines: rest.filter((line) => line !== '').map((line, i) => lineOf(Line, line, i + 2)),
  };
}

function lineOf<T extends z.ZodType>(schema: T, line: string, number: number): z.output<T> {
  try {
    return schema.parse(JSON.parse(line));
  } catch (err) {
    throw new CaptureError(`not a capture of version ${CAPTURE_VERSION}: line ${number} cannot be read`, {
      cause: err,
    });
  }
}
