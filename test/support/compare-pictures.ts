// Compares screenshots with the PNG files that were committed for them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './until.ts';

/** Where pictures that differ are put, beside the expected ones and what differs. */
const DIFFERENT = join(import.meta.dirname, '../../dist/different-pictures');
/** Levels of a channel by which pixels may differ: text has slightly different borders with another version of a library. */
const LEVELS = 40;
/** Of all pixels. */
const SHARE = 0.001;
/** What moved by a few pixels changes few pixels, but many of those around it. */
const SQUARE = 16;
const SQUARE_SHARE = 0.1;
const AGAIN_MS = 1_000;
/** What comes last in a view is there after this time. */
const LATE_MS = 45_000;
/** The same where it is written. */
const SETTLED_MS = 4_000;

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Pixels with bytes for red, green and blue, row after row. */
interface Pixels extends Size {
  readonly data: Buffer;
}

/**
 * Compares a screenshot with a PNG file: one pixel in a thousand may differ, and a tenth of any square of 16 pixels. Takes it again
 * while it differs, because a busy machine shows late what comes last. With `KUBE_NVR_UPDATE=1` the file is written instead.
 */
export async function assertPicture(path: string, take: () => Promise<Buffer>): Promise<void> {
  const name = basename(path, '.png');
  const wanted = existsSync(path) ? readFileSync(path) : undefined;
  let actual: Buffer | undefined;
  let difference: Difference | undefined;
  const isSame = async (): Promise<boolean> => {
    actual = await take();
    // The same pixels give the same file.
    if (wanted?.equals(actual)) return true;
    difference = wanted ? compare(await pixelsOf(actual), await pixelsOf(wanted)) : { text: 'there is no such file' };
    return difference === undefined;
  };
  const isWritten = process.env['KUBE_NVR_UPDATE'] === '1';
  if (isWritten) {
    // Lasts: only while a person writes the files.
    await sleep(SETTLED_MS);
    if (!(await isSame())) writeFileSync(path, actual as unknown as Buffer);
    return;
  }
  try {
    await until(name, isSame, LATE_MS, AGAIN_MS);
  } catch (error) {
    if (!actual || !difference) throw error;
    mkdirSync(DIFFERENT, { recursive: true });
    const kept = (kind: string): string => join(DIFFERENT, `${name}-${kind}.png`);
    writeFileSync(kept('actual'), actual);
    if (wanted) writeFileSync(kept('expected'), wanted);
    if (difference.picture) writeFileSync(kept('difference'), await pngOf(difference.picture));
    assert.fail(`${name}: ${difference.text}. Look at ${kept('*')}; KUBE_NVR_UPDATE=1 writes the expected pictures`);
  }
}

interface Difference {
  readonly text: string;
  /** What differs in red on a dim copy; undefined for pictures of two sizes. */
  readonly picture?: Pixels;
}

/** What makes two pictures different; undefined if it is less than the limits. */
export function compare(actual: Pixels, wanted: Pixels): Difference | undefined {
  const { width, height } = wanted;
  if (actual.width !== width || actual.height !== height) {
    return { text: `${actual.width}x${actual.height} instead of ${width}x${height} pixels` };
  }
  const [a, b] = [actual.data, wanted.data];
  const columns = Math.ceil(width / SQUARE);
  const squares = new Uint16Array(columns * Math.ceil(height / SQUARE));
  const different: number[] = [];
  for (let y = 0; y < height; y++) {
    const [from, to] = [y * width * 3, (y + 1) * width * 3];
    if (a.compare(b, from, to, from, to) === 0) continue;
    for (let x = 0; x < width; x++) {
      const at = from + x * 3;
      const level = (i: number): number => Math.abs((a[at + i] ?? 0) - (b[at + i] ?? 0));
      if (Math.max(level(0), level(1), level(2)) <= LEVELS) continue;
      different.push(y * width + x);
      const square = Math.floor(y / SQUARE) * columns + Math.floor(x / SQUARE);
      squares[square] = (squares[square] ?? 0) + 1;
    }
  }
  const share = different.length / (width * height);
  const most = squares.reduce((best, count, i) => (count > (squares[best] ?? 0) ? i : best), 0);
  const mostShare = (squares[most] ?? 0) / SQUARE ** 2;
  if (share <= SHARE && mostShare <= SQUARE_SHARE) return undefined;
  const data = Buffer.from(b.map((level) => 64 + level / 4));
  for (const pixel of different) data.set([255, 0, 0], pixel * 3);
  const [x, y] = [(most % columns) * SQUARE, Math.floor(most / columns) * SQUARE];
  const text = `${different.length} pixels differ (${(share * 100).toFixed(3)} %), most at ${x},${y} (${Math.round(mostShare * 100)} %)`;
  return { text, picture: { width, height, data } };
}

async function pixelsOf(picture: Buffer): Promise<Pixels> {
  // Bytes 16 to 23 of every PNG file are its width and height (PNG, 11.2.1).
  const [width, height] = [picture.readUInt32BE(16), picture.readUInt32BE(20)];
  const data = await ffmpeg(['-f', 'png_pipe', '-i', '-', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'], picture);
  return { width, height, data };
}

const pngOf = ({ width, height, data }: Pixels): Promise<Buffer> =>
  ffmpeg(`-f rawvideo -pix_fmt rgb24 -s ${width}x${height} -i - -frames:v 1 -c:v png -f image2pipe -`.split(' '), data);

/** Returns what it writes. In the background: cameras run in the process of a test. */
async function ffmpeg(args: readonly string[], input: Buffer): Promise<Buffer> {
  const child = spawn('ffmpeg', ['-v', 'error', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(input);
  return buffer(child.stdout);
}
