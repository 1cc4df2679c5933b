// Decodes key frames with one run of ffmpeg to their grids: of each picture the luminance of its cells.

import { once } from 'node:events';
import { startChild, type ChildLimits } from '../../base/child.ts';
import { errorCode, quietly } from '../../base/error.ts';
import { CELLS, COLUMNS, ROWS } from './grid.ts';
import type { Codec } from './key-frames.ts';

/** There is no such program. */
export class DecoderMissing extends Error {}

/** As for still images; several hundred pictures take a while. */
const LIMITS: ChildLimits = { memoryBytes: 1024 ** 3, cpuSeconds: 300, fileBytes: 64 * 1024, openFiles: 32 };
/** In two steps, each the mean of what a cell covers: the scored clips were measured so. */
const FILTER = `extractplanes=y,scale=${10 * COLUMNS}:${10 * ROWS}:flags=area,scale=${COLUMNS}:${ROWS}:flags=area`;

/**
 * The grids of the pictures, one after the other: fewer if some could not be decoded. Rejects with DecoderMissing, and with what
 * `pictures` throws.
 */
export async function decodeGrids(
  program: string,
  codec: Codec,
  pictures: AsyncIterable<Buffer>,
  maxPictures: number,
  signal: AbortSignal,
): Promise<Buffer> {
  signal.throwIfAborted();
  // prettier-ignore
  const args = ['-hide_banner', '-v', 'quiet', '-threads', '1', '-filter_threads', '1',
    // Half of the time of a picture: nothing is decoded twice to learn what comes, and edges of blocks are no matter to a cell.
    '-probesize', '32', '-analyzeduration', '0', '-skip_loop_filter', 'all',
    // The input must not make it read from elsewhere.
    '-protocol_whitelist', 'pipe', '-f', codec, '-i', 'pipe:0', '-vf', FILTER,
    '-fps_mode', 'passthrough', '-f', 'rawvideo', '-pix_fmt', 'gray', 'pipe:1'];
  // At a lower priority than recording.
  const child = startChild(program, args, {
    stdio: ['pipe', 'pipe', 'ignore'],
    limits: LIMITS,
    background: true,
    signal,
  });
  const chunks: Buffer[] = [];
  let size = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxPictures * CELLS) chunks.push(chunk);
    else child.kill('SIGKILL');
  });
  // If it ends before it has read everything, pictures are missing in its answer.
  child.stdin.on('error', () => {});
  const ended = once(child, 'close').catch((err: unknown) => {
    if (errorCode(err) !== 'ENOENT') throw err;
    throw new DecoderMissing('ffmpeg is not installed on this node: install it, or set ffmpeg.path', { cause: err });
  });
  const fed = (async () => {
    for await (const picture of pictures) {
      if (!child.stdin.writable) break;
      // `ended` rejects below, too.
      if (!child.stdin.write(picture)) await quietly(Promise.race([once(child.stdin, 'drain'), ended]));
    }
    child.stdin.end();
  })();
  try {
    await Promise.all([fed, ended]);
  } catch (err) {
    child.kill('SIGKILL');
    await Promise.allSettled([fed, ended]);
    if (signal.aborted) throw signal.reason;
    throw err;
  }
  return Buffer.concat(chunks);
}
