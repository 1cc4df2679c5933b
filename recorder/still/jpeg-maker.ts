// Makes small JPEGs of key frames: a few at a time for all callers, each within a time limit.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { StillError } from '../snapshots/error.ts';
import type { FetchedImage } from '../snapshots/fetch-image.ts';
import { once } from 'node:events';
import { startChild, type ChildLimits } from '../../base/child.ts';
import { errorCode } from '../../base/error.ts';

const MAX_JPEG_BYTES = 4 * 1024 * 1024;
const MAX_ERROR_BYTES = 4096;
/** An 8K picture takes about 300 MB and a second or two. No footage is written. */
const LIMITS: ChildLimits = { memoryBytes: 1024 ** 3, cpuSeconds: 60, fileBytes: 64 * 1024, openFiles: 32 };

interface JpegMakerDeps {
  readonly ffmpegPath: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** How many runs of ffmpeg at once. */
const MAX_RUNNING = 2;
/** Pictures that may wait for a run; the page of a node with many cameras requests all of them at once. */
const MAX_WAITING = 256;
const TIMEOUT_MS = 10_000;

export class JpegMaker {
  readonly #deps: JpegMakerDeps;
  readonly #end = new AbortController();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(deps: JpegMakerDeps) {
    this.#deps = deps;
  }

  /** `read` is called when the turn has come, and returns the movie of one picture. Rejects with StillError. */
  async make(cameraId: string, maxWidth: number, read: () => Promise<Buffer>): Promise<FetchedImage> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING) {
        throw new StillError('too-many-thumbnails', 'too many pictures are being made: ask again in a while');
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    try {
      return await this.#make(cameraId, maxWidth, read);
    } finally {
      // Passes the slot to the next waiting caller, or frees it.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  /** Aborts all work. */
  close(): void {
    this.#end.abort(new StillError('thumbnail-failed', 'the recorder is stopping'));
  }

  async #make(cameraId: string, maxWidth: number, read: () => Promise<Buffer>): Promise<FetchedImage> {
    const { clock, ffmpegPath, log } = this.#deps;
    const late = new AbortController();
    const timer = clock.after(TIMEOUT_MS, () => {
      late.abort(new StillError('thumbnail-failed', `the picture was not made within ${TIMEOUT_MS / 1000} s`));
    });
    try {
      const body = await renderJpeg(
        ffmpegPath,
        await read(),
        maxWidth,
        AbortSignal.any([late.signal, this.#end.signal]),
      );
      return { type: 'image/jpeg', body };
    } catch (err) {
      if (err instanceof StillError) throw err;
      log.warn({ camera: cameraId, err }, 'a thumbnail could not be made');
      throw new StillError('thumbnail-failed', 'the picture could not be made; the log has the reason', { cause: err });
    } finally {
      timer.cancel();
    }
  }
}

/** At most `maxWidth` pixels wide, never enlarged, with square pixels. Throws StillError, or the signal's reason. */
async function renderJpeg(program: string, movie: Buffer, maxWidth: number, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted();
  const scale = `scale=w='trunc(min(${maxWidth},iw*sar)/2)*2':h='trunc(ow/dar/2)*2',setsar=1`;
  // prettier-ignore
  const args = ['-hide_banner', '-v', 'error', '-threads', '1',
    // The input must not make it read from elsewhere.
    '-protocol_whitelist', 'pipe', '-f', 'mp4', '-i', 'pipe:0', '-map', '0:v:0',
    '-frames:v', '1', '-vf', scale, '-pix_fmt', 'yuvj420p', '-c:v', 'mjpeg', '-q:v', '4', '-f', 'image2pipe', 'pipe:1'];
  const child = startChild(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    limits: LIMITS,
    // At a lower priority than recording.
    background: true,
    signal,
  });
  const chunks: Buffer[] = [];
  let size = 0;
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_JPEG_BYTES) chunks.push(chunk);
    else child.kill('SIGKILL');
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-MAX_ERROR_BYTES)));
  // If it ends before it has read everything, its exit says why.
  child.stdin.on('error', () => {});
  child.stdin.end(movie);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    const jpeg = Buffer.concat(chunks);
    if (code === 0 && jpeg.length > 0) return jpeg;
    const reason = said.trim().split('\n').at(-1)?.slice(0, 500) || 'no error message';
    throw new StillError('thumbnail-failed', `ffmpeg could not decode the picture: ${reason}`);
  } catch (err) {
    if (signal.aborted) throw signal.reason;
    if (errorCode(err) !== 'ENOENT') throw err;
    const hint = 'ffmpeg is not installed on this node: install it, or set ffmpeg.path';
    throw new StillError('ffmpeg-missing', hint, { cause: err });
  }
}
